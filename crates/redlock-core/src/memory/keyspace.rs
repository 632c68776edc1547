//! The node's keys, each with a value and perhaps an end.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;

use super::clock::Reading;

/// Keys, values and expiry times. An expired key is as good as gone for every method, whether or not
/// it has been cleared out yet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Keyspace {
    entries: BTreeMap<Arc<str>, Entry>,
    /// The expiry times in `entries`, in order, so that clearing out costs nothing while nothing has
    /// expired.
    expiries: BTreeSet<(Reading, Arc<str>)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Entry {
    pub(super) value: Arc<str>,
    pub(super) expires: Option<Reading>,
}

impl Keyspace {
    /// Sets a key, whatever was there before.
    pub(super) fn put(&mut self, key: &str, value: Arc<str>, expires: Option<Reading>) {
        self.remove(key);
        let key = Arc::<str>::from(key);
        if let Some(expires) = expires {
            self.expiries.insert((expires, Arc::clone(&key)));
        }
        self.entries.insert(key, Entry { value, expires });
    }

    pub(super) fn remove(&mut self, key: &str) {
        if let Some((key, entry)) = self.entries.remove_entry(key)
            && let Some(expires) = entry.expires
        {
            self.expiries.remove(&(expires, key));
        }
    }

    /// Drops what has expired. Nothing can be seen of it but the memory that it frees, and that two
    /// nodes with the same live keys are equal.
    pub(super) fn clear_expired(&mut self, now: Reading) {
        while let Some((expires, key)) = self.expiries.pop_first() {
            if expires > now {
                self.expiries.insert((expires, key));
                break;
            }
            self.entries.remove(&key);
        }
    }

    pub(super) fn get(&self, now: Reading, key: &str) -> Option<&Entry> {
        self.entries.get(key).filter(|entry| entry.is_live(now))
    }

    pub(super) fn live(&self, now: Reading) -> impl Iterator<Item = &str> {
        self.entries.iter().filter(move |(_, entry)| entry.is_live(now)).map(|(key, _)| &**key)
    }
}

impl Entry {
    fn is_live(&self, now: Reading) -> bool {
        self.expires.is_none_or(|expires| now < expires)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn clearing_out_changes_nothing_that_can_be_seen() {
        let mut keys = Keyspace::default();
        keys.put("short", "a".into(), Some(10));
        keys.put("twin", "b".into(), Some(10));
        keys.put("long", "c".into(), Some(20));
        keys.put("forever", "d".into(), None);
        let seen = |keys: &Keyspace, now| keys.live(now).map(Arc::from).collect::<Vec<Arc<str>>>();
        for now in [0, 9, 10, 19, 20] {
            let before = seen(&keys, now);
            keys.clear_expired(now);
            assert_eq!(seen(&keys, now), before, "{now}");
            assert_eq!(keys.entries.len(), before.len(), "{now}");
        }
        assert!(keys.expiries.is_empty());
    }

    #[test]
    fn the_expiry_that_counts_is_the_last_one_set() {
        let mut keys = Keyspace::default();
        keys.put("key", "a".into(), Some(10));
        keys.put("key", "a".into(), Some(30));
        keys.clear_expired(20);
        assert!(keys.get(20, "key").is_some());
        keys.put("key", "a".into(), None);
        keys.clear_expired(40);
        assert!(keys.get(40, "key").is_some());
        keys.put("key", "a".into(), Some(50));
        keys.remove("key");
        assert_eq!(keys, Keyspace::default());
    }
}
