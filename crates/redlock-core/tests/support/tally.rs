//! What has happened in a world, so that a test can tell whether it tested anything.

use redlock_core::{Command, Event, Intent, ReleaseOutcome, Token};

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    acquired: u64,
    /// Acquired by another than the last holder.
    handed_over: u64,
    /// Attempts that hints have brought about, and those of them that were won.
    hinted: u64,
    acquired_by_hint: u64,
    not_acquired: u64,
    extended: u64,
    renewed: u64,
    not_extended: u64,
    lost: u64,
    released: u64,
    /// Commands carried out after one that was sent later to the same node.
    overtaken: u64,
    /// The extensions among them.
    overtaken_extensions: u64,
    /// Commands carried out when their sender had moved on to another token.
    outdated: u64,
    /// Moments at which somebody held the lease.
    held: u64,
    last_holder: Option<usize>,
    last_hinted: Option<Token>,
}

impl Tally {
    /// Hints have brought about an attempt with this token.
    pub(crate) fn hint(&mut self, token: Token) {
        self.hinted += 1;
        self.last_hinted = Some(token);
    }

    /// What `who` was told, whose current token this is.
    pub(crate) fn event(&mut self, who: usize, event: &Event, token: Token) {
        match event {
            Event::Acquired { .. } => {
                self.acquired += 1;
                self.acquired_by_hint += u64::from(self.last_hinted == Some(token));
                self.handed_over += u64::from(self.last_holder.is_some_and(|last| last != who));
                self.last_holder = Some(who);
            }
            Event::AcquireFailed(_) => self.not_acquired += 1,
            Event::Extended { .. } => self.extended += 1,
            Event::Renewed { .. } => self.renewed += 1,
            Event::ExtendFailed(_) | Event::RenewFailed { .. } => self.not_extended += 1,
            Event::Lost { .. } => self.lost += 1,
            Event::Released(ReleaseOutcome::Released) => self.released += 1,
            _ => {}
        }
    }

    pub(crate) fn execution(&mut self, command: &Command, overtaken: bool, outdated: bool) {
        let extension = matches!(command.intent, Intent::CompareAndPexpire { .. });
        self.overtaken += u64::from(overtaken);
        self.overtaken_extensions += u64::from(overtaken && extension);
        self.outdated += u64::from(outdated);
    }

    pub(crate) fn moment(&mut self, holders: usize) {
        self.held += u64::from(holders > 0);
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (sum, count) in self.counts().into_iter().zip(other.to_owned().counts()) {
            *sum += *count;
        }
    }

    pub(crate) fn smallest(&mut self) -> u64 {
        self.counts().map(|count| *count).into_iter().min().unwrap_or_default()
    }

    fn counts(&mut self) -> [&mut u64; 14] {
        [
            &mut self.acquired,
            &mut self.handed_over,
            &mut self.hinted,
            &mut self.acquired_by_hint,
            &mut self.not_acquired,
            &mut self.extended,
            &mut self.renewed,
            &mut self.not_extended,
            &mut self.lost,
            &mut self.released,
            &mut self.overtaken,
            &mut self.overtaken_extensions,
            &mut self.outdated,
            &mut self.held,
        ]
    }
}
