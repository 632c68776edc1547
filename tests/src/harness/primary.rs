//! What any test may do to a node: look, and set keys of its own.

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use redis::{Client, Cmd, Connection, FromRedisValue, RedisError, cmd};

/// One Redis primary that a test may talk to, but not harm.
///
/// Every call opens a connection of its own and closes it again, so that none is disturbed by a fault that
/// the test caused earlier, and waits at most ten seconds for an answer. A server that is frozen or paused
/// for longer makes the call panic.
#[derive(Clone, Debug)]
pub struct Primary {
    address: String,
    password: Option<String>,
}

impl Primary {
    /// The node at `address`, which is `host:port`.
    pub(super) fn new(address: String, password: Option<String>) -> Self {
        Self { address, password }
    }

    /// `host:port`.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The URL under which clients reach it, with its password if it has one.
    pub fn url(&self) -> String {
        match &self.password {
            Some(password) => format!("redis://:{}@{}/", url_encoded(password), self.address),
            None => format!("redis://{}/", self.address),
        }
    }

    /// A fresh blocking connection, for what the other methods do not offer.
    pub fn connection(&self) -> Connection {
        self.try_connection(ANSWER_LIMIT).unwrap_or_else(|error| panic!("{}: {error}", self.address))
    }

    /// The value of `key`.
    pub fn get(&self, key: &str) -> Option<String> {
        self.ask(cmd("GET").arg(key))
    }

    /// How many milliseconds `key` has left: -1 when it has no expiry, -2 when it does not exist.
    pub fn pttl(&self, key: &str) -> i64 {
        self.ask(cmd("PTTL").arg(key))
    }

    /// Sets `key` without an expiry.
    pub fn set(&self, key: &str, value: &str) {
        self.ask::<()>(cmd("SET").arg(key).arg(value));
    }

    /// Sets `key` for the time `ttl`, in whole milliseconds.
    pub fn set_px(&self, key: &str, value: &str, ttl: Duration) {
        self.ask::<()>(cmd("SET").arg(key).arg(value).arg("PX").arg(millis(ttl)));
    }

    /// Deletes `key`, and says whether it existed.
    pub fn del(&self, key: &str) -> bool {
        self.ask(cmd("DEL").arg(key))
    }

    /// The keys that match a glob-style pattern, in order.
    pub fn keys_matching(&self, pattern: &str) -> Vec<String> {
        let mut keys: Vec<String> = self.ask(cmd("KEYS").arg(pattern));
        keys.sort();
        keys
    }

    /// One field of `INFO`, for example `run_id` or `connected_clients`.
    pub fn info(&self, field: &str) -> Option<String> {
        field_of(&self.ask::<String>(cmd("INFO").arg("all")), field)
    }

    /// How often a command was executed since the server's start, by whomever, refused calls included. The
    /// calls of this harness count too: [`get`](Self::get) is a `get`.
    pub fn command_calls(&self, name: &str) -> u64 {
        let Some(statistics) = self.info(&format!("cmdstat_{}", name.to_ascii_lowercase())) else { return 0 };
        calls_of(&statistics).unwrap_or_else(|| panic!("no number of calls in {statistics:?}"))
    }

    /// A connection, if there is one to be had within `limit`.
    pub(super) fn try_connection(&self, limit: Duration) -> redis::RedisResult<Connection> {
        let client = Client::open(self.url())?;
        let connection = loop {
            match client.get_connection_with_timeout(limit) {
                // The handshake has a time limit, and a read that has one ends when the process was stopped for a
                // moment, as programs under test are.
                Err(error) if is_interruption(&error) => {}
                connected => break connected?,
            }
        };
        connection.set_read_timeout(Some(limit))?;
        connection.set_write_timeout(Some(limit))?;
        Ok(connection)
    }

    /// Runs one command on a fresh connection.
    pub(super) fn ask<T: FromRedisValue>(&self, command: &Cmd) -> T {
        command.query(&mut self.connection()).unwrap_or_else(|error| {
            // The arguments stay out of the message: they may hold a password.
            panic!("{}: {}: {error}", self.address, name_of(command));
        })
    }
}

fn is_interruption(error: &RedisError) -> bool {
    // What the client's error holds is a shared one, which holds the system's.
    let shared = error.source().and_then(|source| source.downcast_ref::<Arc<dyn Error + Send + Sync>>());
    let io = shared.and_then(|shared| shared.downcast_ref::<io::Error>());
    io.is_some_and(|error| error.kind() == io::ErrorKind::Interrupted)
}

