//! From the start of the command to its end: the lease, the command and the signals, whichever is first.

use std::io;
use std::time::Duration;

use futures_util::FutureExt as _;
use redlock_tokio::{Lease, LossReason};
use rustix::process::Signal as Raw;
use tokio::time::{Instant, sleep, sleep_until};

use super::child::{Change, Child};
use super::signals::{INTERRUPT, Signal, Signals};
use super::terminal::{self, Terminal};
use crate::args::OnLost;
use crate::exit::Code;
use crate::narrate::Narrator;
use crate::voice::Voice;

/// Watches over a running command.
pub(super) struct Watch<'a> {
    pub(super) child: Child,
    pub(super) terminal: Option<Terminal>,
    /// Whether the terminal was given to the command.
    pub(super) given: bool,
    pub(super) lease: &'a Lease,
    pub(super) on_lost: OnLost,
    pub(super) grace: Duration,
    pub(super) voice: &'a Voice,
    pub(super) narrator: &'a Narrator,
}

/// How the command ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    pub(super) code: Code,
    /// Whether the lease was lost before that.
    pub(super) lost: bool,
}

/// What was done to end the command.
#[derive(Clone, Copy, Debug, Default)]
struct Measures {
    lost: bool,
    /// It was sent a signal that ends programs.
    asked_to_end: bool,
    /// When it is to be killed.
    kill_at: Option<Instant>,
    /// When it is to go on, having been stopped.
    go_on_at: Option<Instant>,
}

impl Watch<'_> {
    /// Until the command has ended, and, if its lease was lost, all of its process group.
    pub(super) async fn until_the_end(mut self, signals: &mut Signals) -> io::Result<End> {
        let mut taken = Measures::default();
        let mut lost = self.lease.lost();
        let code = loop {
            tokio::select! {
                // The lease before all else: after a pause it may be over, and everything else is late.
                biased;
                reason = &mut lost, if !taken.lost => self.lost(reason, &mut taken),
                () = until(taken.kill_at) => self.kill(&mut taken),
                change = self.child.change() => match change? {
                    Change::Ended(code) => break code,
                    Change::Stopped(signal) => self.stopped(signal, &mut taken),
                },
                () = until(taken.go_on_at) => self.go_on(&mut taken),
                signal = signals.next() => self.pass_on(signal, &mut taken),
            }
        };
        if let Some(terminal) = &self.terminal {
            terminal.take_back_from(self.child.group());
        }
        if !taken.lost
            && let Some(reason) = lost.now_or_never()
        {
            self.lost(reason, &mut taken);
        }
        self.voice.tell(|| format!("the command has ended; its exit code is {}", code.get()));
        if taken.lost && self.on_lost != OnLost::Warn {
            self.sweep(signals, taken).await;
        }
        Ok(End { code, lost: taken.lost })
    }

    /// The lease is over, so the command must be.
    fn lost(&self, reason: LossReason, taken: &mut Measures) {
        taken.lost = true;
        let action = match self.on_lost {
            OnLost::Term => "sending SIGTERM to the command",
            OnLost::Kill => "killing the command",
            OnLost::Warn => "the command goes on without it",
        };
        // First what matters, then words.
        match self.on_lost {
            OnLost::Term => {
                self.child.terminate();
                taken.asked_to_end = true;
                taken.kill_at = Instant::now().checked_add(self.grace);
                // From here on Ctrl-C is for this program.
                if let Some(terminal) = &self.terminal {
                    terminal.take_back_from(self.child.group());
                }
            }
            OnLost::Kill => self.kill(taken),
            OnLost::Warn => {}
        }
        let trouble = self.narrator.trouble().map(|trouble| format!(" ({trouble})")).unwrap_or_default();
        self.voice.say(format!("{} is lost: {reason}{trouble}; {action}", self.lease.resource()));
    }

    fn kill(&self, taken: &mut Measures) {
        taken.kill_at = None;
        self.child.signal(Raw::KILL);
        self.voice.tell(|| "sent SIGKILL to the command".to_owned());
    }

    /// Passes a signal on to the command. The second one from somebody who wants it to end kills it.
    fn pass_on(&self, signal: Signal, taken: &mut Measures) {
        if signal == INTERRUPT && taken.asked_to_end {
            return self.kill(taken);
        }
        taken.asked_to_end |= signal.ends;
        if let Some(raw) = Raw::from_named_raw(signal.number) {
            self.child.signal(raw);
            self.voice.tell(|| format!("passed {} on to the command", signal.name));
        }
    }

    /// The command has stopped. If that is the terminal's doing, the command gets the terminal, or this
    /// program stops too, so that whoever sits there can go on with something else.
    ///
    /// A command that was stopped in any other way is left to whoever did that; its lease goes on.
    fn stopped(&mut self, signal: i32, taken: &mut Measures) {
        let group = self.child.group();
        let Some(terminal) = &self.terminal else { return };
        let in_front = terminal.is_ours() || terminal.belongs_to(group);
        // It tried to read or to write, or somebody has typed Ctrl-Z.
        let wants_terminal = [Raw::TTIN, Raw::TTOU].map(Raw::as_raw).contains(&signal);
        let sent_away = in_front && signal == Raw::TSTP.as_raw();
        if !wants_terminal && !sent_away {
            return;
        }
        if sent_away || !in_front {
            terminal.take_back_from(group);
            terminal::suspend();
        }
        // That may have been a long time. A command whose lease is lost is sent to its end and not on.
        if !self.lease.is_valid() {
            return;
        }
        if terminal.is_ours() && (wants_terminal || self.given) {
            terminal.give_to(group);
            self.given = true;
        }
        // Without the terminal, what wants it stops again at once, and if nobody watches over the job it is
        // not this program that stops.
        let pause =
            if wants_terminal && !terminal.belongs_to(group) { BETWEEN_TWO_STOPS } else { Duration::ZERO };
        taken.go_on_at = Instant::now().checked_add(pause);
    }

    fn go_on(&self, taken: &mut Measures) {
        taken.go_on_at = None;
        self.child.signal(Raw::CONT);
    }

    /// What the command has left running in its process group has no lease either.
    async fn sweep(&self, signals: &mut Signals, mut taken: Measures) {
        while taken.kill_at.is_some() && self.child.has_processes() {
            tokio::select! {
                biased;
                () = until(taken.kill_at) => self.kill(&mut taken),
                signal = signals.next() => self.pass_on(signal, &mut taken),
                () = sleep(LOOK_AGAIN) => {}
            }
        }
    }
}

/// Until then, or for ever.
async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// How long a command that cannot have the terminal stays stopped before it may ask again.
const BETWEEN_TWO_STOPS: Duration = Duration::from_secs(1);

/// Nobody tells when the last process of a group is gone.
const LOOK_AGAIN: Duration = Duration::from_millis(10);
