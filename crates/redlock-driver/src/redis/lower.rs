//! From a [`Command`] to what goes on the wire.

use std::sync::{Arc, LazyLock};

use redlock_core::{Command, Intent, Ttl, script};

use super::dialect::Form;

/// The command as it is sent in this form; a script by its digest. A form of another intent is as good as
/// [`Form::Script`].
pub(crate) fn lower(command: &Command, form: Form) -> redis::Cmd {
    let token = command.intent.token().to_hex();
    match (form, &command.intent) {
        (Form::SetIfEq, Intent::CompareAndPexpire { ttl, .. }) => {
            set(command, *ttl, &["IFEQ", token.as_str()])
        }
        (Form::DelIfEq, Intent::CompareAndDelete { .. }) => delete(command, "DELIFEQ", &[]),
        (Form::DelEx, Intent::CompareAndDelete { .. }) => delete(command, "DELEX", &["IFEQ"]),
        (_, intent) => match Everywhere::of(intent) {
            Everywhere::Set(ttl) => set(command, ttl, &["NX"]),
            Everywhere::Script(script, invocation) => {
                script.invoke(command, &invocation, Spelling { verb: "EVALSHA", body: &script.digest })
            }
        },
    }
}

/// The same as [`Form::Script`] with the script's text, for a server that does not know the digest. `None`
/// for a command that is no script.
pub(crate) fn in_full(command: &Command) -> Option<redis::Cmd> {
    match Everywhere::of(&command.intent) {
        Everywhere::Set(_) => None,
        Everywhere::Script(script, invocation) => {
            Some(script.invoke(command, &invocation, Spelling { verb: "EVAL", body: script.text }))
        }
    }
}

/// How an intent is written for any server.
enum Everywhere<'a> {
    Set(Ttl),
    Script(&'static Script, Invocation<'a>),
}

impl<'a> Everywhere<'a> {
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

fn set(command: &Command, ttl: Ttl, condition: &[&str]) -> redis::Cmd {
    let token = command.intent.token().to_hex();
    let words = condition.iter().map(|word| word.len()).sum::<usize>();
    let bytes = "SETPX".len() + command.key.len() + token.as_bytes().len() + words + TTL_DIGITS;
    let mut cmd = redis::Cmd::with_capacity(5 + condition.len(), bytes);
    cmd.arg("SET").arg(&*command.key).arg(token.as_bytes()).arg(condition).arg("PX").arg(ttl.as_millis());
    cmd
}

fn delete(command: &Command, verb: &str, condition: &[&str]) -> redis::Cmd {
    let token = command.intent.token().to_hex();
    let words = condition.iter().map(|word| word.len()).sum::<usize>();
    let bytes = verb.len() + command.key.len() + words + token.as_bytes().len();
    let mut cmd = redis::Cmd::with_capacity(3 + condition.len(), bytes);
    cmd.arg(verb).arg(&*command.key).arg(condition).arg(token.as_bytes());
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
        assert_eq!(words(&lower(&set, Form::SetNx)), ["SET", "k", TOKEN, "NX", "PX", "1500"]);
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
            assert_eq!(words(&lower(&command, Form::Script)), [&["EVALSHA", &digest], rest].concat());
            assert_eq!(words(&in_full(&command).unwrap()), [&["EVAL", text], rest].concat());
        }
    }

    #[test]
    fn compare_commands_name_the_token_that_must_be_there() {
        let [_, _, delete, extend] = intents().map(|intent| command(intent, 0));
        let table: [(&Command, Form, &[&str]); 3] = [
            (&delete, Form::DelIfEq, &["DELIFEQ", "k", TOKEN]),
            (&delete, Form::DelEx, &["DELEX", "k", "IFEQ", TOKEN]),
            // It sets what is there already, so that only the time to live changes.
            (&extend, Form::SetIfEq, &["SET", "k", TOKEN, "IFEQ", TOKEN, "PX", "1500"]),
        ];
        for (command, form, expected) in table {
            assert_eq!(words(&lower(command, form)), expected);
        }
    }

    #[test]
    fn a_form_of_another_intent_changes_nothing() {
        for command in intents().map(|intent| command(intent, 0)) {
            let own = Form::of(&command.intent);
            let usual = words(&lower(&command, *own.last().unwrap()));
            for form in [Form::SetNx, Form::SetIfEq, Form::DelIfEq, Form::DelEx, Form::Script] {
                let same = words(&lower(&command, form)) == usual;
                assert_eq!(same, !own.contains(&form) || own.last() == Some(&form), "{form:?}");
            }
        }
    }

    #[test]
    fn the_longest_ttl_fits() {
        let ttl = Ttl::new(Ttl::MAX).unwrap();
        assert!(ttl.as_millis().to_string().len() <= TTL_DIGITS);
        let token = Token::from_bytes([7; Token::LEN]);
        let cmd = lower(&command(Intent::SetNxPx { token, ttl }, 0), Form::SetNx);
        assert_eq!(words(&cmd)[5], ttl.as_millis().to_string());
    }
}
