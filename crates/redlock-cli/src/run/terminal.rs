//! The terminal, and whose it is.
//!
//! A terminal belongs to one process group at a time, the one in its foreground: that one may read from it and
//! gets what Ctrl-C, Ctrl-Z and a hang-up send. A command in a process group of its own has to be given the
//! terminal, and to give it back.

use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal as _};

use nix::sys::signal::{SigSet, Signal};
use rustix::process::{Pid, getpgrp, kill_current_process_group};
use rustix::termios::{tcgetpgrp, tcsetpgrp};

/// The terminal that the program was started from.
pub(super) struct Terminal {
    tty: File,
}

impl Terminal {
    /// The controlling terminal, if there is one.
    pub(super) fn open() -> Option<Self> {
        let tty = OpenOptions::new().read(true).write(true).open("/dev/tty").ok()?;
        // To set the foreground from the background is what stops a program by default. Threads that are
        // started later inherit this, processes do not.
        let mut background = SigSet::empty();
        background.add(Signal::SIGTTOU);
        background.thread_block().ok()?;
        Some(Self { tty })
    }

    /// Whether this program's group is in the foreground.
    pub(super) fn is_ours(&self) -> bool {
        self.belongs_to(getpgrp())
    }

    pub(super) fn belongs_to(&self, group: Pid) -> bool {
        tcgetpgrp(&self.tty).is_ok_and(|foreground| foreground == group)
    }

    /// Puts `group` into the foreground. It fails if the terminal or the group is gone, and then there is
    /// nothing to be done.
    pub(super) fn give_to(&self, group: Pid) {
        let _ = tcsetpgrp(&self.tty, group);
    }

    /// Takes the terminal back from `group`, unless somebody else has it by now.
    pub(super) fn take_back_from(&self, group: Pid) {
        if self.belongs_to(group) {
            self.give_to(getpgrp());
        }
    }
}

/// Whether the command is to have the terminal from its start: when it both reads from and writes to it. One
/// end of a pipeline has to leave it to the others, and is given it when it asks.
pub(super) fn is_all_the_commands() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Stops this program together with its job, as Ctrl-Z would, and returns when it goes on. Where nobody could
/// make it go on, because no shell watches over the job, the system does not stop it.
pub(super) fn suspend() {
    // Not SIGTSTP, which has a handler here, and not SIGSTOP, which stops whether or not somebody watches.
    let _ = kill_current_process_group(rustix::process::Signal::TTIN);
}
