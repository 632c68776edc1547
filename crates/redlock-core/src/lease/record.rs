//! What is known of our key at one node, for the attempt that is current.

use super::extensions::{Extension, Extensions};
use super::release::Grip;
use super::round::Ballot;
use crate::{CommandId, Fault, NodeId, Ttl, Vote};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Record {
    /// What the node said in the last pass, whatever it was for.
    pub(super) ballot: Ballot,
    /// The acquire or the repair that is waited for, or [`NONE`]. There is no repair before the acquire was
    /// answered.
    awaited: CommandId,
    /// The shortest ttl of an extension that may still come into effect, of those that are no longer
    /// waited for.
    stray: Option<Ttl>,
    key: Key,
    /// A repair is waited for.
    repair: bool,
    /// The node has said "not there" since it was last known to have our key. A late yes does not undo
    /// that, because nobody knows which of the two happened first.
    denied: bool,
    /// The node was said to have let go of its key since the attempt failed.
    pub(super) hinted: bool,
    /// While releasing: what the node had of ours when the delete went out. Nothing otherwise.
    pub(super) grip: Grip,
}

/// What stands where no command is waited for, so that records that mean the same are equal.
const NONE: CommandId = CommandId::new(0);

/// What may put our key at a node from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Coming {
    Nothing,
    /// The acquire, whose answer is waited for.
    Acquire(CommandId),
    /// The same of a repair.
    Repair(CommandId),
    /// An acquire of which no answer will come.
    Unknown,
}

/// What the acquire left at a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Key {
    /// Certainly not our key.
    #[default]
    Absent,
    /// Asked for, not answered yet.
    Asked,
    /// The node said yes.
    Granted,
    /// The command's fate is unknown, or when it was carried out.
    Unknown,
}

impl Record {
    pub(super) const fn new() -> Self {
        Self {
            ballot: Ballot::No,
            awaited: NONE,
            stray: None,
            key: Key::Absent,
            repair: false,
            denied: false,
            hinted: false,
            grip: Grip::NONE,
        }
    }

    /// Forgets our key, for a new attempt with a new token. What the node said in the last pass is kept, and
    /// what a release needs.
    pub(super) fn clear(&mut self) {
        self.awaited = NONE;
        self.stray = None;
        self.key = Key::Absent;
        self.repair = false;
        self.denied = false;
        self.hinted = false;
    }

    /// Our key was asked for, in a new attempt.
    pub(super) fn ask_acquire(&mut self, id: CommandId) {
        self.clear();
        self.ballot = Ballot::Open(id);
        self.awaited = id;
        self.key = Key::Asked;
    }

    /// Files the answer to a command of the last pass. An answer to any other command changes nothing.
    pub(super) fn answer_ballot(&mut self, id: CommandId, answer: Ballot) {
        if matches!(self.ballot, Ballot::Open(open) if open == id) {
            self.ballot = answer;
        }
    }

    pub(super) const fn key(&self) -> Key {
        self.key
    }

    /// Whether our key may stand at this node: it was granted, or nobody knows, and the node has not
    /// said "not there".
    pub(super) fn may_hold(&self) -> bool {
        self.key != Key::Absent && !self.denied
    }

    /// The acquire or repair that may still put our key there, as far as its answer is waited for.
    pub(super) const fn coming(&self) -> Coming {
        match (self.key, self.repair) {
            (_, true) => Coming::Repair(self.awaited),
            (Key::Asked, false) => Coming::Acquire(self.awaited),
            (Key::Unknown, false) => Coming::Unknown,
            (Key::Absent | Key::Granted, false) => Coming::Nothing,
        }
    }

    /// Whether our key is known not to be there and not to come, so that it may be put there anew.
    pub(super) fn needs_repair(&self) -> bool {
        !self.may_hold() && matches!(self.key, Key::Absent | Key::Granted) && !self.repair
    }

    /// Notes that our key was put there anew. It does not count before an extension has found it.
    pub(super) fn ask_repair(&mut self, id: CommandId) {
        self.denied = true;
        self.repair = true;
        self.awaited = id;
    }

    pub(super) fn awaits_acquire(&self, id: CommandId) -> bool {
        self.awaited == id && (self.key == Key::Asked || self.repair)
    }

    /// Files the answer to the acquire or to the repair.
    pub(super) fn answer_acquire(&mut self, vote: &Vote) {
        let repair = core::mem::take(&mut self.repair);
        self.awaited = NONE;
        self.key = match vote {
            Vote::Yes(_) if repair || !self.denied => Key::Granted,
            // The acquire and the "not there": nobody knows which of the two was first.
            Vote::Yes(_) => Key::Unknown,
            // What stood in the way of a repair may be our own key.
            Vote::No | Vote::Fault(Fault::NotExecuted(_)) if repair => self.key,
            Vote::No | Vote::Fault(Fault::NotExecuted(_)) => Key::Absent,
            Vote::Fault(Fault::Unknown(_)) => Key::Unknown,
        };
    }

