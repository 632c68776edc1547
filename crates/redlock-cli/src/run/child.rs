//! The command's process, and its process group.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use rustix::process::{Pid, Signal, WaitOptions, kill_process_group, test_kill_process_group, waitpid};
use tokio::signal::unix::{self, SignalKind};

use crate::exit::Code;

/// The command, running in a process group of its own.
pub(super) struct Child {
    group: Pid,
    changes: unix::Signal,
}

/// What has become of the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// It has ended, with the code that is passed on.
    Ended(Code),
    /// It was stopped by this signal.
    Stopped(i32),
}

impl Child {
    /// Starts the command.
    pub(super) fn start(command: &mut Command) -> io::Result<Self> {
        // Before the process, so that no change of it is missed.
        let changes = unix::signal(SignalKind::child())?;
        let process = command.process_group(0).spawn()?;
        Ok(Self { group: Pid::from_child(&process), changes })
    }

    pub(super) const fn group(&self) -> Pid {
        self.group
    }

    /// What becomes of the command next. Not to be asked again once it has ended. Dropping the future loses
    /// nothing.
    pub(super) async fn change(&mut self) -> io::Result<Change> {
        loop {
            // Its process is the only one that this program has started.
            let status = waitpid(Some(self.group), WaitOptions::NOHANG | WaitOptions::UNTRACED)?;
            if let Some((_, status)) = status {
                if let Some(signal) = status.stopping_signal() {
                    return Ok(Change::Stopped(signal));
                }
                if let Some(signal) = status.terminating_signal() {
                    return Ok(Change::Ended(Code::of_signal(signal)));
                }
                if let Some(status) = status.exit_status() {
                    return Ok(Change::Ended(Code::of_status(status)));
                }
            }
            self.changes.recv().await;
        }
    }

    /// Sends a signal to every process of the group. There may be none left.
    pub(super) fn signal(&self, signal: Signal) {
        let _ = kill_process_group(self.group, signal);
    }

    /// Asks the group to end. A process that is stopped gets no signal but SIGKILL until it goes on.
    pub(super) fn terminate(&self) {
        self.signal(Signal::TERM);
        self.signal(Signal::CONT);
    }

    /// Whether there are processes of the group, also after the command itself has ended.
    pub(super) fn has_processes(&self) -> bool {
        test_kill_process_group(self.group).is_ok()
    }
}
