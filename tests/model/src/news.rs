//! What the last step brought, for properties and timelines.

use std::hash::{Hash, Hasher};

use redlock_core::{Event, LossReason, NotAcquiredReason, ReleaseOutcome};

/// What happened in the step that led to a world. No part of the world's identity: what may happen from
/// here on does not depend on it.
#[derive(Clone, Debug, Default)]
pub(crate) struct News {
    /// What the machines said, and to whom.
    pub(crate) events: Vec<(usize, Event)>,
    /// A node was sent a second delete, because an acquire had come through late.
    pub(crate) deleted_again: bool,
    /// Hints have brought about an attempt.
    pub(crate) hinted: bool,
    /// An extension brought the end of a lease nearer.
    pub(crate) shortened: bool,
}

/// Something that must happen on some path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "each is named after what happens")]
pub enum Fact {
    Acquired,
    AcquiredLater,
    NotAcquired,
    ExpiredWhileAcquiring,
    Cancelled,
    Extended,
    Shortened,
    NotExtended,
    Renewed,
    NotRenewed,
    LostExpired,
    LostRefused,
    LostClosed,
    Released,
    AlreadyExpired,
    NotReleased,
    DeletedAgain,
    Hinted,
}

impl News {
    pub(crate) fn says(&self, fact: Fact) -> bool {
        match fact {
            Fact::DeletedAgain => self.deleted_again,
            Fact::Shortened => self.shortened,
            Fact::Hinted => self.hinted,
            _ => self.events.iter().any(|(_, event)| says(event, fact)),
        }
    }
}

fn says(event: &Event, fact: Fact) -> bool {
    match fact {
        Fact::Acquired => matches!(event, Event::Acquired { .. }),
        Fact::AcquiredLater => matches!(event, Event::Acquired { attempt: 2.., .. }),
        Fact::NotAcquired => matches!(event, Event::AcquireFailed(_)),
        Fact::ExpiredWhileAcquiring => failed(event, NotAcquiredReason::ExpiredWhileAcquiring),
        Fact::Cancelled => failed(event, NotAcquiredReason::Cancelled),
        Fact::Extended => matches!(event, Event::Extended { .. }),
        Fact::NotExtended => matches!(event, Event::ExtendFailed(_)),
        Fact::Renewed => matches!(event, Event::Renewed { .. }),
        Fact::NotRenewed => matches!(event, Event::RenewFailed { .. }),
        Fact::LostExpired => matches!(event, Event::Lost { reason: LossReason::Expired }),
        Fact::LostRefused => matches!(event, Event::Lost { reason: LossReason::Refused }),
        Fact::LostClosed => matches!(event, Event::Lost { reason: LossReason::Closed }),
        Fact::Released => matches!(event, Event::Released(ReleaseOutcome::Released)),
        Fact::AlreadyExpired => matches!(event, Event::Released(ReleaseOutcome::AlreadyExpired)),
        Fact::NotReleased => matches!(event, Event::ReleaseFailed(_)),
        Fact::DeletedAgain | Fact::Shortened | Fact::Hinted => false,
    }
}

fn failed(event: &Event, with: NotAcquiredReason) -> bool {
    matches!(event, Event::AcquireFailed(failure) if failure.reason == with)
}

impl PartialEq for News {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for News {}

impl Hash for News {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}
