//! Commands that are handed to a connection as it is, or not at all: what nearly all commands need.

use std::sync::Arc;

use redlock_core::{Cause, Command, Instant};

use super::fault::Damage;
use super::link::Link;
use super::phrasing::Words;
use super::state::{Loss, Phase};
use super::wire::{Answer, Keeper, Wire};
use super::{Connect, lock, repeat};
use crate::recipient::{Passage, Recipient};

impl<R: Connect> Link<R> {
    /// Sends a command if there is a connection that takes it now, and has its answer told to `to`. Whoever
    /// waits has to say when it is [`overdue`](Self::overdue), or not wanted any more ([`forget`](Self::forget)).
    /// `None` if that takes what [`send`](Self::send) does; nothing was sent then.
    pub(crate) fn hand_over(
        self: &Arc<Self>,
        now: Instant,
        command: &Command,
        to: &Arc<dyn Recipient>,
        words: &mut Words,
    ) -> Option<Passage> {
        if now >= command.deadline {
            return None;
        }
        let wire = match &lock(self.state()).phase {
            Phase::Up(wire) => Arc::clone(wire),
            _ => return None,
        };
        // Not under the lock, for which others may be waiting.
        let followed = words.followed;
        let phrased = wire.put_into_words(command, words.shared.then_some(words));
        let passage = {
            let state = lock(self.state());
            // A delete may have to follow an acquire on a retired connection. And under this lock the
            // connection is the one that the restart guard has looked at last.
            if !state.is_in_use(wire.generation())
                || !state.retired.is_empty()
                || self.check(now, command).is_err()
            {
                return None;
            }
            wire.admit_for(command, phrased, Arc::clone(to)).ok()?
        };
        if followed {
            wire.start_soon();
        } else {
            wire.start();
        }
        Some(passage)
    }

    /// The deadline of a command that was handed over has passed without an answer. True if the command is
    /// sent once more, so that [`repeat::doubt`] is due.
    pub(crate) fn overdue(self: &Arc<Self>, passage: Passage, command: &Command) -> bool {
        if let Some(wire) = self.in_use(passage.generation) {
            self.replace(&wire, Loss::Stalled);
        }
        repeat::again(self, passage.generation, command)
    }

    /// Nobody waits for the answer to a command that was handed over.
    pub(crate) fn forget(&self, passage: Passage) {
        let wire = {
            let state = lock(self.state());
            let retired = state.retired.iter().find(|wire| wire.generation() == passage.generation);
            retired.cloned().or_else(|| state.in_use(passage.generation))
        };
        if let Some(wire) = wire {
            wire.forget(passage.number);
            self.prune();
        }
    }
}

impl<R: Connect> Keeper<R::Connection> for Link<R> {
    fn concluded(self: Arc<Self>, wire: &Arc<Wire<R::Connection>>, command: &Command, answer: &Answer) {
        if answer.damage == Damage::None && answer.reply.is_ok() && wire.is_retired() {
            self.prune();
        }
        // What was overdue has been sent once more already.
        let repeated = answer.reply.is_err() && self.runtime().now() >= command.deadline;
        self.judge(wire, command, answer, repeated);
    }

    fn fell_silent(self: Arc<Self>, wire: &Arc<Wire<R::Connection>>, cause: Cause) {
        self.replace(wire, Loss::Broken(cause));
    }
}
