//! What a node lets somebody who waits for a key see of it.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::task::{Context, Poll};

/// What is seen of a watched key. Never a promise: it is old when it arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sight {
    /// The key is not there.
    Free,
    /// It is there. The same holder has the same mark, for as long as the token stays the same.
    Held(Mark),
    /// It is not as it was when it was last seen: gone, taken, or given a new time to live.
    Changed,
    /// Nothing more will be seen by this watch.
    Over,
}

/// Tells one value of a key from another, without being one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Mark(u64);

impl Mark {
    /// That of nobody.
    pub(crate) const NONE: Self = Self(0);

    pub(crate) fn of(value: &[u8]) -> Self {
        let mut hasher = DefaultHasher::new();
        value.hash(&mut hasher);
        Self(hasher.finish())
    }
}

/// A key under observation at one node; no more when dropped.
pub(crate) trait Watch: Send {
    /// What is to be seen next. It may ask the node for that, within a task of the runtime.
    ///
    /// After [`Sight::Over`] there is no use in asking again.
    fn poll_sight(&mut self, context: &mut Context<'_>) -> Poll<Sight>;
}
