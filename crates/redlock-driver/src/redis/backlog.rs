//! What is unanswered on a connection, and how much of it there may be.

use std::collections::BTreeMap;

use redlock_core::{Cause, CauseKind, Fault, Intent, Token};

use super::connection::MAX_UNANSWERED;
use super::state::is_delete;

/// The commands on a connection of somebody else's that have no answer yet.
///
/// Acquires are known by their tokens: one that a delete has followed is not sent again in another form. Two
/// acquires of one token are kept apart by a number.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    unanswered: usize,
    last_number: u64,
    acquires: BTreeMap<(Token, u64), Standing>,
}

/// Whether an unanswered acquire is still worth having.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Wanted,
    /// A delete of its token is under way behind it.
    Undone,
}

/// One command of a [`Backlog`], to be handed back with [`Backlog::leave`].
#[derive(Debug)]
pub(crate) struct Entry {
    acquire: Option<(Token, u64)>,
}

impl Backlog {
    /// Takes a command in, or says that there are too many.
    pub(crate) fn enter(&mut self, intent: &Intent) -> Result<Entry, Fault> {
        room(self.unanswered, intent)?;
        self.unanswered += 1;
        let token = intent.token();
        if intent.acquires() {
            self.last_number += 1;
            let acquire = (token, self.last_number);
            self.acquires.insert(acquire, Standing::Wanted);
            return Ok(Entry { acquire: Some(acquire) });
        }
        if is_delete(intent) {
            for (_, standing) in self.acquires.range_mut((token, 0)..=(token, u64::MAX)) {
                *standing = Standing::Undone;
            }
        }
        Ok(Entry { acquire: None })
    }

    /// The command was answered, or nobody waits for its answer any more.
    pub(crate) fn leave(&mut self, entry: &Entry) {
        self.unanswered = self.unanswered.saturating_sub(1);
        if let Some(acquire) = &entry.acquire {
            self.acquires.remove(acquire);
        }
    }

    /// Whether the command may be sent again in another form: not an acquire that a delete has
    /// followed, since that delete would then come first.
    pub(crate) fn wants(&self, entry: &Entry) -> bool {
        entry.acquire.is_none_or(|acquire| self.acquires.get(&acquire) == Some(&Standing::Wanted))
    }
}

/// Whether one more command fits behind `unanswered` others. Deletes are let in long after everything
/// else is turned away: a stalled server must not keep us from cleaning up behind ourselves.
pub(crate) fn room(unanswered: usize, intent: &Intent) -> Result<(), Fault> {
    let limit = if is_delete(intent) { MAX_UNANSWERED } else { MOST_OTHERS };
    if unanswered < limit { Ok(()) } else { Err(Fault::NotExecuted(Cause::new(CauseKind::Overloaded))) }
}

/// How many commands may be unanswered when another acquire or extension comes. For a delete it is
/// [`MAX_UNANSWERED`].
pub(crate) const MOST_OTHERS: usize = 4_096;

#[cfg(test)]
mod tests {
    use super::*;
    use redlock_core::Ttl;

    fn token(number: u8) -> Token {
        Token::from_bytes([number; Token::LEN])
    }

    fn set(number: u8) -> Intent {
        Intent::SetNxPx { token: token(number), ttl: Ttl::from_millis(1_000).unwrap() }
    }

    fn extend(number: u8) -> Intent {
        Intent::CompareAndPexpire { token: token(number), ttl: Ttl::from_millis(1_000).unwrap() }
    }

    fn delete(number: u8) -> Intent {
        Intent::CompareAndDelete { token: token(number) }
    }

    #[test]
    fn an_acquire_behind_which_a_delete_went_out_is_not_wanted() {
        let mut backlog = Backlog::default();
        let undone = backlog.enter(&set(1)).unwrap();
        let kept = backlog.enter(&set(2)).unwrap();
        let delete = backlog.enter(&delete(1)).unwrap();
        assert!(!backlog.wants(&undone) && backlog.wants(&kept) && backlog.wants(&delete));
        let again = backlog.enter(&set(1)).unwrap();
        assert!(backlog.wants(&again) && !backlog.wants(&undone));
    }

    #[test]
    fn deletes_have_room_long_after_the_rest() {
        let mut backlog = Backlog::default();
        let mut entries: Vec<_> = (0..MOST_OTHERS).map(|_| backlog.enter(&extend(1)).unwrap()).collect();
        let full = Fault::NotExecuted(Cause::new(CauseKind::Overloaded));
        assert_eq!(backlog.enter(&set(1)).unwrap_err(), full);
        assert_eq!(backlog.enter(&extend(1)).unwrap_err(), full);
        entries.extend((MOST_OTHERS..MAX_UNANSWERED).map(|_| backlog.enter(&delete(1)).unwrap()));
        assert_eq!(backlog.enter(&delete(1)).unwrap_err(), full);
        for entry in entries {
            backlog.leave(&entry);
        }
        assert!(backlog.enter(&set(1)).is_ok());
    }
}
