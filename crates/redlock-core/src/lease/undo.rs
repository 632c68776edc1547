//! Taking back what an attempt may have left: one entry per node and attempt until nothing more can be
//! learnt or done.

use alloc::collections::VecDeque;

use crate::{CommandId, Fault, Instant, NodeId, Vote};

use super::record::Coming;

/// How many attempts per node are remembered while their commands are unanswered. A node that stays
/// silent through more attempts than that loses the oldest entry.
pub(super) const MAX_PER_NODE: usize = 8;

/// Every attempt that is being taken back, oldest first; so those that are to be forgotten first come first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct UndoLog {
    entries: VecDeque<Undo>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Undo {
    forget_at: Instant,
    /// The acquire that is waited for, or [`NONE`].
    acquire_id: CommandId,
    /// The delete that is waited for, or [`NONE`].
    delete_id: CommandId,
    attempt: u32,
    node: NodeId,
    acquire: Acquire,
    /// The acquire is a repair, so that our key may be put there twice.
    repair: bool,
    delete: Delete,
}

/// What stands where no command is waited for, so that entries that mean the same are equal.
const NONE: CommandId = CommandId::new(0);

/// What is known of the acquire that is being taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Acquire {
    /// Not answered yet.
    Open,
    /// Carried out, as far as anybody knows, and perhaps after the delete that was to undo it.
    Late,
    /// Its fate was known when the delete was sent, or it will never be carried out.
    Settled,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Delete {
    /// Not answered yet.
    Open,
    /// Answered "not there", or not answered properly, or carried out before a repair.
    Missed,
    /// The second and last one was sent and is not answered yet.
    Repeated,
}

/// What an answer was to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answered {
    pub(super) node: NodeId,
    pub(super) attempt: u32,
    pub(super) what: What,
    /// The second delete, if the answer made one necessary.
    pub(super) repeat: Option<CommandId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Acquire,
    Repair,
    Delete,
}

