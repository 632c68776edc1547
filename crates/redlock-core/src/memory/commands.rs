//! The intents as Redis 7 carries them out, down to the order of the steps in the scripts.

use alloc::format;
use alloc::sync::Arc;

use super::clock::{Reading, after};
use super::keyspace::Keyspace;
use crate::{Intent, Reply, ServerError, Token, Ttl};

/// Carries `intent` out at `now` on the node's clock.
pub(super) fn carry_out(
    keys: &mut Keyspace,
    now: Reading,
    read_only: bool,
    key: &str,
    intent: &Intent,
) -> Reply {
    let mut server = Server { keys, now, read_only };
    let reply = match intent {
        Intent::SetNxPx { token, ttl } => server.set_nx_px(key, *token, *ttl),
        Intent::FencedAcquire { fence, token, ttl } => server.fenced_acquire(key, fence, *token, *ttl),
        Intent::CompareAndDelete { token } => server.compare_and_delete(key, *token),
        Intent::CompareAndPexpire { token, ttl } => server.compare_and_pexpire(key, *token, *ttl),
    };
    reply.unwrap_or_else(Reply::Error)
}

/// A server in the middle of one command: `now` stands still, as it does while a script runs.
struct Server<'a> {
    keys: &'a mut Keyspace,
    now: Reading,
    read_only: bool,
}

impl Server<'_> {
    /// A plain write command: a read-only server turns it away without looking at the key.
    fn set_nx_px(&mut self, key: &str, token: Token, ttl: Ttl) -> Result<Reply, ServerError> {
        self.check_writable()?;
        if self.value(key).is_some() {
            return Ok(Reply::Nil);
        }
        self.psetex(key, token, ttl)?;
        Ok(Reply::Ok)
    }

    /// [`FENCED_ACQUIRE`](crate::script::FENCED_ACQUIRE). A script runs on a read-only server too,
    /// up to its first write; so do the other two.
    fn fenced_acquire(
        &mut self,
        key: &str,
        fence: &str,
        token: Token,
        ttl: Ttl,
    ) -> Result<Reply, ServerError> {
        if self.value(key).is_some() {
            return Ok(Reply::Int(0));
        }
        if self.value(fence).is_some_and(|counter| counter.starts_with('-')) {
            return Err(ServerError::new("ERR", "the fencing counter is negative"));
        }
        self.incr(fence)?;
        self.psetex(key, token, ttl)?;
        Ok(self.value(fence).map_or(Reply::Nil, |counter| Reply::Text(counter.as_bytes().into())))
    }

    /// [`COMPARE_AND_DELETE`](crate::script::COMPARE_AND_DELETE).
    fn compare_and_delete(&mut self, key: &str, token: Token) -> Result<Reply, ServerError> {
        if self.value(key) != Some(token.to_hex().as_str()) {
            return Ok(Reply::Int(0));
        }
        self.check_writable()?;
        self.keys.remove(key);
        Ok(Reply::Int(1))
    }

    /// [`COMPARE_AND_PEXPIRE`](crate::script::COMPARE_AND_PEXPIRE).
    fn compare_and_pexpire(&mut self, key: &str, token: Token, ttl: Ttl) -> Result<Reply, ServerError> {
        if self.value(key) != Some(token.to_hex().as_str()) {
            return Ok(Reply::Int(0));
        }
        self.psetex(key, token, ttl)?;
        Ok(Reply::Int(1))
    }

    /// `INCR`: a missing counter counts as zero, and one with an expiry keeps it.
    fn incr(&mut self, key: &str) -> Result<(), ServerError> {
        self.check_writable()?;
        let (number, expires) = match self.keys.get(self.now, key) {
            Some(entry) => (parse_integer(&entry.value), entry.expires),
            None => (Some(0), None),
        };
        let number =
            number.ok_or_else(|| ServerError::new("ERR", "value is not an integer or out of range"))?;
        let next = number
            .checked_add(1)
            .ok_or_else(|| ServerError::new("ERR", "increment or decrement would overflow"))?;
        self.keys.put(key, format!("{next}").into(), expires);
        Ok(())
    }

    fn psetex(&mut self, key: &str, token: Token, ttl: Ttl) -> Result<(), ServerError> {
        self.check_writable()?;
        let value = Arc::from(token.to_hex().as_str());
        self.keys.put(key, value, Some(after(self.now, ttl.as_duration())));
        Ok(())
    }

    fn check_writable(&self) -> Result<(), ServerError> {
        match self.read_only {
            true => Err(ServerError::new("READONLY", "You can't write against a read only replica.")),
            false => Ok(()),
        }
    }

    fn value(&self, key: &str) -> Option<&str> {
        self.keys.get(self.now, key).map(|entry| &*entry.value)
    }
}

