//! One machine, its twin, and whatever is asked of it.

use std::collections::VecDeque;
use std::time::Duration;

use redlock_core::{
    CommandId, Fault, Instant, LeaseMachine, LeaseState, NodeId, Output, Patience, Reply, Token, Ttl,
};

use super::promises::Promises;
use super::reply;
use super::sent::SentLog;
use super::setup::{Drift, Settings};

#[derive(Debug)]
pub(crate) struct Contender {
    machine: LeaseMachine,
    twin: Option<Twin>,
    drift: Drift,
    /// The latest time that the machine was told.
    now: Instant,
    pub(crate) sent: SentLog,
    promises: Promises,
}

/// A machine that is told the same, and drained now and then.
#[derive(Debug)]
struct Twin {
    machine: LeaseMachine,
    /// What it owes.
    outputs: VecDeque<Output>,
}

/// The requests and inputs. All may be made at any time; whether they must succeed follows from what was
/// promised so far.
impl Contender {
    pub(crate) fn new(settings: &Settings, number: u8, drift: Drift, twin: bool) -> Self {
        let base = Token::from_bytes([number; Token::LEN]);
        let machine = LeaseMachine::new(settings.spec.clone(), base, u64::from(number));
        Self {
            twin: twin.then(|| Twin { machine: machine.clone(), outputs: VecDeque::new() }),
            machine,
            drift,
            now: Instant::EPOCH,
            sent: SentLog::default(),
            promises: Promises::new(settings.clone(), drift),
        }
    }

    pub(crate) fn acquire(&mut self, now: Instant, patience: Patience) {
        let allowed =
            matches!(self.machine.state(), LeaseState::Idle | LeaseState::Lost(_)) || self.is_over(now);
        let (outcome, outputs) = self.input(now, allowed, |machine| machine.acquire(now, patience));
        assert_eq!(outcome.is_ok(), allowed, "{outcome:?}");
        if allowed {
            self.promises.acquire_asked(patience);
        }
        self.process(outputs);
    }

    pub(crate) fn extend(&mut self, now: Instant, ttl: Duration) {
        let possible = Ttl::new(ttl).is_ok_and(|ttl| self.drift.validity(ttl) > Duration::ZERO);
        let held = self.machine.state() == LeaseState::Held && !self.is_over(now);
        let allowed = possible && held && !self.promises.extension_pending();
        let (outcome, outputs) = self.input(now, allowed, |machine| machine.extend(now, ttl));
        assert_eq!(outcome.is_ok(), allowed, "{outcome:?}");
        if allowed {
            self.promises.extension_asked();
        }
        self.process(outputs);
    }

    pub(crate) fn release(&mut self, now: Instant) {
        let allowed = matches!(self.machine.state(), LeaseState::Held | LeaseState::Lost(_));
        let over = self.is_over(now);
        let (outcome, outputs) = self.input(now, allowed, |machine| machine.release(now));
        assert_eq!(outcome.is_ok(), allowed, "{outcome:?}");
        if allowed {
            self.promises.release_asked(over);
        }
        self.process(outputs);
        assert!(!allowed || !self.machine.is_held(now), "held after a release");
    }

    pub(crate) fn abandon(&mut self, now: Instant) {
        let ((), outputs) = self.input(now, true, |machine| machine.abandon(now));
        self.promises.abandoned();
        self.process(outputs);
    }

    pub(crate) fn reply(&mut self, now: Instant, id: CommandId, reply: Result<Reply, Fault>) {
        let awaited = match self.sent.find(id) {
            Some(sent) if sent.said.is_none() => {
                sent.said = Some(reply::meaning(&sent.command.intent, &reply));
                true
            }
            Some(_) | None => false,
        };
        let ((), outputs) = self.input(now, awaited, |machine| machine.handle_reply(now, id, reply.clone()));
        self.process(outputs);
    }

    pub(crate) fn hint(&mut self, now: Instant, node: NodeId) {
        let pausing = self.promises.pausing();
        assert!(pausing || self.machine.watched().next().is_none(), "watching without a pause");
        let over = self.is_over(now);
        let ((), outputs) = self.input(now, pausing || over, |machine| machine.handle_hint(now, node));
        let brings_news = outputs.iter().any(|output| matches!(output, Output::Event(_)));
        assert!(over || !brings_news, "a hint has brought news");
        self.promises.hinted();
        self.process(outputs);
    }

    pub(crate) fn timeout(&mut self, now: Instant) {
        let ((), outputs) = self.input(now, true, |machine| machine.handle_timeout(now));
        self.process(outputs);
        let next = self.machine.next_timeout();
        assert!(next.is_none_or(|(at, _)| at > self.now), "{next:?} at {:?}", self.now);
    }

    /// Both machines do the same; this one is drained. What is not `allowed` must change nothing, unless time
    /// has passed meanwhile.
    fn input<T: PartialEq + std::fmt::Debug>(
        &mut self,
        now: Instant,
        allowed: bool,
        act: impl Fn(&mut LeaseMachine) -> T,
    ) -> (T, Vec<Output>) {
        let unchanged = (!allowed && now <= self.now).then(|| self.machine.clone());
        self.now = self.now.max(now);
        let outcome = act(&mut self.machine);
        let mut outputs = Vec::new();
        let next = loop {
            match self.machine.poll_output() {
                Output::Wait(next) => break next,
                output => outputs.push(output),
            }
        };
        assert_eq!(next, self.machine.next_timeout().map(|(at, _)| at));
        let nodes = self.machine.spec().nodes().len();
        assert!(outputs.len() <= LeaseMachine::max_outputs(nodes), "{} outputs", outputs.len());
        if let Some(before) = unchanged {
            assert!(outputs.is_empty() && before == self.machine, "what was refused has changed something");
        }
        if let Some(twin) = &mut self.twin {
            assert_eq!(act(&mut twin.machine), outcome);
            twin.outputs.extend(outputs.iter().cloned());
        }
        (outcome, outputs)
    }

    fn process(&mut self, outputs: Vec<Output>) {
        self.promises.begin_input(self.now);
        for output in outputs {
            match output {
                Output::Send(command) => {
                    self.promises.command(&command);
                    self.sent.push(command);
                }
                Output::Event(event) => self.promises.event(&event, &mut self.sent),
                Output::Wait(_) => {}
            }
        }
        self.promises.end_input(&self.machine);
    }

    /// Makes the twin give what it owes.
    pub(crate) fn drain_twin(&mut self) {
        let Some(twin) = &mut self.twin else { return };
        loop {
            match twin.machine.poll_output() {
                Output::Wait(_) => break,
                output => assert_eq!(Some(output), twin.outputs.pop_front(), "drained late"),
            }
        }
        assert!(twin.outputs.is_empty() && twin.machine == self.machine, "drained late");
    }
}

/// Looking.
impl Contender {
    pub(crate) const fn machine(&self) -> &LeaseMachine {
        &self.machine
    }

    pub(crate) const fn promises(&self) -> &Promises {
        &self.promises
    }

    pub(crate) const fn now(&self) -> Instant {
        self.now
    }

    /// Whether a lease that the machine takes for held will turn out to be over at `now`.
    fn is_over(&self, now: Instant) -> bool {
        self.machine.valid_until().is_some_and(|end| self.now.max(now) >= end)
    }

    pub(crate) fn check(&self, now: Instant) {
        let held = self.promises.end().is_some_and(|end| self.now.max(now) < end);
        assert_eq!(self.machine.is_held(now), held, "at {now:?}");
    }
}