impl UndoLog {
    /// An empty log, with room for a release. Attempts that fail take more, but not before.
    pub(super) fn for_nodes(nodes: usize) -> Self {
        Self { entries: VecDeque::with_capacity(nodes) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Notes that a delete of the token of `attempt` was sent to `node` as `delete`. Returns whether an older
    /// entry of that node had to be forgotten for it. What is opened later is not to be forgotten sooner.
    pub(super) fn open(
        &mut self,
        node: NodeId,
        attempt: u32,
        coming: Coming,
        delete: CommandId,
        forget_at: Instant,
    ) -> bool {
        debug_assert!(self.entries.back().is_none_or(|last| last.forget_at <= forget_at));
        let full = self.entries.len() >= MAX_PER_NODE
            && self.entries.iter().filter(|entry| entry.node == node).count() >= MAX_PER_NODE;
        if full && let Some(oldest) = self.entries.iter().position(|entry| entry.node == node) {
            self.entries.remove(oldest);
        }
        let (acquire, acquire_id) = match coming {
            Coming::Acquire(id) | Coming::Repair(id) => (Acquire::Open, id),
            Coming::Nothing | Coming::Unknown => (Acquire::Settled, NONE),
        };
        self.entries.push_back(Undo {
            forget_at,
            acquire_id,
            delete_id: delete,
            attempt,
            node,
            acquire,
            repair: matches!(coming, Coming::Repair(_)),
            delete: Delete::Open,
        });
        full
    }

    /// The entry that waits for an answer to `id`.
    pub(super) fn find(&self, id: CommandId) -> Option<usize> {
        self.entries.iter().position(|entry| entry.awaits_delete(id) || entry.awaits_acquire(id))
    }

    /// Whether `id` is the acquire or repair of this entry.
    pub(super) fn acquires(&self, position: usize, id: CommandId) -> bool {
        self.entries.get(position).is_some_and(|entry| entry.awaits_acquire(id))
    }

    /// Files the answer that the entry waits for; `None` if there is no such entry. If a second delete is due,
    /// `repeat` sends it and returns its id.
    pub(super) fn answer(
        &mut self,
        position: usize,
        id: CommandId,
        vote: &Vote,
        repeat: impl FnOnce(NodeId, u32) -> CommandId,
    ) -> Option<Answered> {
        let entry = self.entries.get_mut(position)?;
        let repeated = entry.delete == Delete::Repeated;
        let mut done = false;
        let what = if entry.awaits_acquire(id) {
            entry.acquire_id = NONE;
            entry.acquire = match vote {
                Vote::Yes(_) | Vote::Fault(Fault::Unknown(_)) => Acquire::Late,
                Vote::No | Vote::Fault(Fault::NotExecuted(_)) => Acquire::Settled,
            };
            if entry.repair { What::Repair } else { What::Acquire }
        } else {
            // A token that was deleted was there, and an acquire puts it there once; a repair once more.
            let again = entry.repair && entry.acquire != Acquire::Settled;
            done = matches!(vote, Vote::Yes(_)) && !again;
            entry.delete_id = NONE;
            entry.delete = Delete::Missed;
            What::Delete
        };
        let mut answered = Answered { node: entry.node, attempt: entry.attempt, what, repeat: None };
        match (entry.delete, entry.acquire) {
            (Delete::Missed, Acquire::Late) if !repeated && !done => {
                let id = repeat(entry.node, entry.attempt);
                entry.delete_id = id;
                entry.delete = Delete::Repeated;
                answered.repeat = Some(id);
            }
            (Delete::Missed, Acquire::Late | Acquire::Settled) => done = true,
            (Delete::Missed, Acquire::Open) | (Delete::Open | Delete::Repeated, _) => {}
        }
        if done {
            self.entries.remove(position);
        }
        Some(answered)
    }

    /// When the next entry will have waited long enough.
    pub(super) fn next_forget(&self) -> Option<Instant> {
        self.entries.front().map(|entry| entry.forget_at)
    }

    /// Drops the entries that have waited long enough, and says how many.
    pub(super) fn forget(&mut self, now: Instant) -> usize {
        let before = self.entries.len();
        while self.next_forget().is_some_and(|forget_at| forget_at <= now) {
            self.entries.pop_front();
        }
        before - self.entries.len()
    }
}

impl Undo {
    fn awaits_acquire(&self, id: CommandId) -> bool {
        self.acquire_id == id && self.acquire == Acquire::Open
    }

    fn awaits_delete(&self, id: CommandId) -> bool {
        self.delete_id == id && self.delete != Delete::Missed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cause, CauseKind};

    const ACQUIRE: CommandId = CommandId::new(1);
    const DELETE: CommandId = CommandId::new(2);
    const REPEAT: CommandId = CommandId::new(3);

    fn log(coming: Coming) -> UndoLog {
        let mut log = UndoLog::default();
        log.open(NodeId::new(0), 1, coming, DELETE, Instant::EPOCH);
        log
    }

    fn feed(log: &mut UndoLog, id: CommandId, vote: &Vote) -> bool {
        let position = log.find(id).unwrap();
        log.answer(position, id, vote, |_, _| REPEAT).unwrap().repeat.is_some()
    }

    fn unknown() -> Vote {
        Vote::Fault(Fault::Unknown(Cause::new(CauseKind::Disconnected)))
    }

    #[test]
    fn an_entry_is_small() {
        assert!(size_of::<Undo>() <= 40);
    }

    #[test]
    fn a_late_yes_after_the_delete_was_answered_gets_one_more_delete() {
        for (late, missed) in
            [(Vote::Yes(None), Vote::No), (unknown(), Vote::No), (Vote::Yes(None), unknown())]
        {
            let mut log = log(Coming::Acquire(ACQUIRE));
            assert!(!feed(&mut log, DELETE, &missed));
            assert!(!log.is_empty());
            assert!(feed(&mut log, ACQUIRE, &late));
            assert!(!feed(&mut log, REPEAT, &Vote::No), "one more, not two");
            assert!(log.is_empty());
        }
    }

    #[test]
    fn answers_that_come_in_the_other_order_mean_the_same() {
        let mut log = log(Coming::Acquire(ACQUIRE));
        assert!(!feed(&mut log, ACQUIRE, &Vote::Yes(None)));
        assert!(feed(&mut log, DELETE, &Vote::No));
        assert!(!feed(&mut log, REPEAT, &Vote::Yes(None)));
        assert!(log.is_empty());
    }

    #[test]
    fn a_token_that_was_deleted_is_done_with() {
        let mut log = log(Coming::Acquire(ACQUIRE));
        assert!(!feed(&mut log, DELETE, &Vote::Yes(None)));
        assert!(log.is_empty());
    }

    #[test]
    fn a_repair_may_put_back_what_was_deleted() {
        for (first, second) in [(DELETE, ACQUIRE), (ACQUIRE, DELETE)] {
            let mut log = log(Coming::Repair(ACQUIRE));
            assert!(!feed(&mut log, first, &Vote::Yes(None)));
            assert!(feed(&mut log, second, &Vote::Yes(None)));
            assert!(!feed(&mut log, REPEAT, &Vote::Yes(None)));
            assert!(log.is_empty());
        }
    }

    #[test]
    fn an_acquire_that_never_ran_needs_no_second_delete() {
        let mut log = log(Coming::Acquire(ACQUIRE));
        assert!(!feed(&mut log, DELETE, &Vote::No));
        assert!(!feed(&mut log, ACQUIRE, &Vote::No));
        assert!(log.is_empty());
    }

    #[test]
    fn a_key_known_before_the_delete_needs_one_delete_only() {
        for coming in [Coming::Nothing, Coming::Unknown] {
            let mut log = log(coming);
            assert!(!feed(&mut log, DELETE, &Vote::No));
            assert!(log.is_empty());
        }
    }

    #[test]
    fn the_log_is_bounded_and_forgets_in_time() {
        let mut log = UndoLog::default();
        let at = |seconds| Instant::from_epoch(core::time::Duration::from_secs(seconds));
        for number in 0..MAX_PER_NODE as u64 + 1 {
            let full = log.open(NodeId::new(0), 1, Coming::Nothing, CommandId::new(number), at(number));
            assert_eq!(full, number == MAX_PER_NODE as u64);
        }
        assert_eq!(log.next_forget(), Some(at(1)));
        assert_eq!(log.forget(at(2)), 2);
        assert_eq!(log.next_forget(), Some(at(3)));
    }
}
