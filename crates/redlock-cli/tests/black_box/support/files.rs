//! Files by which commands tell what they see.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use redlock_tests::harness::{unique, wait_until};

/// A directory that goes when it is dropped.
pub(crate) struct Files(PathBuf);

impl Files {
    pub(crate) fn new() -> Self {
        let path = std::env::temp_dir().join(unique("redlock-cli"));
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The path as a shell script can have it.
    pub(crate) fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    pub(crate) fn exists(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    /// The content; empty if there is no such file.
    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// Waits for a file that is written in one go, and reads it.
    pub(crate) fn await_line(&self, name: &str) -> String {
        wait_until(name, Duration::from_secs(10), || self.read(name).ends_with('\n'));
        self.read(name).trim().to_owned()
    }

    /// A process id that a command has written to a file.
    pub(crate) fn await_pid(&self, name: &str) -> i32 {
        self.await_line(name).parse().unwrap()
    }
}

impl AsRef<Path> for Files {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
