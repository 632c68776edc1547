//! One machine under watch: what it promises is checked at every input.

use std::collections::BTreeSet;

use proptest::prelude::*;
use redlock_core::{
    Cause, CauseKind, Command, CommandId, Error, Event, Fault, Instant, Intent, LeaseMachine, LeaseSpec,
    LeaseState, NodeId, NotAcquiredReason, Output, Patience, Token,
};

use super::inputs::{Answer, Input, Step, Time};

/// Its last four bytes overflow soon.
const BASE: Token = Token::from_bytes([0xff; Token::LEN]);

pub(crate) struct Probe {
    /// Drained after every input.
    machine: LeaseMachine,
    outputs: Vec<Output>,
    /// Gets the same inputs, and is drained only now and then.
    lazy: LeaseMachine,
    lazy_outputs: Vec<Output>,
    /// What the clock says, and the most it has ever said.
    clock: Instant,
    latest: Instant,
    commands: Vec<Command>,
    answered: BTreeSet<CommandId>,
    attempts: u32,
    /// Of the request that is open: attempts of the schedule, and how many there may be.
    scheduled: u32,
    limit: u32,
    /// When the pause ends that is going on, or that a hinted attempt was put into.
    pausing: Option<Instant>,
    hinted: Option<Instant>,
    /// Requests that have not ended.
    acquiring: bool,
    extending: bool,
    releasing: bool,
    /// Acquired, and neither lost nor released nor abandoned.
    live: bool,
}

impl Probe {
    pub(crate) fn new(spec: &LeaseSpec, seed: u64) -> Self {
        Self {
            machine: LeaseMachine::new(spec.clone(), BASE, seed),
            outputs: Vec::new(),
            lazy: LeaseMachine::new(spec.clone(), BASE, seed),
            lazy_outputs: Vec::new(),
            clock: Instant::EPOCH,
            latest: Instant::EPOCH,
            commands: Vec::new(),
            answered: BTreeSet::new(),
            attempts: 0,
            scheduled: 0,
            limit: 0,
            pausing: None,
            hinted: None,
            acquiring: false,
            extending: false,
            releasing: false,
            live: false,
        }
    }

    pub(crate) fn step(&mut self, step: &Step) -> Result<(), TestCaseError> {
        self.clock = match step.time {
            Time::Forward(span) => self.clock.saturating_add(span),
            Time::Back(span) => self.clock.saturating_sub(span),
            Time::Timer(late) => match self.machine.next_timeout() {
                Some((at, _)) => at.saturating_add(late),
                None => self.clock,
            },
        };
        match step.input {
            Input::Hint { nodes } => {
                (0..8).filter(|node| nodes & (1 << node) != 0).try_for_each(|node| self.hint(node))?;
            }
            _ => self.input(&step.input)?,
        }
        if step.drain {
            drain(&mut self.lazy, &mut self.lazy_outputs);
            prop_assert_eq!(&self.machine, &self.lazy, "draining late makes a difference");
        }
        Ok(())
    }

    /// Stops, and lets nothing but time pass: everything ends.
    pub(crate) fn settle(&mut self, abandon: bool) -> Result<(), TestCaseError> {
        let asked = self.latest;
        let wish = match self.machine.state() {
            LeaseState::Held | LeaseState::Lost(_) if !abandon => Input::Release,
            _ => Input::Abandon,
        };
        self.input(&wish)?;
        for _ in 0..200 {
            if self.machine.is_settled() {
                break;
            }
            let Some((at, _)) = self.machine.next_timeout() else { break };
            let releasing = self.releasing;
            self.clock = at;
            self.input(&Input::Timeout)?;
            if releasing && !self.releasing {
                let deadline = asked.saturating_add(self.machine.spec().config().operation_timeout());
                prop_assert!(self.latest <= deadline, "a release went on too long");
            }
        }
        prop_assert!(self.machine.is_settled(), "not settled: {:?}", self.machine);
        prop_assert!(!self.acquiring && !self.extending && !self.releasing && !self.live);
        drain(&mut self.lazy, &mut self.lazy_outputs);
        prop_assert_eq!(&self.lazy_outputs, &self.outputs, "draining late makes a difference");
        prop_assert_eq!(&self.machine, &self.lazy);
        Ok(())
    }

    /// A hint is good for one attempt at most, in a pause. It brings no news, least of all a lease.
    fn hint(&mut self, node: u8) -> Result<(), TestCaseError> {
        let (pausing, attempts, told) = (self.pausing, self.attempts, self.outputs.len());
        let watched = self.machine.watched().any(|watched| watched == NodeId::new(node));
        prop_assert!(!watched || pausing.is_some(), "{node} is watched, but nobody waits");
        self.input(&Input::Hint { nodes: node })?;
        let outputs = &self.outputs[told..];
        let begun = self.attempts - attempts;
        prop_assert!(begun == 0 || pausing.is_some_and(|retry_at| retry_at > self.latest));
        if pausing.is_some() {
            let nodes = self.machine.spec().nodes().len();
            prop_assert_eq!(outputs.len(), begun as usize * nodes);
            prop_assert!(outputs.iter().all(|output| matches!(output, Output::Send(_))));
            prop_assert_eq!(self.machine.state(), LeaseState::Acquiring);
        }
        if begun > 0 {
            self.scheduled -= begun;
            self.hinted = pausing;
        }
        Ok(())
    }

