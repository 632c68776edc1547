//! What has happened in a world, so that a test can tell whether it tested anything.

use redlock_core::{Command, Event, Intent, ReleaseOutcome};

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    /// Leases won; those won after a failed attempt.
    pub(crate) acquired: u64,
    pub(crate) acquired_at_retry: u64,
    pub(crate) failed: u64,
    pub(crate) extended: u64,
    pub(crate) renewed: u64,
    pub(crate) not_extended: u64,
    pub(crate) lost: u64,
    pub(crate) released: u64,
    pub(crate) already_expired: u64,
    /// Commands carried out after one that was sent later to the same node.
    pub(crate) overtaken: u64,
    /// Extensions among them.
    pub(crate) overtaken_extensions: u64,
    /// Commands carried out when their sender had moved on to another token.
    pub(crate) outdated: u64,
    /// Moments at which somebody held the lease.
    pub(crate) held_moments: u64,
    pub(crate) moments: u64,
}

impl Tally {
    pub(crate) fn event(&mut self, event: &Event) {
        match event {
            Event::Acquired { attempt, .. } => {
                self.acquired += 1;
                self.acquired_at_retry += u64::from(*attempt > 1);
            }
            Event::AcquireFailed(_) => self.failed += 1,
            Event::Extended { .. } => self.extended += 1,
            Event::Renewed { .. } => self.renewed += 1,
            Event::ExtendFailed(_) | Event::RenewFailed { .. } => self.not_extended += 1,
            Event::Lost { .. } => self.lost += 1,
            Event::Released(ReleaseOutcome::Released) => self.released += 1,
            Event::Released(ReleaseOutcome::AlreadyExpired) => self.already_expired += 1,
            _ => {}
        }
    }

    pub(crate) fn execution(&mut self, command: &Command, overtaken: bool, outdated: bool) {
        self.overtaken += u64::from(overtaken);
        let extension = matches!(command.intent, Intent::CompareAndPexpire { .. });
        self.overtaken_extensions += u64::from(overtaken && extension);
        self.outdated += u64::from(outdated);
    }

    pub(crate) fn moment(&mut self, holders: usize) {
        self.moments += 1;
        self.held_moments += u64::from(holders > 0);
    }
}