    /// Notes that an extension to `ttl` was sent to this node, which is `node`.
    pub(super) fn ask_extension(&mut self, open: &mut Extensions, node: NodeId, id: CommandId, ttl: Ttl) {
        if let Some(oldest) = open.make_room(node) {
            self.keep_stray(oldest);
        }
        open.ask(node, id, ttl, self.stray);
        self.ballot = Ballot::Open(id);
    }

    /// Files the answer to an extension that was waited for at this node. What a yes is worth is a matter of
    /// the [`Extension`] itself.
    ///
    /// A "not there" that was asked for earlier than a yes is no evidence that the key is gone: it may be
    /// from before the acquire was carried out.
    pub(super) fn answer_extension(&mut self, answered: &Extension, vote: &Vote) {
        match vote {
            // This answers the acquire as well, if that is still open.
            Vote::Yes(_) => {
                self.denied = false;
                self.key = Key::Granted;
                if !self.repair {
                    self.awaited = NONE;
                }
            }
            Vote::No => self.denied |= !answered.overtaken,
            Vote::Fault(Fault::Unknown(_)) => self.keep_stray(answered.ttl),
            Vote::Fault(Fault::NotExecuted(_)) => {}
        }
    }

    fn keep_stray(&mut self, ttl: Ttl) {
        self.stray = Some(self.stray.map_or(ttl, |stray| stray.min(ttl)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lease::extensions::MAX_OPEN;
    use crate::{Cause, CauseKind};

    /// One node of its own.
    struct Node {
        record: Record,
        open: Extensions,
    }

    impl Node {
        fn new() -> Self {
            Self { record: Record::new(), open: Extensions::for_nodes(1) }
        }

        fn asked() -> Self {
            let mut node = Self::new();
            node.record.ask_acquire(CommandId::new(1));
            node
        }

        fn ask(&mut self, id: u64, ttl: Ttl) {
            self.record.ask_extension(&mut self.open, NodeId::new(0), CommandId::new(id), ttl);
        }

        fn answer(&mut self, id: u64, vote: &Vote) -> Option<Ttl> {
            let answered = self.open.answer(self.open.find(CommandId::new(id))?, vote)?;
            self.record.answer_extension(&answered, vote);
            Some(answered.worth)
        }
    }

    fn ttl(millis: u64) -> Ttl {
        Ttl::from_millis(millis).unwrap()
    }

    #[test]
    fn a_record_is_small() {
        assert!(size_of::<Record>() <= 40);
    }

    fn unknown() -> Vote {
        Vote::Fault(Fault::Unknown(Cause::new(CauseKind::Timeout)))
    }

    #[test]
    fn a_yes_is_worth_no_more_than_a_shorter_extension_that_it_may_have_overtaken() {
        let mut node = Node::new();
        // In either order: that of the answers says nothing about that of the commands.
        for (first, second) in [(1, 2), (4, 3)] {
            node.ask(first.min(second), ttl(100));
            node.ask(first.max(second), ttl(900));
            assert_eq!(node.answer(first, &Vote::Yes(None)), Some(ttl(100)));
            assert_eq!(node.answer(second, &Vote::Yes(None)), Some(ttl(100)));
        }
        node.ask(5, ttl(900));
        assert_eq!(node.answer(5, &Vote::Yes(None)), Some(ttl(900)));
    }

    #[test]
    fn an_extension_of_unknown_fate_may_come_into_effect_for_ever() {
        let mut node = Node::new();
        node.ask(1, ttl(100));
        let _ = node.answer(1, &unknown());
        node.ask(2, ttl(900));
        assert_eq!(node.answer(2, &Vote::Yes(None)), Some(ttl(100)));
    }

    #[test]
    fn too_many_open_extensions_turn_the_oldest_into_one_of_unknown_fate() {
        let mut node = Node::new();
        for number in 0..=MAX_OPEN as u64 {
            node.ask(number, ttl(10 + number));
        }
        assert_eq!(node.answer(0, &Vote::Yes(None)), None);
        for number in 1..=MAX_OPEN as u64 {
            assert_eq!(node.answer(number, &Vote::Yes(None)), Some(ttl(10)));
        }
    }

    #[test]
    fn not_there_is_no_evidence_when_a_later_extension_was_answered_yes() {
        let (earlier, later) = (2, 3);
        for overtaken in [false, true] {
            let mut node = Node::asked();
            node.ask(earlier, ttl(9));
            node.ask(later, ttl(9));
            let (yes, no) = if overtaken { (later, earlier) } else { (earlier, later) };
            let _ = node.answer(yes, &Vote::Yes(None));
            let _ = node.answer(no, &Vote::No);
            assert_eq!(node.record.may_hold(), overtaken);
        }
    }

    #[test]
    fn not_there_outlives_a_late_yes_to_the_acquire() {
        let mut node = Node::asked();
        node.ask(2, ttl(9));
        let _ = node.answer(2, &Vote::No);
        assert!(!node.record.may_hold());
        node.record.answer_acquire(&Vote::Yes(None));
        assert!(!node.record.may_hold());
        assert_eq!(node.record.coming(), Coming::Unknown, "it may have been the acquire that came second");
        node.ask(3, ttl(9));
        let _ = node.answer(3, &Vote::Yes(None));
        assert!(node.record.may_hold());
    }
}
