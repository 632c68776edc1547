//! The commands of one contender, and what was said to them.

use redlock_core::{Command, CommandId, Reply};

use super::reply::Said;

/// Every command that was ever sent, in the order of the ids.
#[derive(Debug, Default)]
pub(crate) struct SentLog {
    all: Vec<Sent>,
    /// The positions of those that are under way.
    open: Vec<usize>,
}

#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) command: Command,
    /// What the contender was told, if it was told anything. Only the first answer counts.
    pub(crate) said: Option<Said>,
    /// What the node answered, if it has carried the command out.
    pub(crate) answer: Option<Reply>,
}

impl SentLog {
    /// Files a command.
    ///
    /// # Panics
    /// If its id was given out before.
    pub(crate) fn push(&mut self, command: Command) {
        let last = self.all.last().map(|sent| sent.command.id);
        assert!(last.is_none_or(|last| last < command.id), "{:?} after {last:?}", command.id);
        self.open.push(self.all.len());
        self.all.push(Sent { command, said: None, answer: None });
        assert!(self.open.len() <= MOST_OPEN, "commands pile up");
    }

    pub(crate) fn find(&mut self, id: CommandId) -> Option<&mut Sent> {
        let position = self.all.binary_search_by_key(&id, |sent| sent.command.id).ok()?;
        self.all.get_mut(position)
    }

    pub(crate) fn get(&mut self, position: usize) -> &mut Sent {
        &mut self.all[position]
    }

    pub(crate) fn all(&self) -> &[Sent] {
        &self.all
    }

    /// The position of one of the commands under way: the even numbers count from the oldest one on, the odd
    /// numbers from the newest one back.
    pub(crate) fn pick(&self, number: u8) -> Option<usize> {
        let steps = usize::from(number / 2).checked_rem(self.open.len())?;
        let place = if number.is_multiple_of(2) { steps } else { self.open.len() - 1 - steps };
        Some(self.open[place])
    }

    /// The position of the oldest command under way to a node of these, a bit each.
    pub(crate) fn oldest(&self, nodes: u8) -> Option<usize> {
        let to = |position: &usize| 1 << self.all[*position].command.node.index() & nodes != 0;
        self.open.iter().copied().find(to)
    }

    /// Nothing more becomes of this command.
    pub(crate) fn close(&mut self, position: usize) {
        self.open.retain(|open| *open != position);
    }
}

/// More than an input can bring about: each of its bytes makes at most one request or timeout.
const MOST_OPEN: usize = 40_000;
