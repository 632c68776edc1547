//! Who else wants what one waits for.

use std::time::Duration;

use super::sight::Owner;
use crate::courtesy::{self, MOST_OTHERS};

/// The other managers that were seen to have the key since the waiting began, at whichever node: on several
/// nodes each shows but some of them, because a quorum is enough for a lease.
pub(super) struct Others {
    /// How many are to go first.
    pub(super) expected: u32,
    /// Who is none of them.
    us: Owner,
    /// Up to a limit.
    seen: Vec<Owner>,
}

impl Others {
    pub(super) const fn than(us: Owner) -> Self {
        Self { expected: 0, us, seen: Vec::new() }
    }

    /// This one has the key somewhere.
    pub(super) fn see(&mut self, owner: Owner) {
        if owner != self.us && !self.seen.contains(&owner) && self.count() < MOST_OTHERS {
            self.seen.push(owner);
        }
    }

    pub(super) fn are(&self, owner: Owner) -> bool {
        owner != self.us
    }

    pub(super) fn count(&self) -> u32 {
        u32::try_from(self.seen.len()).unwrap_or(u32::MAX)
    }

    /// For how long to leave a free key to them; none if all have had it.
    pub(super) fn leave(&self) -> Option<Duration> {
        courtesy::leave(self.expected, self.count())
    }
}