    fn input(&mut self, input: &Input) -> Result<(), TestCaseError> {
        let now = self.clock;
        self.latest = self.latest.max(now);
        let end = self.machine.valid_until();
        // What the time alone does, shown by an input that means nothing.
        let mut idle = self.machine.clone();
        idle.handle_reply(now, CommandId::new(u64::MAX), Err(Fault::Unknown(Cause::new(CauseKind::Timeout))));

        let (result, counts) = self.apply(input, now);
        let first = self.outputs.len();
        drain(&mut self.machine, &mut self.outputs);
        let outputs = self.outputs.split_off(first);
        if result.is_err() || !counts {
            let mut idle_outputs = Vec::new();
            drain(&mut idle, &mut idle_outputs);
            prop_assert_eq!(&self.machine, &idle, "{:?} has changed something", input);
            prop_assert_eq!(&outputs, &idle_outputs);
        }
        prop_assert!(outputs.len() <= LeaseMachine::max_outputs(self.machine.spec().nodes().len()));
        for output in &outputs {
            match output {
                Output::Send(command) => self.sent(command)?,
                Output::Event(event) => self.told(event)?,
                Output::Wait(_) => {}
            }
        }
        self.outputs.extend(outputs.iter().cloned());
        if outputs.iter().any(|output| matches!(output, Output::Event(Event::AttemptFailed { .. }))) {
            prop_assert!(self.pausing.is_none_or(|retry_at| retry_at > self.latest), "the next one is due");
        }
        if matches!(input, Input::Timeout) {
            let next = self.machine.next_timeout();
            prop_assert!(next.is_none_or(|(at, _)| at > self.latest), "{next:?} is not after {now:?}");
        }
        self.check_end(end, &outputs)
    }

    /// Gives the input to both machines. Says also whether it may make a difference at all.
    fn apply(&mut self, input: &Input, now: Instant) -> (Result<(), Error>, bool) {
        let both = [&mut self.machine, &mut self.lazy];
        match input {
            Input::Acquire { attempts, patience } => {
                let patience = match patience {
                    Some(span) => Patience::Until(now.saturating_add(*span)),
                    None => Patience::Attempts(*attempts),
                };
                let [result, _] = both.map(|machine| machine.acquire(now, patience));
                if result.is_ok() {
                    self.acquiring = true;
                    self.scheduled = 0;
                    self.limit =
                        if let Patience::Attempts(attempts) = patience { attempts } else { u32::MAX };
                }
                (result.map_err(Error::from), true)
            }
            Input::Extend(ttl) => {
                let [result, _] = both.map(|machine| machine.extend(now, *ttl));
                self.extending |= result.is_ok();
                (result, true)
            }
            Input::Release => {
                let [result, _] = both.map(|machine| machine.release(now));
                self.releasing |= result.is_ok();
                (result.map_err(Error::from), true)
            }
            Input::Abandon => {
                both.into_iter().for_each(|machine| machine.abandon(now));
                (Ok(()), true)
            }
            Input::Timeout => {
                both.into_iter().for_each(|machine| machine.handle_timeout(now));
                (Ok(()), true)
            }
            Input::Hint { nodes } => {
                both.into_iter().for_each(|machine| machine.handle_hint(now, NodeId::new(*nodes)));
                (Ok(()), self.pausing.is_some())
            }
            Input::Reply { age, answer } => {
                let open = |command: &&Command| !self.answered.contains(&command.id);
                let count = self.commands.iter().filter(open).count();
                let age = usize::from(*age).checked_rem(count);
                let command = age.and_then(|age| self.commands.iter().rev().filter(open).nth(age));
                let Some(command) = command.cloned() else { return self.apply(&Input::Timeout, now) };
                self.reply(&command, answer, now)
            }
            Input::Again { age, answer } => {
                let age = usize::from(*age).checked_rem(self.commands.len());
                let command = age.and_then(|age| self.commands.iter().rev().nth(age));
                let Some(command) = command.cloned() else { return self.apply(&Input::Timeout, now) };
                self.reply(&command, answer, now)
            }
            Input::Bogus { beyond, answer } => {
                let id = CommandId::new(self.commands.len() as u64 + u64::from(*beyond));
                let reply = answer.to(&Intent::CompareAndDelete { token: BASE });
                both.into_iter().for_each(|machine| machine.handle_reply(now, id, reply.clone()));
                (Ok(()), false)
            }
        }
    }

