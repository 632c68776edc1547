//! The machine: one lease from the first attempt to the release.

mod acquire;
mod extensions;
mod hint;
mod hold;
mod outbox;
mod output;
mod record;
mod release;
mod round;
mod take_back;
mod timers;
mod undo;

use alloc::boxed::Box;
use core::time::Duration;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

pub use acquire::Patience;
pub use output::{Event, MachineStats, Output, TimerKind};

use acquire::Acquiring;
use extensions::Extensions;
use hold::Holding;
use outbox::{Outbox, Pass};
use output::Uncounted;
use record::Record;
use round::{Ballot, Round};
use undo::UndoLog;

use crate::intent::Kind;
use crate::reply::read;
use crate::{CommandId, Fault, FencingToken, Instant, LeaseSpec, LossReason, Reply, Token, Ttl, Vote};

/// A lease as a pure state machine: it knows no clock, socket, thread or client. It says what to send
/// and is told what came back.
///
/// # How to drive it
///
/// Methods come in four classes.
///
/// - Requests ([`acquire`](Self::acquire), [`extend`](Self::extend), [`release`](Self::release),
///   [`abandon`](Self::abandon)) fail only when the state does not allow them, and then change nothing.
/// - Inputs ([`handle_reply`](Self::handle_reply), [`handle_timeout`](Self::handle_timeout), and, if it
///   likes, [`handle_hint`](Self::handle_hint)) never fail.
/// - Outputs come from [`poll_output`](Self::poll_output): drain it after requests and inputs, until it
///   says [`Output::Wait`]. Several requests and inputs may come before a drain.
/// - Getters take `&self`.
///
/// ```
/// use core::time::Duration;
/// use redlock_core::{Config, Event, Instant, LeaseMachine, LeaseSpec, MemoryNode, Output, Patience, Token};
///
/// let now = Instant::EPOCH;
/// let mut node = MemoryNode::new();
/// let spec = LeaseSpec::new("orders:42", ["memory".into()], Config::default())?;
/// let mut lease = LeaseMachine::new(spec, Token::from_bytes([7; 20]), 42);
///
/// lease.acquire(now, Patience::Attempts(1)).unwrap();
/// loop {
///     match lease.poll_output() {
///         Output::Send(command) => {
///             let reply = node.execute(now, &command.key, &command.intent);
///             lease.handle_reply(now, command.id, Ok(reply));
///         }
///         Output::Event(event) => assert!(matches!(event, Event::Acquired { .. })),
///         Output::Wait(_) => break,
///     }
/// }
/// assert!(lease.is_held(now));
/// # Ok::<(), redlock_core::Error>(())
/// ```
///
/// # What it promises
///
/// - A lease is held only after a quorum said yes, and only until `valid_until`, which counts from the
///   `now` of the input that sent the commands. Delays of any kind can only shorten it.
/// - After `handle_timeout(t)` and a drain, the next timeout lies after `t`.
/// - `valid_until` grows only by an extension that a quorum granted.
/// - Every request ends with exactly one terminal [`Event`], by its deadline, whatever the nodes do.
/// - One request or input adds at most [`max_outputs`](Self::max_outputs) outputs to the queue.
/// - Hints only let it ask sooner. They grant nothing, and no deadline moves.
/// - The same inputs give the same outputs, byte for byte.
///
/// Two machines are equal when they behave alike from here on; [`stats`](Self::stats) do not count.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LeaseMachine {
    spec: LeaseSpec,
    base: Token,
    seed: u64,
    now: Instant,
    /// Attempts made in this machine's life; the token of the current one.
    attempt: u32,
    fencing: Option<FencingToken>,
    phase: Phase,
    round: Round,
    records: Box<[Record]>,
    extensions: Extensions,
    undo: UndoLog,
    outbox: Outbox,
    stats: Uncounted,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Phase {
    Idle,
    Acquiring(Acquiring),
    Held(Holding),
    Lost(LossReason),
    /// The verdict is still open.
    Releasing,
}

/// Where a machine stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LeaseState {
    /// No lease, and none asked for.
    Idle,
    /// A lease was asked for: an attempt is under way, or the next is waited for.
    Acquiring,
    /// Held, as of the last input. Whether it still is depends on the time: see
    /// [`LeaseMachine::is_held`].
    Held,
    /// Over before it was released.
    Lost(LossReason),
    /// Released; how that ended is not known yet.
    Releasing,
}

