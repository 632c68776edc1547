//! Who waits for what becomes of a lease, and how they are told.

use futures_channel::oneshot;
use redlock_core::{Error, Event, FencingToken, LockLost, LossReason, ReleaseOutcome};

/// Who waits for which terminal event.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    pub(super) acquire: Option<oneshot::Sender<Result<(), Error>>>,
    pub(super) extend: Option<oneshot::Sender<Result<(), Error>>>,
    pub(super) release: Option<oneshot::Sender<Result<(), Error>>>,
    pub(super) lost: Option<oneshot::Sender<LossReason>>,
    /// Why the lease was lost, for a release that comes after.
    pub(super) reason: Option<LossReason>,
    /// The fencing token of the lease, for as long as anybody asks.
    pub(super) fencing: Option<FencingToken>,
    /// Given up: by its handle, its manager or its runtime.
    pub(super) abandoned: bool,
}

impl Waiting {
    /// What to say of a lease that was given up behind its holder's back: it is lost, not merely unheld.
    pub(super) fn given_up(&self) -> Option<Error> {
        let reason = self.reason.or_else(|| self.abandoned.then_some(LossReason::Closed))?;
        Some(LockLost { reason }.into())
    }
}

/// What somebody who waits is to be told.
#[derive(Debug)]
pub(super) enum Telling {
    Ending(oneshot::Sender<Result<(), Error>>, Result<(), Error>),
    Loss(oneshot::Sender<LossReason>, LossReason),
}

impl Telling {
    /// Tells it. Runs the waker of whoever waits, so under no lock.
    pub(super) fn deliver(self) {
        // The caller may have gone away, which is its right.
        match self {
            Self::Ending(sender, ending) => drop(sender.send(ending)),
            Self::Loss(sender, reason) => drop(sender.send(reason)),
        }
    }
}

impl Waiting {
    /// Notes what has happened; yields what is to be told about it.
    pub(super) fn tell(&mut self, event: &Event) -> Option<Telling> {
        let (sender, ending) = match event {
            Event::Acquired { fencing, .. } => {
                self.fencing = *fencing;
                (&mut self.acquire, Ok(()))
            }
            Event::AcquireFailed(failure) => (&mut self.acquire, Err(failure.clone().into())),
            Event::Extended { .. } => (&mut self.extend, Ok(())),
            Event::ExtendFailed(failure) => (&mut self.extend, Err(failure.clone().into())),
            Event::Lost { reason } => {
                self.reason = Some(*reason);
                return self.lost.take().map(|sender| Telling::Loss(sender, *reason));
            }
            Event::Released(ReleaseOutcome::Released) => (&mut self.release, Ok(())),
            Event::Released(ReleaseOutcome::AlreadyExpired) => {
                let reason = self.reason.unwrap_or(LossReason::Refused);
                (&mut self.release, Err(LockLost { reason }.into()))
            }
            Event::ReleaseFailed(quorum) => (&mut self.release, Err(Error::NotReleased(quorum.clone()))),
            _ => return None,
        };
        sender.take().map(|sender| Telling::Ending(sender, ending))
    }

    /// Sends everybody away who still waits: their senders are to be dropped, under no lock.
    pub(super) fn dismiss(&mut self) -> impl Sized + use<> {
        (self.acquire.take(), self.extend.take(), self.release.take(), self.lost.take())
    }
}
