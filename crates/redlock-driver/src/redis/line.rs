//! The commands on one connection: those that wait to be written, and those that wait for an answer.

#![expect(clippy::vec_box, reason = "entries go from list to list, and are not small")]

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::vec;

use futures_channel::oneshot;
use redis::{RedisResult, Value};
use redlock_core::{Command, Fault, Token};

use super::phrasing::Phrasing;
use super::state::is_delete;
use super::wire::Answer;
use super::{Connection, backlog};
use crate::recipient::Recipient;

/// First in, first out. What is ready while nothing is under way goes out at once; what becomes ready while
/// something is goes out together, as one pipeline, as soon as everything else that can run has run. So a
/// lone command waits for no company, and many share the cost of one.
///
/// Whoever sends or answers holds the line's lock for a few steps only: commands are put into words before,
/// and answers are judged after.
#[derive(Default)]
pub(crate) struct Line {
    last_number: u64,
    /// Commands that somebody waits for.
    unanswered: usize,
    waiting: VecDeque<Box<Entry>>,
    /// Somebody is about to write what waited.
    writing: bool,
    under_way: VecDeque<Batch>,
    /// Of the task that takes the answers in, once it has run.
    waker: Option<Waker>,
}

/// A command on its way. It goes through several hands, so it is boxed.
pub(crate) struct Entry {
    number: u64,
    pub(crate) command: Command,
    pub(crate) phrasing: Phrasing,
    /// As it is written next.
    words: redis::Cmd,
    pub(crate) to: To,
}

impl Entry {
    pub(crate) fn new(command: Command, phrasing: Phrasing, words: redis::Cmd, to: To) -> Box<Self> {
        Box::new(Self { number: 0, command, phrasing, words, to })
    }

    /// Whether this is a delete of the token.
    pub(crate) fn deletes(&self, token: Token) -> bool {
        is_delete(&self.command.intent) && self.command.intent.token() == token
    }

    /// The same, after what was said has been refused.
    pub(crate) fn said_in_another_way(mut self: Box<Self>) -> Box<Self> {
        self.words = self.phrasing.words(&self.command);
        self
    }
}

/// Whom to tell.
pub(crate) enum To {
    /// Somebody who draws the consequences for the connection too.
    Caller(oneshot::Sender<Answer>),
    /// Somebody who wants the answer only.
    Recipient(Arc<dyn Recipient>),
    Nobody,
}

type Call = Pin<Box<dyn Future<Output = RedisResult<Vec<Value>>> + Send>>;

/// Commands that were written together.
pub(crate) struct Batch {
    entries: Vec<Box<Entry>>,
    call: Call,
}

/// Commands that are about to be written, by whoever has this.
pub(crate) struct Writing {
    entries: Vec<Box<Entry>>,
    waker: Option<Waker>,
}

/// What came of a batch, as far as nobody has been told.
pub(crate) struct Outcome {
    entries: vec::IntoIter<Box<Entry>>,
    values: RedisResult<vec::IntoIter<Value>>,
    /// It ended before it was even waited for.
    at_once: bool,
}

impl Outcome {
    fn new(entries: Vec<Box<Entry>>, result: RedisResult<Vec<Value>>, at_once: bool) -> Self {
        Self { entries: entries.into_iter(), values: result.map(Vec::into_iter), at_once }
    }

    /// How many are left.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// What came of the next command.
    pub(crate) fn next(&mut self) -> Option<(Box<Entry>, Answer)> {
        let entry = self.entries.next()?;
        Some((entry, Answer::of(self.values.as_mut().map(Iterator::next), self.at_once)))
    }

    /// Whether there is a delete of the token among those that are left.
    pub(crate) fn deletes(&self, token: Token) -> bool {
        self.entries.as_slice().iter().any(|entry| entry.deletes(token))
    }
}

impl Line {
    /// Takes a command in, or says that there are too many. Yields its number.
    pub(crate) fn enter(&mut self, mut entry: Box<Entry>) -> Result<u64, Fault> {
        backlog::room(self.unanswered, &entry.command.intent)?;
        self.unanswered += 1;
        self.last_number += 1;
        entry.number = self.last_number;
        self.waiting.push_back(entry);
        Ok(self.last_number)
    }