/// Construction and outputs.
impl LeaseMachine {
    /// A machine without a lease.
    ///
    /// `base` must be 20 bytes from a cryptographic random source, fresh for this machine: the tokens of
    /// all its attempts derive from it. `seed` feeds the jitter and need not be secret, but should differ
    /// between contenders.
    #[must_use]
    pub fn new(spec: LeaseSpec, base: Token, seed: u64) -> Self {
        let nodes = spec.nodes().len();
        Self {
            base,
            seed,
            now: Instant::EPOCH,
            attempt: 0,
            fencing: None,
            phase: Phase::Idle,
            round: Round::new(),
            records: (0..nodes).map(|_| Record::new()).collect(),
            extensions: Extensions::for_nodes(nodes),
            undo: UndoLog::for_nodes(nodes),
            outbox: Outbox::new(),
            stats: Uncounted::default(),
            spec,
        }
    }

    /// The most outputs that one request or input can add to the queue, for this many nodes: the clean-up
    /// of one attempt and the commands of the next, or a renewal with a repair each, and two events.
    #[must_use]
    pub const fn max_outputs(nodes: usize) -> usize {
        2 * nodes + 2
    }

    /// The next thing to do. [`Output::Wait`] means that the queue is empty.
    pub fn poll_output(&mut self) -> Output {
        if self.outbox.is_empty() {
            return Output::Wait(self.next_wake());
        }
        // There is one; the other case is spelt out only because nothing here may panic.
        self.outbox.pop(&self.spec, self.base).unwrap_or(Output::Wait(None))
    }
}

/// Inputs.
impl LeaseMachine {
    /// An answer to the command `id`, or that there will be none.
    ///
    /// An id that is not waited for changes nothing and is counted. Answers may come in any order, late,
    /// more than once, or never.
    pub fn handle_reply(&mut self, now: Instant, id: CommandId, reply: Result<Reply, Fault>) {
        self.input(now, |machine| machine.dispatch_reply(id, reply));
    }

    /// The time is `now`. May be called early, late, or without need.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.input(now, |machine| {
            machine.stats.0.forgotten_cleanups += machine.undo.forget(machine.now) as u64;
            match &machine.phase {
                Phase::Acquiring(_) => machine.acquire_timeout(),
                Phase::Held(_) => machine.hold_timeout(),
                Phase::Releasing => machine.decide_release(),
                Phase::Idle | Phase::Lost(_) => {}
            }
        });
    }

    /// Runs one request or input. The clock never goes back, and what is over by now is over before
    /// anything else is looked at.
    fn input<T>(&mut self, now: Instant, act: impl FnOnce(&mut Self) -> T) -> T {
        if now < self.now {
            self.stats.0.clock_regressions += 1;
        }
        self.now = self.now.max(now);
        let before = if cfg!(debug_assertions) { self.outbox.len() } else { 0 };
        self.lose_by_time();
        let result = act(self);
        debug_assert!(self.outbox.len() - before <= Self::max_outputs(self.records.len()));
        result
    }

    fn dispatch_reply(&mut self, id: CommandId, reply: Result<Reply, Fault>) {
        if let Some(index) = self.records.iter().position(|record| record.awaits_acquire(id)) {
            let vote = read(self.acquire_kind(), reply);
            self.answer_acquire(index, id, vote);
        } else if let Some(position) = self.extensions.find(id) {
            let vote = read(Kind::CompareAndPexpire, reply);
            self.answer_extension(position, id, vote);
        } else if let Some(position) = self.undo.find(id) {
            self.answer_undo(position, id, reply);
        } else if id.get() < self.outbox.ids() {
            self.stats.0.stale_replies += 1;
        } else {
            self.stats.0.unknown_replies += 1;
        }
    }
}

/// Getters.
impl LeaseMachine {
    /// Where the machine stands, as of the last input.
    #[must_use]
    pub const fn state(&self) -> LeaseState {
        match &self.phase {
            Phase::Idle => LeaseState::Idle,
            Phase::Acquiring(_) => LeaseState::Acquiring,
            Phase::Held(_) => LeaseState::Held,
            Phase::Lost(reason) => LeaseState::Lost(*reason),
            Phase::Releasing => LeaseState::Releasing,
        }
    }

    /// When the lease ends; `None` when none is held.
    #[must_use]
    pub fn valid_until(&self) -> Option<Instant> {
        match &self.phase {
            Phase::Held(holding) => Some(holding.end()),
            Phase::Idle | Phase::Acquiring(_) | Phase::Lost(_) | Phase::Releasing => None,
        }
    }