    fn reply(&mut self, command: &Command, answer: &Answer, now: Instant) -> (Result<(), Error>, bool) {
        let reply = answer.to(&command.intent);
        for machine in [&mut self.machine, &mut self.lazy] {
            machine.handle_reply(now, command.id, reply.clone());
        }
        (Ok(()), self.answered.insert(command.id))
    }

    fn sent(&mut self, command: &Command) -> Result<(), TestCaseError> {
        prop_assert_eq!(command.id.get(), self.commands.len() as u64, "an id is used again");
        prop_assert!(command.deadline > self.latest);
        prop_assert!(command.node.index() < self.machine.spec().nodes().len());
        let token = command.intent.token();
        if command.intent.acquires() && token == BASE.for_attempt(self.attempts + 1) {
            self.attempts += 1;
            self.scheduled += 1;
            self.pausing = None;
            self.hinted = None;
        }
        let current = token == BASE.for_attempt(self.attempts);
        prop_assert!(current || (1..self.attempts).any(|attempt| token == BASE.for_attempt(attempt)));
        let deletes = matches!(command.intent, Intent::CompareAndDelete { .. });
        prop_assert!(current || deletes, "a token of the past goes out again");
        self.commands.push(command.clone());
        Ok(())
    }

    /// One end per request, and nothing out of turn.
    fn told(&mut self, event: &Event) -> Result<(), TestCaseError> {
        let in_turn = match event {
            Event::Acquired { valid_until, .. } => {
                self.live = true;
                *valid_until > self.latest && std::mem::take(&mut self.acquiring)
            }
            Event::AcquireFailed(failed) => {
                self.pausing = None;
                let given_up = failed.reason == NotAcquiredReason::Cancelled || self.limit == u32::MAX;
                let all_made = self.scheduled == self.limit.max(1);
                (given_up || all_made) && std::mem::take(&mut self.acquiring)
            }
            // The pause of a hinted attempt ends when it would have ended without it.
            Event::AttemptFailed { retry_at, .. } => {
                self.pausing = Some(*retry_at);
                let as_planned = match self.hinted.take() {
                    Some(planned) => *retry_at == planned,
                    None => *retry_at > self.latest,
                };
                as_planned && self.acquiring
            }
            Event::Extended { .. } => self.live && std::mem::take(&mut self.extending),
            Event::ExtendFailed(_) => self.live && std::mem::take(&mut self.extending),
            Event::Renewed { .. } => self.live,
            Event::RenewFailed { retry_at, .. } => *retry_at > self.latest && self.live,
            Event::Lost { .. } => std::mem::take(&mut self.live),
            Event::Released(_) | Event::ReleaseFailed(_) => std::mem::take(&mut self.releasing),
            _ => false,
        };
        prop_assert!(in_turn, "out of turn: {event:?}");
        Ok(())
    }

    /// The end of the lease, before and after an input.
    fn check_end(&mut self, before: Option<Instant>, outputs: &[Output]) -> Result<(), TestCaseError> {
        let after = self.machine.valid_until();
        let grown = match (before, after) {
            (Some(before), Some(after)) => after > before,
            (before, after) => before.is_none() && after.is_some(),
        };
        if grown {
            // An extension that was waiting may have begun since, and shortened it again.
            let told = outputs.iter().any(|output| match output {
                Output::Event(Event::Acquired { valid_until, .. }) => {
                    before.is_none() && Some(*valid_until) == after
                }
                Output::Event(Event::Extended { valid_until } | Event::Renewed { valid_until }) => {
                    Some(*valid_until) >= after
                }
                _ => false,
            });
            prop_assert!(told, "valid until {after:?} instead of {before:?}, and nobody was told why");
        }
        let state = self.machine.state();
        let held = state == LeaseState::Held;
        self.live &= held;
        prop_assert_eq!((held, held), (after.is_some(), self.live));
        prop_assert!(held || !self.extending);
        prop_assert!(self.scheduled <= self.limit.max(1), "more attempts than were asked for");
        prop_assert_eq!(self.acquiring, state == LeaseState::Acquiring);
        prop_assert_eq!(self.releasing, state == LeaseState::Releasing);
        prop_assert_eq!(self.machine.is_held(Instant::EPOCH), self.machine.is_held(self.latest));
        if let Some(end) = after {
            prop_assert!(
                end > self.latest && self.machine.is_held(self.latest) && !self.machine.is_held(end)
            );
        }
        Ok(())
    }
}

fn drain(machine: &mut LeaseMachine, outputs: &mut Vec<Output>) {
    loop {
        match machine.poll_output() {
            Output::Wait(until) => {
                assert_eq!(until, machine.next_timeout().map(|(at, _)| at));
                return;
            }
            output => outputs.push(output),
        }
    }
}
