//! While the lease is held: extension, renewal, and the ways to lose it.

use core::num::NonZeroU32;
use core::time::Duration;

use super::outbox::Pass;
use super::record::Record;
use super::round::{Verdict, quorum_ttl};
use super::{LeaseMachine, Phase, ballot};
use crate::intent::Kind;
use crate::{
    CommandId, Error, Event, ExtendError, Instant, LockLost, LossReason, NodeId, NotHeld, Operation,
    QuorumError, TimerKind, Ttl, Vote,
};

/// A renewal is never due sooner than this after the last one.
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Holding {
    valid_until: Instant,
    hold_until: Option<Instant>,
    /// What renewals set: the ttl of the acquire, then of the last extension that was granted.
    ttl: Ttl,
    /// What the round that is under way asks for.
    asking: Ttl,
    renew_at: Option<Instant>,
    /// Renewals that failed in a row.
    failures: u32,
    /// An extension that waits for the round under way to end.
    queued: Option<Ttl>,
}

impl Holding {
    /// When the lease ends.
    pub(super) fn end(&self) -> Instant {
        self.hold_until.map_or(self.valid_until, |hold_until| hold_until.min(self.valid_until))
    }

    fn end_reason(&self) -> LossReason {
        match self.hold_until {
            Some(hold_until) if hold_until < self.valid_until => LossReason::MaxHold,
            Some(_) | None => LossReason::Expired,
        }
    }

    pub(super) fn end_kind(&self) -> TimerKind {
        match self.end_reason() {
            LossReason::MaxHold => TimerKind::MaxHold,
            _ => TimerKind::Expiry,
        }
    }

    /// When a renewal is due. One that is due while a round is under way waits for it, so it is no timer then.
    pub(super) const fn renewal(&self, round_live: bool) -> Option<Instant> {
        if round_live { None } else { self.renew_at }
    }
}

/// The request.
impl LeaseMachine {
    /// Asks for `ttl` from now on. Ends with [`Event::Extended`] or [`Event::ExtendFailed`].
    ///
    /// The ttl becomes that of later automatic renewals too. It may be shorter than before: then the
    /// lease counts as ending that early from the moment of asking, because any node may have set it. It
    /// may also be granted for less than was asked: a shorter extension or renewal that is still
    /// unanswered can come into effect after this one. An extension never creates a key and takes no new
    /// fencing token.
    ///
    /// # Errors
    /// Nothing was sent if this fails: [`Error::Config`] for a ttl out of bounds, [`Error::NotHeld`],
    /// [`Error::LockLost`], [`Error::ExtensionPending`].
    pub fn extend(&mut self, now: Instant, ttl: Duration) -> Result<(), Error> {
        self.input(now, |machine| {
            let ttl = machine.spec.config().check_ttl(ttl)?;
            let pending = machine.extension_pending();
            match &mut machine.phase {
                Phase::Held(_) if pending => Err(Error::ExtensionPending),
                Phase::Held(holding) if machine.round.live => {
                    holding.queued = Some(ttl);
                    Ok(())
                }
                Phase::Held(_) => {
                    machine.begin_extension(Operation::Extend, ttl);
                    Ok(())
                }
                Phase::Lost(reason) => Err(LockLost { reason: *reason }.into()),
                Phase::Idle | Phase::Acquiring(_) | Phase::Releasing => Err(NotHeld.into()),
            }
        })
    }
}

impl LeaseMachine {
    /// An attempt was won: from here on the lease is held.
    pub(super) fn hold(&mut self, valid_until: Instant, attempt: u32) {
        let config = self.spec.config();
        let ttl = config.ttl();
        let hold_until = config.max_hold().map(|max_hold| self.now.saturating_add(max_hold));
        self.round.live = false;
        let holding =
            Holding { valid_until, hold_until, ttl, asking: ttl, renew_at: None, failures: 0, queued: None };
        let valid_until = holding.end();
        self.phase = Phase::Held(holding);
        self.schedule_renewal(ttl);
        self.outbox.tell(Event::Acquired { valid_until, fencing: self.fencing, attempt });
    }

    /// What is over by now is lost, whatever any node would say.
    pub(super) fn lose_by_time(&mut self) {
        if let Phase::Held(holding) = &self.phase
            && self.now >= holding.end()
        {
            self.lose(holding.end_reason());
        }
    }

    pub(super) fn lose(&mut self, reason: LossReason) {
        self.end_extension(ExtendError::LockLost(LockLost { reason }));
        self.round.live = false;
        self.phase = Phase::Lost(reason);
        self.outbox.tell(Event::Lost { reason });
    }

    /// Ends a pending extension because the lease itself ends.
    pub(super) fn end_extension(&mut self, error: ExtendError) {
        if self.extension_pending() {
            self.outbox.tell(Event::ExtendFailed(error));
        }
    }

    fn extension_pending(&self) -> bool {
        let under_way = self.round.live && self.round.operation == Operation::Extend;
        matches!(&self.phase, Phase::Held(holding) if under_way || holding.queued.is_some())
    }

    pub(super) fn hold_timeout(&mut self) {
        if self.round.live {
            self.decide_extension();
        }
        if let Phase::Held(holding) = &mut self.phase
            && !self.round.live
            && holding.renew_at.is_some_and(|renew_at| self.now >= renew_at)
        {
            holding.renew_at = None;
            let ttl = holding.ttl;
            self.begin_extension(Operation::Renew, ttl);
        }
    }

