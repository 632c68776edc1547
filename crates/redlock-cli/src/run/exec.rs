//! The last step before the command runs, in its process.
//!
//! What a process must do to itself between fork and exec cannot be done from safe code before its start. So
//! the command's process is this program first, under a name that is none of its subcommands: it does what has
//! to be done and then becomes the command.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;

use rustix::process::{Pid, getpid, getppid};

use super::terminal::Terminal;
use crate::exit::Code;

/// The name of the last step, as the first argument.
pub(crate) const NAME: &str = "__exec";

/// What the command's process has to do before it is the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Preparation {
    /// The process that it must not outlive, and the signal that it gets when that is gone.
    pub(super) parent: Pid,
    pub(super) on_orphaned: Option<OnOrphaned>,
    /// Whether it takes the terminal.
    pub(super) foreground: bool,
}

/// The signal for a command whose keeper was killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OnOrphaned {
    Terminate,
    Kill,
}

impl Preparation {
    /// The command line that prepares `command` and then runs it.
    pub(super) fn command(self, command: &[OsString]) -> io::Result<Command> {
        let on_orphaned = match self.on_orphaned {
            None => "none",
            Some(OnOrphaned::Terminate) => "term",
            Some(OnOrphaned::Kill) => "kill",
        };
        let foreground = if self.foreground { "foreground" } else { "background" };
        let mut line = Command::new(own_program()?);
        line.arg0("redlock").arg(NAME).arg(self.parent.to_string()).args([on_orphaned, foreground]);
        line.args(command);
        Ok(line)
    }

    /// Reads the arguments after [`NAME`], up to the command.
    fn parse(mut words: impl Iterator<Item = OsString>) -> Option<Self> {
        let parent = Pid::from_raw(words.next()?.to_str()?.parse().ok()?)?;
        let on_orphaned = match words.next()?.to_str()? {
            "none" => None,
            "term" => Some(OnOrphaned::Terminate),
            "kill" => Some(OnOrphaned::Kill),
            _ => return None,
        };
        let foreground = words.next()? == "foreground";
        Some(Self { parent, on_orphaned, foreground })
    }

    /// Does it.
    fn carry_out(self) -> io::Result<()> {
        self.leave_with_parent()?;
        if self.foreground
            && let Some(terminal) = Terminal::open()
        {
            terminal.give_to(getpid());
        }
        Ok(())
    }

    /// Makes the system end this process when its parent ends without having ended it.
    fn leave_with_parent(self) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        {
            use rustix::process::{Signal, set_parent_process_death_signal};
            let signal = match self.on_orphaned {
                None => return Ok(()),
                Some(OnOrphaned::Terminate) => Signal::TERM,
                Some(OnOrphaned::Kill) => Signal::KILL,
            };
            set_parent_process_death_signal(Some(signal))?;
        }
        // It may have ended before the system was asked.
        if self.on_orphaned.is_some() && getppid() != Some(self.parent) {
            return Err(io::Error::other("redlock is gone"));
        }
        Ok(())
    }
}

/// Becomes the command, with the arguments after [`NAME`]. Returns only if that cannot be.
pub(crate) fn exec(mut words: impl Iterator<Item = OsString>) -> Code {
    let Some(preparation) = Preparation::parse(words.by_ref()) else { return Code::USAGE };
    let Some(program) = words.next() else { return Code::USAGE };
    let error = match preparation.carry_out() {
        Ok(()) => Command::new(&program).args(words).exec(),
        Err(error) => error,
    };
    let (code, reason) = reason(&error);
    eprintln!("redlock: {}: {reason}", shown(&program));
    code
}

fn reason(error: &io::Error) -> (Code, String) {
    match error.kind() {
        io::ErrorKind::NotFound => (Code::NOT_FOUND, "command not found".to_owned()),
        io::ErrorKind::PermissionDenied => (Code::NOT_EXECUTABLE, "not executable".to_owned()),
        _ => (Code::NOT_EXECUTABLE, error.to_string()),
    }
}

/// A program's name, without what could harm a terminal.
fn shown(program: &OsStr) -> String {
    program.to_string_lossy().chars().map(|letter| if letter.is_control() { '?' } else { letter }).collect()
}

/// This program's file. On Linux through the link that leads to it even if it was replaced since.
fn own_program() -> io::Result<PathBuf> {
    let link = PathBuf::from("/proc/self/exe");
    if link.exists() { Ok(link) } else { env::current_exe() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preparation_survives_the_command_line() {
        for on_orphaned in [None, Some(OnOrphaned::Terminate), Some(OnOrphaned::Kill)] {
            for foreground in [false, true] {
                let parent = Pid::from_raw(42).unwrap();
                let preparation = Preparation { parent, on_orphaned, foreground };
                let command = preparation.command(&["make".into(), "-j".into()]).unwrap();
                let mut words = command.get_args().map(OsStr::to_owned).skip(1);
                assert_eq!(Preparation::parse(words.by_ref()), Some(preparation));
                assert_eq!(words.collect::<Vec<_>>(), ["make", "-j"]);
            }
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for words in [&["x", "none", "background"][..], &["1", "stop", "background"], &["1"], &[]] {
            assert_eq!(Preparation::parse(words.iter().map(OsString::from)), None, "{words:?}");
        }
    }
}