/// A counter as Redis reads one: no plus sign, no blank, no leading zero. Negative numbers never get
/// this far.
fn parse_integer(text: &str) -> Option<i64> {
    let canonical = text == "0" || text.starts_with(|first| matches!(first, '1'..='9'));
    text.parse().ok().filter(|_| canonical)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryNode;
    use crate::{Instant, Pttl};
    use core::time::Duration;

    const OURS: Token = Token::from_bytes([1; Token::LEN]);
    const THEIRS: Token = Token::from_bytes([2; Token::LEN]);

    fn at(millis: u64) -> Instant {
        Instant::from_epoch(Duration::from_millis(millis))
    }

    fn ttl(millis: u64) -> Ttl {
        Ttl::from_millis(millis).unwrap()
    }

    fn set(token: Token) -> Intent {
        Intent::SetNxPx { token, ttl: ttl(100) }
    }

    fn fenced(token: Token) -> Intent {
        Intent::FencedAcquire { fence: "fence".into(), token, ttl: ttl(100) }
    }

    fn delete(token: Token) -> Intent {
        Intent::CompareAndDelete { token }
    }

    fn pexpire(token: Token) -> Intent {
        Intent::CompareAndPexpire { token, ttl: ttl(500) }
    }

    fn text(text: &str) -> Reply {
        Reply::Text(text.as_bytes().into())
    }

    fn error(code: &str, message: &str) -> Reply {
        Reply::Error(ServerError::new(code, message))
    }

    #[test]
    fn the_table_of_replies() {
        let (yes, no) = (Reply::Int(1), Reply::Int(0));
        // What stands in the key (`None`: no key), the intent, the answer, what stands there after.
        let (ours, theirs) = (OURS.to_hex(), THEIRS.to_hex());
        let (ours, theirs, odd) = (Some(ours.as_str()), Some(theirs.as_str()), Some("set by hand"));
        let table = [
            (None, set(OURS), Reply::Ok, ours),
            (ours, set(OURS), Reply::Nil, ours),
            (theirs, set(OURS), Reply::Nil, theirs),
            (odd, set(OURS), Reply::Nil, odd),
            (None, fenced(OURS), text("1"), ours),
            (ours, fenced(OURS), no.clone(), ours),
            (theirs, fenced(OURS), no.clone(), theirs),
            (odd, fenced(OURS), no.clone(), odd),
            (None, delete(OURS), no.clone(), None),
            (ours, delete(OURS), yes.clone(), None),
            (theirs, delete(OURS), no.clone(), theirs),
            (odd, delete(OURS), no.clone(), odd),
            (None, pexpire(OURS), no.clone(), None),
            (ours, pexpire(OURS), yes, ours),
            (theirs, pexpire(OURS), no.clone(), theirs),
            (odd, pexpire(OURS), no, odd),
        ];
        for (before, intent, reply, after) in table {
            let mut node = MemoryNode::new();
            if let Some(value) = before {
                node.set(at(0), "lock", value, None);
            }
            assert_eq!(node.execute(at(0), "lock", &intent), reply, "{before:?} {intent:?}");
            assert_eq!(node.get(at(0), "lock"), after, "{before:?} {intent:?}");
        }
    }

    #[test]
    fn a_key_ends_the_moment_its_ttl_is_over_and_an_extension_counts_from_its_own_start() {
        let mut node = MemoryNode::new();
        node.execute(at(0), "lock", &set(OURS));
        assert_eq!(node.pttl(at(60), "lock"), Pttl::Expires(Duration::from_millis(40)));
        assert_eq!(node.execute(at(99), "lock", &set(THEIRS)), Reply::Nil);
        assert_eq!(node.execute(at(99), "lock", &pexpire(OURS)), Reply::Int(1));
        assert_eq!(node.pttl(at(99), "lock"), Pttl::Expires(Duration::from_millis(500)));
        assert_eq!(node.execute(at(599), "lock", &pexpire(OURS)), Reply::Int(0));
        assert_eq!(node.execute(at(599), "lock", &delete(OURS)), Reply::Int(0));
        assert_eq!(node.execute(at(599), "lock", &set(THEIRS)), Reply::Ok);
    }

    #[test]
    fn an_extension_may_shorten_and_gives_a_key_set_by_hand_an_end() {
        let mut node = MemoryNode::new();
        node.set(at(0), "lock", OURS.to_hex().as_str(), None);
        assert_eq!(node.pttl(at(0), "lock"), Pttl::NoExpiry);
        assert_eq!(node.execute(at(0), "lock", &pexpire(OURS)), Reply::Int(1));
        let shorter = Intent::CompareAndPexpire { token: OURS, ttl: ttl(5) };
        assert_eq!(node.execute(at(0), "lock", &shorter), Reply::Int(1));
        assert_eq!(node.get(at(5), "lock"), None);
    }

    #[test]
    fn the_counter_outlives_release_and_expiry() {
        let mut node = MemoryNode::new();
        assert_eq!(node.execute(at(0), "lock", &fenced(OURS)), text("1"));
        assert_eq!(node.execute(at(1), "lock", &delete(OURS)), Reply::Int(1));
        assert_eq!(node.execute(at(2), "lock", &fenced(THEIRS)), text("2"));
        assert_eq!(node.execute(at(102), "lock", &fenced(OURS)), text("3"));
        assert_eq!(node.pttl(at(102), "fence"), Pttl::NoExpiry);
        assert_eq!(node.pttl(at(102), "lock"), Pttl::Expires(Duration::from_millis(100)));
    }

    // Measured with the script on Redis 7.0.15.
    #[test]
    fn counters_set_by_hand_are_read_as_redis_reads_them() {
        let odd = || error("ERR", "value is not an integer or out of range");
        let negative = || error("ERR", "the fencing counter is negative");
        let table = [
            ("0", text("1")),
            ("41", text("42")),
            ("9007199254740992", text("9007199254740993")),
            ("9223372036854775806", text("9223372036854775807")),
            ("9223372036854775807", error("ERR", "increment or decrement would overflow")),
            ("9223372036854775808", odd()),
            ("18446744073709551615", odd()),
            ("", odd()),
            ("00", odd()),
            ("01", odd()),
            ("+1", odd()),
            (" 1", odd()),
            ("1 ", odd()),
            ("1.0", odd()),
            ("abc", odd()),
            ("\u{661}", odd()),
            ("-", negative()),
            ("-0", negative()),
            ("-1", negative()),
            ("-9223372036854775808", negative()),
        ];
        for (counter, reply) in table {
            let mut node = MemoryNode::new();
            node.set(at(0), "fence", counter, None);
            assert_eq!(node.execute(at(0), "lock", &fenced(OURS)), reply, "{counter:?}");
            if matches!(reply, Reply::Error(_)) {
                assert_eq!(node.get(at(0), "lock"), None, "{counter:?}");
                assert_eq!(node.get(at(0), "fence"), Some(counter));
            }
        }
    }

    #[test]
    fn a_counter_with_an_end_keeps_it() {
        let mut node = MemoryNode::new();
        node.set(at(0), "fence", "7", Some(Duration::from_millis(50)));
        assert_eq!(node.execute(at(0), "lock", &fenced(OURS)), text("8"));
        assert_eq!(node.pttl(at(0), "fence"), Pttl::Expires(Duration::from_millis(50)));
        assert_eq!(node.execute(at(100), "lock", &fenced(OURS)), text("1"));
    }

    // Measured on a replica, Redis 7.0.15: a script fails at its first write, not before.
    #[test]
    fn a_read_only_node_refuses_writes_and_nothing_else() {
        let read_only = || error("READONLY", "You can't write against a read only replica.");
        let (ours, odd) = (OURS.to_hex(), Some("7"));
        let ours = Some(ours.as_str());
        let table = [
            (None, None, set(OURS), read_only()),
            (ours, None, set(OURS), read_only()),
            (None, odd, fenced(OURS), read_only()),
            (None, Some("abc"), fenced(OURS), read_only()),
            (None, Some("-1"), fenced(OURS), error("ERR", "the fencing counter is negative")),
            (ours, odd, fenced(OURS), Reply::Int(0)),
            (None, None, delete(OURS), Reply::Int(0)),
            (odd, None, delete(OURS), Reply::Int(0)),
            (ours, None, delete(OURS), read_only()),
            (odd, None, pexpire(OURS), Reply::Int(0)),
            (ours, None, pexpire(OURS), read_only()),
        ];
        for (lock, fence, intent, reply) in table {
            let mut node = MemoryNode::new();
            for (key, value) in [("lock", lock), ("fence", fence)] {
                if let Some(value) = value {
                    node.set(at(0), key, value, None);
                }
            }
            node.set_read_only(true);
            let before = node.clone();
            assert_eq!(node.execute(at(0), "lock", &intent), reply, "{lock:?} {fence:?} {intent:?}");
            assert_eq!(node, before);
        }
    }

    // The library refuses such a lease; the node does what Redis does.
    #[test]
    fn a_lock_that_is_its_own_counter_answers_with_the_token() {
        let mut node = MemoryNode::new();
        let intent = Intent::FencedAcquire { fence: "lock".into(), token: OURS, ttl: ttl(100) };
        assert_eq!(node.execute(at(0), "lock", &intent), text(OURS.to_hex().as_str()));
        assert_eq!(node.pttl(at(0), "lock"), Pttl::Expires(Duration::from_millis(100)));
    }

    #[test]
    fn the_longest_ttl_is_taken() {
        let mut node = MemoryNode::new();
        let intent = Intent::SetNxPx { token: OURS, ttl: Ttl::new(Ttl::MAX).unwrap() };
        assert_eq!(node.execute(Instant::from_epoch(Duration::MAX), "lock", &intent), Reply::Ok);
        assert_eq!(node.pttl(Instant::from_epoch(Duration::MAX), "lock"), Pttl::Expires(Ttl::MAX));
    }
}
