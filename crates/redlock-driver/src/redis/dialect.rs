//! Which of the ways to write a compare command the server takes: learned by trying.
//!
//! A server that does not know a command, or may not run it for us, says so before it does anything. So the
//! same command may follow in another form, on the same connection and within the same deadline. What is
//! remembered is only with which form to begin: a memory that is out of date costs a round trip, never the
//! answer. Versions are not asked for, since forks and proxies report whatever they like.
//!
//! One command is not just tried. `SET key token IFEQ token PX ttl` makes Redis 8.6.2 and 8.6.3 corrupt their
//! memory and crash, within seconds where keys come and go. So it is sent only where `DELIFEQ` is known to be
//! there, on the same connection: that is Valkey from 9.0 on, which does it right.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use redlock_core::{Fault, Intent, Reply};

/// A way to write an intent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Form {
    /// `SET key token NX PX ttl`.
    SetNx = 1,
    /// `SET key token IFEQ token PX ttl`. Without `GET`, with which the answer would not tell whether the key
    /// was set.
    SetIfEq,
    /// `DELIFEQ key token`: Valkey from 9.0 on.
    DelIfEq,
    /// `DELEX key IFEQ token`: Redis from 8.4 on.
    DelEx,
    /// The script.
    Script,
}

impl Form {
    /// How many forms an intent has at most.
    pub(crate) const MOST: usize = 3;

    /// The forms of an intent, in the order in which they are tried on a server of which nothing is known.
    pub(crate) const fn of(intent: &Intent) -> &'static [Self] {
        match intent {
            Intent::SetNxPx { .. } => &[Self::SetNx],
            Intent::FencedAcquire { .. } => &[Self::Script],
            Intent::CompareAndDelete { .. } => &[Self::DelIfEq, Self::DelEx, Self::Script],
            Intent::CompareAndPexpire { .. } => &[Self::SetIfEq, Self::Script],
        }
    }
}

/// Why a server did not begin with a command. What comes later says more about what to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Refusal {
    /// It does not know it in this form.
    Unknown,
    /// We have no right to it.
    Forbidden,
    /// It is at its memory limit, where it refuses every `SET`, but not the script, which stores nothing.
    Full,
}

impl Refusal {
    /// Whether this is the answer of a server that has not begun with the command, and might in another form.
    pub(crate) fn of(form: Form, reply: &Result<Reply, Fault>) -> Option<Self> {
        let Ok(Reply::Error(error)) = reply else { return None };
        match error.code() {
            "NOPERM" => Some(Self::Forbidden),
            "OOM" if form == Form::SetIfEq => Some(Self::Full),
            "ERR" if begins(error.message(), "unknown command") => Some(Self::Unknown),
            "ERR" if form != Form::Script && begins(error.message(), "syntax error") => Some(Self::Unknown),
            _ => None,
        }
    }
}

fn begins(message: &str, words: &str) -> bool {
    message.get(..words.len()).is_some_and(|start| start.eq_ignore_ascii_case(words))
}

/// The form of a delete that a node's server has taken. It belongs to the node, so that what one connection
/// has taught is the first guess of the next.
#[derive(Debug, Default)]
pub(crate) struct Habit(AtomicU8);

impl Habit {
    fn get(&self) -> Option<Form> {
        let number = self.0.load(Ordering::Relaxed);
        [Form::DelIfEq, Form::DelEx, Form::Script].into_iter().find(|form| *form as u8 == number)
    }

    fn set(&self, form: Form) {
        // Nearly always it is known already; then nothing is written that all threads read.
        if self.0.load(Ordering::Relaxed) != form as u8 {
            self.0.store(form as u8, Ordering::Relaxed);
        }
    }

