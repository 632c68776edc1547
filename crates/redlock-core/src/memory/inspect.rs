//! Looking at the keys, and changing them by hand, past all faults.

use core::time::Duration;

use super::MemoryNode;
use super::clock::{after, between};
use crate::Instant;

/// How long a key has to live: what `PTTL` tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pttl {
    /// There is no such key; Redis says -2.
    NoKey,
    /// The key stays; Redis says -1.
    NoExpiry,
    /// The key goes in this time.
    Expires(Duration),
}

impl Pttl {
    /// The number that Redis answers with: milliseconds, rounded down.
    #[must_use]
    pub fn as_redis(self) -> i64 {
        match self {
            Self::NoKey => -2,
            Self::NoExpiry => -1,
            Self::Expires(left) => i64::try_from(left.as_millis()).unwrap_or(i64::MAX),
        }
    }
}

/// # Looking and changing by hand
/// Past all faults. Looking does not make the node do what is due: [`poll`](Self::poll) first, if
/// requests are under way.
impl MemoryNode {
    /// How often the server was restarted: what its run id tells.
    #[must_use]
    pub const fn restarts(&self) -> u64 {
        self.run.restarts()
    }

    /// How long the server has been running, on its own clock, as far as it knows: a server that was
    /// restarted begins with the next thing that it does, or that is done to it with a `now`. One that was
    /// never restarted has been running for ever.
    #[must_use]
    pub fn uptime(&self, now: Instant) -> Duration {
        self.run.uptime(self.clock.read(now))
    }

    /// The key's value.
    #[must_use]
    pub fn get(&self, now: Instant, key: &str) -> Option<&str> {
        self.keys.get(self.clock.read(now), key).map(|entry| &*entry.value)
    }

    /// How long the key has to live, on the node's clock.
    #[must_use]
    pub fn pttl(&self, now: Instant, key: &str) -> Pttl {
        let now = self.clock.read(now);
        match self.keys.get(now, key).map(|entry| entry.expires) {
            None => Pttl::NoKey,
            Some(None) => Pttl::NoExpiry,
            Some(Some(expires)) => Pttl::Expires(between(now, expires)),
        }
    }

    /// The keys that there are, in order.
    pub fn keys(&self, now: Instant) -> impl Iterator<Item = &str> {
        self.keys.live(self.clock.read(now))
    }

    /// Sets a key, whatever was there before. Without a `ttl` it stays.
    pub fn set(&mut self, now: Instant, key: &str, value: &str, ttl: Option<Duration>) {
        self.catch_up(now);
        let expires = ttl.map(|ttl| after(self.clock.read(now), ttl));
        self.keys.put(key, value.into(), expires);
    }

    /// Deletes a key, whatever its value. Says whether there was one.
    pub fn remove(&mut self, now: Instant, key: &str) -> bool {
        self.catch_up(now);
        let existed = self.get(now, key).is_some();
        self.keys.remove(key);
        existed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn at(millis: u64) -> Instant {
        Instant::from_epoch(Duration::from_millis(millis))
    }

    #[test]
    fn what_is_set_by_hand_is_there_until_its_time() {
        let mut node = MemoryNode::new();
        node.set(at(0), "b", "1", None);
        node.set(at(0), "a", "2", Some(Duration::from_micros(10_500)));
        node.set(at(0), "none", "3", Some(Duration::ZERO));
        assert_eq!(node.keys(at(10)).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(node.keys(at(11)).collect::<Vec<_>>(), ["b"]);
        assert_eq!(node.get(at(10), "a"), Some("2"));
        let pttl = |now, key| node.pttl(at(now), key).as_redis();
        assert_eq!([pttl(0, "a"), pttl(10, "a"), pttl(11, "a"), pttl(0, "b")], [10, 0, -2, -1]);
        assert_eq!(Pttl::Expires(Duration::MAX).as_redis(), i64::MAX);

        assert!(node.remove(at(0), "b"));
        assert!(!node.remove(at(0), "b"));
        assert!(!node.remove(at(11), "a"));
        assert_eq!(node, MemoryNode::new());
    }
}