    /// Puts a command in once more, which was answered with a refusal.
    pub(crate) fn enter_again(&mut self, entry: Box<Entry>) {
        self.waiting.push_back(entry);
        self.wake();
    }

    /// A command is answered.
    pub(crate) const fn leave(&mut self) {
        self.unanswered = self.unanswered.saturating_sub(1);
    }

    /// What is to be written at once, because nothing is under way. If something is, the task is woken.
    pub(crate) fn advance(&mut self) -> Option<Writing> {
        if self.under_way.is_empty() && !self.writing {
            return self.begin();
        }
        self.wake();
        None
    }

    /// What is to be written next. To be handed back with [`written`](Self::written); until then there is no
    /// other, so that batches do not overtake each other.
    pub(crate) fn begin(&mut self) -> Option<Writing> {
        if self.writing || self.waiting.is_empty() {
            return None;
        }
        self.writing = true;
        let entries = self.waiting.drain(..self.waiting.len().min(LARGEST_BATCH)).collect();
        Some(Writing { entries, waker: self.waker.clone() })
    }

    /// Takes in what was written. Yields what has come of it meanwhile: the task was not to see it yet.
    pub(crate) fn written(&mut self, batch: Option<Batch>) -> Option<Outcome> {
        self.writing = false;
        if !self.waiting.is_empty() {
            self.wake();
        }
        let Batch { entries, mut call } = batch?;
        let waker = self.waker.as_ref().unwrap_or(Waker::noop());
        match call.as_mut().poll(&mut Context::from_waker(waker)) {
            Poll::Ready(result) => Some(Outcome::new(entries, result, false)),
            Poll::Pending => {
                self.under_way.push_back(Batch { entries, call });
                None
            }
        }
    }

    /// The next batch that was answered, for the task with this waker.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Option<Outcome> {
        if self.waker.as_ref().is_none_or(|waker| !waker.will_wake(cx.waker())) {
            self.waker = Some(cx.waker().clone());
        }
        let poll = |(at, batch): (usize, &mut Batch)| match batch.call.as_mut().poll(cx) {
            Poll::Ready(result) => Some((at, result)),
            Poll::Pending => None,
        };
        let (at, result) = self.under_way.iter_mut().enumerate().find_map(poll)?;
        let Batch { entries, .. } = self.under_way.remove(at)?;
        Some(Outcome::new(entries, result, false))
    }

    /// Whether anything waits, and may be written now.
    pub(crate) fn has_work(&self) -> bool {
        !self.waiting.is_empty() && !self.writing && self.under_way.len() < MOST_BATCHES
    }

    /// Nobody waits for this command any more. One that was not written yet never is.
    pub(crate) fn forget(&mut self, number: u64) {
        if let Some(at) = self.waiting.iter().position(|entry| entry.number == number) {
            self.waiting.remove(at);
            return self.leave();
        }
        let mut written = self.under_way.iter_mut().flat_map(|batch| &mut batch.entries);
        if let Some(entry) = written.find(|entry| entry.number == number)
            && !matches!(entry.to, To::Nobody)
        {
            entry.to = To::Nobody;
            self.leave();
        }
    }

    /// Takes everything out: what was not written, and what was.
    pub(crate) fn clear(&mut self) -> (Vec<Box<Entry>>, Vec<Box<Entry>>) {
        self.unanswered = 0;
        let unwritten = self.waiting.drain(..).collect();
        let written = self.under_way.drain(..).flat_map(|batch| batch.entries).collect();
        (unwritten, written)
    }

    /// Has the task run, so that it sees how things stand.
    pub(crate) fn wake(&self) {
        if let Some(waker) = &self.waker {
            waker.wake_by_ref();
        }
    }

    /// Whether everything was answered.
    pub(crate) const fn is_idle(&self) -> bool {
        self.unanswered == 0
    }

    /// Whether an acquire of this token is unanswered.
    pub(crate) fn acquiring(&self, token: Token) -> bool {
        let acquires =
            |entry: &Entry| entry.command.intent.acquires() && entry.command.intent.token() == token;
        self.wanted().any(acquires)
    }

    /// Whether any acquire is unanswered.
    pub(crate) fn has_acquires(&self) -> bool {
        self.wanted().any(|entry| entry.command.intent.acquires())
    }

    /// Whether a delete of this token is under way.
    pub(crate) fn deleting(&self, token: Token) -> bool {
        self.wanted().any(|entry| entry.deletes(token))
    }

    /// What somebody waits for.
    fn wanted(&self) -> impl Iterator<Item = &Entry> {
        let written = self.under_way.iter().flat_map(|batch| &batch.entries);
        self.waiting.iter().chain(written).map(Box::as_ref).filter(|entry| !matches!(entry.to, To::Nobody))
    }
}

