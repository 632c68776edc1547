//! The signals that the program gets, for the command.

use std::fs;
use std::future::poll_fn;
use std::io;
use std::task::Poll;

use tokio::signal::unix::{self, SignalKind};

/// Those of the signals for the command that the program was not started to ignore.
pub(super) struct Signals {
    streams: Vec<(Signal, unix::Signal)>,
}

/// A signal for the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Signal {
    pub(super) number: i32,
    pub(super) name: &'static str,
    /// Whether it is sent to end a program.
    pub(super) ends: bool,
}

impl Signals {
    /// Begins to listen. From here on none of them ends the program by itself.
    pub(super) fn listen() -> io::Result<Self> {
        let ignored = ignored();
        let mut streams = Vec::new();
        for signal in FOR_THE_COMMAND {
            // Under `nohup`, or in the background of a script, the command is not to have it either.
            if ignored & (1 << (signal.number - 1)) == 0 {
                streams.push((signal, unix::signal(SignalKind::from_raw(signal.number))?));
            }
        }
        Ok(Self { streams })
    }

    /// Listens to SIGTSTP too: from here on that is for the command to obey. Before there is one, it stops the
    /// program.
    pub(super) fn listen_to_stop(&mut self) -> io::Result<()> {
        if ignored() & (1 << (STOP.number - 1)) == 0 {
            self.streams.push((STOP, unix::signal(SignalKind::from_raw(STOP.number))?));
        }
        Ok(())
    }

    /// The next signal. Dropping the future loses none.
    pub(super) async fn next(&mut self) -> Signal {
        poll_fn(|context| {
            for (signal, stream) in &mut self.streams {
                if let Poll::Ready(Some(())) = stream.poll_recv(context) {
                    return Poll::Ready(*signal);
                }
            }
            Poll::Pending
        })
        .await
    }
}

/// The signals that the program ignores since its start, a bit each. The system tells only on Linux; elsewhere
/// none counts as ignored.
fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

const fn signal(kind: SignalKind, name: &'static str, ends: bool) -> Signal {
    Signal { number: kind.as_raw_value(), name, ends }
}

/// SIGINT comes first: where several wait, it is the one that somebody waits behind.
const FOR_THE_COMMAND: [Signal; 6] = [
    INTERRUPT,
    signal(SignalKind::terminate(), "SIGTERM", true),
    signal(SignalKind::hangup(), "SIGHUP", true),
    signal(SignalKind::quit(), "SIGQUIT", true),
    signal(SignalKind::user_defined1(), "SIGUSR1", false),
    signal(SignalKind::user_defined2(), "SIGUSR2", false),
];

pub(super) const INTERRUPT: Signal = signal(SignalKind::interrupt(), "SIGINT", true);

/// What Ctrl-Z sends; its number is the same on all systems but for MIPS.
const STOP: Signal = signal(SignalKind::from_raw(rustix::process::Signal::TSTP.as_raw()), "SIGTSTP", false);
