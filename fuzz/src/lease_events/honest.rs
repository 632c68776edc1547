//! What holds as long as the nodes do what they are told.

use std::time::Duration;

use redlock_core::{Instant, LeaseMachine, Pttl};

use super::world::{Honest, World};

impl World {
    /// One holder at most, and a quorum behind him.
    pub(crate) fn check_holder(&self) {
        let now = self.now;
        let mut holders = self.contenders.iter().filter(|contender| contender.machine().is_held(now));
        let Some(holder) = holders.next() else { return };
        assert!(holders.next().is_none(), "two holders");

        let machine = holder.machine();
        let end = machine.valid_until().expect("the end of a lease that is held");
        let nodes = self.nodes.as_deref().unwrap_or_default();
        let backing = nodes.iter().filter(|node| node.keeps(machine, now, end)).count();
        assert!(backing >= machine.spec().quorum(), "held until {end:?}, by {backing} nodes");
    }

    /// No key is left, if nobody holds anything and nothing was lost.
    pub(crate) fn check_clean(&self) {
        let forgotten = |machine: &LeaseMachine| machine.stats().forgotten_cleanups > 0;
        if self.lossy || self.contenders.iter().any(|contender| forgotten(contender.machine())) {
            return;
        }
        for node in self.nodes.iter().flatten() {
            assert_eq!(node.node.get(self.now, "lock"), None, "a key was left");
        }
    }
}

impl Honest {
    /// Whether the node has the machine's token from `now` until `end`.
    fn keeps(&self, machine: &LeaseMachine, now: Instant, end: Instant) -> bool {
        if self.node.get(now, "lock") != Some(machine.token().to_hex().as_str()) {
            return false;
        }
        match self.node.pttl(now, "lock") {
            Pttl::NoKey => false,
            Pttl::NoExpiry => true,
            Pttl::Expires(left) => self.to_our_clock(left) >= end.saturating_since(now),
        }
    }

    /// How long it takes until so much has passed on the node's clock; a little more, for the rounding.
    fn to_our_clock(&self, span: Duration) -> Duration {
        let speed = u128::from(1_000_000_u32.saturating_add_signed(self.parts_per_million));
        let nanos = span.as_nanos() * 1_000_000 / speed + 2;
        u64::try_from(nanos).map_or(Duration::MAX, Duration::from_nanos)
    }
}
