//! What the machine gives to its driver.

use core::hash::{Hash, Hasher};
use core::num::NonZeroU32;

use crate::{
    Command, ExtendError, FencingToken, Instant, LossReason, NotAcquired, QuorumError, ReleaseOutcome,
};

/// The next thing for the driver to do.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[must_use = "an output that is dropped is lost"]
pub enum Output {
    /// Send this command; feed the answer to [`LeaseMachine::handle_reply`](crate::LeaseMachine::handle_reply).
    Send(Command),
    /// Tell the user.
    Event(Event),
    /// Nothing more to do now. Wait for an answer, or until this instant and then call
    /// [`LeaseMachine::handle_timeout`](crate::LeaseMachine::handle_timeout).
    Wait(Option<Instant>),
}

/// What has happened to the lease. Each request ends with exactly one event that says how.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Event {
    /// An acquire ended: the lease is held.
    Acquired {
        /// When it ends unless it is extended.
        valid_until: Instant,
        /// The fencing token, in a lease that takes one.
        fencing: Option<FencingToken>,
        /// Which attempt it was, counted from 1: of all that were made for this request, hinted ones
        /// included.
        attempt: u32,
    },
    /// An acquire ended without a lease.
    AcquireFailed(NotAcquired),
    /// An attempt failed, and another will be made.
    AttemptFailed {
        /// Which attempt it was, counted as in [`Acquired`](Self::Acquired).
        attempt: u32,
        /// When the next is due, if no hints bring it about sooner. A hinted attempt leaves this where it
        /// was, and may last until then; the next is then made at once.
        retry_at: Instant,
        /// What the nodes said.
        cause: NotAcquired,
    },
    /// An extension ended: done.
    Extended {
        /// When the lease ends now; see [`LeaseMachine::extend`](crate::LeaseMachine::extend) for when
        /// that is sooner than was asked for.
        valid_until: Instant,
    },
    /// An extension ended: not done.
    ExtendFailed(ExtendError),
    /// An automatic renewal was done.
    Renewed {
        /// When the lease ends now.
        valid_until: Instant,
    },
    /// An automatic renewal failed; it will be tried again while the lease is valid.
    RenewFailed {
        /// How many have failed in a row.
        failures: NonZeroU32,
        /// When it will be tried again.
        retry_at: Instant,
        /// What the nodes said.
        cause: QuorumError,
    },
    /// The lease is over. Comes at most once per acquisition, and never after a release was asked for.
    Lost {
        /// Why.
        reason: LossReason,
    },
    /// A release ended with this verdict.
    Released(ReleaseOutcome),
    /// A release ended without certainty.
    ReleaseFailed(QuorumError),
}

/// Which timer [`LeaseMachine::next_timeout`](crate::LeaseMachine::next_timeout) is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum TimerKind {
    /// The validity of the lease ends.
    Expiry,
    /// The longest allowed hold ends.
    MaxHold,
    /// Nodes that have not answered by then count as silent.
    OperationTimeout,
    /// The next attempt to acquire is due.
    Retry,
    /// The failure of an acquire is reported, even if some nodes have not said why.
    Report,
    /// The next automatic renewal is due.
    Renewal,
    /// An answer that has not come by then will not be waited for any more.
    Forget,
}

/// Counts of what should be rare. Not part of the machine's identity: two machines that differ only in
/// these are equal.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct MachineStats {
    /// Replies under an id that was answered before, or that is no longer waited for.
    pub stale_replies: u64,
    /// Replies under an id that was never given out.
    pub unknown_replies: u64,
    /// Readings of the clock that lay before an earlier one.
    pub clock_regressions: u64,
    /// Clean-ups that were forgotten, because too many were open or because a node never answered. What
    /// they might have left behind expires with its ttl.
    pub forgotten_cleanups: u64,
}

/// Statistics inside a machine: equal to any others, so that what was merely counted never makes two
/// states of a machine differ.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Uncounted(pub(super) MachineStats);

impl PartialEq for Uncounted {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Uncounted {}

impl Hash for Uncounted {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}