/// `text` as a part of a URL in which it cannot be mistaken for anything else.
pub fn url_encoded(text: &str) -> String {
    let encode = |byte: u8| match byte {
        b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        _ if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(encode).collect()
}

/// Whole milliseconds, as the server wants them.
pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).expect("a duration that fits the server's milliseconds")
}

/// The value of `field` in the text that `INFO` answers.
pub(super) fn field_of(info: &str, field: &str) -> Option<String> {
    info.lines().find_map(|line| Some(line.strip_prefix(field)?.strip_prefix(':')?.trim_end().to_owned()))
}

/// The first number of `calls=12,usec=34,...`.
fn calls_of(statistics: &str) -> Option<u64> {
    statistics.strip_prefix("calls=")?.split(',').next()?.parse().ok()
}

fn name_of(command: &Cmd) -> String {
    match command.args_iter().next() {
        Some(redis::Arg::Simple(name)) => String::from_utf8_lossy(name).into_owned(),
        _ => "command".to_owned(),
    }
}

/// How long a server may take to answer. Generous, because tests pause servers for a second or two and then
/// look at them.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::super::{shared_primaries, unique};
    use super::*;

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let info = "# Server\r\nredis_version:7.0.15\r\nredis_version_x:no\r\nslots:\r\n";
        assert_eq!(field_of(info, "redis_version").as_deref(), Some("7.0.15"));
        assert_eq!(field_of(info, "slots").as_deref(), Some(""));
        assert_eq!(field_of(info, "redis"), None);
        assert_eq!(field_of(info, "version"), None);
    }

    #[test]
    fn calls_are_read_from_the_statistics() {
        assert_eq!(calls_of("calls=12,usec=34,rejected_calls=0"), Some(12));
        assert_eq!(calls_of("usec=34"), None);
    }

    #[test]
    fn an_interruption_is_told_from_a_failure() {
        let error = |kind: io::ErrorKind| RedisError::from(io::Error::from(kind));
        assert!(is_interruption(&error(io::ErrorKind::Interrupted)));
        assert!(!is_interruption(&error(io::ErrorKind::ConnectionRefused)));
    }

    #[test]
    fn url_carries_the_password() {
        let open = Primary::new("redis-a:6379".to_owned(), None);
        let closed = Primary::new("redis-a:6379".to_owned(), Some("sesame".to_owned()));
        assert_eq!(open.url(), "redis://redis-a:6379/");
        assert_eq!(closed.url(), "redis://:sesame@redis-a:6379/");
        let odd = Primary::new("redis-a:6379".to_owned(), Some("p@ss:w/rd%?# ü".to_owned()));
        assert_eq!(odd.url(), "redis://:p%40ss%3Aw%2Frd%25%3F%23%20%C3%BC@redis-a:6379/");
    }

    #[test]
    fn keys_can_be_set_and_looked_at() {
        let [node] = &shared_primaries(1)[..] else { panic!("one node") };
        let (lasting, fleeting) = (unique("keys:lasting"), unique("keys:fleeting"));

        node.set(&lasting, "for ever");
        node.set_px(&fleeting, "not for ever", Duration::from_secs(60));

        assert_eq!(node.get(&lasting).as_deref(), Some("for ever"));
        assert_eq!(node.pttl(&lasting), -1);
        assert!((1..=60_000).contains(&node.pttl(&fleeting)), "{}", node.pttl(&fleeting));
        assert_eq!(node.keys_matching(&format!("{lasting}*")), [lasting.as_str()]);
        assert!(node.del(&lasting));
        assert!(!node.del(&lasting));
        assert!(node.del(&fleeting));
        assert_eq!(node.get(&lasting), None);
        assert_eq!(node.pttl(&lasting), -2);
    }

    #[test]
    fn statistics_can_be_looked_at() {
        let [node] = &shared_primaries(1)[..] else { panic!("one node") };
        let before = node.command_calls("STRLEN");
        node.ask::<u64>(cmd("STRLEN").arg(unique("statistics")));

        // Others may use the same node, so that "at least" is all that can be said.
        assert!(node.command_calls("strlen") > before);
        assert_eq!(node.command_calls("no-such-command"), 0);
        assert!(node.info("redis_version").is_some());
        assert_eq!(node.info("no_such_field"), None);
    }
}
