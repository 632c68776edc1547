//! Which of the ways to write a compare command the server takes: learned by trying.
//!
//! A server that does not know a command, or may not run it for us, says so before it does anything. So the
//! same command may follow in another form, on the same connection and within the same deadline. What is
//! remembered is only with which form to begin: a memory that is out of date costs a round trip, never the
//! answer. Versions are not asked for, since forks and proxies report whatever they like.

use std::sync::atomic::{AtomicU8, Ordering};

use redlock_core::{Fault, Intent, Reply};

/// A way to write an intent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Form {
    /// `SET key token NX PX ttl`.
    SetNx = 1,
    /// `SET key token IFEQ token PX ttl`: Valkey 8.1, Redis 8.4. Without `GET`, with which the answer would
    /// not tell whether the key was set.
    SetIfEq,
    /// `DELIFEQ key token`: Valkey 9.0.
    DelIfEq,
    /// `DELEX key IFEQ token`: Redis 8.4.
    DelEx,
    /// The script.
    Script,
}

impl Form {
    /// The forms of an intent, in the order in which they are tried on a server of which nothing is known.
    pub(crate) const fn of(intent: &Intent) -> &'static [Self] {
        match intent {
            Intent::SetNxPx { .. } => &[Self::SetNx],
            Intent::FencedAcquire { .. } => &[Self::Script],
            Intent::CompareAndDelete { .. } => &DELETES,
            Intent::CompareAndPexpire { .. } => &EXTENDS,
        }
    }
}

const DELETES: [Form; 3] = [Form::DelIfEq, Form::DelEx, Form::Script];
const EXTENDS: [Form; 2] = [Form::SetIfEq, Form::Script];

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
        let says = |words: &str| {
            error.message().get(..words.len()).is_some_and(|start| start.eq_ignore_ascii_case(words))
        };
        match error.code() {
            "NOPERM" => Some(Self::Forbidden),
            "OOM" if form == Form::SetIfEq => Some(Self::Full),
            "ERR" if says("unknown command") => Some(Self::Unknown),
            "ERR" if form != Form::Script && says("syntax error") => Some(Self::Unknown),
            _ => None,
        }
    }
}

/// What is known of the server at a node. It belongs to the node, so that what one connection has taught is
/// the first guess of the next.
#[derive(Debug, Default)]
pub(crate) struct Dialect {
    delete: Guess,
    extend: Guess,
}

impl Dialect {
    /// The most promising form of an intent, and the others in their order.
    pub(crate) fn forms(&self, intent: &Intent) -> (Form, impl Iterator<Item = Form> + Send + use<>) {
        let all = Form::of(intent);
        let known = self.guess(intent).and_then(|guess| guess.get(all));
        let first = known.or_else(|| all.first().copied()).unwrap_or(Form::Script);
        (first, all.iter().copied().filter(move |form| *form != first))
    }

    /// Learns from the answer to a form that was not refused.
    pub(crate) fn learn(&self, intent: &Intent, form: Form, reply: &Result<Reply, Fault>) {
        let Some(guess) = self.guess(intent) else { return };
        match reply {
            Ok(Reply::Int(0 | 1)) => {
                guess.set(form);
                if form == Form::Script && matches!(intent, Intent::CompareAndPexpire { .. }) {
                    // No server is known that compares when it deletes, but not when it sets.
                    self.delete.set_if_none(Form::Script);
                }
            }
            // A state of the server or of the network, which says nothing about the form.
            Err(Fault::NotExecuted(_)) => {}
            Ok(Reply::Error(error)) if matches!(error.clone().into_fault(intent), Fault::NotExecuted(_)) => {}
            // Some proxies hang up on a command that they do not know, or answer in words of their own. That
            // must not befall every command to come.
            Ok(_) | Err(Fault::Unknown(_)) => guess.set_if_none(Form::Script),
        }
    }

    const fn guess(&self, intent: &Intent) -> Option<&Guess> {
        match intent {
            Intent::CompareAndDelete { .. } => Some(&self.delete),
            Intent::CompareAndPexpire { .. } => Some(&self.extend),
            Intent::SetNxPx { .. } | Intent::FencedAcquire { .. } => None,
        }
    }
}

/// The form to begin with, if any is known to be good.
#[derive(Debug, Default)]
struct Guess(AtomicU8);

impl Guess {
    fn get(&self, all: &[Form]) -> Option<Form> {
        let guessed = self.0.load(Ordering::Relaxed);
        all.iter().copied().find(|form| *form as u8 == guessed)
    }

    fn set(&self, form: Form) {
        // Nearly always it is known already; then nothing is written that all threads read.
        if self.0.load(Ordering::Relaxed) != form as u8 {
            self.0.store(form as u8, Ordering::Relaxed);
        }
    }

    fn set_if_none(&self, form: Form) {
        // Whoever was faster knows more.
        let _ = self.0.compare_exchange(NONE, form as u8, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// No form has this number.
const NONE: u8 = 0;

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

    #[test]
    fn acquires_have_one_form() {
        let dialect = Dialect::default();
        for (command, form) in [(set(1, 0), Form::SetNx), (fenced(1, 0), Form::Script)] {
            dialect.learn(&command.intent, form, &Ok(Reply::Int(1)));
            let (first, mut others) = dialect.forms(&command.intent);
            assert_eq!((first, others.next()), (form, None));
        }
        assert_eq!(dialect.forms(&delete(1, 0).intent).0, Form::DelIfEq, "nothing was learned of others");
    }

    #[test]
    fn every_form_is_tried_whatever_is_known() {
        for command in [delete(1, 0), extend(1, 0)] {
            let all = Form::of(&command.intent);
            for known in all {
                let dialect = Dialect::default();
                dialect.learn(&command.intent, *known, &Ok(Reply::Int(0)));
                let (first, others) = dialect.forms(&command.intent);
                let mut tried: Vec<_> = std::iter::once(first).chain(others).collect();
                assert_eq!(tried[0], *known);
                tried.sort_unstable_by_key(|form| *form as u8);
                let mut sorted = all.to_vec();
                sorted.sort_unstable_by_key(|form| *form as u8);
                assert_eq!(tried, sorted);
            }
        }
    }

    #[test]
    fn doubt_unseats_nothing_that_is_known() {
        let intent = delete(1, 0).intent;
        let doubt = Err(Fault::Unknown(Cause::new(CauseKind::Disconnected)));
        let dialect = Dialect::default();
        dialect.learn(&intent, Form::DelIfEq, &Ok(Reply::Int(0)));
        dialect.learn(&intent, Form::DelIfEq, &doubt);
        assert_eq!(dialect.forms(&intent).0, Form::DelIfEq);

        let dialect = Dialect::default();
        dialect.learn(&intent, Form::DelIfEq, &Err(Fault::NotExecuted(Cause::new(CauseKind::Disconnected))));
        assert_eq!(dialect.forms(&intent).0, Form::DelIfEq);
        dialect.learn(&intent, Form::DelIfEq, &doubt);
        assert_eq!(dialect.forms(&intent).0, Form::Script);
    }
}
