//! Contenders, nodes, and a network that may do anything but run a command twice.

use std::collections::BTreeSet;
use std::time::Duration;

use proptest::prelude::*;
use redlock_core::{
    Cause, CauseKind, Command, Config, Event, Fault, FencingToken, Instant, Intent, LeaseMachine, LeaseSpec,
    LeaseState, NodeId, Output, ReleaseOutcome, Reply, Token, Ttl,
};

use super::tally::Tally;

/// What a world is like.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// For each node, whether its keys expire as early as the drift allows.
    pub(crate) fast_nodes: Vec<bool>,
    pub(crate) drift_percent: u64,
    pub(crate) fenced: bool,
    pub(crate) punctual: bool,
}

/// Everything there is, on one exact clock of milliseconds.
pub(crate) struct World {
    pub(crate) now: u64,
    pub(crate) contenders: Vec<LeaseMachine>,
    pub(crate) tally: Tally,
    nodes: Vec<Node>,
    wire: Vec<Flight>,
    drift_percent: u64,
    fences: BTreeSet<FencingToken>,
    /// What a machine has claimed that was not true.
    pub(crate) false_claim: Option<String>,
    /// Whether due timers are handled on time, not only when a step says so.
    punctual: bool,
}

/// The reference: one key, and when it expires.
struct Node {
    key: Option<(Token, u64)>,
    counter: i64,
    /// Its keys expire as early as the drift allows, not after their full ttl.
    fast: bool,
}

/// A command under way.
struct Flight {
    contender: usize,
    command: Command,
    /// The answer, once the node has carried the command out.
    answer: Option<Reply>,
    /// The contender was told that nobody knows what became of it.
    given_up: bool,
    /// A later command to the same node was carried out before.
    overtaken: bool,
}

/// Which commands to choose from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Any,
    /// Of the attempt that is current.
    Current,
    /// Of an attempt that is being taken back.
    Outdated,
    Extension,
}

impl World {
    pub(crate) fn new(plan: &Plan, configs: Vec<Config>) -> Self {
        let nodes = &plan.fast_nodes;
        let names: Vec<_> = (0..nodes.len()).map(|index| format!("n{index}").into()).collect();
        let contender = |(config, number): (Config, u8)| {
            let spec = LeaseSpec::new("lock", names.clone(), config).unwrap();
            let spec =
                if plan.fenced && nodes.len() == 1 { spec.with_fencing("fence").unwrap() } else { spec };
            LeaseMachine::new(spec, Token::from_bytes([number; Token::LEN]), u64::from(number))
        };
        Self {
            now: 0,
            contenders: configs.into_iter().zip(1..).map(contender).collect(),
            tally: Tally::default(),
            nodes: nodes.iter().map(|&fast| Node { key: None, counter: 0, fast }).collect(),
            wire: Vec::new(),
            drift_percent: plan.drift_percent,
            fences: BTreeSet::new(),
            false_claim: None,
            punctual: plan.punctual,
        }
    }

    pub(crate) fn instant(&self) -> Instant {
        Instant::from_epoch(Duration::from_millis(self.now))
    }

    /// Lets time pass, and with it the timers of those who are punctual.
    pub(crate) fn pass(&mut self, millis: u64) {
        let end = self.now + millis;
        while self.punctual {
            let due = (0..self.contenders.len()).filter_map(|who| Some((self.due(who)?, who))).min();
            let Some((at, who)) = due.filter(|(at, _)| *at <= end) else { break };
            self.now = self.now.max(at);
            self.timeout(who);
        }
        self.now = end;
    }

    /// Lets time pass until the next timer of `who`, and handles it.
    pub(crate) fn pass_to_timer(&mut self, who: usize) {
        let Some(at) = self.due(who) else { return };
        self.pass(at.saturating_sub(self.now));
        self.timeout(who);
    }

    pub(crate) fn timeout(&mut self, who: usize) {
        let now = self.instant();
        self.contenders[who].handle_timeout(now);
        self.drain(who);
        assert!(self.contenders[who].next_timeout().is_none_or(|(at, _)| at > now));
    }

    /// Somebody says that the key may have gone at `node`.
    pub(crate) fn hint(&mut self, who: usize, node: u8) {
        let (now, before) = (self.instant(), self.contenders[who].token());
        self.contenders[who].handle_hint(now, NodeId::new(node));
        self.drain(who);
        if self.contenders[who].token() != before {
            self.tally.hint(self.contenders[who].token());
        }
    }

    /// When `who` wants to be woken, rounded up to the world's milliseconds.
    fn due(&self, who: usize) -> Option<u64> {
        let (at, _) = self.contenders[who].next_timeout()?;
        u64::try_from(at.since_epoch().as_nanos().div_ceil(1_000_000)).ok()
    }

