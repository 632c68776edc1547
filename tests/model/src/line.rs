//! What is under way between one client and one node.

use redlock_core::{Command, CommandId, Fault, Reply};

use crate::Order;

/// Commands of one client to one node, in the order in which they were sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Line {
    pub(crate) flights: Vec<Flight>,
    /// Commands of connections that have broken. They may still be carried out; nobody waits for an answer.
    pub(crate) ghosts: Vec<Command>,
    /// The acquire that was sent last; only of a machine that ignores attempts.
    pub(crate) newest_acquire: Option<CommandId>,
}

/// A command under way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Flight {
    pub(crate) command: Command,
    /// On its way back, once there is one.
    pub(crate) answer: Option<Result<Reply, Fault>>,
}

impl Line {
    /// The commands that the node may carry out next.
    pub(crate) fn executable(&self, order: Order) -> impl Iterator<Item = usize> {
        let limit = limit(order);
        (0..self.flights.len()).filter(|at| self.flights[*at].answer.is_none()).take(limit)
    }

    /// The answers that may arrive next.
    pub(crate) fn answerable(&self, order: Order) -> impl Iterator<Item = usize> {
        let limit = limit(order);
        (0..self.flights.len().min(limit)).filter(|at| self.flights[*at].answer.is_some())
    }

    /// The commands that nobody has carried out yet.
    pub(crate) fn open(&self) -> impl Iterator<Item = &Command> {
        let flights = self.flights.iter().filter(|flight| flight.answer.is_none());
        flights.map(|flight| &flight.command).chain(&self.ghosts)
    }
}

const fn limit(order: Order) -> usize {
    match order {
        Order::Fifo => 1,
        Order::Any => usize::MAX,
    }
}
