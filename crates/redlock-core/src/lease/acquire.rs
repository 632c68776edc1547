//! From the request to the lease: attempts, the pauses between them, and what to say when all failed.

use core::time::Duration;

use super::outbox::Pass;
use super::round::{Sum, Verdict};
use super::{LeaseMachine, Phase, ballot};
use crate::{
    AlreadyHeld, CommandId, Event, Instant, LossReason, NodeId, NotAcquired, NotAcquiredReason, Obstacle,
    Operation, TimerKind, Vote,
};

/// No pause is shorter than this, and no attempt is begun with less time than this.
pub(super) const SHORTEST: Duration = Duration::from_millis(1);

/// How long an acquire keeps trying.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Patience {
    /// So many attempts; the first is always made.
    Attempts(u32),
    /// Until this instant; the first attempt is made in any case and gets its full operation timeout.
    Until(Instant),
}

/// An acquire that has not ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Acquiring {
    patience: Patience,
    /// Attempts of the schedule that were begun for this request.
    made: u32,
    /// All that were begun: those of the schedule, and those that hints brought about.
    begun: u32,
    stage: Stage,
    /// The last attempt reached a quorum, but too late.
    expired: bool,
    /// The next attempt was put just before the end of the patience; none follows it.
    last_call: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Stage {
    /// An attempt is under way.
    Asking(Attempt),
    /// It failed and was taken back; the next of the schedule is due when the pause ends.
    Pausing(Pause),
    /// The last one failed and was taken back. Some nodes may still say why, until this instant.
    Reporting(Instant),
}

/// Why an attempt is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Attempt {
    /// It was due.
    Scheduled,
    /// Hints cut a pause short. It goes on if the attempt fails, and ends when it would have ended.
    Hinted { retry_at: Instant, splits: u8 },
}

/// From a failure to the next attempt of the schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Pause {
    pub(super) since: Instant,
    pub(super) retry_at: Instant,
    /// Attempts that hints brought about before, since the last one of the schedule, and that split the votes.
    pub(super) splits: u8,
}

impl Acquiring {
    /// When it goes on by itself.
    pub(super) const fn due(&self) -> Option<Instant> {
        match self.stage {
            Stage::Asking(_) => None,
            Stage::Pausing(pause) => Some(pause.retry_at),
            Stage::Reporting(at) => Some(at),
        }
    }

    /// What is due then.
    pub(super) const fn due_kind(&self) -> TimerKind {
        match self.stage {
            Stage::Asking(_) | Stage::Pausing(_) => TimerKind::Retry,
            Stage::Reporting(_) => TimerKind::Report,
        }
    }

    /// The pause, if that is what is going on.
    pub(super) const fn pause(&self) -> Option<Pause> {
        match self.stage {
            Stage::Pausing(pause) => Some(pause),
            Stage::Asking(_) | Stage::Reporting(_) => None,
        }
    }

    /// When to make the next attempt, if there is to be one.
    fn next_attempt(
        &mut self,
        now: Instant,
        pause: Duration,
        operation_timeout: Duration,
    ) -> Option<Instant> {
        let retry_at = now.saturating_add(pause);
        match self.patience {
            Patience::Attempts(attempts) => (self.made < attempts).then_some(retry_at),
            Patience::Until(end) if retry_at < end => Some(retry_at),
            // The pause would outlast the patience. One more attempt, shortly before the end, so that
            // a patience shorter than the pause is still spent waiting and not given back.
            Patience::Until(end) => {
                let left = end.saturating_since(now);
                if self.last_call || left < 2 * SHORTEST {
                    return None;
                }
                self.last_call = true;
                let run_up = operation_timeout.min(left / 4);
                Some(end.saturating_sub(run_up).max(now.saturating_add(SHORTEST)))
            }
        }
    }
}

/// Requests that begin and cut short.
impl LeaseMachine {
    /// Asks for the lease. Ends with [`Event::Acquired`] or [`Event::AcquireFailed`].
    ///
    /// Each attempt asks all nodes at once, under a token of its own, and is decided the moment a quorum
    /// said yes or has become impossible. A failed attempt is taken back at every node; the next one
    /// comes after `retry_delay` plus 0 to 50 % of it, or sooner: see [`handle_hint`](Self::handle_hint).
    ///
    /// # Errors
    /// [`AlreadyHeld`] while a lease is held or another request is not finished. A lease that is lost may
    /// be asked for again.
    pub fn acquire(&mut self, now: Instant, patience: Patience) -> Result<(), AlreadyHeld> {
        self.input(now, |machine| {
            match machine.phase {
                Phase::Idle => {}
                Phase::Lost(_) => machine.take_back(false),
                Phase::Acquiring(_) | Phase::Held(_) | Phase::Releasing => return Err(AlreadyHeld),
            }
            machine.phase = Phase::Acquiring(Acquiring {
                patience,
                made: 0,
                begun: 0,
                stage: Stage::Asking(Attempt::Scheduled),
                expired: false,
                last_call: false,
            });
            machine.begin_attempt(Attempt::Scheduled);
            Ok(())
        })
    }