    /// Takes the outputs of `who`: commands go on the wire.
    pub(crate) fn drain(&mut self, who: usize) {
        loop {
            match self.contenders[who].poll_output() {
                Output::Send(command) => self.wire.push(Flight {
                    contender: who,
                    command,
                    answer: None,
                    given_up: false,
                    overtaken: false,
                }),
                Output::Event(event) => self.observe(who, &event),
                Output::Wait(_) => return,
            }
        }
    }

    fn observe(&mut self, who: usize, event: &Event) {
        self.tally.event(who, event, self.contenders[who].token());
        match event {
            Event::Acquired { fencing: Some(fence), .. } => {
                if self.fences.last().is_some_and(|last| last >= fence) {
                    self.false_claim = Some(format!("fencing token {fence} is not new"));
                }
                self.fences.insert(*fence);
            }
            Event::Released(ReleaseOutcome::Released) => {
                let token = self.contenders[who].token();
                let free = self.nodes.len() - self.bound_to(token);
                if !self.is_majority(free) {
                    self.false_claim = Some(format!("released, but only {free} nodes are free for good"));
                }
            }
            _ => {}
        }
    }

    const fn is_majority(&self, nodes: usize) -> bool {
        nodes * 2 > self.nodes.len()
    }

    /// How many nodes hold this token, or may come to hold it by a command that is under way.
    fn bound_to(&self, token: Token) -> usize {
        let holds = |node: &Node| node.holder(self.now) == Some(token);
        let awaits = |index: usize| {
            self.wire.iter().any(|flight| {
                let Command { node, intent, .. } = &flight.command;
                flight.answer.is_none()
                    && node.index() == index
                    && intent.acquires()
                    && intent.token() == token
            })
        };
        self.nodes.iter().enumerate().filter(|(index, node)| holds(node) || awaits(*index)).count()
    }
}

/// The network. Commands under way are picked by their position, oldest first.
impl World {
    /// The position of one of the commands of this kind.
    pub(crate) fn pick(&self, kind: Kind, number: usize) -> Option<usize> {
        let fits = |flight: &Flight| {
            let intent = &flight.command.intent;
            let current = self.contenders[flight.contender].token() == intent.token();
            match kind {
                Kind::Any => true,
                Kind::Current => current,
                Kind::Outdated => !current,
                Kind::Extension => matches!(intent, Intent::CompareAndPexpire { .. }),
            }
        };
        let number = number.checked_rem(self.wire.iter().filter(|flight| fits(flight)).count())?;
        (0..self.wire.len()).filter(|&position| fits(&self.wire[position])).nth(number)
    }

    /// Carries out and answers everything that `who` has asked these nodes, oldest first.
    pub(crate) fn sweep(&mut self, who: usize, nodes: u8) {
        while let Some(at) = self.oldest_of(who, nodes) {
            self.answer(at);
        }
    }

    /// The position of the oldest command of `who` to one of `nodes`.
    fn oldest_of(&self, who: usize, nodes: u8) -> Option<usize> {
        self.wire.iter().position(|flight| {
            flight.contender == who && !flight.given_up && nodes & (1 << flight.command.node.index()) != 0
        })
    }

    /// The node carries the command out now, if it has not before.
    pub(crate) fn execute(&mut self, position: usize) {
        let now = self.now;
        let Flight { contender, command, answer, given_up, overtaken } = &mut self.wire[position];
        if answer.is_some() {
            return;
        }
        self.tally.execution(
            command,
            *overtaken,
            self.contenders[*contender].token() != command.intent.token(),
        );
        *answer = Some(self.nodes[command.node.index()].execute(now, self.drift_percent, &command.intent));
        let (given_up, node) = (*given_up, command.node);
        for earlier in self.wire[..position].iter_mut().filter(|earlier| earlier.command.node == node) {
            earlier.overtaken = true;
        }
        if given_up {
            self.wire.remove(position);
        }
    }

    /// Carries the command out if it was not yet, and brings the answer home.
    pub(crate) fn answer(&mut self, position: usize) {
        self.execute(position);
        if self.wire.get(position).is_some_and(|flight| flight.answer.is_some()) {
            let Flight { contender, command, answer, .. } = self.wire.remove(position);
            self.reply(contender, &command, answer.ok_or(Fault::Unknown(Cause::new(CauseKind::Timeout))));
        }
    }

    /// The command never reaches its node; the contender may be told so.
    pub(crate) fn lose_request(&mut self, position: usize, told: bool) {
        if self.wire[position].answer.is_none() {
            let Flight { contender, command, given_up, .. } = self.wire.remove(position);
            if told && !given_up {
                self.reply(contender, &command, Err(Fault::NotExecuted(Cause::new(CauseKind::Unreachable))));
            }
        }
    }

