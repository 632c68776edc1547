//! Which commands a server has that compare before they write; and servers that have what a test wants.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use redis::cmd;

use super::fake::{FakeServer, Played};
use super::nodes::unique;
use super::primary::Primary;

/// What of all that a lease can be released and extended with is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dialect {
    /// `SET key value IFEQ value`.
    pub set_ifeq: bool,
    /// `DELIFEQ key value`.
    pub delifeq: bool,
    /// `DELEX key IFEQ value`.
    pub delex: bool,
    /// Scripts, and the right to them.
    pub scripts: bool,
}

impl Dialect {
    /// Servers that compare in scripts only.
    pub const OLD: Self = Self { set_ifeq: false, delifeq: false, delex: false, scripts: true };
    /// Valkey 8.1.
    pub const VALKEY_8_1: Self = Self { set_ifeq: true, ..Self::OLD };
    /// Valkey from 9.0 on.
    pub const VALKEY_9: Self = Self { delifeq: true, ..Self::VALKEY_8_1 };
    /// Redis from 8.4 on.
    pub const REDIS_8_4: Self = Self { delex: true, ..Self::VALKEY_8_1 };

    /// The same without the right to scripts.
    pub const fn without_scripts(self) -> Self {
        Self { scripts: false, ..self }
    }

    /// Whether leases can be released without scripts.
    pub const fn releases_by_comparing(self) -> bool {
        self.delifeq || self.delex
    }

    /// Whether leases can be extended without scripts. Of the servers that have `SET IFEQ`, only those of which
    /// we know that they survive it are sent it.
    pub const fn extends_by_comparing(self) -> bool {
        self.set_ifeq && self.delifeq
    }

    /// What a real server has, found out by trying on a key that is not there. Its owner may run scripts.
    pub fn of(primary: &Primary) -> Self {
        let key = unique("dialect");
        let mut connection = primary.connection();
        let mut knows = |name: &str, arguments: &[&str]| {
            let tried = cmd(name).arg(&key).arg(arguments).query::<Option<i64>>(&mut connection);
            match tried {
                Ok(none) => {
                    assert!(matches!(none, None | Some(0)), "{name}: {none:?}");
                    true
                }
                Err(error) => {
                    let known = ["unknown command", "syntax error"];
                    let text = error.to_string();
                    assert!(known.iter().any(|known| text.contains(known)), "{name}: {text}");
                    false
                }
            }
        };
        Self {
            set_ifeq: knows("SET", &["a", "IFEQ", "a", "PX", "1"]),
            delifeq: knows("DELIFEQ", &["a"]),
            delex: knows("DELEX", &["IFEQ", "a"]),
            scripts: true,
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = [
            (self.set_ifeq, "SET IFEQ"),
            (self.delifeq, "DELIFEQ"),
            (self.delex, "DELEX"),
            (self.scripts, "scripts"),
        ];
        let there: Vec<_> = all.into_iter().filter_map(|(there, name)| there.then_some(name)).collect();
        f.write_str(&there.join(", "))
    }
}

/// A server that speaks a [`Dialect`], and keeps the keys of leases for ever.
#[derive(Debug)]
pub struct Speaker {
    server: FakeServer,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    dialect: Dialect,
    keys: BTreeMap<String, String>,
    calls: Vec<String>,
    /// Connections up to this number are closed.
    closed: usize,
}

impl Speaker {
    /// A server without keys.
    pub fn start(dialect: Dialect) -> Self {
        let state = State { dialect, keys: BTreeMap::new(), calls: Vec::new(), closed: 0 };
        let state = Arc::new(Mutex::new(state));
        let asked = Arc::clone(&state);
        let server = FakeServer::play(move |connection, words| {
            let mut state = asked.lock().unwrap();
            if connection <= state.closed {
                return Played::Last(Vec::new());
            }
            let words: Vec<_> = words.iter().map(|word| String::from_utf8_lossy(word)).collect();
            let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
            state.calls.push(words[0].to_owned());
            Played::Bytes(state.answer(&words).into_bytes())
        });
        Self { server, state }
    }

    /// The URL under which clients reach it.
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// Lets another server take over, with the same keys: who is connected finds the connection closed at the
    /// next command, which is not carried out.
    pub fn becomes(&self, dialect: Dialect) {
        let mut state = self.state.lock().unwrap();
        state.dialect = dialect;
        state.closed = self.server.connections();
    }

