//! A machine that has come to rest has left no key behind, if all its commands were carried out and
//! answered. What it could not take back, because something went wrong, goes with its ttl.

use redlock_core::Token;

use super::Broken;
use super::verdict::Verdict;
use crate::world::{Server, Stage};

#[derive(Debug, Default)]
pub(super) struct Leftover {
    books: Vec<Book>,
}

/// What has happened since the machine was last at rest.
#[derive(Clone, Debug, Default)]
struct Book {
    /// The tokens of its attempts.
    tokens: Vec<Token>,
    disturbed: bool,
}

impl Leftover {
    pub(super) fn begin(&mut self, handle: usize) {
        self.books.resize(self.books.len().max(handle + 1), Book::default());
        self.books[handle] = Book::default();
    }

    pub(super) fn asked(&mut self, handle: usize, token: Token) {
        let tokens = &mut self.books[handle].tokens;
        if tokens.last() != Some(&token) {
            tokens.push(token);
        }
    }

    pub(super) fn disturbed(&mut self, handle: usize) {
        self.books[handle].disturbed = true;
    }

    /// Says whether there was anything to look for.
    pub(super) fn settled(
        &mut self,
        stage: &Stage,
        handle: usize,
        verdict: &Verdict,
    ) -> Result<bool, Broken> {
        let book = std::mem::take(&mut self.books[handle]);
        let forgot = stage.handles[handle].machine.stats().forgotten_cleanups > 0;
        if book.disturbed || forgot || book.tokens.is_empty() {
            return Ok(false);
        }
        let (name, key) = (stage.name(handle), stage.key(handle));
        if verdict.awaits(handle, &book.tokens) {
            return Err(Broken::new(
                "leftover",
                format!("{name} is at rest before all its acquires have run"),
            ));
        }
        for token in book.tokens {
            let text = token.to_hex();
            let has_it = |server: &Server| server.value(stage.now, key) == Some(text.as_str());
            if let Some(server) = stage.servers.iter().position(has_it) {
                let what =
                    format!("{name} is at rest, but left {} at server {server}", stage.token_name(token));
                return Err(Broken::new("leftover", what));
            }
        }
        Ok(true)
    }
}
