//! Commands that wait for a connection.

use std::collections::VecDeque;

use futures_channel::oneshot;
use redlock_core::{Cause, CauseKind, Command, Fault, Instant};

use super::Connection;
use super::backlog::room;
use super::wire::Ticket;

/// A command that was handed to a connection on behalf of whoever waits for it.
pub(crate) struct Handed<C: Connection> {
    /// When it was handed over.
    pub(crate) at: Instant,
    pub(crate) ticket: Ticket<C>,
}

/// A command in the queue, and whom to tell its fate: handed to a connection, or certainly never sent.
pub(crate) struct Waiting<C: Connection> {
    pub(crate) number: u64,
    pub(crate) command: Command,
    pub(crate) fate: oneshot::Sender<Result<Handed<C>, Fault>>,
}

/// First in, first out, and as long as a connection's backlog may be. To take a command out is to
/// decide its fate; whoever takes it out, under the lock that guards the queue, is the only one.
pub(crate) struct Queue<C: Connection> {
    waiting: VecDeque<Waiting<C>>,
}

impl<C: Connection> Queue<C> {
    pub(crate) const fn new() -> Self {
        Self { waiting: VecDeque::new() }
    }

    /// Appends a command. `number` must be larger than all that came before.
    pub(crate) fn push(
        &mut self,
        number: u64,
        command: &Command,
    ) -> Result<oneshot::Receiver<Result<Handed<C>, Fault>>, Fault> {
        room(self.waiting.len(), &command.intent)?;
        let (fate, receiver) = oneshot::channel();
        self.waiting.push_back(Waiting { number, command: command.clone(), fate });
        Ok(receiver)
    }

    /// Takes the oldest command out.
    pub(crate) fn pop(&mut self) -> Option<Waiting<C>> {
        self.waiting.pop_front()
    }

    /// Takes this command out, if it is still there.
    pub(crate) fn withdraw(&mut self, number: u64) -> Option<Waiting<C>> {
        let at = self.waiting.binary_search_by_key(&number, |waiting| waiting.number).ok()?;
        self.waiting.remove(at)
    }

    /// Ends the wait of all with one fault.
    pub(crate) fn fail(self, fault: &Fault) {
        for waiting in self.waiting {
            // Whoever waited may be gone.
            let _ = waiting.fate.send(Err(fault.clone()));
        }
    }
}

/// The fault of a command whose deadline struck in the queue.
pub(crate) fn too_late() -> Fault {
    Fault::NotExecuted(Cause::with_detail(CauseKind::Timeout, "still connecting"))
}
