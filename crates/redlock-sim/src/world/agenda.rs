//! What is going to happen, in order.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use redlock_core::{Command, CommandId, Fault, Instant, Intent, NodeId, Reply};

/// Something that happens at a certain time.
#[derive(Debug)]
pub(crate) enum Happening {
    /// A request reaches its server.
    Arrives(Box<Request>),
    /// An answer reaches its client.
    Returns(Box<Answer>),
    /// A hint reaches its client.
    Hints(Hint),
    /// A key that somebody waits for expires, if nothing has come in between.
    Expires(Hint),
    /// The timer of a handle.
    Wakes(usize),
    /// The user of a handle does something.
    Acts(usize),
    /// Something goes wrong.
    Strikes,
    /// Nothing goes wrong any more.
    Heals,
    /// Something is put right.
    Relents(Relief),
}

/// The end of a trouble. A number names the trouble that it ends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Relief {
    Server { server: usize, trouble: u64 },
    Client { client: usize, trouble: u64 },
}

/// A command on its way.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) handle: usize,
    /// Which of the processes that the handle has lived in.
    pub(crate) life: u32,
    pub(crate) server: usize,
    pub(crate) command: Command,
    /// What the machine's clock showed when it was sent.
    pub(crate) asked: Instant,
    /// Whether its answer will find the way back.
    pub(crate) answered: bool,
    /// Which run of the server its connection was made to, if that makes a difference.
    pub(crate) run: Option<u64>,
}

#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) handle: usize,
    pub(crate) life: u32,
    pub(crate) id: CommandId,
    pub(crate) node: NodeId,
    pub(crate) asked: Instant,
    /// The command was an acquire.
    pub(crate) acquires: bool,
    /// The command was not a delete.
    pub(crate) is_vote: bool,
    pub(crate) result: Result<Reply, Fault>,
}

/// That the key of a handle may have gone at a node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hint {
    pub(crate) handle: usize,
    pub(crate) life: u32,
    pub(crate) node: NodeId,
}

/// What a client may be sent.
#[derive(Clone, Debug)]
pub(crate) enum Message {
    Answer(Answer),
    Hint(Hint),
}

impl From<Answer> for Message {
    fn from(answer: Answer) -> Self {
        Self::Answer(answer)
    }
}

impl From<Hint> for Message {
    fn from(hint: Hint) -> Self {
        Self::Hint(hint)
    }
}

impl Answer {
    pub(crate) fn new(request: &Request, result: Result<Reply, Fault>) -> Self {
        Self {
            handle: request.handle,
            life: request.life,
            id: request.command.id,
            node: request.command.node,
            asked: request.asked,
            acquires: request.command.intent.acquires(),
            is_vote: !matches!(request.command.intent, Intent::CompareAndDelete { .. }),
            result,
        }
    }
}

/// The happenings to come.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    entries: BinaryHeap<Reverse<Entry>>,
    added: u64,
}

#[derive(Debug)]
struct Entry {
    at: u64,
    /// What was put down first comes first.
    number: u64,
    what: Happening,
}

impl Agenda {
    pub(crate) fn add(&mut self, at: u64, what: Happening) {
        self.entries.push(Reverse(Entry { at, number: self.added, what }));
        self.added += 1;
    }

    pub(crate) fn next(&mut self) -> Option<(u64, Happening)> {
        self.entries.pop().map(|Reverse(entry)| (entry.at, entry.what))
    }
}

impl Entry {
    const fn place(&self) -> (u64, u64) {
        (self.at, self.number)
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.place() == other.place()
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        self.place().cmp(&other.place())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happens_at_the_same_time_happens_in_the_order_of_its_planning() {
        let mut agenda = Agenda::default();
        for (at, handle) in [(5, 0), (3, 1), (5, 2), (3, 3)] {
            agenda.add(at, Happening::Wakes(handle));
        }
        let order: Vec<_> = std::iter::from_fn(|| match agenda.next()? {
            (at, Happening::Wakes(handle)) => Some((at, handle)),
            _ => None,
        })
        .collect();
        assert_eq!(order, [(3, 1), (3, 3), (5, 0), (5, 2)]);
    }
}
