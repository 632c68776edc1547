//! Giving the lease back, and the verdict on how that went.

use super::record::{Coming, Key, Record};
use super::round::Ballot;
use super::undo::{Answered, What};
use super::{LeaseMachine, Phase, ballot};
use crate::{CommandId, Event, ExtendError, Fault, Instant, NotHeld, Operation, ReleaseOutcome, Vote};

/// What a node has of ours, as a release sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Grip {
    had: Had,
    comes: Comes,
}

/// What a node had of ours when the delete went out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Had {
    /// Nothing, ever.
    Nothing,
    /// It is no holder, because it has said "not there". It may have got our key since.
    Denied,
    /// Nobody knows.
    Maybe,
    /// Our key, as far as it has said.
    Key,
}

/// What may put our key there after the delete: [`Coming`], without saying which command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Comes {
    Nothing,
    Acquire,
    Repair,
    Unknown,
}

impl From<&Record> for Grip {
    fn from(record: &Record) -> Self {
        let had = match record.key() {
            Key::Absent => Had::Nothing,
            _ if !record.may_hold() => Had::Denied,
            Key::Granted => Had::Key,
            Key::Asked | Key::Unknown => Had::Maybe,
        };
        let comes = match record.coming() {
            Coming::Nothing => Comes::Nothing,
            Coming::Acquire(_) => Comes::Acquire,
            Coming::Repair(_) => Comes::Repair,
            Coming::Unknown => Comes::Unknown,
        };
        Self { had, comes }
    }
}

impl Grip {
    pub(super) const NONE: Self = Self { had: Had::Nothing, comes: Comes::Nothing };

    /// Whether the node is free of our token for good.
    fn is_free(self, deleted: &Ballot) -> bool {
        match deleted {
            // A token that was deleted was there, and an acquire puts it there once.
            Ballot::Yes(_) => self.comes != Comes::Repair,
            Ballot::No => self.comes == Comes::Nothing,
            Ballot::Open(_) | Ballot::Fault(_) => self == Self::NONE,
        }
    }

    /// Whether there is an answer to come that may show that it is.
    fn is_awaited(self, deleted: &Ballot) -> bool {
        matches!(self.comes, Comes::Acquire | Comes::Repair) || matches!(deleted, Ballot::Open(_))
    }

    /// A straggler of the acquire.
    fn answer_acquire(&mut self, vote: &Vote) {
        match vote {
            Vote::Yes(_) => {
                self.comes = Comes::Nothing;
                // It had granted the key by then, for all we know; if the delete does not find it, it was lost.
                if self.had == Had::Maybe {
                    self.had = Had::Key;
                }
            }
            Vote::No | Vote::Fault(Fault::NotExecuted(_)) => {
                *self = Self::NONE;
            }
            Vote::Fault(Fault::Unknown(_)) => self.comes = Comes::Unknown,
        }
    }

    fn answer_repair(&mut self, vote: &Vote) {
        match vote {
            Vote::Yes(_) if self.had == Had::Nothing => {
                *self = Self { had: Had::Denied, comes: Comes::Nothing };
            }
            Vote::Yes(_) | Vote::No | Vote::Fault(Fault::NotExecuted(_)) => self.comes = Comes::Nothing,
            Vote::Fault(Fault::Unknown(_)) => {}
        }
    }
}

