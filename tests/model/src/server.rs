//! A node with a clock that may be off.

use std::time::Duration;

use redlock_core::{Instant, Intent, MemoryNode, Pttl, Reply, Token, Vote, interpret};

use crate::Clocks;
use crate::setup::{RESOURCE, Setup, TICK};

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Server {
    node: MemoryNode,
}

impl Server {
    /// Carries a command out.
    pub(crate) fn execute(&mut self, setup: &Setup, now: Instant, intent: &Intent) -> Reply {
        let reply = self.node.execute(now, RESOURCE, intent);
        let writes = !matches!(intent, Intent::CompareAndDelete { .. });
        if setup.clocks == Clocks::Fast && writes && interpret(intent, Ok(reply.clone())) != Vote::No {
            // As if the clock gained all that it may gain in the key's life at its very beginning.
            self.age(now, TICK);
        }
        reply
    }

    /// Drops what has expired.
    pub(crate) fn pass(&mut self, now: Instant) {
        assert_eq!(self.node.poll(now), None);
    }

    pub(crate) fn holds(&self, now: Instant, token: Token) -> bool {
        self.node.get(now, RESOURCE) == Some(token.to_hex().as_str())
    }

    /// Until when the lock's key is there at least.
    pub(crate) fn kept_until(&self, setup: &Setup, now: Instant) -> Option<Instant> {
        let Pttl::Expires(left) = self.node.pttl(now, RESOURCE) else { return None };
        Some(match setup.clocks {
            Clocks::Exact | Clocks::Fast => now.saturating_add(left),
            Clocks::Free => now.saturating_add(left).saturating_sub(TICK),
        })
    }

    /// Whether the drift allows that the key goes now.
    pub(crate) fn may_lapse(&self, setup: &Setup, now: Instant) -> bool {
        let early = self.kept_until(setup, now).is_some_and(|end| end <= now);
        setup.clocks == Clocks::Free && early
    }

    pub(crate) fn lapse(&mut self, now: Instant) {
        self.node.remove(now, RESOURCE);
    }

    /// The same as [`MemoryNode::restart_empty`], but leaves no trace in the server's age, so that worlds that
    /// behave alike are equal.
    pub(crate) fn forget(&mut self) {
        self.node = MemoryNode::new();
    }

    /// The clock gains more than the drift allows for.
    pub(crate) fn jump(&mut self, setup: &Setup, now: Instant) {
        // The clock of a fast one has gained what it may already.
        let allowed = if setup.clocks == Clocks::Fast { Duration::ZERO } else { TICK };
        self.age(now, allowed + TICK);
    }

    /// Shortens the life of the key. The same as [`MemoryNode::jump_clock_forward`], but leaves no trace
    /// in the clock, so that worlds that behave alike are equal.
    fn age(&mut self, now: Instant, by: Duration) {
        let Pttl::Expires(left) = self.node.pttl(now, RESOURCE) else { return };
        let value = self.node.get(now, RESOURCE).unwrap_or_default().to_owned();
        self.node.set(now, RESOURCE, &value, Some(left.saturating_sub(by)));
        self.pass(now);
    }
}
