//! What there is in a model, what may happen in it, and where it ends.

use std::time::Duration;

use redlock_core::{Config, Instant, LeaseMachine, LeaseSpec, Patience, Token};

use crate::Fact;

/// The step of time. It is what drift takes off a ttl when the drift factor is zero, so that one tick too
/// much or too little is one that matters.
pub const TICK: Duration = Duration::from_millis(2);

/// The lock's key.
pub(crate) const RESOURCE: &str = "lock";
/// The fencing counter's key.
pub(crate) const FENCE: &str = "fence";

/// One model. All times are in ticks.
#[derive(Clone, Debug)]
pub struct Setup {
    /// How many nodes the clients are configured with.
    pub nodes: usize,
    /// What each client may do.
    pub plans: Vec<Plan>,
    /// The last tick.
    pub horizon: u8,
    /// How long keys live.
    pub ttl: u8,
    /// How long a round may take.
    pub timeout: u8,
    /// Whether leases take fencing tokens.
    pub fenced: bool,
    /// In which order commands and answers travel.
    pub order: Order,
    /// How many connections may have something under way, or lost, while time goes on.
    pub behind: usize,
    /// How finely moments are taken apart.
    pub grain: Grain,
    /// How well clients keep time.
    pub timers: Timers,
    /// How well nodes keep time.
    pub clocks: Clocks,
    /// How many hints that change anything there are, over the whole path: to anybody, about any node, at any
    /// moment.
    pub hints: u8,
    /// What goes wrong that a lease must bear.
    pub trouble: Trouble,
    /// What goes wrong that a lease cannot bear.
    pub sabotage: Sabotage,
    /// What must happen on some path, so that nothing holds only because nothing happens.
    pub facts: Vec<Fact>,
}

/// What one client may do: everything here at any moment at which its machine takes the request.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How many times it asks for the lease.
    pub acquires: u8,
    /// How many attempts it makes each time.
    pub attempts: u8,
    /// How long it pauses between two of them, before jitter. Zero is less than a tick.
    pub pause: u8,
    /// How long it waits for the lease, instead of a number of attempts.
    pub within: Option<u8>,
    /// How many extensions it asks for.
    pub extensions: u8,
    /// The ttls that it chooses from when it extends.
    pub ttls: Vec<u8>,
    /// The interval of automatic renewal.
    pub renewal: Option<u8>,
    /// Whether it may release.
    pub releases: bool,
    /// Whether it may be abandoned.
    pub abandons: bool,
}

/// In which order commands and answers of one client and one node travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// First in, first out: one connection.
    Fifo,
    /// Any: a connection for each of them.
    Any,
}

/// How finely a moment, which is what lies between two ticks, is taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grain {
    /// Carrying a command out is one step, the arrival of its answer another.
    Fine,
    /// Both are one step where no order of steps can tell them apart: the same worlds at the end of each
    /// moment, by far fewer ways there. Only for nodes that are independent, and connections in order.
    ///
    /// An answer that arrives in the moment in which its command was carried out can do so at once, unless
    /// another command reached the node in between: so those come along, as [`Action::Exchange`]. What
    /// else is carried out without an answer in this moment can wait until its end: see [`Action::Close`].
    ///
    /// [`Action::Exchange`]: crate::Action::Exchange
    /// [`Action::Close`]: crate::Action::Close
    Coarse,
}

/// How well clients keep time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timers {
    /// Every timer is handled when it is due.
    Punctual,
    /// Timers are handled at any time after they were due, or never.
    Late,
}

/// How well nodes keep time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clocks {
    /// As well as clients.
    Exact,
    /// Each key goes as early as the drift allows.
    Fast,
    /// Each key goes at any time from then on to the end of its ttl.
    Free,
}

/// How often things go wrong, over the whole path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Trouble {
    /// A connection breaks: what is unanswered has an unknown fate, and a new connection overtakes it.
    pub breaks: u8,
    /// A node turns a command away.
    pub refusals: u8,
}

/// A broken assumption, or a broken machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sabotage {
    /// None.
    None,
    /// One node restarts, once, without its data.
    Forgetful,
    /// The clock of one node jumps forward, once, one tick further than the drift allows.
    ClockJump,
    /// The last two nodes are one server.
    SameServer,
    /// All attempts of a client go out under one token.
    OneToken,
    /// The answer to an outdated attempt is taken for one to the current attempt.
    AttemptIgnored,
}

impl Setup {
    /// Clients with these plans on this many nodes, in one connection each. The nodes keep time as badly
    /// as they may, and nothing else goes wrong.
    #[must_use]
    pub fn new(nodes: usize, horizon: u8, plans: [Plan; 2]) -> Self {
        Self {
            nodes,
            plans: plans.into(),
            horizon,
            ttl: 3,
            timeout: 2,
            fenced: false,
            order: Order::Fifo,
            behind: usize::MAX,
            grain: Grain::Fine,
            timers: Timers::Punctual,
            clocks: Clocks::Fast,
            hints: 0,
            trouble: Trouble::default(),
            sabotage: Sabotage::None,
            facts: Vec::new(),
        }
    }

    /// The machine of client number `who`, before it has done anything.
    pub(crate) fn machine(&self, who: usize) -> LeaseMachine {
        let plan = &self.plans[who];
        let mut config = Config::builder()
            .ttl(ticks(self.ttl))
            .operation_timeout(ticks(self.timeout))
            .attempts(plan.attempts.into())
            // None is a pause of a millisecond without jitter: the next attempt is due at the next tick.
            .retry_delay(ticks(plan.pause))
            .drift_factor(0.0);
        if let Some(interval) = plan.renewal {
            config = config.auto_renew(ticks(interval));
        }
        let names: Vec<_> = (0..self.nodes).map(|node| format!("n{node}").into()).collect();
        let mut spec = LeaseSpec::new(RESOURCE, names, config.build().unwrap()).unwrap();
        if self.fenced {
            spec = spec.with_fencing(FENCE).unwrap();
        }
        LeaseMachine::new(spec, base(who), 0)
    }

    /// The server behind a node.
    pub(crate) fn server(&self, node: usize) -> usize {
        match self.sabotage {
            Sabotage::SameServer => node.min(self.servers() - 1),
            _ => node,
        }
    }

    pub(crate) fn servers(&self) -> usize {
        self.nodes - usize::from(self.sabotage == Sabotage::SameServer)
    }
}

impl Plan {
    /// Asks for the lease once, in one attempt.
    #[must_use]
    pub fn once() -> Self {
        Self {
            acquires: 1,
            attempts: 1,
            pause: 0,
            within: None,
            extensions: 0,
            ttls: vec![2, 4],
            renewal: None,
            releases: false,
            abandons: false,
        }
    }

    pub(crate) fn patience(&self, now: u8) -> Patience {
        match self.within {
            Some(span) => Patience::Until(instant(now + span)),
            None => Patience::Attempts(self.attempts.into()),
        }
    }
}

/// The random part of the tokens of client number `who`.
pub(crate) fn base(who: usize) -> Token {
    let mut bytes = [0; Token::LEN];
    bytes[0] = b'A' + u8::try_from(who).unwrap();
    Token::from_bytes(bytes)
}

pub(crate) fn ticks(number: u8) -> Duration {
    TICK * number.into()
}

pub(crate) fn instant(tick: u8) -> Instant {
    Instant::from_epoch(ticks(tick))
}