    fn set_if_none(&self, form: Form) {
        // Whoever was faster knows more.
        let _ = self.0.compare_exchange(UNTOLD, form as u8, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// What is known of the server at the end of one connection.
#[derive(Debug)]
pub(crate) struct Dialect {
    node: Arc<Habit>,
    /// Whether `DELIFEQ` is there.
    delifeq: AtomicU8,
}

impl Dialect {
    /// Nothing is known yet but what earlier connections have taught.
    pub(crate) const fn new(node: Arc<Habit>) -> Self {
        Self { node, delifeq: AtomicU8::new(UNTOLD) }
    }

    /// The most promising form of an intent, and the others in their order.
    pub(crate) fn forms(&self, intent: &Intent) -> (Form, impl Iterator<Item = Form> + Send + use<>) {
        let all: &[Form] = match (intent, self.has_delifeq()) {
            (Intent::CompareAndDelete { .. }, Some(false)) => &[Form::DelEx, Form::Script, Form::DelIfEq],
            (Intent::CompareAndPexpire { .. }, Some(false)) => &[Form::Script, Form::SetIfEq],
            _ => Form::of(intent),
        };
        let usual = match (intent, self.node.get()) {
            (Intent::CompareAndDelete { .. }, habit) => habit,
            (Intent::CompareAndPexpire { .. }, Some(Form::DelEx | Form::Script)) => {
                // On the last connection there was no `DELIFEQ`, or we had no right to it.
                self.has_delifeq().is_none().then_some(Form::Script)
            }
            _ => None,
        };
        let first = usual.or_else(|| all.first().copied()).unwrap_or(Form::Script);
        (first, all.iter().copied().filter(move |form| *form != first))
    }

    /// Whether `DELIFEQ` is known to be there, or not to be; and so whether [`Form::SetIfEq`] may be sent.
    pub(crate) fn has_delifeq(&self) -> Option<bool> {
        match self.delifeq.load(Ordering::Relaxed) {
            THERE => Some(true),
            MISSING => Some(false),
            _ => None,
        }
    }

    /// Learns from the answer to `DELIFEQ` without any arguments, which is asked for nothing but to be known.
    pub(crate) fn learn_from_probe(&self, reply: &Result<Reply, Fault>) {
        match reply {
            Ok(Reply::Error(error)) if error.code() == "ERR" => {
                if begins(error.message(), "wrong number of arguments") {
                    self.tell(THERE);
                } else if begins(error.message(), "unknown command") {
                    self.tell(MISSING);
                }
            }
            _ => {}
        }
    }

    /// Learns from the answer to a form.
    pub(crate) fn learn(&self, intent: &Intent, form: Form, reply: &Result<Reply, Fault>) {
        if reply.is_err() {
            // There may be another server at the end of the connection from now on.
            self.tell(UNTOLD);
        }
        let refusal = Refusal::of(form, reply);
        if form == Form::DelIfEq {
            match (refusal, reply) {
                (Some(Refusal::Unknown), _) => self.tell(MISSING),
                (None, Ok(Reply::Int(0 | 1))) => self.tell(THERE),
                _ => {}
            }
        }
        if refusal.is_some() || !matches!(intent, Intent::CompareAndDelete { .. }) {
            return;
        }
        match reply {
            Ok(Reply::Int(0 | 1)) => self.node.set(form),
            // A state of the server or of the network, which says nothing about the form.
            Err(Fault::NotExecuted(_)) => {}
            Ok(Reply::Error(error)) if matches!(error.clone().into_fault(intent), Fault::NotExecuted(_)) => {}
            // Some proxies hang up on a command that they do not know, or answer in words of their own. That
            // must not befall every delete to come.
            Ok(_) | Err(Fault::Unknown(_)) => self.node.set_if_none(Form::Script),
        }
    }

    fn tell(&self, what: u8) {
        if self.delifeq.load(Ordering::Relaxed) != what {
            self.delifeq.store(what, Ordering::Relaxed);
        }
    }
}

/// Nobody has said anything. No form has this number.
const UNTOLD: u8 = 0;
const THERE: u8 = 1;
const MISSING: u8 = 2;

#[cfg(test)]
mod tests {
    use super::super::testing::{delete, extend, fenced, set};
    use super::*;
    use redlock_core::{Cause, CauseKind, ServerError};

    fn error(code: &str, message: &str) -> Result<Reply, Fault> {
        Ok(Reply::Error(ServerError::new(code, message)))
    }

    /// In the words of Redis 6.2, 7.0 and 8.6 and Valkey 8.1 and 9.1, without the arguments that they repeat.
    #[test]
    fn refusals_are_known_by_what_servers_say() {
        use Form::{DelEx, DelIfEq, Script, SetIfEq};
        let table = [
            (DelIfEq, "ERR", "unknown command 'delifeq'", Some(Refusal::Unknown)),
            (DelEx, "ERR", "unknown command `delex`", Some(Refusal::Unknown)),
            (Script, "ERR", "unknown command 'EVALSHA'", Some(Refusal::Unknown)),
            (SetIfEq, "ERR", "syntax error", Some(Refusal::Unknown)),
            (
                DelIfEq,
                "NOPERM",
                "User a has no permissions to run the 'delifeq' command",
                Some(Refusal::Forbidden),
            ),
            (Script, "NOPERM", "this user has no permissions", Some(Refusal::Forbidden)),
            (SetIfEq, "OOM", "command not allowed when used memory > 'maxmemory'.", Some(Refusal::Full)),
            // Raised by a command within the script.
            (Script, "ERR", "syntax error script: 6f, on @user_script:1.", None),
            (Script, "ERR", "Unknown Redis command called from script script: 6f", None),
            (Script, "ERR", "The user executing the script can't run this command or subcommand", None),
            (Script, "OOM", "command not allowed when used memory > 'maxmemory'.", None),
            (DelEx, "ERR", "Key should be of string type if conditions are specified", None),
            (DelIfEq, "WRONGTYPE", "Operation against a key holding the wrong kind of value", None),
            (DelIfEq, "ERR", "", None),
            (DelIfEq, "ERR", "\u{fc}nknown command", None),
            (DelIfEq, "unknown", "command", None),
        ];
        for (form, code, message, expected) in table {
            assert_eq!(Refusal::of(form, &error(code, message)), expected, "{form:?} {code} {message}");
        }
        assert_eq!(Refusal::of(DelIfEq, &Ok(Reply::Int(0))), None);
        assert_eq!(Refusal::of(DelIfEq, &Err(Fault::Unknown(Cause::new(CauseKind::Timeout)))), None);
    }

    fn first(dialect: &Dialect, intent: &Intent) -> Form {
        dialect.forms(intent).0
    }

    fn lost() -> Result<Reply, Fault> {
        Err(Fault::Unknown(Cause::new(CauseKind::Disconnected)))
    }

    #[test]
    fn acquires_have_one_form() {
        let dialect = Dialect::new(Arc::default());
        for (command, form) in [(set(1, 0), Form::SetNx), (fenced(1, 0), Form::Script)] {
            dialect.learn(&command.intent, form, &Ok(Reply::Int(1)));
            let (first, mut others) = dialect.forms(&command.intent);
            assert_eq!((first, others.next()), (form, None));
        }
        assert_eq!(first(&dialect, &delete(1, 0).intent), Form::DelIfEq, "nothing was learned of others");
    }

    #[test]
    fn every_form_is_there_whatever_is_known() {
        let (delete, extend) = (delete(1, 0).intent, extend(1, 0).intent);
        for known in Form::of(&delete) {
            let dialect = Dialect::new(Arc::default());
            dialect.learn(&delete, *known, &Ok(Reply::Int(0)));
            assert_eq!(first(&dialect, &delete), *known);
            for intent in [&delete, &extend] {
                let (first, others) = dialect.forms(intent);
                let mut forms: Vec<_> = std::iter::once(first).chain(others).collect();
                forms.sort_unstable_by_key(|form| *form as u8);
                assert_eq!(forms.len(), Form::of(intent).len());
                assert!(Form::of(intent).iter().all(|form| forms.contains(form)));
            }
        }
    }

    #[test]
    fn doubt_unseats_nothing_that_is_known() {
        let intent = delete(1, 0).intent;
        let dialect = Dialect::new(Arc::default());
        dialect.learn(&intent, Form::DelIfEq, &Ok(Reply::Int(0)));
        dialect.learn(&intent, Form::DelIfEq, &lost());
        assert_eq!(first(&dialect, &intent), Form::DelIfEq);

        let dialect = Dialect::new(Arc::default());
        let unsent = Err(Fault::NotExecuted(Cause::new(CauseKind::Disconnected)));
        dialect.learn(&intent, Form::DelIfEq, &unsent);
        assert_eq!(first(&dialect, &intent), Form::DelIfEq);
        dialect.learn(&intent, Form::DelIfEq, &lost());
        assert_eq!(first(&dialect, &intent), Form::Script);
    }

    #[test]
    fn delifeq_is_known_by_its_own_answers_and_on_its_own_connection() {
        let (delete, extend) = (delete(1, 0).intent, extend(1, 0).intent);
        let node = Arc::default();
        let dialect = Dialect::new(Arc::clone(&node));
        for (form, reply) in [
            (Form::DelEx, Ok(Reply::Int(1))),
            (Form::Script, Ok(Reply::Int(1))),
            (Form::DelIfEq, Ok(Reply::Ok)),
            (Form::DelIfEq, error("NOPERM", "no")),
            (Form::DelIfEq, error("LOADING", "")),
        ] {
            dialect.learn(&delete, form, &reply);
            assert_eq!(dialect.has_delifeq(), None, "{form:?} {reply:?}");
        }
        dialect.learn(&delete, Form::DelIfEq, &Ok(Reply::Int(0)));
        assert_eq!((dialect.has_delifeq(), Dialect::new(node).has_delifeq()), (Some(true), None));
        // Another server may have taken over behind a connection that looks after itself.
        dialect.learn(&extend, Form::SetIfEq, &lost());
        assert_eq!(dialect.has_delifeq(), None);
        dialect.learn_from_probe(&error("ERR", "wrong number of arguments for 'delifeq' command"));
        assert_eq!(dialect.has_delifeq(), Some(true));
        dialect.learn_from_probe(&error("ERR", "unknown command 'DELIFEQ'"));
        assert_eq!(dialect.has_delifeq(), Some(false));
    }
}