    /// The answer never comes; the contender may be told that. The command goes on, if it is not done.
    pub(crate) fn lose_reply(&mut self, position: usize, told: bool) {
        if self.wire[position].given_up {
            return;
        }
        let done = self.wire[position].answer.is_some();
        let (contender, command) = (self.wire[position].contender, self.wire[position].command.clone());
        if done {
            self.wire.remove(position);
        } else {
            self.wire[position].given_up = true;
        }
        if told {
            self.reply(contender, &command, Err(Fault::Unknown(Cause::new(CauseKind::Disconnected))));
        }
    }

    fn reply(&mut self, who: usize, command: &Command, reply: Result<Reply, Fault>) {
        let now = self.instant();
        self.contenders[who].handle_reply(now, command.id, reply);
        self.drain(who);
    }
}

/// What must be true at every moment.
impl World {
    /// The promise itself: never two holders.
    pub(crate) fn check_exclusion(&mut self) -> Result<(), TestCaseError> {
        let now = self.instant();
        let holders = self.contenders.iter().filter(|machine| machine.is_held(now)).count();
        prop_assert!(holders <= 1, "{holders} holders at {now:?}");
        self.tally.moment(holders);
        Ok(())
    }

    /// What it rests on: a quorum holds the token of a holder until the end of its lease.
    pub(crate) fn check_majority(&self) -> Result<(), TestCaseError> {
        let now = self.instant();
        for machine in self.contenders.iter().filter(|machine| machine.is_held(now)) {
            let end = machine.valid_until().unwrap();
            let until = |node: &Node| match node.key {
                Some((token, expires)) if token == machine.token() => Some(Duration::from_millis(expires)),
                Some(_) | None => None,
            };
            let kept =
                self.nodes.iter().filter_map(until).filter(|until| *until >= end.since_epoch()).count();
            prop_assert!(self.is_majority(kept), "held until {end:?}, by {kept} nodes only");
        }
        Ok(())
    }

    /// What was said was true.
    pub(crate) fn check_claims(&self) -> Result<(), TestCaseError> {
        prop_assert_eq!(&self.false_claim, &None);
        Ok(())
    }

    /// Once all have stopped and every command is answered, nothing of theirs is left on any node.
    pub(crate) fn check_leftovers(&mut self, mut random: impl FnMut() -> usize) -> Result<(), TestCaseError> {
        let now = self.instant();
        for who in 0..self.contenders.len() {
            let machine = &mut self.contenders[who];
            match machine.state() {
                LeaseState::Held | LeaseState::Lost(_) => prop_assert!(machine.release(now).is_ok()),
                _ => machine.abandon(now),
            }
            self.drain(who);
        }
        while let Some(position) = self.pick(Kind::Any, random()) {
            if random().is_multiple_of(2) { self.answer(position) } else { self.execute(position) }
        }
        for machine in &self.contenders {
            prop_assert!(machine.is_settled(), "{machine:?}");
        }
        // What was given up because there was too much of it may stay until it expires.
        if self.contenders.iter().all(|machine| machine.stats().forgotten_cleanups == 0) {
            let keys = self.nodes.iter().filter(|node| node.holder(self.now).is_some()).count();
            prop_assert_eq!(keys, 0, "keys left behind");
        }
        Ok(())
    }
}

impl Node {
    fn holder(&self, now: u64) -> Option<Token> {
        self.key.filter(|(_, expires)| now < *expires).map(|(token, _)| token)
    }

    fn execute(&mut self, now: u64, drift_percent: u64, intent: &Intent) -> Reply {
        let early = |ttl: u64| if self.fast { (ttl * drift_percent).div_ceil(100) + 2 } else { 0 };
        let lifetime = |ttl: Ttl| ttl.as_millis().saturating_sub(early(ttl.as_millis()));
        let ours = self.holder(now) == Some(intent.token());
        let free = self.holder(now).is_none();
        match intent {
            Intent::SetNxPx { token, ttl } if free => {
                self.key = Some((*token, now + lifetime(*ttl)));
                Reply::Ok
            }
            Intent::SetNxPx { .. } => Reply::Nil,
            Intent::FencedAcquire { token, ttl, .. } if free => {
                self.key = Some((*token, now + lifetime(*ttl)));
                self.counter += 1;
                Reply::Int(self.counter)
            }
            Intent::CompareAndPexpire { token, ttl } if ours => {
                self.key = Some((*token, now + lifetime(*ttl)));
                Reply::Int(1)
            }
            Intent::CompareAndDelete { .. } if ours => {
                self.key = None;
                Reply::Int(1)
            }
            Intent::FencedAcquire { .. }
            | Intent::CompareAndPexpire { .. }
            | Intent::CompareAndDelete { .. } => Reply::Int(0),
        }
    }
}
