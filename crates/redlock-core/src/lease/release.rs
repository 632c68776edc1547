//! Giving the lease back, and the verdict on how that went.

use alloc::vec::Vec;

use super::record::{Key, Record};
use super::round::{Ballot, Round};
use super::undo::Answered;
use super::{LeaseMachine, Phase, ballot};
use crate::{CommandId, Event, ExtendError, Fault, Instant, NotHeld, Operation, ReleaseOutcome, Vote};

/// What a node had of ours when the delete went out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Grip {
    /// Nothing: it is free of our token whatever becomes of the delete.
    None,
    /// It said "not there", yet a key may have come late. So it does not count as a holder, and not as
    /// free either.
    Denied,
    /// Nobody knows.
    Maybe,
    /// Our key, as far as it has said.
    Granted,
}

impl From<&Record> for Grip {
    fn from(record: &Record) -> Self {
        match record.key {
            Key::Absent => Self::None,
            _ if !record.may_hold() => Self::Denied,
            Key::Granted => Self::Granted,
            Key::Asked(_) | Key::Unknown => Self::Maybe,
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
    /// - [`ReleaseOutcome::Released`] when a quorum is free of our token and no node that had granted it
    ///   turns out to have lost it, or a quorum deleted it.
    /// - [`ReleaseOutcome::AlreadyExpired`] when the nodes that can have held our token until now are
    ///   fewer than a quorum, and at once when the lease was lost before.
    /// - [`Event::ReleaseFailed`] when, by the operation timeout, too few nodes are known to be free.
    ///
    /// "Not there" from a node that never granted the key is no evidence of loss.
    ///
    /// # Errors
    /// [`NotHeld`] when there is no lease to release.
    pub fn release(&mut self, now: Instant) -> Result<(), NotHeld> {
        self.input(now, |machine| match machine.phase {
            Phase::Held(_) => {
                machine.end_extension(ExtendError::NotHeld(NotHeld));
                let grips: Vec<Grip> = machine.records.iter().map(Grip::from).collect();
                machine.round.begin(Operation::Release, machine.now, machine.operation_deadline());
                machine.take_back(Round::ask);
                machine.phase = Phase::Releasing(grips);
                Ok(())
            }
            Phase::Lost(_) => {
                machine.take_back(|_, _| {});
                machine.end_release(Event::Released(ReleaseOutcome::AlreadyExpired));
                Ok(())
            }
            Phase::Idle | Phase::Acquiring(_) | Phase::Releasing(_) => Err(NotHeld),
        })
    }
}

impl LeaseMachine {
    pub(super) fn answer_release(&mut self, answered: Answered, id: CommandId, vote: Vote) {
        let Phase::Releasing(grips) = &mut self.phase else { return };
        match (answered, &vote) {
            // A straggler of the acquire says that the node never had our key.
            (Answered::Acquire(node), Vote::No | Vote::Fault(Fault::NotExecuted(_))) => {
                if let Some(grip) = grips.get_mut(node.index()) {
                    *grip = Grip::None;
                }
            }
            (Answered::Delete(_), _) => self.round.record(id, ballot(vote, self.spec.config().ttl())),
            (Answered::Acquire(_) | Answered::Nothing, _) => {}
        }
        self.decide_release();
    }

    pub(super) fn decide_release(&mut self) {
        let Phase::Releasing(grips) = &self.phase else { return };
        let count = Count::of(&self.round, grips, self.now);
        let required = self.spec.quorum();
        let verdict = if count.possible < required {
            Some(Event::Released(ReleaseOutcome::AlreadyExpired))
        } else if count.free >= required && (!count.lost_some || count.deleted >= required || count.open == 0) {
            Some(Event::Released(ReleaseOutcome::Released))
        } else if count.free + count.open < required {
            Some(Event::ReleaseFailed(self.round.report(&self.spec, count.free, self.now)))
        } else {
            None
        };
        if let Some(event) = verdict {
            self.end_release(event);
        }
    }

    fn end_release(&mut self, event: Event) {
        self.round.live = false;
        self.phase = Phase::Idle;
        self.outbox.tell(event);
    }
}

/// What the answers to a release add up to.
struct Count {
    /// Nodes that deleted our key.
    deleted: usize,
    /// Nodes known to be free of it.
    free: usize,
    /// Nodes that can have held it until the release.
    possible: usize,
    /// Nodes that may have held it and can still answer in time.
    open: usize,
    /// A node that had granted it did not have it any more.
    lost_some: bool,
}

impl Count {
    fn of(round: &Round, grips: &[Grip], now: Instant) -> Self {
        let mut count = Self { deleted: 0, free: 0, possible: 0, open: 0, lost_some: false };
        for (ballot, grip) in round.ballots().iter().zip(grips) {
            let clean = *grip == Grip::None;
            let held = matches!(grip, Grip::Maybe | Grip::Granted);
            count.deleted += usize::from(matches!(ballot, Ballot::Yes(_)));
            count.free += usize::from(clean || matches!(ballot, Ballot::Yes(_) | Ballot::No));
            count.possible += usize::from(held && *ballot != Ballot::No);
            count.open += usize::from(!clean && matches!(ballot, Ballot::Open(_)) && now < round.deadline);
            count.lost_some |= *grip == Grip::Granted && *ballot == Ballot::No;
        }
        count
    }
}
