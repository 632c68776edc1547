//! What a node lets somebody who waits for a key see of it.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::task::{Context, Poll};

/// What is seen of a watched key. Never a promise: it is old when it arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sight {
    /// The key is not there.
    Free,
    /// It is there, with a value that has this mark.
    Held(Mark),
    /// It is not as it was when it was last seen: gone, taken, or given a new time to live.
    Changed,
    /// Nothing more will be seen by this watch.
    Over,
}

/// Tells one value of a key from another, without being one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Mark {
    whole: u64,
    owner: Owner,
}

/// Whose a value is. All that leases of one manager leave in their keys is of the same owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Owner(u64);

impl Mark {
    pub(crate) fn of(value: &[u8]) -> Self {
        let start = value.get(..2 * MANAGER_LEN).unwrap_or(value);
        Self { whole: digest(value), owner: Owner(digest(start)) }
    }

    pub(crate) const fn owner(self) -> Owner {
        self.owner
    }
}

/// So many of a token's bytes are those of the manager; each is two characters of the value.
pub(crate) const MANAGER_LEN: usize = 8;

fn digest(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

/// A key under observation at one node; no more when dropped.
pub(crate) trait Watch: Send {
    /// What is to be seen next. It may ask the node for that, within a task of the runtime.
    ///
    /// After [`Sight::Over`] there is no use in asking again.
    fn poll_sight(&mut self, context: &mut Context<'_>) -> Poll<Sight>;
}
