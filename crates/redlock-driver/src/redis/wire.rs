//! One connection, with what is unanswered on it.

use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::task::{Context, Poll, ready};

use futures_channel::oneshot;
use redis::{RedisError, Value};
use redlock_core::{Cause, CauseKind, Command, Fault, Reply, Token};

use super::dialect::{Dialect, Habit};
use super::fault::{self, Damage};
use super::line::{Entry, Line, Outcome, To, Writing};
use super::phrasing::{Phrasing, Words};
use super::{Connection, lock, reply};
use crate::recipient::{Passage, Recipient};

/// A connection on its way through life: it takes commands in, may be retired and still answer what it
/// has, and is cut when no more answers are wanted.
pub(crate) struct Wire<C> {
    connection: C,
    generation: u64,
    answered: AtomicBool,
    retired: AtomicBool,
    dialect: Dialect,
    line: Mutex<Line>,
    /// Why it was cut, once it was.
    cut: OnceLock<Cause>,
    keeper: Weak<dyn Keeper<C>>,
}

/// Draws the consequences of what is seen on a connection.
pub(crate) trait Keeper<C>: Send + Sync {
    /// A command of a [`Recipient`] was answered on `wire`, or will not be.
    fn concluded(self: Arc<Self>, wire: &Arc<Wire<C>>, command: &Command, answer: &Answer);

    /// Nobody takes in the answers on `wire` any more. It was cut.
    fn fell_silent(self: Arc<Self>, wire: &Arc<Wire<C>>, cause: Cause);
}

impl<C: Connection> Wire<C> {
    /// `generation` tells the connections of one node apart, whose `habit` they share.
    pub(crate) fn new(
        connection: C,
        generation: u64,
        habit: Arc<Habit>,
        keeper: Weak<dyn Keeper<C>>,
    ) -> Self {
        Self {
            connection,
            generation,
            answered: AtomicBool::new(false),
            retired: AtomicBool::new(false),
            dialect: Dialect::new(habit),
            line: Mutex::default(),
            cut: OnceLock::new(),
            keeper,
        }
    }

    /// Takes a command in, to be sent by [`Ticket::start`]. From here on it counts as unanswered, until the
    /// ticket is gone.
    pub(crate) fn admit(self: &Arc<Self>, command: &Command) -> Result<Ticket<C>, Fault> {
        let (sender, answer) = oneshot::channel();
        let number = self.enter(command, self.put_into_words(command, None), To::Caller(sender))?;
        Ok(Ticket { wire: Arc::clone(self), number, answer })
    }

    /// Puts a command into words, which may be shared with the same command to other nodes.
    pub(crate) fn put_into_words(&self, command: &Command, kept: Option<&mut Words>) -> Phrased {
        let phrasing = Phrasing::new(&self.dialect, &command.intent);
        let words = match kept {
            Some(kept) => phrasing.shared_words(command, kept),
            None => phrasing.words(command),
        };
        Phrased { phrasing, words }
    }

    /// Takes a command in for somebody who does not wait here, to be sent by [`start`](Self::start).
    pub(crate) fn admit_for(
        &self,
        command: &Command,
        phrased: Phrased,
        to: Arc<dyn Recipient>,
    ) -> Result<Passage, Fault> {
        let number = self.enter(command, phrased, To::Recipient(to))?;
        Ok(Passage { generation: self.generation, number })
    }

    fn enter(&self, command: &Command, phrased: Phrased, to: To) -> Result<u64, Fault> {
        let Phrased { phrasing, words } = phrased;
        let entry = Entry::new(command.clone(), phrasing, words, to);
        let mut line = lock(&self.line);
        // Under the lock, or the command might come to a line that was cleared for good.
        if let Some(cause) = self.cut.get() {
            return Err(Fault::NotExecuted(cause.clone()));
        }
        line.enter(entry)
    }

    /// Sends what was taken in: at once if nothing is under way, and otherwise together with whatever else is
    /// ready by then.
    pub(crate) fn start(self: &Arc<Self>) {
        let writing = lock(&self.line).advance();
        self.write(writing);
    }

    /// Sends what was taken in together with what is about to follow, or without that as soon as everything else
    /// that can run has run.
    pub(crate) fn start_soon(&self) {
        lock(&self.line).wake();
    }

    /// Sends everything that was taken in, now: nothing comes after it that it could share its way with.
    pub(crate) fn finish(self: &Arc<Self>) {
        loop {
            let writing = lock(&self.line).begin();
            if writing.is_none() {
                return;
            }
            self.write(writing);
        }
    }

