//! Each request ends by its deadline: an acquire when its attempts or its patience are over, an
//! extension and a release within an operation timeout. An extension that has to wait for a renewal
//! under way has a second one.
//!
//! Deadlines are on the machine's clock. A machine can do nothing while nobody calls it, so the time by
//! which its timers were handled too late is added. For as long as a request is open the machine must
//! ask to be woken by its deadline.

use std::time::Duration;

use redlock_core::{Command, Instant, Intent, LeaseMachine, Patience};

use super::{Broken, Drained, Wish};
use crate::world::Stage;

#[derive(Debug, Default)]
pub(super) struct Deadline {
    books: Vec<Book>,
}

#[derive(Clone, Debug, Default)]
struct Book {
    open: [Option<Instant>; Wish::COUNT],
    /// An extension was asked for, and nothing was sent for it yet.
    waits: bool,
    /// When the machine last had an input.
    last: Instant,
    /// When it wants to be woken.
    due: Option<Instant>,
}

impl Deadline {
    pub(super) fn begin(&mut self, handle: usize) {
        self.books.resize(self.books.len().max(handle + 1), Book::default());
        self.books[handle] = Book::default();
    }

    pub(super) fn before_input(&mut self, handle: usize, shown: Instant) {
        let book = &mut self.books[handle];
        if let Some(due) = book.due {
            let late = shown.saturating_since(due.max(book.last));
            for deadline in book.open.iter_mut().flatten() {
                *deadline = deadline.saturating_add(late);
            }
        }
        book.last = book.last.max(shown);
    }

    pub(super) fn asked(&mut self, handle: usize, machine: &LeaseMachine, shown: Instant, wish: Wish) {
        let config = machine.spec().config();
        let timeout = config.operation_timeout();
        let soonest = shown.saturating_add(timeout);
        let deadline = match wish {
            Wish::Acquire(Patience::Attempts(attempts)) => {
                let pause = (config.retry_delay() * 3 / 2).max(Duration::from_millis(1));
                soonest.saturating_add((timeout + pause) * (attempts.max(1) - 1))
            }
            Wish::Acquire(Patience::Until(end)) => soonest.max(end),
            Wish::Extend => soonest.saturating_add(timeout),
            Wish::Release => soonest,
        };
        let book = &mut self.books[handle];
        book.open[wish.index()] = Some(deadline);
        book.waits |= wish == Wish::Extend;
    }

    pub(super) fn sent(&mut self, stage: &Stage, handle: usize, command: &Command) {
        let book = &mut self.books[handle];
        if matches!(command.intent, Intent::CompareAndPexpire { .. }) && std::mem::take(&mut book.waits) {
            // It need not wait for anything but its own answers.
            let timeout = stage.handles[handle].machine.spec().config().operation_timeout();
            let soonest = stage.shown(handle).saturating_add(timeout);
            let deadline = &mut book.open[Wish::Extend.index()];
            *deadline = deadline.map(|deadline| deadline.min(soonest));
        }
    }

    pub(super) fn ended(&mut self, handle: usize, wish: usize) {
        self.books[handle].open[wish] = None;
        if wish == Wish::Extend.index() {
            self.books[handle].waits = false;
        }
    }

    pub(super) fn check(&mut self, stage: &Stage, handle: usize, drained: &Drained) -> Result<(), Broken> {
        let book = &mut self.books[handle];
        book.due = drained.wait;
        for (wish, deadline) in book.open.iter().enumerate() {
            let Some(deadline) = *deadline else { continue };
            let (shown, wakes) = (stage.shown(handle), drained.wait);
            let is_over = drained.timed && shown >= deadline;
            let oversleeps = shown < deadline && wakes.is_none_or(|at| at > deadline);
            if is_over || oversleeps {
                let (name, wish) = (stage.name(handle), Wish::name(wish));
                let what =
                    format!("{name}'s {wish} had to end by {deadline:?}; now {shown:?}, next {wakes:?}");
                return Err(Broken::new("deadline", what));
            }
        }
        Ok(())
    }
}
