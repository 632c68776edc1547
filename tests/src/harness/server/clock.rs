//! A wall clock of its own for one server.
//!
//! The server is started with a small library loaded before all others, whose clock is the system's plus what
//! a file says. The library is C, and compiled by the test itself.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::{env, process};

use super::super::clock::wall_clock_micros;
use super::super::nodes::unique;
use super::super::primary::Primary;

/// How far one server's clock is from the system's. The file goes with it.
#[derive(Debug)]
pub(super) struct ClockShift {
    path: PathBuf,
    file: File,
}

impl ClockShift {
    /// No shift yet.
    ///
    /// # Panics
    /// When the library cannot be compiled, naming the package to install.
    #[track_caller]
    pub(super) fn new() -> Self {
        let path = env::temp_dir().join(unique("redlock-clock"));
        let file = File::create_new(&path).expect("a file in the temporary directory");
        let shift = Self { path, file };
        shift.set(0);
        shift
    }

    /// Sets it, in milliseconds; the server sees it when it next looks at its clock. Not every command makes it
    /// look: Valkey 9.1 does about once in a millisecond.
    pub(super) fn set(&self, millis: i64) {
        let nanos = millis.checked_mul(1_000_000).expect("less than 292 years");
        self.file.write_all_at(&nanos.to_ne_bytes(), 0).expect("the clock's file can be written");
    }

    /// The words in front of the server's command line.
    #[track_caller]
    pub(super) fn prefix(&self) -> Vec<OsString> {
        let mut preload = OsString::from("LD_PRELOAD=");
        preload.push(library());
        let mut file = OsString::from("CLOCK_SHIFT_FILE=");
        file.push(&self.path);
        vec![preload, file]
    }
}

/// Whether the server's clock is so many milliseconds ahead of the system's.
pub(super) fn is_ahead_by(server: &Primary, millis: i64) -> bool {
    let before = wall_clock_micros();
    let (seconds, micros): (i64, i64) = server.ask(&redis::cmd("TIME"));
    let after = wall_clock_micros();
    // It was read between the two, or a moment earlier.
    let server_time = seconds * 1_000_000 + micros;
    let possible = server_time - after..=server_time - before + STALE_MICROS;
    possible.contains(&(millis * 1_000))
}

/// How old the time may be that a server answers with, and to spare.
const STALE_MICROS: i64 = 10_000;

impl Drop for ClockShift {
    fn drop(&mut self) {
        // Nobody is left to tell.
        let _ = fs::remove_file(&self.path);
    }
}

/// The compiled library, once per process. It stays in the temporary directory: servers may still be loading
/// it when the process ends.
#[track_caller]
fn library() -> &'static Path {
    static LIBRARY: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    match LIBRARY.get_or_init(|| compile("cc")) {
        Ok(path) => path,
        Err(reason) => panic!("{reason}"),
    }
}

fn compile(compiler: &str) -> Result<PathBuf, String> {
    let directory = env::temp_dir();
    let path = directory.join("redlock-clock-shift.so");
    // Compiled aside and renamed, so that no other process ever sees half of it.
    let (source, half) =
        (directory.join(unique("redlock-clock-shift.c")), directory.join(unique("redlock-so")));
    fs::write(&source, include_str!("clock_shift.c")).map_err(|error| error.to_string())?;
    let output = Command::new(compiler)
        .args(["-x", "c", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"])
        .args([&half, &source])
        .output();
    // Written by us a moment ago.
    let _ = fs::remove_file(&source);
    let output = output.map_err(|error| missing(compiler, &error.to_string()))?;
    if !output.status.success() {
        return Err(missing(compiler, &String::from_utf8_lossy(&output.stderr)));
    }
    fs::rename(&half, &path)
        .map_err(|error| format!("{}: {error} (process {})", path.display(), process::id()))?;
    Ok(path)
}

fn missing(compiler: &str, reason: &str) -> String {
    format!(
        "tests that set a server's clock compile a few lines of C, and `{compiler}` failed: {reason}\n\
         Install a compiler and the C library's headers (Debian, Ubuntu: `apt-get install gcc libc6-dev`)."
    )
}

#[cfg(test)]
mod tests {
    use super::super::super::may_own_servers;
    use super::super::Server;
    use super::*;

    #[test]
    fn a_missing_compiler_is_named_with_its_package() {
        let error = compile("no-such-compiler").unwrap_err();
        assert!(
            error.contains("`no-such-compiler` failed") && error.contains("apt-get install gcc"),
            "{error}"
        );
    }

    #[test]
    fn a_servers_clock_can_be_set() {
        if !may_own_servers() {
            return;
        }
        let server = Server::builder().clock().start();
        let other = Server::start();
        for shift in [0, 20_000, -30_000, -3_600_000, 250] {
            server.shift_clock(shift);
            assert!(is_ahead_by(&server, shift), "a shift of {shift} ms");
            assert!(!is_ahead_by(&server, shift + 5_000) && !is_ahead_by(&server, shift - 5_000));
            assert!(is_ahead_by(&other, 0), "another server after a shift of {shift} ms");
        }
        // It lives on: keys expire, blocked clients time out.
        server.set_px("short", "value", std::time::Duration::from_millis(100));
        let waited: Option<(String, String)> =
            redis::cmd("BLPOP").arg("none").arg(0.3).query(&mut server.connection()).unwrap();
        assert_eq!((waited, server.get("short")), (None, None));
    }
}
