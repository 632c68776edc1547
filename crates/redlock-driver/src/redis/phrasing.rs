//! One command on its way through the forms in which a server may take it.

use redlock_core::{Command, Fault, Intent, Reply, ServerError, Token};

use super::dialect::{Dialect, Form, Refusal};
use super::{lower, reply};

/// What to say next to have one command carried out: its most promising form, and as long as the server
/// refuses, the others. Knows no connection; it is asked for words and told the answers.
#[derive(Debug)]
pub(crate) struct Phrasing {
    step: Step,
    /// The forms that are left, the next one first.
    left: [Option<Form>; Form::MOST],
    /// The most telling refusal so far, and its answer.
    refused: Option<(Refusal, Reply)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The command in this form.
    Say(Form),
    /// The script with its text, after its digest was not known.
    InFull,
    /// The question whether the server is one that survives [`Form::SetIfEq`].
    Probe,
}

/// The words of one command, kept for the same one to other nodes.
#[derive(Debug, Default)]
pub(crate) struct Words {
    last: Option<(Step, Intent, redis::Cmd)>,
    /// There are other nodes.
    pub(crate) shared: bool,
    /// Another command for the same nodes is about to follow, and may share the way with this one.
    pub(crate) followed: bool,
}

impl Words {
    /// For a command that goes to so many nodes.
    pub(crate) fn for_nodes(count: usize) -> Self {
        Self { shared: count > 1, ..Self::default() }
    }
}

impl Phrasing {
    pub(crate) fn new(dialect: &Dialect, intent: &Intent) -> Self {
        let (first, others) = dialect.forms(intent);
        let mut left = [None; Form::MOST];
        for (place, form) in left.iter_mut().zip(others) {
            *place = Some(form);
        }
        let mut phrasing = Self { step: Step::Say(first), left, refused: None };
        phrasing.choose(dialect, first);
        phrasing
    }

    /// The words for the wire.
    pub(crate) fn words(&self, command: &Command) -> redis::Cmd {
        match self.step {
            Step::Say(form) => lower::lower(command, form),
            Step::InFull => lower::in_full(command).unwrap_or_else(|| lower::lower(command, Form::Script)),
            Step::Probe => redis::cmd("DELIFEQ"),
        }
    }

    /// The same for a command that may go to several nodes: all are about one key, so those of one intent are
    /// put into words once.
    pub(crate) fn shared_words(&self, command: &Command, kept: &mut Words) -> redis::Cmd {
        match &kept.last {
            Some((step, intent, words)) if *step == self.step && *intent == command.intent => words.clone(),
            _ => {
                let words = self.words(command);
                kept.last = Some((self.step, command.intent.clone(), words.clone()));
                words
            }
        }
    }

    /// Takes the answer to [`words`](Self::words), and yields it if it is the command's. Otherwise nothing
    /// has run, and there is something else to say. `wanted` tells whether the command may be sent once more
    /// when others have followed it.
    pub(crate) fn hear(
        &mut self,
        dialect: &Dialect,
        command: &Command,
        wanted: impl FnOnce() -> bool,
        answer: Result<Reply, Fault>,
    ) -> Option<Result<Reply, Fault>> {
        let form = match self.step {
            Step::Probe => {
                dialect.learn_from_probe(&answer);
                if dialect.has_delifeq() == Some(true) {
                    self.step = Step::Say(Form::SetIfEq);
                    return None;
                }
                return self.next_or_refused(dialect);
            }
            Step::Say(Form::Script) if is_unknown_script(&answer) && wanted() => {
                self.step = Step::InFull;
                return None;
            }
            Step::InFull => Form::Script,
            Step::Say(form) => form,
        };
        let mut answer = if form == Form::SetIfEq { answer.map(reply::of_set_if_equal) } else { answer };
        dialect.learn(&command.intent, form, &answer);
        let refusal = Refusal::of(form, &answer);
        if let Ok(Reply::Error(error)) = &mut answer {
            withhold(error, command.intent.token());
        }
        let Some(refusal) = refusal else { return Some(answer) };
        if let Ok(answer) = answer
            && self.refused.as_ref().is_none_or(|(worst, _)| *worst <= refusal)
        {
            self.refused = Some((refusal, answer));
        }
        self.next_or_refused(dialect)
    }

    /// Turns to the next form, or yields why the server takes none.
    fn next_or_refused(&mut self, dialect: &Dialect) -> Option<Result<Reply, Fault>> {
        if self.next(dialect) { None } else { self.refused.take().map(|(_, answer)| Ok(answer)) }
    }