    fn begin_extension(&mut self, operation: Operation, ttl: Ttl) {
        let Phase::Held(holding) = &mut self.phase else { return };
        holding.asking = ttl;
        // Any node may set the new ttl from now on, so no more than that can be counted on.
        holding.valid_until = holding.valid_until.min(self.spec.valid_until(self.now, ttl));
        let repair = operation == Operation::Renew && self.spec.config().repair();
        let pass = Pass { kind: Kind::CompareAndPexpire, ttl, ..self.pass() };
        self.round.begin(operation, self.now, pass.deadline);
        if repair && self.records.iter().any(Record::needs_repair) {
            for node in 0..pass.end {
                self.extend_and_repair(Pass { next: node, end: node.saturating_add(1), ..pass });
            }
            return;
        }
        let first = self.outbox.send(pass);
        for (record, number) in self.records.iter_mut().zip(0_u8..) {
            record.ask_extension(&mut self.extensions, NodeId::new(number), first.after(number), ttl);
        }
    }

    /// The extension at one node, and the repair if it needs one.
    fn extend_and_repair(&mut self, pass: Pass) {
        let node = NodeId::new(pass.next);
        let Some(record) = self.records.get_mut(node.index()) else { return };
        let id = self.outbox.send(pass);
        record.ask_extension(&mut self.extensions, node, id, pass.ttl);
        if record.needs_repair() {
            record.ask_repair(self.outbox.send(Pass { kind: Kind::SetNxPx, ..pass }));
        }
    }

    pub(super) fn answer_extension(&mut self, position: usize, id: CommandId, vote: Vote) {
        let Some(answered) = self.extensions.answer(position, &vote) else { return };
        if let Some(record) = self.records.get_mut(answered.node.index()) {
            record.answer_extension(&answered, &vote);
            record.answer_ballot(id, ballot(vote, answered.worth));
        }
        self.decide_extension();
    }

    /// Decides the round that is under way, if there is one, and whether the lease is lost. An answer to
    /// a round that has ended can still show that.
    pub(super) fn decide_extension(&mut self) {
        let Phase::Held(holding) = &self.phase else { return };
        let verdict =
            if self.round.live { self.round.verdict(&self.records, self.now) } else { Verdict::Pending };
        if verdict == Verdict::Won {
            let granted = quorum_ttl(&self.records).unwrap_or(holding.asking);
            let valid_until = self.spec.valid_until(self.round.started, granted);
            if self.now < valid_until {
                return self.extended(granted, valid_until);
            }
        } else if self.possible_holders() < self.spec.quorum() {
            return self.lose(LossReason::Refused);
        }
        if verdict != Verdict::Pending {
            self.not_extended();
        }
    }

    fn extended(&mut self, granted: Ttl, valid_until: Instant) {
        let Phase::Held(holding) = &mut self.phase else { return };
        holding.valid_until = holding.valid_until.max(valid_until);
        holding.failures = 0;
        let valid_until = holding.end();
        if self.round.operation == Operation::Extend {
            holding.ttl = holding.asking;
            self.outbox.tell(Event::Extended { valid_until });
        } else {
            self.outbox.tell(Event::Renewed { valid_until });
        }
        self.schedule_renewal(granted);
        self.begin_queued_extension();
    }

    fn not_extended(&mut self) {
        let cause = self.round.failure(&self.spec, &self.records, self.now);
        if self.round.operation == Operation::Renew {
            return self.renewal_failed(cause);
        }
        self.outbox.tell(Event::ExtendFailed(ExtendError::NotExtended(cause)));
        // The next renewal must come before an end that the attempt may have brought nearer.
        if let Phase::Held(holding) = &mut self.phase {
            let third = holding.valid_until.saturating_since(self.now) / 3;
            let soon = self.now.saturating_add(third.max(SHORTEST_PAUSE));
            holding.renew_at = holding.renew_at.map(|renew_at| renew_at.min(soon));
        }
        self.round.live = false;
    }

    fn renewal_failed(&mut self, cause: QuorumError) {
        let config = self.spec.config();
        let Phase::Held(holding) = &mut self.phase else { return };
        holding.failures = holding.failures.saturating_add(1);
        let failures = NonZeroU32::new(holding.failures).unwrap_or(NonZeroU32::MIN);
        if config.renew_attempts().is_some_and(|limit| failures >= limit) {
            return self.lose(LossReason::RenewalFailed);
        }
        let interval = config.renew_interval(holding.ttl).unwrap_or_default();
        let retry_at = self.now.saturating_add(self.jittered(config.retry_delay().min(interval / 2)));
        if let Phase::Held(holding) = &mut self.phase {
            holding.renew_at = Some(retry_at);
        }
        self.outbox.tell(Event::RenewFailed { failures, retry_at, cause });
        self.begin_queued_extension();
    }

    /// The round is over. The next renewal is due one interval after it started, for the ttl that was
    /// granted: that may be less than what was asked for.
    fn schedule_renewal(&mut self, granted: Ttl) {
        self.round.live = false;
        let Phase::Held(holding) = &mut self.phase else { return };
        let interval = self.spec.config().renew_interval(granted);
        let soonest = self.now.saturating_add(SHORTEST_PAUSE);
        holding.renew_at = interval.map(|interval| self.round.started.saturating_add(interval).max(soonest));
    }

    fn begin_queued_extension(&mut self) {
        self.round.live = false;
        if let Phase::Held(holding) = &mut self.phase
            && let Some(ttl) = holding.queued.take()
        {
            self.begin_extension(Operation::Extend, ttl);
        }
    }
}
