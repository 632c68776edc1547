//! Deletes that may not have run: sent once more, on the connection that follows.
//!
//! A delete that breaks with its connection, or stays without an answer, would leave its key to the ttl.
//! It names the token of one attempt, so to carry it out twice does no harm; but what the second one
//! finds says nothing about the first. So the caller gets the first one's fault, and the second one runs
//! in the background.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use redlock_core::{Cause, CauseKind, Command, Fault, Instant, Reply};
use tracing::debug;

use super::backlog::MOST_OTHERS;
use super::fault::Damage;
use super::link::Link;
use super::state::{Loss, Phase, State, is_delete};
use super::wire::{Answer, Ticket};
use super::{Connect, lock, timing};

/// The deletes that wait for a connection, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Owed {
    deletes: VecDeque<Command>,
}

impl Owed {
    pub(crate) const fn new() -> Self {
        Self { deletes: VecDeque::new() }
    }

    /// Appends one. If that makes one too many the oldest goes: its key is the nearest to its end.
    pub(crate) fn push(&mut self, delete: Command) {
        if self.deletes.len() >= MOST_OTHERS {
            self.deletes.pop_front();
        }
        self.deletes.push_back(delete);
    }

    /// Takes the oldest that has not waited for too long.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<Command> {
        loop {
            let delete = self.deletes.pop_front()?;
            if now < give_up_at(&delete) {
                return Some(delete);
            }
        }
    }

    pub(crate) fn clear(&mut self) {
        self.deletes.clear();
    }
}

/// Sees to it that a delete which the connection of this generation has not answered is carried out on the
/// one that follows. False if it will not be: it is no delete, or the link is closed.
pub(super) fn again<R: Connect>(link: &Arc<Link<R>>, generation: u64, command: &Command) -> bool {
    if !is_delete(&command.intent) {
        return false;
    }
    let ticket = {
        let State { phase, owed, .. } = &mut *lock(link.state());
        let next = match phase {
            Phase::Closed => return false,
            Phase::Up(current) if current.generation() != generation => current.admit(command).ok(),
            Phase::Idle | Phase::Dialling(_) | Phase::Up(_) | Phase::Down(_) => None,
        };
        if next.is_none() {
            owed.push(command.clone());
        }
        next
    };
    if let Some(ticket) = ticket {
        send(link, ticket, command);
    }
    true
}

/// Takes back what the answer to a delete says that was sent once more: the second one may have come first,
/// and then it was us who took the key away.
pub(crate) fn doubt(reply: &mut Result<Reply, Fault>) {
    if *reply == Ok(Reply::Int(0)) {
        *reply = Err(Fault::Unknown(Cause::new(CauseKind::Timeout)));
    }
}

/// Carries a delete out in the background, with patience. Its answer decides nothing for its lease. It has
/// its place in the connection's order when this returns.
pub(super) fn send<R: Connect>(link: &Arc<Link<R>>, ticket: Ticket<R::Connection>, delete: &Command) {
    debug!(node = %link.name(), generation = ticket.wire().generation(), "delete sent once more");
    let until = give_up_at(delete);
    let wire = Arc::clone(ticket.wire());
    ticket.start();
    let (runtime, weak) = (link.runtime().clone(), Arc::downgrade(link));
    let task = async move {
        let answer = timing::by(&runtime, until, ticket).await;
        let Some(link) = weak.upgrade() else { return };
        if let Some(Answer { reply: Err(fault), damage: Damage::Broken, .. }) = answer {
            link.replace(&wire, Loss::Broken(fault.cause().clone()));
        }
        link.prune();
    };
    if let Err(error) = link.runtime().spawn(task) {
        debug!(node = %link.name(), %error, "a delete that was sent once more is not awaited");
    }
}

fn give_up_at(delete: &Command) -> Instant {
    delete.deadline.saturating_add(PATIENCE)
}

/// How long after its deadline a delete is still worth sending, and its answer worth waiting for. The server
/// may come back late; but nothing is kept for ever for the sake of a clean-up.
const PATIENCE: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::super::testing::delete;
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_epoch(Duration::from_millis(millis))
    }

    #[test]
    fn what_is_owed_is_bounded_and_the_oldest_goes_first() {
        let mut owed = Owed::new();
        for deadline in 0..=MOST_OTHERS as u64 {
            owed.push(delete(1, deadline));
        }
        assert_eq!(owed.pop(at(0)).map(|delete| delete.deadline), Some(at(1)));
        assert_eq!(owed.deletes.len(), MOST_OTHERS - 1);
        owed.clear();
        assert!(owed.pop(at(0)).is_none());
    }

    #[test]
    fn what_has_waited_for_too_long_is_forgotten() {
        let mut owed = Owed::new();
        owed.push(delete(1, 1_000));
        owed.push(delete(2, 1_001));
        assert_eq!(owed.pop(at(61_000)).map(|delete| delete.deadline), Some(at(1_001)));
        assert!(owed.pop(at(0)).is_none());
    }
}