    /// Turns to the next form. False if all were refused; one that was only skipped is no refusal.
    fn next(&mut self, dialect: &Dialect) -> bool {
        match self.left.iter_mut().find_map(Option::take) {
            Some(form) => self.choose(dialect, form),
            None if self.refused.is_none() => {
                self.step = Step::Say(Form::Script);
                true
            }
            None => false,
        }
    }

    /// Turns to this form, or to the one behind it if the server would not survive this one.
    fn choose(&mut self, dialect: &Dialect, form: Form) -> bool {
        self.step = match (form, dialect.has_delifeq()) {
            (Form::SetIfEq, None) => Step::Probe,
            (Form::SetIfEq, Some(false)) => return self.next(dialect),
            _ => Step::Say(form),
        };
        true
    }
}

fn is_unknown_script(answer: &Result<Reply, Fault>) -> bool {
    matches!(answer, Ok(Reply::Error(error)) if error.code() == "NOSCRIPT")
}

/// Drops the message of an error that repeats the token: it ends up in logs.
fn withhold(error: &mut ServerError, token: Token) {
    if error.message().contains(token.to_hex().as_str()) {
        *error = ServerError::new(error.code(), "");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use redlock_core::{Cause, CauseKind, ServerError};

    use super::super::testing::{delete, extend, words};
    use super::*;

    fn error(code: &str, message: &str) -> Result<Reply, Fault> {
        Ok(Reply::Error(ServerError::new(code, message)))
    }

    fn unknown_command() -> Result<Reply, Fault> {
        error("ERR", "unknown command 'X'")
    }

    fn broken() -> Result<Reply, Fault> {
        Err(Fault::Unknown(Cause::new(CauseKind::Disconnected)))
    }

    /// Gives the answers one after the other; yields what was said, and the outcome.
    fn play(
        dialect: &Dialect,
        command: &Command,
        answers: &[Result<Reply, Fault>],
    ) -> (Vec<String>, Option<Result<Reply, Fault>>) {
        let mut phrasing = Phrasing::new(dialect, &command.intent);
        let mut said = Vec::new();
        for answer in answers {
            said.push(words(&phrasing.words(command)).remove(0));
            if let Some(outcome) = phrasing.hear(dialect, command, || true, answer.clone()) {
                return (said, Some(outcome));
            }
        }
        (said, None)
    }

    /// Has learned that there is no way to compare but by script.
    fn old_server() -> Dialect {
        let habit = Arc::default();
        let earlier = Dialect::new(Arc::clone(&habit));
        let answers = [unknown_command(), unknown_command(), Ok(Reply::Int(1))];
        assert_eq!(play(&earlier, &delete(1, 10), &answers).1, Some(Ok(Reply::Int(1))));
        // What the node has learned, and not the connection.
        Dialect::new(habit)
    }

    #[test]
    fn whatever_a_probe_is_answered_there_is_an_end() {
        let forbidden = error("NOPERM", "no right to run 'evalsha'");
        let nonsense = [
            Ok(Reply::Nil),
            Ok(Reply::Int(7)),
            error("ERR", "never heard of it"),
            broken(),
            forbidden.clone(),
        ];
        for answer in nonsense {
            let answers = [forbidden.clone(), answer.clone(), Ok(Reply::Int(1))];
            let (said, outcome) = play(&old_server(), &extend(1, 10), &answers);
            assert_eq!(
                (said, outcome),
                (vec!["EVALSHA".to_owned(), "DELIFEQ".to_owned()], Some(forbidden.clone())),
                "{answer:?}"
            );
        }
    }

    #[test]
    fn a_server_that_refuses_everything_is_asked_for_everything_once() {
        let dialect = Dialect::new(Arc::default());
        let (said, outcome) = play(&dialect, &delete(1, 10), &vec![unknown_command(); 10]);
        assert_eq!(
            (said, outcome),
            (["DELIFEQ", "DELEX", "EVALSHA"].map(str::to_owned).to_vec(), Some(unknown_command()))
        );
        let (said, outcome) =
            play(&Dialect::new(Arc::default()), &extend(1, 10), &vec![unknown_command(); 10]);
        assert_eq!(
            (said, outcome),
            (["DELIFEQ", "EVALSHA"].map(str::to_owned).to_vec(), Some(unknown_command()))
        );
    }

    #[test]
    fn what_broke_is_not_said_again() {
        let (said, outcome) =
            play(&Dialect::new(Arc::default()), &delete(1, 10), &[broken(), Ok(Reply::Int(1))]);
        assert_eq!((said.len(), outcome), (1, Some(broken())));
    }
}
