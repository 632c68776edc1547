//! What can go wrong, as types that a caller can tell apart.

mod quorum;

use core::time::Duration;

use thiserror::Error;

pub use quorum::{NodeReport, Operation, Outcome, QuorumError};

use crate::ConfigError;

/// Everything that an operation on a lease can fail with.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum Error {
    /// The lease was not acquired. Nothing is left behind, apart from keys at nodes that could not be
    /// reached to take them back; those expire with their ttl.
    #[error(transparent)]
    NotAcquired(#[from] NotAcquired),
    /// The handle already holds a lease, or is about to.
    #[error(transparent)]
    AlreadyHeld(#[from] AlreadyHeld),
    /// The handle holds no lease.
    #[error(transparent)]
    NotHeld(#[from] NotHeld),
    /// The lease is over: the work that it protected must stop.
    #[error(transparent)]
    LockLost(#[from] LockLost),
    /// An extension did not reach a quorum, yet the lease is not lost. It goes on to its old end, or,
    /// if the extension was to a shorter ttl that some node may have set, to that.
    #[error("not extended, but not lost either: {0}")]
    NotExtended(QuorumError),
    /// Another extension of this lease is still under way.
    #[error("an extension of this lease is already under way")]
    ExtensionPending,
    /// A release reached too few nodes to be sure. The handle no longer counts as held; the keys at the
    /// other nodes expire with their ttl.
    #[error("not known to be released: {0}")]
    NotReleased(QuorumError),
    /// Fencing was asked of more than one independent node.
    #[error(transparent)]
    FencingUnsupported(#[from] FencingUnsupported),
    /// A setting cannot work. Nothing was sent.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The manager was closed.
    #[error("the manager is closed")]
    Closed,
    /// There is no runtime to run on where the operation was started, or it shut down meanwhile.
    #[error("no async runtime is running here")]
    NoRuntime,
    /// The operating system gave no random bytes for a token.
    #[error("the operating system gave no random bytes")]
    NoRandomness,
}

/// The lease was not acquired.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Error)]
#[error("not acquired, {reason}: {quorum}")]
pub struct NotAcquired {
    /// Why.
    pub reason: NotAcquiredReason,
    /// What the nodes last said.
    pub quorum: QuorumError,
}

impl NotAcquired {
    /// Whether somebody else has the resource, as far as the nodes last said: the ordinary outcome of
    /// contention.
    ///
    /// On independent nodes, contenders that ask in the same moment may each get a minority, and be told
    /// this although nobody has it. Ask more than once where the resource must not stay with nobody.
    #[must_use]
    pub const fn is_taken(&self) -> bool {
        matches!(
            self.reason,
            NotAcquiredReason::Taken | NotAcquiredReason::WaitedInVain { seen: Obstacle::Taken }
        )
    }

    /// Whether too few nodes could be reached, and none of those that answered had given the resource away.
    #[must_use]
    pub const fn is_unreachable(&self) -> bool {
        matches!(
            self.reason,
            NotAcquiredReason::Unreachable | NotAcquiredReason::WaitedInVain { seen: Obstacle::Unreachable }
        )
    }
}

/// Why a lease was not acquired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum NotAcquiredReason {
    /// So many nodes hold the key for somebody else that no quorum is left.
    #[error("taken by another")]
    Taken,
    /// Too few nodes answered, and none of them said that the key is taken.
    #[error("too few nodes reachable")]
    Unreachable,
    /// Refusals and faults together denied the quorum: contention at nodes of which others are down, or
    /// several contenders with a minority each.
    #[error("taken at some nodes, others unreachable")]
    Mixed,
    /// A quorum said yes, but so late that nothing of the validity was left.
    #[error("expired while acquiring")]
    ExpiredWhileAcquiring,
    /// The time that the caller was ready to wait is spent.
    #[error("waited in vain, last seen {seen}")]
    WaitedInVain {
        /// What stood in the way last.
        seen: Obstacle,
    },
    /// The caller gave up, or the manager was closed.
    #[error("cancelled")]
    Cancelled,
}

/// What stood in the way of one attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum Obstacle {
    /// See [`NotAcquiredReason::Taken`].
    #[error("taken by another")]
    Taken,
    /// See [`NotAcquiredReason::Unreachable`].
    #[error("too few nodes reachable")]
    Unreachable,
    /// See [`NotAcquiredReason::Mixed`].
    #[error("taken at some nodes, others unreachable")]
    Mixed,
    /// See [`NotAcquiredReason::ExpiredWhileAcquiring`].
    #[error("expired while acquiring")]
    Expired,
}

impl From<Obstacle> for NotAcquiredReason {
    fn from(obstacle: Obstacle) -> Self {
        match obstacle {
            Obstacle::Taken => Self::Taken,
            Obstacle::Unreachable => Self::Unreachable,
            Obstacle::Mixed => Self::Mixed,
            Obstacle::Expired => Self::ExpiredWhileAcquiring,
        }
    }
}

/// The handle already holds a lease, or an earlier request on it is not finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[error("already held, or being acquired or released")]
pub struct AlreadyHeld;

/// The handle holds no lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[error("not held")]
pub struct NotHeld;

/// The lease is over before it was released.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[error("lock lost: {reason}")]
pub struct LockLost {
    /// Why.
    pub reason: LossReason,
}

/// Why a lease was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum LossReason {
    /// Its validity ran out on the local clock. This needs no answer from anybody.
    #[error("its validity ran out")]
    Expired,
    /// So many nodes answered "not your token" that no quorum can be ours any more.
    #[error("a quorum no longer holds our token")]
    Refused,
    /// The configured longest hold is over.
    #[error("the longest allowed hold is over")]
    MaxHold,
    /// As many renewals in a row as are allowed failed, while the lease was still valid.
    #[error("renewal failed as often as allowed")]
    RenewalFailed,
    /// The handle was dropped, or the manager closed.
    #[error("closed")]
    Closed,
}

/// Fencing tokens need one counter, and independent nodes have several that know nothing of each
/// other: their values do not increase from one quorum to the next. Use the single mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[error("fencing tokens need one logical Redis, not {nodes} independent nodes: use the single mode")]
pub struct FencingUnsupported {
    /// How many nodes the lease is configured with.
    pub nodes: usize,
}

/// Why an extension that was under way was not done.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ExtendError {
    /// See [`Error::LockLost`].
    LockLost(LockLost),
    /// See [`Error::NotExtended`].
    NotExtended(QuorumError),
    /// The lease was released meanwhile.
    NotHeld(NotHeld),
}