impl Writing {
    /// Writes. The first poll gives the commands their place in the connection's order.
    pub(crate) fn write(self, connection: &impl Connection) -> Result<Batch, Outcome> {
        let Self { mut entries, waker } = self;
        let mut call: Call = if let [entry] = &mut *entries {
            let call = connection.call(std::mem::take(&mut entry.words));
            Box::pin(async move { call.await.map(|value| vec![value]) })
        } else {
            let mut together = redis::Pipeline::with_capacity(entries.len());
            for entry in &mut entries {
                together.add_command(std::mem::take(&mut entry.words));
            }
            Box::pin(connection.call_all(together))
        };
        let waker = waker.as_ref().unwrap_or(Waker::noop());
        match call.as_mut().poll(&mut Context::from_waker(waker)) {
            Poll::Ready(result) => Err(Outcome::new(entries, result, true)),
            Poll::Pending => Ok(Batch { entries, call }),
        }
    }
}

/// So many commands are written together at most: those of a batch are answered together too.
pub(crate) const LARGEST_BATCH: usize = 256;

/// While so many batches are under way nothing new is written: it gathers to larger ones.
const MOST_BATCHES: usize = 32;

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::Arc;

    use super::super::dialect::Dialect;
    use super::super::testing::set;
    use super::*;

    /// Answers `OK` between the first look at a call and the second one.
    #[derive(Clone)]
    struct Prompt;

    impl Connection for Prompt {
        fn call(&self, _: redis::Cmd) -> impl Future<Output = RedisResult<Value>> + Send + 'static {
            let mut polled = false;
            poll_fn(move |cx| {
                if std::mem::replace(&mut polled, true) {
                    return Poll::Ready(Ok(Value::Okay));
                }
                cx.waker().wake_by_ref();
                Poll::Pending
            })
        }
    }

    fn entry(number: u8) -> Box<Entry> {
        let (dialect, command) = (Dialect::new(Arc::default()), set(number, 100));
        let phrasing = Phrasing::new(&dialect, &command.intent);
        let words = phrasing.words(&command);
        Entry::new(command, phrasing, words, To::Nobody)
    }

    #[test]
    fn an_answer_that_comes_before_the_batch_is_noted_is_not_missed() {
        let mut line = Line::default();
        line.enter(entry(1)).unwrap();
        let writing = line.advance().unwrap();
        let batch = writing.write(&Prompt).map_err(|_| "an answer at once").unwrap();
        // The task is woken for it and finds nothing; it will not be woken again.
        assert!(line.poll(&mut Context::from_waker(Waker::noop())).is_none());
        let outcome = line.written(Some(batch)).unwrap();
        assert!(outcome.len() == 1 && !outcome.at_once);
        assert_eq!(outcome.values.unwrap().as_slice(), [Value::Okay]);
    }

    #[test]
    fn one_at_a_time_writes() {
        let mut line = Line::default();
        line.enter(entry(1)).unwrap();
        let first = line.advance().unwrap();
        line.enter(entry(2)).unwrap();
        assert!(line.advance().is_none() && line.begin().is_none() && !line.has_work());
        let batch = first.write(&Prompt).map_err(|_| "an answer at once").unwrap();
        line.written(Some(batch));
        assert!(line.has_work());
        assert_eq!(line.begin().unwrap().entries.len(), 1);
    }
}
