//! The commands of one lease that have no answer yet.

use redlock_core::{Command, CommandId, Fault, Instant, Reply};

use crate::recipient::Passage;
use crate::redis::doubt;

/// A command, and where it is on its way.
#[derive(Clone, Debug)]
pub(crate) struct Unanswered {
    pub(crate) command: Command,
    pub(crate) sent: Instant,
    passage: Standing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// The task of the lease sends it and waits for the answer.
    Slow,
    HandedOver(Passage),
    /// Not answered by its deadline.
    Overdue(Passage),
    /// Not answered by its deadline, and sent once more.
    Repeated(Passage),
}

/// In no order. There are few: as many as nodes, or twice that.
#[derive(Debug, Default)]
pub(crate) struct AllUnanswered {
    all: Vec<Unanswered>,
}

impl AllUnanswered {
    /// With room for one command to each of so many nodes.
    pub(crate) fn for_nodes(nodes: usize) -> Self {
        Self { all: Vec::with_capacity(nodes) }
    }

    pub(crate) fn add(&mut self, command: Command, sent: Instant) {
        self.all.push(Unanswered { command, sent, passage: Standing::Slow });
    }

    /// The command was handed over, if it is not answered already.
    pub(crate) fn handed_over(&mut self, id: CommandId, passage: Passage) {
        self.stands(id, Standing::HandedOver(passage));
    }

    /// The command has come back, and the task has to send it.
    pub(crate) fn given_back(&mut self, id: CommandId) {
        self.stands(id, Standing::Slow);
    }

    pub(crate) fn get(&self, id: CommandId) -> Option<&Unanswered> {
        self.all.iter().find(|asked| asked.command.id == id)
    }

    /// Takes the answer to a command in.
    pub(crate) fn answered(&mut self, id: CommandId, reply: &mut Result<Reply, Fault>) {
        let Some(at) = self.all.iter().position(|asked| asked.command.id == id) else { return };
        if matches!(self.all.swap_remove(at).passage, Standing::Repeated(_)) {
            doubt(reply);
        }
    }

    /// The earliest deadline of what was handed over and is not overdue.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let in_time = self.all.iter().filter(|asked| matches!(asked.passage, Standing::HandedOver(_)));
        in_time.map(|asked| asked.command.deadline).min()
    }

    /// What was handed over and has become overdue since the last call.
    pub(crate) fn overdue(&mut self, now: Instant) -> Vec<(Passage, Command)> {
        let mut overdue = Vec::new();
        for asked in &mut self.all {
            if let Standing::HandedOver(passage) = asked.passage
                && asked.command.deadline <= now
            {
                asked.passage = Standing::Overdue(passage);
                overdue.push((passage, asked.command.clone()));
            }
        }
        overdue
    }

    /// The command was sent once more.
    pub(crate) fn repeated(&mut self, id: CommandId, passage: Passage) {
        self.stands(id, Standing::Repeated(passage));
    }

    /// Everything that was handed over; nobody waits for it any more.
    pub(crate) fn forget(&mut self) -> Vec<(Passage, Command)> {
        let handed_over = |asked: Unanswered| match asked.passage {
            Standing::Slow => None,
            Standing::HandedOver(passage) | Standing::Overdue(passage) | Standing::Repeated(passage) => {
                Some((passage, asked.command))
            }
        };
        std::mem::take(&mut self.all).into_iter().filter_map(handed_over).collect()
    }

    fn stands(&mut self, id: CommandId, passage: Standing) {
        if let Some(asked) = self.all.iter_mut().find(|asked| asked.command.id == id) {
            asked.passage = passage;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use redlock_core::{Cause, CauseKind, Intent, NodeId, Token};

    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_epoch(Duration::from_millis(millis))
    }

    fn delete(id: u64, deadline: u64) -> Command {
        let intent = Intent::CompareAndDelete { token: Token::from_bytes([1; Token::LEN]) };
        let (id, node) = (CommandId::new(id), NodeId::new(0));
        Command { id, node, deadline: at(deadline), key: "k".into(), intent }
    }

    fn passage(number: u64) -> Passage {
        Passage { generation: 1, number }
    }

    #[test]
    fn what_is_overdue_is_said_once() {
        let mut unanswered = AllUnanswered::default();
        for (id, deadline) in [(1, 30), (2, 10), (3, 20)] {
            unanswered.add(delete(id, deadline), at(0));
        }
        assert_eq!(unanswered.next_deadline(), None, "the task's own affair");
        unanswered.handed_over(CommandId::new(1), passage(1));
        unanswered.handed_over(CommandId::new(2), passage(2));
        assert_eq!(unanswered.next_deadline(), Some(at(10)));
        let overdue: Vec<_> = unanswered.overdue(at(20)).into_iter().map(|(passage, _)| passage).collect();
        assert_eq!(overdue, [passage(2)]);
        assert!(unanswered.overdue(at(20)).is_empty());
        assert_eq!(unanswered.next_deadline(), Some(at(30)));
        unanswered.given_back(CommandId::new(1));
        assert_eq!(unanswered.next_deadline(), None);
        let forgotten: Vec<_> = unanswered.forget().into_iter().map(|(passage, _)| passage).collect();
        assert_eq!(forgotten, [passage(2)]);
        assert!(unanswered.forget().is_empty());
    }

    #[test]
    fn that_a_key_is_not_there_says_nothing_once_its_delete_was_repeated() {
        let mut unanswered = AllUnanswered::default();
        for id in [1, 2] {
            unanswered.add(delete(id, 10), at(0));
            unanswered.handed_over(CommandId::new(id), passage(id));
        }
        assert_eq!(unanswered.overdue(at(10)).len(), 2);
        unanswered.repeated(CommandId::new(2), passage(2));
        let mut replies = [Ok(Reply::Int(0)), Ok(Reply::Int(0))];
        unanswered.answered(CommandId::new(1), &mut replies[0]);
        unanswered.answered(CommandId::new(2), &mut replies[1]);
        assert_eq!(replies, [Ok(Reply::Int(0)), Err(Fault::Unknown(Cause::new(CauseKind::Timeout)))]);
        assert!(unanswered.get(CommandId::new(1)).is_none());
    }
}
