//! What a manager has done so far, in numbers.

use std::sync::atomic::{AtomicU64, Ordering};

use redlock_core::{Event, LossReason, MachineStats, ReleaseOutcome};

/// Counts since the manager was made. A snapshot: the fields are read one after the other while leases
/// go on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Leases acquired.
    pub acquired: u64,
    /// Acquires that ended without a lease.
    pub not_acquired: u64,
    /// Attempts that failed and were followed by another.
    pub attempts_failed: u64,
    /// Extensions on request that were done.
    pub extended: u64,
    /// Automatic renewals that were done.
    pub renewed: u64,
    /// Automatic renewals that failed and were tried again.
    pub renewals_failed: u64,
    /// Leases lost before they were released or given up.
    pub lost: u64,
    /// Leases given up without a release: the handle was dropped, or the manager closed.
    pub given_up: u64,
    /// Releases that found the lease held to the end.
    pub released: u64,
    /// Releases that found the lease already over.
    pub already_expired: u64,
    /// Releases that reached too few nodes to be sure.
    pub not_released: u64,
    /// Replies that came after nobody waited for them any more.
    pub stale_replies: u64,
    /// Readings of the clock that lay before an earlier one.
    pub clock_regressions: u64,
    /// Clean-ups that were given up because a node never answered.
    pub forgotten_cleanups: u64,
    /// Leases and clean-ups that are running now.
    pub running: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    acquired: AtomicU64,
    not_acquired: AtomicU64,
    attempts_failed: AtomicU64,
    extended: AtomicU64,
    renewed: AtomicU64,
    renewals_failed: AtomicU64,
    lost: AtomicU64,
    given_up: AtomicU64,
    released: AtomicU64,
    already_expired: AtomicU64,
    not_released: AtomicU64,
    stale_replies: AtomicU64,
    clock_regressions: AtomicU64,
    forgotten_cleanups: AtomicU64,
}

impl Counters {
    pub(crate) fn count(&self, event: &Event) {
        let counter = match event {
            Event::Acquired { .. } => &self.acquired,
            Event::AcquireFailed(_) => &self.not_acquired,
            Event::AttemptFailed { .. } => &self.attempts_failed,
            Event::Extended { .. } => &self.extended,
            Event::Renewed { .. } => &self.renewed,
            Event::RenewFailed { .. } => &self.renewals_failed,
            Event::Lost { reason: LossReason::Closed } => &self.given_up,
            Event::Lost { .. } => &self.lost,
            Event::Released(ReleaseOutcome::Released) => &self.released,
            Event::Released(ReleaseOutcome::AlreadyExpired) => &self.already_expired,
            Event::ReleaseFailed(_) => &self.not_released,
            _ => return,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Adds what one machine has counted in its life.
    pub(crate) fn add(&self, machine: MachineStats) {
        self.stale_replies.fetch_add(machine.stale_replies + machine.unknown_replies, Ordering::Relaxed);
        self.clock_regressions.fetch_add(machine.clock_regressions, Ordering::Relaxed);
        self.forgotten_cleanups.fetch_add(machine.forgotten_cleanups, Ordering::Relaxed);
    }

    pub(crate) fn snapshot(&self, running: usize) -> Stats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Stats {
            acquired: read(&self.acquired),
            not_acquired: read(&self.not_acquired),
            attempts_failed: read(&self.attempts_failed),
            extended: read(&self.extended),
            renewed: read(&self.renewed),
            renewals_failed: read(&self.renewals_failed),
            lost: read(&self.lost),
            given_up: read(&self.given_up),
            released: read(&self.released),
            already_expired: read(&self.already_expired),
            not_released: read(&self.not_released),
            stale_replies: read(&self.stale_replies),
            clock_regressions: read(&self.clock_regressions),
            forgotten_cleanups: read(&self.forgotten_cleanups),
            running: running as u64,
        }
    }
}
