//! A program that runs, and what is left to see of it when it has ended.

use std::io::Read;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, ExitStatus};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use redlock_tests::harness::{Stopwatch, wait_until};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

/// A running program; killed if it is dropped.
pub(crate) struct Running {
    child: Child,
    stdout: Option<JoinHandle<String>>,
    stderr: Option<JoinHandle<String>>,
    watch: Stopwatch,
}

/// A program that has ended.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    /// Since its start.
    pub(crate) taken: Duration,
}

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        let watch = Stopwatch::start();
        let mut child = command.spawn().unwrap();
        let stdout = child.stdout.take().map(collect);
        let stderr = child.stderr.take().map(collect);
        Self { child, stdout, stderr, watch }
    }

    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        send(self.pid(), signal);
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits for its end.
    #[track_caller]
    pub(crate) fn finish(&mut self) -> Finished {
        self.finish_within(Duration::from_secs(30))
    }

    #[track_caller]
    pub(crate) fn finish_within(&mut self, limit: Duration) -> Finished {
        let mut status = None;
        wait_until("redlock has ended", limit, || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        let taken = self.watch.elapsed();
        let text = |output: &mut Option<JoinHandle<String>>| {
            output.take().map_or_else(String::new, |output| output.join().unwrap())
        };
        let (stdout, stderr) = (text(&mut self.stdout), text(&mut self.stderr));
        Finished { code: code(status.unwrap()), stdout, stderr, taken }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Finished {
    /// Runs a program to its end.
    #[track_caller]
    pub(crate) fn of(command: &mut Command) -> Self {
        Running::start(command).finish()
    }
}

/// A negative number for a program that has died of a signal itself.
fn code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| -status.signal().unwrap())
}

fn collect(mut output: impl Read + Send + 'static) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        output.read_to_end(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

pub(crate) fn send(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

/// Whether there is such a process, and it is not merely waiting to be collected.
pub(crate) fn is_alive(pid: i32) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let zombie = state.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('Z'));
    test_kill_process(Pid::from_raw(pid).unwrap()).is_ok() && !zombie
}