    /// Writes what there is to write.
    fn write(self: &Arc<Self>, writing: Option<Writing>) {
        let Some(writing) = writing else { return };
        let (batch, outcome) = match writing.write(&self.connection) {
            Ok(batch) => (Some(batch), None),
            Err(outcome) => (None, Some(outcome)),
        };
        let (answered, cut) = {
            let mut line = lock(&self.line);
            (line.written(batch), self.cut.get().cloned())
        };
        if let Some(mut outcome) = outcome.or(answered) {
            self.conclude(&mut outcome, usize::MAX);
        }
        if let Some(cause) = cut {
            // It was cut meanwhile.
            self.end(cause, Damage::None);
        }
    }

    pub(crate) const fn generation(&self) -> u64 {
        self.generation
    }

    /// Whether anything was ever answered: before that the connection has proven nothing.
    pub(crate) fn has_answered(&self) -> bool {
        self.answered.load(Ordering::Relaxed)
    }

    /// It takes no new commands, and is kept for the answers that it owes.
    pub(crate) fn retire(&self) {
        self.retired.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Relaxed)
    }

    /// Whether an acquire of this token is unanswered.
    pub(crate) fn acquiring(&self, token: Token) -> bool {
        lock(&self.line).acquiring(token)
    }

    /// Whether any acquire is unanswered.
    pub(crate) fn has_acquires(&self) -> bool {
        lock(&self.line).has_acquires()
    }

    /// Whether everything was answered.
    pub(crate) fn is_idle(&self) -> bool {
        lock(&self.line).is_idle()
    }

    /// Why it was cut, if it was.
    pub(crate) fn was_cut(&self) -> Option<&Cause> {
        self.cut.get()
    }

    /// Nobody waits for this command any more.
    pub(crate) fn forget(&self, number: u64) {
        lock(&self.line).forget(number);
    }

    /// Ends it: what is unanswered stays unknown, for this cause, and nothing more is taken in.
    pub(crate) fn cut(self: &Arc<Self>, cause: Cause) {
        self.end(cause, Damage::None);
    }

    /// The same when it is found that nobody takes its answers in any more.
    pub(super) fn fall_silent(self: &Arc<Self>) {
        let cause = Cause::with_detail(CauseKind::Disconnected, "the async runtime stopped");
        self.end(cause.clone(), Damage::Broken);
        if let Some(keeper) = self.keeper.upgrade() {
            keeper.fell_silent(self, cause);
        }
    }

    fn end(self: &Arc<Self>, cause: Cause, damage: Damage) {
        let (unwritten, written) = {
            let mut line = lock(&self.line);
            // The first cause stays.
            let _ = self.cut.set(cause.clone());
            line.wake();
            line.clear()
        };
        let cause = self.cut.get().cloned().unwrap_or(cause);
        for entry in written {
            let reply = Err(Fault::Unknown(cause.clone()));
            self.tell(entry, Answer { reply, damage, unsent: false });
        }
        for entry in unwritten {
            let reply = Err(Fault::NotExecuted(cause.clone()));
            self.tell(entry, Answer { reply, damage, unsent: false });
        }
    }

    /// A look by the task that takes the answers in. It tells some of them, and leaves the others for the next
    /// look. True if something waits to be written.
    pub(super) fn poll(self: &Arc<Self>, left: &mut Option<Outcome>, cx: &mut Context<'_>) -> bool {
        let mut callers = TOLD_AT_ONCE;
        loop {
            let (next, work) = {
                let mut line = lock(&self.line);
                (left.take().or_else(|| line.poll(cx)), line.has_work())
            };
            let Some(mut outcome) = next else { return work };
            callers -= self.conclude(&mut outcome, callers);
            if outcome.len() > 0 {
                *left = Some(outcome);
                return work;
            }
        }
    }

    /// Writes what waits, for the task that takes the answers in.
    pub(super) fn write_on(self: &Arc<Self>) {
        let writing = lock(&self.line).begin();
        self.write(writing);
    }

    /// Tells what came of the next commands, until that has let so many callers go on. Yields how many they were.
    /// What was refused is said in another way.
    pub(super) fn conclude(self: &Arc<Self>, outcome: &mut Outcome, most: usize) -> usize {
        let mut callers = 0;
        while callers < most
            && let Some((mut entry, Answer { reply, damage, unsent })) = outcome.next()
        {
            if reply.is_ok() && !self.has_answered() {
                self.answered.store(true, Ordering::Relaxed);
            }
            let Entry { phrasing, command, .. } = &mut *entry;
            // Not an acquire that a delete has followed: that delete would then come first.
            let wanted = || {
                let token = command.intent.token();
                !command.intent.acquires() || !(outcome.deletes(token) || lock(&self.line).deleting(token))
            };
            let reply = phrasing.hear(&self.dialect, command, wanted, reply);
            let mut line = lock(&self.line);
            match reply {
                None => line.enter_again(entry.said_in_another_way()),
                Some(reply) => {
                    if !matches!(entry.to, To::Nobody) {
                        line.leave();
                    }
                    drop(line);
                    callers += usize::from(self.tell(entry, Answer { reply, damage, unsent }));
                }
            }
        }
        if let Some(cause) = self.cut.get() {
            // It was cut meanwhile, and there is no more saying it in another way.
            self.end(cause.clone(), Damage::None);
        }
        callers
    }

    /// True if this lets a caller go on.
    fn tell(self: &Arc<Self>, entry: Box<Entry>, answer: Answer) -> bool {
        let Entry { command, to, .. } = *entry;
        match to {
            // Whoever waited may be gone.
            To::Caller(sender) => sender.send(answer).is_ok(),
            To::Recipient(to) => {
                if let Some(keeper) = self.keeper.upgrade() {
                    keeper.concluded(self, &command, &answer);
                }
                if answer.unsent {
                    to.given_back(command);
                    false
                } else {
                    to.answered(command.id, answer.reply)
                }
            }
            To::Nobody => false,
        }
    }
}