impl From<ExtendError> for Error {
    fn from(error: ExtendError) -> Self {
        match error {
            ExtendError::LockLost(lost) => Self::LockLost(lost),
            ExtendError::NotExtended(quorum) => Self::NotExtended(quorum),
            ExtendError::NotHeld(not_held) => Self::NotHeld(not_held),
        }
    }
}

/// How a release ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReleaseOutcome {
    /// A quorum is free of our token, and nothing says that it was not ours until now.
    Released,
    /// The lease had ended before it was released: somebody else may have held it in between.
    AlreadyExpired,
}

/// A duration for people: whole milliseconds where it has no finer part.
pub(crate) struct Human(pub(crate) Duration);

impl core::fmt::Display for Human {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        if self.0.subsec_nanos().is_multiple_of(1_000_000) {
            write!(f, "{} ms", self.0.as_millis())
        } else {
            write!(f, "{:?}", self.0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn a_failure_to_acquire_is_taken_or_unreachable_or_neither() {
        use NotAcquiredReason::{Cancelled, ExpiredWhileAcquiring, Mixed, Taken, Unreachable, WaitedInVain};
        let vain = |seen| WaitedInVain { seen };
        for (reason, taken, unreachable) in [
            (Taken, true, false),
            (vain(Obstacle::Taken), true, false),
            (Unreachable, false, true),
            (vain(Obstacle::Unreachable), false, true),
            (Mixed, false, false),
            (vain(Obstacle::Mixed), false, false),
            (ExpiredWhileAcquiring, false, false),
            (Cancelled, false, false),
        ] {
            let quorum =
                QuorumError { operation: Operation::Acquire, succeeded: 0, required: 1, nodes: Vec::new() };
            let failure = NotAcquired { reason, quorum };
            assert_eq!((failure.is_taken(), failure.is_unreachable()), (taken, unreachable), "{reason}");
        }
    }
}
