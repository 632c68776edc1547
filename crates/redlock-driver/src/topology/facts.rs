//! What a server says about itself.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use redlock_core::Cause;

/// What is known of one node.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeFacts {
    /// Its name.
    pub name: Arc<str>,
    /// What its server has said, or why it has said nothing. `Ok(None)` for a node that is no Redis server:
    /// one in memory, or behind a transport of the user's.
    pub server: Result<Option<ServerFacts>, Cause>,
}

/// What a server has said about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerFacts {
    /// Names this run of this server; a restart changes it.
    pub run_id: String,
    /// The server's kind and version, such as `redis 7.0.15` or `valkey 9.1.2`.
    pub version: String,
    /// Primary or replica.
    pub role: Role,
    /// How long it has been running, in whole seconds.
    pub uptime: Duration,
    /// Whether it keeps an append-only file.
    pub appendonly: bool,
    /// When that file reaches the disk (`always`, `everysec`, `no`); `None` when it does not say.
    pub appendfsync: Option<String>,
    /// Whether it takes snapshots by itself; `None` when it does not say.
    pub snapshots: Option<bool>,
    /// How many bytes its data may take; 0 for no limit.
    pub maxmemory: u64,
    /// What it does when they are used up.
    pub maxmemory_policy: String,
    /// The ids of all nodes of the Redis Cluster that it belongs to; empty if it belongs to none.
    pub cluster: BTreeSet<String>,
    /// Its wall clock, as the time since 1970, when our clock read zero. Only the difference between two
    /// nodes means anything.
    pub clock: Duration,
    /// How long the question about the clock took: what the clock may be off by.
    pub round_trip: Duration,
}

/// What a server is to its data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// It takes writes.
    #[default]
    Primary,
    /// It copies a primary.
    Replica,
}

impl ServerFacts {
    /// Reads the answer to `INFO`. What a server does not mention is left as it is by default.
    pub(super) fn from_info(info: &str) -> Self {
        let field = |name: &str| {
            info.lines()
                .filter_map(|line| line.trim_end().split_once(':'))
                .find_map(|(key, value)| (key == name).then_some(value))
        };
        let number = |name: &str| field(name).and_then(|value| value.parse().ok()).unwrap_or(0);
        // Valkey calls itself an old Redis, for the sake of clients that ask; its own name comes beside it.
        let version = match (field("valkey_version"), field("redis_version")) {
            (Some(version), _) => format!("valkey {version}"),
            (None, Some(version)) => format!("{} {version}", field("server_name").unwrap_or("redis")),
            (None, None) => String::new(),
        };
        Self {
            run_id: field("run_id").unwrap_or_default().to_owned(),
            version,
            role: if field("role") == Some("slave") { Role::Replica } else { Role::Primary },
            uptime: Duration::from_secs(number("uptime_in_seconds")),
            appendonly: field("aof_enabled") == Some("1"),
            appendfsync: None,
            snapshots: None,
            maxmemory: number("maxmemory"),
            maxmemory_policy: field("maxmemory_policy").unwrap_or_default().to_owned(),
            cluster: BTreeSet::new(),
            clock: Duration::ZERO,
            round_trip: Duration::ZERO,
        }
    }
}

/// The run of a server and how long it has been running at the very least, from the answer to `INFO`; `None`
/// if it does not say.
///
/// Redis takes the difference of two readings of a clock of whole seconds, so that a server which was started
/// 0.1 s ago may say 1. Up to a second is not to be believed.
pub(crate) fn started(info: &str) -> Option<(String, Duration)> {
    let facts = ServerFacts::from_info(info);
    let age = facts.uptime.saturating_sub(Duration::from_secs(1));
    (!facts.run_id.is_empty()).then_some((facts.run_id, age))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn info_is_read_field_by_field() {
        let info = "# Server\r\nredis_version:7.0.15\r\nrun_id:abc\r\nuptime_in_seconds:61\r\n\r\n# Memory\r\n\
                    maxmemory:100\r\nmaxmemory_policy:allkeys-lru\r\n# Persistence\r\naof_enabled:1\r\n\
                    # Replication\r\nrole:slave\r\n";
        let facts = ServerFacts::from_info(info);
        assert_eq!(facts.version, "redis 7.0.15");
        assert_eq!((facts.run_id.as_str(), facts.uptime.as_secs()), ("abc", 61));
        assert_eq!((facts.maxmemory, facts.maxmemory_policy.as_str()), (100, "allkeys-lru"));
        assert!(facts.appendonly && facts.role == Role::Replica);
    }

    #[test]
    fn valkey_is_not_taken_for_an_old_redis() {
        let info = "redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:9.1.2\r\n";
        assert_eq!(ServerFacts::from_info(info).version, "valkey 9.1.2");
    }

    #[test]
    fn an_uptime_may_be_a_second_too_long() {
        let says = |uptime: &str| started(&format!("run_id:abc\r\nuptime_in_seconds:{uptime}\r\n")).unwrap();
        let cases = [("0", 0), ("1", 0), ("61", 60), ("-3", 0), ("soon", 0)];
        for (uptime, age) in cases {
            assert_eq!(says(uptime), ("abc".to_owned(), Duration::from_secs(age)), "{uptime}");
        }
        assert_eq!(started("uptime_in_seconds:61\r\n"), None);
    }

    #[test]
    fn nonsense_is_read_as_nothing() {
        for info in ["", "\r\n:::\r\n", "uptime_in_seconds:many\nmaxmemory:-1", "role"] {
            assert_eq!(ServerFacts::from_info(info), ServerFacts::default());
        }
    }
}
