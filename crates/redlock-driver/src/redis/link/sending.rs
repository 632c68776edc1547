//! A command that somebody waits for: from its place on a connection, or in the queue for one, to its answer.

use std::pin::pin;
use std::sync::Arc;

use futures_channel::oneshot;
use futures_util::future::{Either, select};
use redlock_core::{Cause, CauseKind, Command, Fault, Instant, Reply};

use super::super::queue::{Handed, Queue, too_late};
use super::super::state::{Loss, Phase, is_delete};
use super::super::wire::{Answer, Ticket};
use super::super::{Connect, Connection, dial, lock, repeat, timing};
use super::Link;

impl<R: Connect> Link<R> {
    pub(super) async fn carry_out(self: Arc<Self>, command: Command) -> Result<Reply, Fault> {
        let deadline = command.deadline;
        let start = self.runtime.now();
        let patience = deadline.saturating_since(start);
        if patience.is_zero() && !is_delete(&command.intent) {
            return Err(Fault::NotExecuted(Cause::new(CauseKind::Timeout)));
        }
        // Until when a connection should have answered. The wait for it is no fault of its own: it has
        // as long as if it had been there from the start. A delete that comes too late is sent all the
        // same, but proves nothing.
        let until = |from: Instant| (!patience.is_zero()).then(|| from.saturating_add(patience));
        // Runs after the command's ticket is gone, however this future ends.
        let _prune = Prune(&self);
        // A second time only if the first connection turned out to be broken before it took the command in.
        let mut tries = 2;
        loop {
            tries -= 1;
            let answer = match self.place(&command) {
                Placed::On(ticket) => {
                    ticket.start();
                    self.attend(until(start), &command, ticket).await
                }
                Placed::Waits(number, fate) => {
                    let Handed { at, ticket } = self.wait(number, fate, deadline).await?;
                    self.attend(until(at), &command, ticket).await
                }
                Placed::Nowhere(fault) => return Err(fault),
            };
            if !answer.unsent || tries == 0 {
                return answer.reply;
            }
        }
    }

    /// Finds the command its place, and sends a delete along behind unanswered acquires of its token.
    fn place(self: &Arc<Self>, command: &Command) -> Placed<R::Connection> {
        let now = self.runtime.now();
        let (behind, placed, dial) = {
            let mut state = lock(&self.state);
            let behind = state.behind(command);
            let number = state.next_number();
            let (placed, dial) = match &mut state.phase {
                // Under this lock the connection is the one that the guard has looked at last.
                Phase::Up(wire) => {
                    (self.check(now, command).and_then(|()| wire.admit(command)).map(Placed::On), None)
                }
                Phase::Dialling(queue) => {
                    (queue.push(number, command).map(|fate| Placed::Waits(number, fate)), None)
                }
                Phase::Down(cause) => (Err(Fault::NotExecuted(cause.clone())), None),
                Phase::Closed => (Err(Fault::NotExecuted(Cause::new(CauseKind::Closed))), None),
                Phase::Idle => {
                    let mut queue = Queue::new();
                    let waits = queue.push(number, command).map(|fate| Placed::Waits(number, fate));
                    (waits, Some(state.dial(Phase::Dialling(queue))))
                }
            };
            (behind, placed.unwrap_or_else(Placed::Nowhere), dial)
        };
        for ticket in behind {
            repeat::send(self, ticket, command);
        }
        if let Some(generation) = dial {
            dial::start(self, generation, None);
        }
        placed
    }

    /// Waits in the queue until the command's fate is known, or its deadline strikes.
    async fn wait(
        self: &Arc<Self>,
        number: u64,
        mut fate: oneshot::Receiver<Result<Handed<R::Connection>, Fault>>,
        deadline: Instant,
    ) -> Result<Handed<R::Connection>, Fault> {
        let place = QueuePlace { link: self, number };
        let decided = match timing::by(&self.runtime, deadline, &mut fate).await {
            Some(decided) => decided,
            None if place.withdraw() => return Err(too_late()),
            // Somebody else took it out just before us and is about to say what became of it.
            None => fate.await,
        };
        decided.unwrap_or_else(|_| Err(Fault::NotExecuted(no_runtime())))
    }

    /// Stays with a command on a connection until it is answered, and draws the consequences for the
    /// connection, of which an answer is expected `until` then, and for the command.
    async fn attend(
        self: &Arc<Self>,
        until: Option<Instant>,
        command: &Command,
        mut ticket: Ticket<R::Connection>,
    ) -> Answer {
        let wire = Arc::clone(ticket.wire());
        let mut repeated = false;
        let mut answer = match until {
            None => (&mut ticket).await,
            Some(until) => match select(&mut ticket, pin!(timing::reach(&self.runtime, until))).await {
                Either::Left((answer, _)) => answer,
                Either::Right(((), _)) => {
                    self.replace(&wire, Loss::Stalled);
                    repeated = repeat::again(self, wire.generation(), command);
                    (&mut ticket).await
                }
            },
        };
        if repeated {
            repeat::doubt(&mut answer.reply);
        }
        self.judge(&wire, command, &answer, repeated);
        answer
    }
}

/// Where a command ended up.
enum Placed<C: Connection> {
    On(Ticket<C>),
    Waits(u64, oneshot::Receiver<Result<Handed<C>, Fault>>),
    Nowhere(Fault),
}

/// A place in the queue, given up when dropped.
struct QueuePlace<'a, R: Connect> {
    link: &'a Link<R>,
    number: u64,
}

impl<R: Connect> QueuePlace<'_, R> {
    /// Whether the command was still in the queue. It is not any more.
    fn withdraw(&self) -> bool {
        let withdrawn = match &mut lock(&self.link.state).phase {
            Phase::Dialling(queue) => queue.withdraw(self.number),
            _ => None,
        };
        withdrawn.is_some()
    }
}

impl<R: Connect> Drop for QueuePlace<'_, R> {
    fn drop(&mut self) {
        self.withdraw();
    }
}

/// Prunes when dropped, that is after the ticket of the command that it stands beside.
struct Prune<'a, R: Connect>(&'a Link<R>);

impl<R: Connect> Drop for Prune<'_, R> {
    fn drop(&mut self) {
        self.0.prune();
    }
}

fn no_runtime() -> Cause {
    Cause::with_detail(CauseKind::Unreachable, "no async runtime is running, or it stopped while connecting")
}