/// The request.
impl LeaseMachine {
    /// Gives the lease back. From here on it is not held. Ends with [`Event::Released`] or
    /// [`Event::ReleaseFailed`].
    ///
    /// One pass of compare-and-delete over every node, never repeated by the acquire's policy. It answers
    /// as soon as the verdict is certain, and the rest goes on behind it:
    ///
    /// - [`ReleaseOutcome::Released`] when a quorum is free of our token for good and no node that had
    ///   granted it turns out to have lost it, or a quorum deleted it. "Not there" does not make a node
    ///   free whose acquire is unanswered: that may still come.
    /// - [`ReleaseOutcome::AlreadyExpired`] when the nodes that can have held our token until now are
    ///   fewer than a quorum, and at once when the lease was lost before.
    /// - [`Event::ReleaseFailed`] when too few nodes are known to be free by the operation timeout, or
    ///   none of the others can become so.
    ///
    /// "Not there" from a node that never granted the key is no evidence of loss.
    ///
    /// # Errors
    /// [`NotHeld`] when there is no lease to release.
    pub fn release(&mut self, now: Instant) -> Result<(), NotHeld> {
        self.input(now, |machine| match machine.phase {
            Phase::Held(_) => {
                machine.end_extension(ExtendError::NotHeld(NotHeld));
                machine.records.iter_mut().for_each(|record| record.grip = Grip::from(&*record));
                machine.round.begin(Operation::Release, machine.now, machine.operation_deadline());
                machine.take_back(true);
                machine.phase = Phase::Releasing;
                Ok(())
            }
            Phase::Lost(_) => {
                machine.take_back(false);
                machine.end_release(Event::Released(ReleaseOutcome::AlreadyExpired));
                Ok(())
            }
            Phase::Idle | Phase::Acquiring(_) | Phase::Releasing => Err(NotHeld),
        })
    }
}

impl LeaseMachine {
    pub(super) fn answer_release(&mut self, answered: Answered, id: CommandId, vote: Vote) {
        if let Some(record) = self.records.get_mut(answered.node.index()) {
            let grip = &mut record.grip;
            match answered.what {
                What::Acquire => grip.answer_acquire(&vote),
                What::Repair => grip.answer_repair(&vote),
                What::Delete => {
                    if matches!(vote, Vote::No) && grip.had == Had::Maybe {
                        grip.had = Had::Denied;
                    }
                    record.answer_ballot(id, ballot(vote, self.spec.config().ttl()));
                }
            }
            if let Some(repeat) = answered.repeat {
                record.ballot = Ballot::Open(repeat);
            }
        }
        self.decide_release();
    }

    pub(super) fn decide_release(&mut self) {
        if !matches!(self.phase, Phase::Releasing) {
            return;
        }
        let count = Count::of(&self.records, self.now < self.round.deadline);
        let required = self.spec.quorum();
        let verdict = if count.possible < required {
            Some(Event::Released(ReleaseOutcome::AlreadyExpired))
        } else if count.free >= required && (!count.lost_some || count.deleted >= required || count.open == 0)
        {
            Some(Event::Released(ReleaseOutcome::Released))
        } else if count.free + count.open < required {
            Some(Event::ReleaseFailed(self.round.report(&self.spec, &self.records, count.free, self.now)))
        } else {
            None
        };
        if let Some(event) = verdict {
            self.end_release(event);
        }
    }

    fn end_release(&mut self, event: Event) {
        self.round.live = false;
        self.records.iter_mut().for_each(|record| record.grip = Grip::NONE);
        self.phase = Phase::Idle;
        self.outbox.tell(event);
    }
}

/// What the answers to a release add up to.
struct Count {
    /// Nodes that deleted our key.
    deleted: usize,
    /// Nodes known to be free of it for good.
    free: usize,
    /// Nodes that can have held it until the release.
    possible: usize,
    /// Nodes that may turn out to be free of it, or to have lost it, in time.
    open: usize,
    /// A node that had granted it did not have it any more.
    lost_some: bool,
}

impl Count {
    fn of(records: &[Record], in_time: bool) -> Self {
        let mut count = Self { deleted: 0, free: 0, possible: 0, open: 0, lost_some: false };
        for Record { ballot, grip, .. } in records {
            let (free, denied) = (grip.is_free(ballot), matches!(ballot, Ballot::No));
            let held = matches!(grip.had, Had::Maybe | Had::Key);
            count.deleted += usize::from(matches!(ballot, Ballot::Yes(_)));
            count.free += usize::from(free);
            count.possible += usize::from(held && !denied);
            count.open += usize::from(in_time && !free && grip.is_awaited(ballot));
            count.lost_some |= grip.had == Had::Key && denied;
        }
        count
    }
}
