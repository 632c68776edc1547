//! One connection, with what is unanswered on it.

use std::iter::once;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;

use futures_util::future::{Either, select};
use futures_util::poll;
use redlock_core::{Cause, Command, Fault, Reply, ServerError, Token};

use super::backlog::{Backlog, Entry};
use super::cut::Cut;
use super::dialect::{Dialect, Form, Habit, Refusal};
use super::fault::{self, Damage};
use super::{Connection, lock, lower, reply};

/// A connection on its way through life: it takes commands in, may be retired and still answer what it
/// has, and is cut when no more answers are wanted.
#[derive(Debug)]
pub(crate) struct Wire<C> {
    connection: C,
    generation: u64,
    answered: AtomicBool,
    dialect: Dialect,
    backlog: Mutex<Backlog>,
    cut: Cut,
}

impl<C: Connection> Wire<C> {
    /// `generation` tells the connections of one node apart, whose `habit` they share.
    pub(crate) fn new(connection: C, generation: u64, habit: Arc<Habit>) -> Self {
        Self {
            connection,
            generation,
            answered: AtomicBool::new(false),
            dialect: Dialect::new(habit),
            backlog: Mutex::default(),
            cut: Cut::new(),
        }
    }

    /// Takes a command in. From here on it counts as unanswered, until the ticket is gone.
    pub(crate) fn admit(self: &Arc<Self>, command: &Command) -> Result<Ticket<C>, Fault> {
        if let Some(cause) = self.cut.given() {
            return Err(Fault::NotExecuted(cause.clone()));
        }
        let entry = lock(&self.backlog).enter(&command.intent)?;
        Ok(Ticket { wire: Arc::clone(self), entry })
    }

    pub(crate) const fn connection(&self) -> &C {
        &self.connection
    }

    pub(crate) const fn generation(&self) -> u64 {
        self.generation
    }

    /// Whether anything was ever answered: before that the connection has proven nothing.
    pub(crate) fn has_answered(&self) -> bool {
        self.answered.load(Ordering::Relaxed)
    }

    /// Whether an acquire of this token is unanswered.
    pub(crate) fn acquiring(&self, token: Token) -> bool {
        lock(&self.backlog).acquiring(token)
    }

    /// Whether any acquire is unanswered.
    pub(crate) fn has_acquires(&self) -> bool {
        lock(&self.backlog).has_acquires()
    }

    /// Whether everything was answered.
    pub(crate) fn is_idle(&self) -> bool {
        lock(&self.backlog).is_empty()
    }

    /// Why it was cut, if it was.
    pub(crate) fn was_cut(&self) -> Option<&Cause> {
        self.cut.given()
    }

    /// Ends it: what is unanswered stays unknown, for this cause, and nothing more is taken in.
    pub(crate) fn cut(&self, cause: Cause) {
        self.cut.give(cause);
    }
}

/// What became of a command that was handed to a connection.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) reply: Result<Reply, Fault>,
    /// What the answer says about the connection.
    pub(crate) damage: Damage,
    /// The connection was found broken before the command was written to it.
    pub(crate) unsent: bool,
}

/// A command's place among the unanswered ones.
#[derive(Debug)]
pub(crate) struct Ticket<C: Connection> {
    wire: Arc<Wire<C>>,
    entry: Entry,
}

impl<C: Connection> Ticket<C> {
    pub(crate) const fn wire(&self) -> &Arc<Wire<C>> {
        &self.wire
    }

    /// Sends the command, when first polled, and waits for its answer without limit. Dropping the
    /// future forgets the command.
    pub(crate) async fn carry_out(self, command: Command) -> Answer {
        let mut answer = self.in_some_form(&command).await;
        if let Ok(Reply::Error(error)) = &mut answer.reply {
            withhold(error, command.intent.token());
        }
        answer
    }

    /// Sends the command in the form that is known to be good, and as long as it is refused, in the others.
    /// Of refusals the most telling one is the answer.
    async fn in_some_form(&self, command: &Command) -> Answer {
        let dialect = &self.wire.dialect;
        let (first, others) = dialect.forms(&command.intent);
        let mut refused: Option<(Refusal, Answer)> = None;
        for form in once(first).chain(others) {
            if form == Form::SetIfEq && !self.may_set_if_equal().await {
                continue;
            }
            // After a refusal nothing ran, so the command may be sent once more.
            let answer = self.in_form(command, form).await;
            dialect.learn(&command.intent, form, &answer.reply);
            let Some(refusal) = Refusal::of(form, &answer.reply) else { return answer };
            if refused.as_ref().is_none_or(|(worst, _)| *worst <= refusal) {
                refused = Some((refusal, answer));
            }
        }
        match refused {
            Some((_, answer)) => answer,
            None => self.in_form(command, Form::Script).await,
        }
    }

    /// Whether the server is one that survives [`Form::SetIfEq`]. Asks it, if that is not known.
    async fn may_set_if_equal(&self) -> bool {
        let dialect = &self.wire.dialect;
        if dialect.has_delifeq().is_none() {
            let answer = self.call(redis::cmd("DELIFEQ")).await;
            dialect.learn_from_probe(&answer.reply);
        }
        dialect.has_delifeq() == Some(true)
    }

    async fn in_form(&self, command: &Command, form: Form) -> Answer {
        let mut answer = self.call(lower::lower(command, form)).await;
        if form == Form::Script
            && matches!(&answer.reply, Ok(Reply::Error(error)) if error.code() == "NOSCRIPT")
            && lock(&self.wire.backlog).wants(&self.entry)
            && let Some(in_full) = lower::in_full(command)
        {
            // Nothing ran here either.
            answer = self.call(in_full).await;
        }
        if form == Form::SetIfEq {
            answer.reply = answer.reply.map(reply::of_set_if_equal);
        }
        answer
    }

    async fn call(&self, cmd: redis::Cmd) -> Answer {
        let wire = &*self.wire;
        let mut call = pin!(wire.connection.call(cmd));
        let (outcome, unsent) = match poll!(call.as_mut()) {
            // A connection that fails before it has even waited broke while it was idle and has taken nothing
            // in. Should it have done so in that very moment all the same, a second sending is refused or
            // finds its work done, and what is left behind is deleted as always.
            Poll::Ready(result) => {
                let unsent = matches!(&result, Err(error) if error.is_connection_dropped());
                (Ok(result), unsent)
            }
            Poll::Pending => match select(call, pin!(wire.cut.wait())).await {
                Either::Left((result, _)) => (Ok(result), false),
                Either::Right((cause, _)) => (Err(cause), false),
            },
        };
        let (reply, damage) = match outcome {
            Ok(Ok(value)) => (Ok(reply::from_value(value)), Damage::None),
            Ok(Err(error)) => (fault::of_call(&error), fault::damage(&error)),
            Err(cause) => (Err(Fault::Unknown(cause)), Damage::None),
        };
        let reply = match reply {
            Err(Fault::Unknown(cause)) if unsent => Err(Fault::NotExecuted(cause)),
            reply => reply,
        };
        let answer = Answer { reply, damage, unsent };
        if answer.reply.is_ok() {
            wire.answered.store(true, Ordering::Relaxed);
        }
        answer
    }
}

impl<C: Connection> Drop for Ticket<C> {
    fn drop(&mut self) {
        lock(&self.wire.backlog).leave(&self.entry);
    }
}

/// Drops the message of an error that repeats the token: it ends up in logs.
fn withhold(error: &mut ServerError, token: Token) {
    if error.message().contains(token.to_hex().as_str()) {
        *error = ServerError::new(error.code(), "");
    }
}