impl<C> Drop for Wire<C> {
    fn drop(&mut self) {
        // The task that takes the answers in sees that there will be none.
        lock(&self.line).wake();
    }
}

impl<C> fmt::Debug for Wire<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wire").field("generation", &self.generation).finish_non_exhaustive()
    }
}

/// A command as it is said on a connection at first.
pub(crate) struct Phrased {
    phrasing: Phrasing,
    words: redis::Cmd,
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

impl Answer {
    /// What came back, if it is not missing among others that did; `at_once` before it was even waited for.
    pub(super) fn of(result: Result<Option<Value>, &mut RedisError>, at_once: bool) -> Self {
        let (reply, damage, unsent) = match result {
            Ok(Some(value)) => (Ok(reply::from_value(value)), Damage::None, false),
            Ok(None) => (Err(Fault::Unknown(Cause::new(CauseKind::UnexpectedReply))), Damage::Broken, false),
            // A connection that fails before it has even waited broke while it was idle and has taken nothing
            // in. Should it have done so in that very moment all the same, a second sending is refused or
            // finds its work done, and what is left behind is deleted as always.
            Err(error) => {
                let unsent = at_once && error.is_connection_dropped();
                (fault::of_call(error), fault::damage(error), unsent)
            }
        };
        let reply = match reply {
            Err(Fault::Unknown(cause)) if unsent => Err(Fault::NotExecuted(cause)),
            reply => reply,
        };
        Self { reply, damage, unsent }
    }
}

/// A command's place among the unanswered ones, for somebody who waits for the answer. When it is dropped
/// the command is forgotten; it may be carried out all the same.
#[derive(Debug)]
pub(crate) struct Ticket<C: Connection> {
    wire: Arc<Wire<C>>,
    number: u64,
    answer: oneshot::Receiver<Answer>,
}

impl<C: Connection> Ticket<C> {
    pub(crate) const fn wire(&self) -> &Arc<Wire<C>> {
        &self.wire
    }

    /// Sends the command.
    pub(crate) fn start(&self) {
        self.wire.start();
    }
}

impl<C: Connection> Future for Ticket<C> {
    type Output = Answer;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Answer> {
        let answer = ready!(Pin::new(&mut self.answer).poll(cx));
        Poll::Ready(answer.unwrap_or_else(|oneshot::Canceled| {
            let reply = Err(Fault::Unknown(Cause::new(CauseKind::Disconnected)));
            Answer { reply, damage: Damage::None, unsent: false }
        }))
    }
}

impl<C: Connection> Drop for Ticket<C> {
    fn drop(&mut self) {
        self.wire.forget(self.number);
    }
}

/// So many callers are told at once at most, before they have a chance to run: what they say next is written while
/// others are told, so that client and server work at the same time and not by turns.
const TOLD_AT_ONCE: usize = 8;

#[cfg(test)]
mod tests;
