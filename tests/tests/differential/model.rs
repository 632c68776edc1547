//! The side of the model.

use std::time::Duration;

use redlock_core::{Instant, MemoryNode, Pttl};

use super::step::{ALL_KEYS, Key, Step, Told};

/// A [`MemoryNode`] and the time at which its keys end.
#[derive(Debug, Default)]
pub(crate) struct Model {
    node: MemoryNode,
    ends: Vec<Duration>,
}

impl Model {
    /// Takes the step at `now`.
    pub(crate) fn take(&mut self, now: Duration, step: &Step) -> Told {
        let told = take(&mut self.node, Instant::from_epoch(now), step);
        for key in ALL_KEYS {
            if let Pttl::Expires(left) = self.node.pttl(Instant::from_epoch(now), key.name()) {
                self.ends.push(now.saturating_add(left));
            }
        }
        self.ends.sort_unstable();
        self.ends.dedup();
        told
    }

    /// Whether some key ended, or would have, between the two.
    pub(crate) fn has_end_between(&self, from: Duration, to: Duration) -> bool {
        self.ends.iter().any(|end| (from..=to).contains(end))
    }
}

fn take(node: &mut MemoryNode, now: Instant, step: &Step) -> Told {
    match step {
        Step::CarryOut { lock, fence, what, name, lifetime } => {
            let intent = what.intent(fence.name(), *name, *lifetime);
            Told::Reply(Ok(node.execute(now, lock.name(), &intent)))
        }
        Step::Get(key) => Told::Value(node.get(now, key.name()).map(str::to_owned)),
        Step::Pttl(key) => Told::Pttl(node.pttl(now, key.name()).as_redis()),
        Step::Set { key, value, lifetime } => {
            let ttl = lifetime.map(|lifetime| lifetime.ttl().as_duration());
            node.set(now, key.name(), &value.0, ttl);
            Told::Nothing
        }
        Step::Del(key) | Step::Expire(key) => Told::Existed(node.remove(now, key.name())),
        Step::Pause => Told::Nothing,
    }
}

impl Key {
    /// Nobody else uses the model's node.
    const fn name(self) -> &'static str {
        match self {
            Self::A => "a",
            Self::B => "b",
            Self::C => "c",
        }
    }
}