    /// Gives up whatever there is, for a caller that has gone away. An acquire ends as cancelled, a lease
    /// as [`Event::Lost`] with [`LossReason::Closed`]; either is taken back at every node. A release that
    /// is under way goes on.
    pub fn abandon(&mut self, now: Instant) {
        self.input(now, |machine| match &machine.phase {
            Phase::Idle | Phase::Releasing => {}
            Phase::Acquiring(acquiring) => {
                if matches!(acquiring.stage, Stage::Asking(_)) {
                    machine.take_back(false);
                }
                machine.fail_acquire(|_, _| NotAcquiredReason::Cancelled);
            }
            Phase::Held(_) => {
                machine.lose(LossReason::Closed);
                machine.take_back(false);
                machine.phase = Phase::Idle;
            }
            Phase::Lost(_) => {
                machine.take_back(false);
                machine.phase = Phase::Idle;
            }
        });
    }
}

impl LeaseMachine {
    pub(super) fn begin_attempt(&mut self, attempt: Attempt) {
        let Phase::Acquiring(acquiring) = &mut self.phase else { return };
        acquiring.begun = acquiring.begun.saturating_add(1);
        acquiring.stage = Stage::Asking(attempt);
        // No answer is of use once the validity is gone, nor, after the first attempt, the patience.
        let valid_until = self.spec.valid_until(self.now, self.spec.config().ttl());
        let mut deadline = self.now.saturating_add(self.spec.operation_timeout()).min(valid_until);
        match attempt {
            Attempt::Scheduled => acquiring.made = acquiring.made.saturating_add(1),
            // Nor once the attempt is due that would have been made without hints.
            Attempt::Hinted { retry_at, .. } => deadline = deadline.min(retry_at),
        }
        if let Patience::Until(end) = acquiring.patience
            && acquiring.begun > 1
        {
            deadline = deadline.min(end);
        }
        // A number that has come round again belongs to an attempt of 2^32 attempts ago.
        self.attempt = self.attempt.wrapping_add(1);
        self.fencing = None;
        self.round.begin(Operation::Acquire, self.now, deadline);
        let first = self.outbox.send(Pass { deadline, kind: self.acquire_kind(), ..self.pass() });
        self.extensions.clear();
        for (record, number) in self.records.iter_mut().zip(0_u8..) {
            record.ask_acquire(first.after(number));
        }
    }

    /// An answer to the acquire of the current attempt, or to a repair. After the attempt was won it
    /// tells only whether the node holds our key as well.
    pub(super) fn answer_acquire(&mut self, index: usize, id: CommandId, vote: Vote) {
        let Some(record) = self.records.get_mut(index) else { return };
        record.answer_acquire(&vote);
        if !matches!(self.phase, Phase::Acquiring(_)) {
            // A refusal may show that no quorum can be ours any more.
            return self.decide_extension();
        }
        if let Vote::Yes(fencing) = vote {
            self.fencing = fencing;
        }
        record.answer_ballot(id, ballot(vote, self.spec.config().ttl()));
        self.decide_acquire();
    }

    pub(super) fn acquire_timeout(&mut self) {
        let Phase::Acquiring(acquiring) = &self.phase else { return };
        match acquiring.stage {
            Stage::Asking(_) => self.decide_acquire(),
            Stage::Pausing(pause) if self.now >= pause.retry_at => match acquiring.patience {
                // With less than that left nobody could answer, and what was seen before says more.
                Patience::Until(end) if end.saturating_since(self.now) < SHORTEST => self.report_failure(),
                Patience::Until(_) | Patience::Attempts(_) => self.begin_attempt(Attempt::Scheduled),
            },
            Stage::Reporting(at) if self.now >= at => self.report_failure(),
            Stage::Pausing(_) | Stage::Reporting(_) => {}
        }
    }