    /// The names of all keys.
    pub fn keys(&self) -> Vec<String> {
        self.state.lock().unwrap().keys.keys().cloned().collect()
    }

    /// The names of the commands since the last time this was asked.
    pub fn calls(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().unwrap().calls)
    }
}

impl State {
    fn answer(&mut self, words: &[&str]) -> String {
        let Dialect { set_ifeq, delifeq, delex, scripts } = self.dialect;
        match *words {
            ["SET", key, token, "NX", "PX", _] => {
                if self.keys.contains_key(key) {
                    return "$-1\r\n".to_owned();
                }
                self.keys.insert(key.to_owned(), token.to_owned());
                "+OK\r\n".to_owned()
            }
            ["SET", key, token, "IFEQ", held, "PX", _] if set_ifeq => {
                assert_eq!(token, held, "an extension leaves the token as it is");
                if self.holds(key, held) { "+OK\r\n" } else { "$-1\r\n" }.to_owned()
            }
            ["SET", ..] => "-ERR syntax error\r\n".to_owned(),
            ["DELIFEQ"] if delifeq => "-ERR wrong number of arguments for 'delifeq' command\r\n".to_owned(),
            ["DELIFEQ", key, token] if delifeq => self.delete(key, token),
            ["DELEX", key, "IFEQ", token] if delex => self.delete(key, token),
            ["EVALSHA" | "EVAL", ..] if !scripts => {
                "-NOPERM User locker has no permissions to run the 'evalsha' command\r\n".to_owned()
            }
            ["EVALSHA", _, "1", key, token] => self.delete(key, token),
            ["EVALSHA", _, "1", key, token, _] => format!(":{}\r\n", u8::from(self.holds(key, token))),
            [name, ref arguments @ ..] => {
                format!("-ERR unknown command '{name}', with args beginning with: {arguments:?}\r\n")
            }
            [] => "-ERR nothing\r\n".to_owned(),
        }
    }

    fn holds(&self, key: &str, token: &str) -> bool {
        self.keys.get(key).is_some_and(|held| held == token)
    }

    fn delete(&mut self, key: &str, token: &str) -> String {
        let ours = self.holds(key, token);
        if ours {
            self.keys.remove(key);
        }
        format!(":{}\r\n", u8::from(ours))
    }
}

#[cfg(test)]
mod tests {
    use redis::Client;

    use super::super::shared_primaries;
    use super::*;

    #[test]
    fn a_real_server_is_asked_without_leaving_anything() {
        let [primary] = &shared_primaries(1)[..] else { panic!("one node") };
        let dialect = Dialect::of(primary);
        println!("the server under test has {dialect}");
        assert!(!dialect.delifeq && !dialect.delex || dialect.set_ifeq, "{dialect}");
        assert!(primary.keys_matching("dialect*").is_empty());
    }

    #[test]
    fn a_speaker_has_what_its_dialect_has() {
        let server = Speaker::start(Dialect::VALKEY_9);
        let ask = |words: &[&str]| {
            let mut connection = Client::open(server.url()).unwrap().get_connection().unwrap();
            cmd(words[0]).arg(&words[1..]).query::<redis::Value>(&mut connection)
        };
        let set = ["SET", "k", "t", "NX", "PX", "1"];
        assert_eq!(ask(&set), Ok(redis::Value::Okay));
        assert_eq!(ask(&set), Ok(redis::Value::Nil));
        assert_eq!(ask(&["SET", "k", "t", "IFEQ", "t", "PX", "1"]), Ok(redis::Value::Okay));
        assert_eq!(ask(&["SET", "other", "t", "IFEQ", "t", "PX", "1"]), Ok(redis::Value::Nil));
        assert!(ask(&["DELEX", "k", "IFEQ", "t"]).unwrap_err().to_string().contains("unknown command"));
        assert_eq!(server.keys(), ["k"]);
        assert_eq!(ask(&["DELIFEQ", "k", "other"]), Ok(redis::Value::Int(0)));

        server.becomes(Dialect::OLD.without_scripts());
        assert!(ask(&["DELIFEQ", "k", "t"]).unwrap_err().to_string().contains("unknown command"));
        assert_eq!(ask(&["EVALSHA", "x", "1", "k", "t"]).unwrap_err().code(), Some("NOPERM"));
        assert_eq!(server.keys(), ["k"]);
        assert_eq!(server.calls().len(), 8);
    }
}
