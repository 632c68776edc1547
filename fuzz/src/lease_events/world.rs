//! Everything there is.

use redlock_core::{Instant, MemoryNode};
use std::time::Duration;

use super::contender::Contender;
use super::setup::{Drift, NodeClock, Setup};

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) now: Instant,
    pub(crate) contenders: Vec<Contender>,
    /// `None`: whoever answers says what he likes.
    pub(crate) nodes: Option<Vec<Honest>>,
    /// Whether a command, or an answer, was ever lost.
    pub(crate) lossy: bool,
}

/// A node that does what it is told.
#[derive(Debug)]
pub(crate) struct Honest {
    pub(crate) node: MemoryNode,
    pub(crate) parts_per_million: i32,
}

impl World {
    pub(crate) fn new(setup: &Setup) -> Self {
        let contender = |(settings, number)| Contender::new(settings, number, setup.drift, setup.twins);
        let nodes = setup.honest.then(|| setup.nodes.iter().map(|clock| node(*clock, setup.drift)).collect());
        Self {
            now: Instant::EPOCH,
            contenders: setup.contenders.iter().zip(1..).map(contender).collect(),
            nodes,
            lossy: false,
        }
    }

    /// Lets time pass, up to a moment that no machine lives to see.
    pub(crate) fn pass(&mut self, span: Duration) {
        self.now = self.now.saturating_add(span).min(LAST);
    }

    /// What must be true between any two steps.
    pub(crate) fn check(&self) {
        for contender in &self.contenders {
            contender.check(self.now);
        }
        if self.nodes.is_some() {
            self.check_holder();
        }
    }
}

fn node(clock: NodeClock, drift: Drift) -> Honest {
    let parts_per_million = match clock {
        NodeClock::Exact => 0,
        NodeClock::Fast => drift.parts_per_million(),
        NodeClock::Slow => -drift.parts_per_million(),
    };
    let mut node = MemoryNode::new();
    node.set_clock_drift(Instant::EPOCH, parts_per_million);
    Honest { node, parts_per_million }
}

/// A hundred million years. Later instants saturate, and then no deadline lies after now.
const LAST: Instant = Instant::from_epoch(Duration::from_secs(3_000_000_000_000_000));
