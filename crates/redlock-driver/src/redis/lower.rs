//! From a [`Command`] to what goes on the wire.

use std::sync::{Arc, LazyLock};

use redlock_core::{Command, Intent, Ttl, script};

/// The command as it is sent: a plain `SET`, or a script by its digest.
pub(crate) fn lower(command: &Command) -> redis::Cmd {
    match Form::of(&command.intent) {
        Form::Set(ttl) => set(command, ttl),
        Form::Script(script, invocation) => {
            script.invoke(command, &invocation, Spelling { verb: "EVALSHA", body: &script.digest })
        }
    }
}

/// The same with the script's text, for a server that does not know the digest. `None` for a command
/// that is no script.
pub(crate) fn in_full(command: &Command) -> Option<redis::Cmd> {
    match Form::of(&command.intent) {
        Form::Set(_) => None,
        Form::Script(script, invocation) => {
            Some(script.invoke(command, &invocation, Spelling { verb: "EVAL", body: script.text }))
        }
    }
}

/// How an intent is written.
enum Form<'a> {
    Set(Ttl),
    Script(&'static Script, Invocation<'a>),
}

impl<'a> Form<'a> {
    fn of(intent: &'a Intent) -> Self {
        match intent {
            Intent::SetNxPx { ttl, .. } => Self::Set(*ttl),
            Intent::FencedAcquire { fence, ttl, .. } => {
                Self::Script(&FENCED_ACQUIRE, Invocation { second_key: Some(fence), ttl: Some(*ttl) })
            }
            Intent::CompareAndDelete { .. } => {
                Self::Script(&COMPARE_AND_DELETE, Invocation { second_key: None, ttl: None })
            }
            Intent::CompareAndPexpire { ttl, .. } => {
                Self::Script(&COMPARE_AND_PEXPIRE, Invocation { second_key: None, ttl: Some(*ttl) })
            }
        }
    }
}

/// What a script takes besides the lock's key and the token.
struct Invocation<'a> {
    second_key: Option<&'a Arc<str>>,
    ttl: Option<Ttl>,
}

/// One of the two ways to name a script.
struct Spelling<'a> {
    verb: &'static str,
    body: &'a str,
}

struct Script {
    text: &'static str,
    digest: String,
}

impl Script {
    fn new(text: &'static str) -> Self {
        Self { text, digest: redis::Script::new(text).get_hash().to_owned() }
    }

    fn invoke(&self, command: &Command, invocation: &Invocation<'_>, spelling: Spelling<'_>) -> redis::Cmd {
        let token = command.intent.token().to_hex();
        let Spelling { verb, body } = spelling;
        let key_bytes = command.key.len() + invocation.second_key.map_or(0, |key| key.len());
        let bytes = verb.len() + body.len() + 1 + key_bytes + token.as_bytes().len() + TTL_DIGITS;
        let mut cmd = redis::Cmd::with_capacity(7, bytes);
        cmd.arg(verb).arg(body);
        match invocation.second_key {
            None => cmd.arg(1_u8).arg(&*command.key),
            Some(second_key) => cmd.arg(2_u8).arg(&*command.key).arg(&**second_key),
        };
        cmd.arg(token.as_bytes());
        if let Some(ttl) = invocation.ttl {
            cmd.arg(ttl.as_millis());
        }
        cmd
    }
}

fn set(command: &Command, ttl: Ttl) -> redis::Cmd {
    let token = command.intent.token().to_hex();
    let bytes = "SETNXPX".len() + command.key.len() + token.as_bytes().len() + TTL_DIGITS;
    let mut cmd = redis::Cmd::with_capacity(6, bytes);
    cmd.arg("SET").arg(&*command.key).arg(token.as_bytes()).arg("NX").arg("PX").arg(ttl.as_millis());
    cmd
}

static FENCED_ACQUIRE: LazyLock<Script> = LazyLock::new(|| Script::new(script::FENCED_ACQUIRE));
static COMPARE_AND_DELETE: LazyLock<Script> = LazyLock::new(|| Script::new(script::COMPARE_AND_DELETE));
static COMPARE_AND_PEXPIRE: LazyLock<Script> = LazyLock::new(|| Script::new(script::COMPARE_AND_PEXPIRE));

/// As many digits as the longest ttl has.
const TTL_DIGITS: usize = 19;

#[cfg(test)]
mod tests {
    use super::super::testing::{command, words};
    use super::*;
    use redlock_core::Token;

    const TOKEN: &str = "0707070707070707070707070707070707070707";

    fn intents() -> [Intent; 4] {
        let token = Token::from_bytes([7; Token::LEN]);
        let ttl = Ttl::from_millis(1_500).unwrap();
        [
            Intent::SetNxPx { token, ttl },
            Intent::FencedAcquire { fence: Arc::from("f"), token, ttl },
            Intent::CompareAndDelete { token },
            Intent::CompareAndPexpire { token, ttl },
        ]
    }

    #[test]
    fn a_plain_lock_is_one_set() {
        let [set, ..] = intents();
        let set = command(set, 0);
        assert_eq!(words(&lower(&set)), ["SET", "k", TOKEN, "NX", "PX", "1500"]);
        assert!(in_full(&set).is_none());
    }

    #[test]
    fn scripts_go_out_by_digest_and_in_full_on_demand() {
        let [_, fenced, delete, extend] = intents();
        let table: [(Intent, &str, &[&str]); 3] = [
            (fenced, script::FENCED_ACQUIRE, &["2", "k", "f", TOKEN, "1500"]),
            (delete, script::COMPARE_AND_DELETE, &["1", "k", TOKEN]),
            (extend, script::COMPARE_AND_PEXPIRE, &["1", "k", TOKEN, "1500"]),
        ];
        for (intent, text, rest) in table {
            let command = command(intent, 0);
            let digest = redis::Script::new(text).get_hash().to_owned();
            assert_eq!(words(&lower(&command)), [&["EVALSHA", &digest], rest].concat());
            assert_eq!(words(&in_full(&command).unwrap()), [&["EVAL", text], rest].concat());
        }
    }

    #[test]
    fn the_longest_ttl_fits() {
        let ttl = Ttl::new(Ttl::MAX).unwrap();
        assert!(ttl.as_millis().to_string().len() <= TTL_DIGITS);
        let token = Token::from_bytes([7; Token::LEN]);
        let cmd = lower(&command(Intent::SetNxPx { token, ttl }, 0));
        assert_eq!(words(&cmd)[5], ttl.as_millis().to_string());
    }
}