    fn decide_acquire(&mut self) {
        match self.round.verdict(&self.records, self.now) {
            Verdict::Pending => {}
            Verdict::Failed => self.fail_attempt(false),
            Verdict::Won => {
                let valid_until = self.spec.valid_until(self.round.started, self.spec.config().ttl());
                if self.now < valid_until {
                    let number = match &self.phase {
                        Phase::Acquiring(acquiring) => acquiring.begun,
                        Phase::Idle | Phase::Held(_) | Phase::Lost(_) | Phase::Releasing => return,
                    };
                    self.hold(valid_until, number);
                } else {
                    self.fail_attempt(true);
                }
            }
        }
    }

    fn fail_attempt(&mut self, expired: bool) {
        self.round.live = false;
        self.take_back(false);
        let pause = self.jittered(self.spec.config().retry_delay());
        let operation_timeout = self.spec.operation_timeout();
        let (now, split) = (self.now, (1..self.spec.quorum()).contains(&Sum::of(&self.records).yes));
        let Phase::Acquiring(acquiring) = &mut self.phase else { return };
        acquiring.expired = expired;
        let hinted_in = match acquiring.stage {
            Stage::Asking(Attempt::Hinted { retry_at, splits }) => Some((retry_at, splits)),
            Stage::Asking(Attempt::Scheduled) | Stage::Pausing(_) | Stage::Reporting(_) => None,
        };
        let pause = match hinted_in {
            Some((retry_at, splits)) => {
                Some(Pause { since: now, retry_at, splits: splits.saturating_add(u8::from(split)) })
            }
            None => {
                let retry_at = acquiring.next_attempt(now, pause, operation_timeout);
                retry_at.map(|retry_at| Pause { since: now, retry_at, splits: 0 })
            }
        };
        if let Some(pause) = pause {
            let retry_at = pause.retry_at;
            acquiring.stage = Stage::Pausing(pause);
            let attempt = acquiring.begun;
            let cause = self.not_acquired(|obstacle, _| obstacle.into());
            self.outbox.tell(Event::AttemptFailed { attempt, retry_at, cause });
            if hinted_in.is_some() {
                // It may have lasted until the next one is due.
                self.acquire_timeout();
            }
            return;
        }
        // Decided, but not always explained: "unreachable" and "taken at some" may differ by the answer
        // of a node that was not waited for. It gets a moment to say so.
        let moment = now.saturating_add(operation_timeout / 10).min(self.round.deadline);
        acquiring.stage = Stage::Reporting(moment);
        self.report_when_explained();
    }

    /// A late answer to an attempt that has failed: too late to count, in time to be reported. A yes
    /// after the deadline is not reported, or a failure might list a quorum of them.
    pub(super) fn explain_failure(&mut self, node: NodeId, id: CommandId, vote: Vote) {
        if (self.now < self.round.deadline || !matches!(vote, Vote::Yes(_)))
            && let Some(record) = self.records.get_mut(node.index())
        {
            record.answer_ballot(id, ballot(vote, self.spec.config().ttl()));
        }
        self.report_when_explained();
    }

    fn report_when_explained(&mut self) {
        let Phase::Acquiring(Acquiring { stage: Stage::Reporting(at), expired, .. }) = &self.phase else {
            return;
        };
        let explained = *expired
            || self.now >= *at
            || Sum::of(&self.records).open == 0
            || self.round.failure(&self.spec, &self.records, self.now).obstacle() == Obstacle::Taken;
        if explained {
            self.report_failure();
        }
    }

    fn report_failure(&mut self) {
        self.fail_acquire(|seen, patience| match patience {
            Patience::Attempts(_) => seen.into(),
            Patience::Until(_) => NotAcquiredReason::WaitedInVain { seen },
        });
    }

    fn fail_acquire(&mut self, reason: impl FnOnce(Obstacle, Patience) -> NotAcquiredReason) {
        let failure = self.not_acquired(reason);
        self.round.live = false;
        self.phase = Phase::Idle;
        self.forget_hints();
        self.outbox.tell(Event::AcquireFailed(failure));
    }

    fn not_acquired(&self, reason: impl FnOnce(Obstacle, Patience) -> NotAcquiredReason) -> NotAcquired {
        let quorum = self.round.failure(&self.spec, &self.records, self.now);
        let (expired, patience) = match &self.phase {
            Phase::Acquiring(acquiring) => (acquiring.expired, acquiring.patience),
            Phase::Idle | Phase::Held(_) | Phase::Lost(_) | Phase::Releasing => {
                (false, Patience::Attempts(1))
            }
        };
        let obstacle = if expired { Obstacle::Expired } else { quorum.obstacle() };
        NotAcquired { reason: reason(obstacle, patience), quorum }
    }
}