    /// Whether the lease is held at `now`.
    #[must_use]
    pub fn is_held(&self, now: Instant) -> bool {
        self.valid_until().is_some_and(|end| now.max(self.now) < end)
    }

    /// The token of the current attempt.
    #[must_use]
    pub const fn token(&self) -> Token {
        self.base.for_attempt(self.attempt)
    }

    /// The fencing token of the lease that is held, if it takes one.
    #[must_use]
    pub const fn fencing_token(&self) -> Option<FencingToken> {
        match &self.phase {
            Phase::Held(_) => self.fencing,
            _ => None,
        }
    }

    /// What the lease is about.
    #[must_use]
    pub const fn spec(&self) -> &LeaseSpec {
        &self.spec
    }

    /// Whether nothing is left to do or to learn: no lease, no request, no clean-up under way. A driver
    /// may then forget the machine.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        matches!(self.phase, Phase::Idle) && self.undo.is_empty() && self.outbox.is_empty()
    }

    /// Whether [`poll_output`](Self::poll_output) has something else to yield than a time to wait for.
    #[must_use]
    pub fn has_output(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// Counts of what should be rare.
    #[must_use]
    pub const fn stats(&self) -> MachineStats {
        self.stats.0
    }
}

/// What the phases share.
impl LeaseMachine {
    fn operation_deadline(&self) -> Instant {
        self.now.saturating_add(self.spec.operation_timeout())
    }

    /// How many nodes may hold our key now.
    fn possible_holders(&self) -> usize {
        self.records.iter().filter(|record| record.may_hold()).count()
    }

    /// What an acquire is asked with.
    fn acquire_kind(&self) -> Kind {
        if self.spec.fencing_key().is_some() { Kind::FencedAcquire } else { Kind::SetNxPx }
    }

    /// A pass over every node, for the current token, as far as all kinds of it are the same.
    fn pass(&self) -> Pass {
        Pass {
            deadline: self.operation_deadline(),
            ttl: self.spec.config().ttl(),
            attempt: self.attempt,
            kind: Kind::CompareAndDelete,
            next: 0,
            end: self.records.len() as u8,
        }
    }

    /// `pause` plus a uniform random 0 to 50 % of it, and never less than a millisecond, so that no
    /// configuration makes a busy loop.
    fn jittered(&self, pause: Duration) -> Duration {
        const SHORTEST: Duration = Duration::from_millis(1);
        let half = u64::try_from(pause.as_nanos() / 2).unwrap_or(u64::MAX);
        let mut random = SmallRng::seed_from_u64(self.seed ^ self.outbox.ids().rotate_left(32));
        let jitter = Duration::from_nanos(random.random_range(0..=half));
        pause.saturating_add(jitter).max(SHORTEST)
    }
}

fn ballot(vote: Vote, ttl: Ttl) -> Ballot {
    match vote {
        Vote::Yes(_) => Ballot::Yes(ttl),
        Vote::No => Ballot::No,
        Vote::Fault(fault) => Ballot::Fault(Box::new(fault)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, LeaseState};

    #[test]
    fn the_bound_of_the_queue_is_two_commands_a_node_and_two_events() {
        assert_eq!([1, 3, 5].map(LeaseMachine::max_outputs), [4, 8, 12]);
    }

    #[test]
    fn a_machine_with_something_to_say_is_not_settled() {
        let spec = LeaseSpec::new("lock", ["node".into()], Config::default()).unwrap();
        let mut machine = LeaseMachine::new(spec, Token::from_bytes([7; Token::LEN]), 1);
        assert!(machine.is_settled());
        machine.acquire(Instant::EPOCH, Patience::Attempts(1)).unwrap();
        while machine.poll_output() != Output::Wait(machine.next_timeout().map(|(at, _)| at)) {}
        machine.handle_reply(Instant::EPOCH, CommandId::new(0), Ok(Reply::Ok));
        machine.release(Instant::EPOCH).unwrap();
        machine.handle_reply(Instant::EPOCH, CommandId::new(1), Ok(Reply::Int(1)));
        assert_eq!(machine.state(), LeaseState::Idle);
        assert!(!machine.is_settled(), "its events have not been taken");
        while !matches!(machine.poll_output(), Output::Wait(_)) {}
        assert!(machine.is_settled());
    }
}
