//! Where tests run: with a server program, in a temporary directory in which nothing may be left running.

use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use std::{env, fs, io, thread};

use crate::cargo::{cargo, execute};

/// Runs `cargo test` with the same servers, and remembers which tests could not run.
pub(super) struct Bench {
    scratch: Scratch,
    program: Option<PathBuf>,
    long: bool,
}

impl Bench {
    /// Tests start `program`, or find one themselves.
    pub(super) fn new(program: Option<PathBuf>, long: bool) -> Result<Self, String> {
        let scratch = Scratch::new().map_err(|error| format!("no temporary directory: {error}"))?;
        Ok(Self { scratch, program, long })
    }

    /// Runs tests, and waits until their servers have ended.
    pub(super) fn test(&self, arguments: &[&str]) -> Result<(), String> {
        let outcome = execute(&mut self.command(arguments));
        outcome.and_then(|()| await_servers_gone(&self.scratch.0))
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = cargo(&["test", "--locked"]);
        command.args(arguments);
        command.env("REDLOCK_SKIPPED_FILE", self.not_run_file());
        // Servers live in the temporary directory: whatever is left in this one was left by these tests.
        command.env("TMPDIR", &self.scratch.0);
        if let Some(program) = &self.program {
            command.env("REDLOCK_REDIS_SERVER", program);
        }
        if self.long {
            command.env("REDLOCK_LONG", "1");
        }
        command
    }

    /// The names of the tests that could not run, in order.
    pub(super) fn not_run(&self) -> Result<Vec<String>, String> {
        let file = self.not_run_file();
        match fs::read_to_string(&file) {
            Ok(names) => Ok(in_order(&names)),
            // All tests could run.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(format!("{}: {error}", file.display())),
        }
    }

    fn not_run_file(&self) -> PathBuf {
        self.scratch.0.join("not-run")
    }
}

/// The lines of `names`, sorted. A test that asked for servers several times is named once.
fn in_order(names: &str) -> Vec<String> {
    let mut names: Vec<String> = names.lines().map(str::to_owned).collect();
    names.sort();
    names.dedup();
    names
}

/// A server ends together with the test process that started it, within a moment. This waits out the moment.
fn await_servers_gone(dir: &Path) -> Result<(), String> {
    for _ in 0..100 {
        if servers_in(dir)?.is_empty() {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(100));
    }
    Err(format!("servers that outlived their tests: {:?}", servers_in(dir)?))
}

/// The directories of servers that are still running, or were not stopped properly.
fn servers_in(dir: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let is_server = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default();
        name.to_string_lossy().starts_with("redlock-server")
    };
    Ok(paths.filter(is_server).collect())
}

/// A temporary directory that goes when it is dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> io::Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let dir = env::temp_dir().join(format!("redlock-xtask-{}-{count}", process::id()));
        fs::create_dir_all(&dir)?;
        Ok(Self(dir))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // After a failure, a server may be removing its own part at the same time.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_listed_once() {
        assert_eq!(in_order("b::two\na::one\nb::two\n"), ["a::one", "b::two"]);
    }

    #[test]
    fn servers_that_are_left_are_found() {
        let scratch = Scratch::new().unwrap();
        fs::create_dir(scratch.0.join("rustdoctest")).unwrap();
        assert_eq!(servers_in(&scratch.0), Ok(vec![]));
        await_servers_gone(&scratch.0).unwrap();
        let left = scratch.0.join("redlock-server-1");
        fs::create_dir(&left).unwrap();
        assert_eq!(servers_in(&scratch.0), Ok(vec![left]));
    }

    #[test]
    fn tests_are_told_which_server_to_start_and_where() {
        let bench = Bench::new(Some(PathBuf::from("/opt/redis-server")), true).unwrap();
        let command = bench.command(&["-p", "redlock-tests"]);
        let value = |name: &str| {
            let mut settings = command.get_envs();
            settings.find(|(key, _)| *key == name).and_then(|(_, value)| value).map(PathBuf::from)
        };
        assert_eq!(value("REDLOCK_REDIS_SERVER"), Some(PathBuf::from("/opt/redis-server")));
        assert_eq!(value("TMPDIR"), Some(bench.scratch.0.clone()));
        assert_eq!(value("REDLOCK_LONG"), Some(PathBuf::from("1")));
        assert_eq!(bench.not_run(), Ok(vec![]));
        fs::write(value("REDLOCK_SKIPPED_FILE").unwrap(), "a::one\n").unwrap();
        assert_eq!(bench.not_run(), Ok(vec!["a::one".to_owned()]));
    }
}
