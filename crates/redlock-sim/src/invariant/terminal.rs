//! Each request ends with exactly one event, and events come only where they belong.

use redlock_core::Event;

use super::{Broken, Wish};
use crate::world::Stage;

#[derive(Debug, Default)]
pub(super) struct Terminal {
    books: Vec<Book>,
}

#[derive(Clone, Debug, Default)]
struct Book {
    /// Which requests have not ended.
    open: [bool; Wish::COUNT],
    /// Between the event that says so and the end of the lease.
    held: bool,
}

const ACQUIRE: usize = 0;
const EXTEND: usize = 1;
const RELEASE: usize = 2;

impl Terminal {
    pub(super) fn begin(&mut self, handle: usize) {
        self.books.resize(self.books.len().max(handle + 1), Book::default());
        self.books[handle] = Book::default();
    }

    pub(super) fn asked(&mut self, handle: usize, wish: Wish, was_held: bool) {
        let book = &mut self.books[handle];
        book.open[wish.index()] = true;
        if wish == Wish::Release && was_held {
            // From the request on it is not held, so it cannot be lost any more.
            book.held = false;
        }
    }

    /// Files an event, and says which request it ends.
    pub(super) fn event(
        &mut self,
        stage: &Stage,
        handle: usize,
        event: &Event,
    ) -> Result<Option<usize>, Broken> {
        let book = &mut self.books[handle];
        let (fits, ends) = match event {
            Event::Acquired { .. } => {
                let fits = !book.held;
                book.held = true;
                (fits, Some(ACQUIRE))
            }
            Event::AcquireFailed(_) => (!book.held, Some(ACQUIRE)),
            Event::AttemptFailed { .. } => (book.open[ACQUIRE] && !book.held, None),
            Event::Extended { .. } => (book.held, Some(EXTEND)),
            Event::ExtendFailed(_) => (true, Some(EXTEND)),
            Event::Renewed { .. } | Event::RenewFailed { .. } => (book.held, None),
            Event::Lost { .. } => (std::mem::take(&mut book.held), None),
            Event::Released(_) | Event::ReleaseFailed(_) => (!book.held, Some(RELEASE)),
            _ => (false, None),
        };
        let asked = ends.is_none_or(|wish| std::mem::take(&mut book.open[wish]));
        if fits && asked {
            return Ok(ends);
        }
        let name = stage.name(handle);
        Err(Broken::new("terminal", format!("{name} was told what nothing led to: {event:?}, with {book:?}")))
    }

    /// After giving up, nobody waits for anything but a release.
    pub(super) fn abandoned(&self, stage: &Stage, handle: usize) -> Result<(), Broken> {
        let book = &self.books[handle];
        if book.held || book.open[ACQUIRE] || book.open[EXTEND] {
            return Err(Broken::new(
                "terminal",
                format!("{} gave up, and is left with {book:?}", stage.name(handle)),
            ));
        }
        Ok(())
    }

    /// A machine with nothing left to do owes nobody an event.
    pub(super) fn at_rest(&self, stage: &Stage, handle: usize) -> Result<(), Broken> {
        let book = &self.books[handle];
        if book.held || book.open.contains(&true) {
            return Err(Broken::new(
                "terminal",
                format!("{} is at rest, and yet has {book:?}", stage.name(handle)),
            ));
        }
        Ok(())
    }
}
