//! What is known of our key at one node, for the attempt that is current.

use alloc::vec::Vec;

use crate::{CommandId, Fault, Ttl, Vote};

/// How many extensions may be unanswered at one node before the oldest is no longer waited for. It is
/// then taken for one that may come into effect at any time.
const MAX_OPEN_EXTENSIONS: usize = 4;

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Record {
    pub(super) key: Key,
    /// The node has said "not there" since it was last known to have our key. A late yes does not undo
    /// that, because nobody knows which of the two happened first.
    denied: bool,
    /// A repair that is not answered yet.
    repair: Option<CommandId>,
    extensions: Vec<Extension>,
    /// The shortest ttl of an extension that may still come into effect, of those that are no longer
    /// waited for.
    stray: Option<Ttl>,
    /// The node was said to have let go of its key since the attempt failed.
    pub(super) hinted: bool,
}

/// An extension that is not answered yet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Extension {
    id: CommandId,
    ttl: Ttl,
    /// What a yes is worth: see [`Record::answer_extension`].
    worth: Ttl,
    /// One that was sent later has been answered yes.
    overtaken: bool,
}

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
    Asked(CommandId),
    /// The node said yes.
    Granted,
    /// The command's fate is unknown, or when it was carried out.
    Unknown,
}

impl Record {
    pub(super) fn new() -> Self {
        Self { extensions: Vec::with_capacity(MAX_OPEN_EXTENSIONS), ..Self::default() }
    }

    /// Forgets everything, for a new attempt with a new token.
    pub(super) fn clear(&mut self) {
        self.key = Key::Absent;
        self.denied = false;
        self.repair = None;
        self.extensions.clear();
        self.stray = None;
        self.hinted = false;
    }

    /// Whether our key may stand at this node: it was granted, or nobody knows, and the node has not
    /// said "not there".
    pub(super) fn may_hold(&self) -> bool {
        self.key != Key::Absent && !self.denied
    }

    /// The acquire or repair that may still put our key there, as far as its answer is waited for.
    pub(super) fn coming(&self) -> Coming {
        match (self.key, self.repair) {
            (_, Some(id)) => Coming::Repair(id),
            (Key::Asked(id), None) => Coming::Acquire(id),
            (Key::Unknown, None) => Coming::Unknown,
            (Key::Absent | Key::Granted, None) => Coming::Nothing,
        }
    }

    /// Whether our key is known not to be there and not to come, so that it may be put there anew.
    pub(super) fn needs_repair(&self) -> bool {
        !self.may_hold() && matches!(self.key, Key::Absent | Key::Granted) && self.repair.is_none()
    }

    /// Notes that our key was put there anew. It does not count before an extension has found it.
    pub(super) fn ask_repair(&mut self, id: CommandId) {
        self.denied = true;
        self.repair = Some(id);
    }

    pub(super) fn awaits_acquire(&self, id: CommandId) -> bool {
        self.key == Key::Asked(id) || self.repair == Some(id)
    }

    /// Files the answer to the acquire or to the repair.
    pub(super) fn answer_acquire(&mut self, vote: &Vote) {
        let repair = self.repair.take().is_some();
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

    pub(super) fn ask_extension(&mut self, id: CommandId, ttl: Ttl) {
        if self.extensions.len() == MAX_OPEN_EXTENSIONS {
            let oldest = self.extensions.remove(0);
            self.keep_stray(oldest.ttl);
        }
        let under_way = self.extensions.iter().map(|open| open.ttl).chain(self.stray);
        let worth = under_way.fold(ttl, Ttl::min);
        self.extensions.push(Extension { id, ttl, worth, overtaken: false });
    }

    pub(super) fn awaits_extension(&self, id: CommandId) -> bool {
        self.extensions.iter().any(|open| open.id == id)
    }

    /// Files the answer to an extension; `None` if no such extension is waited for.
    ///
    /// The result is the ttl that a yes is worth: no more than that of a shorter extension that was
    /// under way when this one was sent, since that may come into effect after it. An answer to the
    /// other one that has come meanwhile does not help: nobody knows which of the two was carried out
    /// first. For the same reason a "not there" that was asked for earlier than a yes is no evidence that
    /// the key is gone: it may be from before the acquire was carried out.
    pub(super) fn answer_extension(&mut self, id: CommandId, vote: &Vote) -> Option<Ttl> {
        let position = self.extensions.iter().position(|open| open.id == id)?;
        let Extension { ttl, worth, overtaken, .. } = self.extensions.remove(position);
        match vote {
            // This answers the acquire as well, if that is still open.
            Vote::Yes(_) => {
                self.denied = false;
                self.key = Key::Granted;
                self.extensions.iter_mut().take(position).for_each(|earlier| earlier.overtaken = true);
            }
            Vote::No => self.denied |= !overtaken,
            Vote::Fault(Fault::Unknown(_)) => self.keep_stray(ttl),
            Vote::Fault(Fault::NotExecuted(_)) => {}
        }
        Some(worth)
    }

    fn keep_stray(&mut self, ttl: Ttl) {
        self.stray = Some(self.stray.map_or(ttl, |stray| stray.min(ttl)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cause, CauseKind};

    fn ttl(millis: u64) -> Ttl {
        Ttl::from_millis(millis).unwrap()
    }

    fn unknown() -> Vote {
        Vote::Fault(Fault::Unknown(Cause::new(CauseKind::Timeout)))
    }

    #[test]
    fn a_yes_is_worth_no_more_than_a_shorter_extension_that_it_may_have_overtaken() {
        let mut record = Record::new();
        // In either order: that of the answers says nothing about that of the commands.
        for (first, second) in [(1, 2), (4, 3)] {
            record.ask_extension(CommandId::new(first.min(second)), ttl(100));
            record.ask_extension(CommandId::new(first.max(second)), ttl(900));
            assert_eq!(record.answer_extension(CommandId::new(first), &Vote::Yes(None)), Some(ttl(100)));
            assert_eq!(record.answer_extension(CommandId::new(second), &Vote::Yes(None)), Some(ttl(100)));
        }
        record.ask_extension(CommandId::new(5), ttl(900));
        assert_eq!(record.answer_extension(CommandId::new(5), &Vote::Yes(None)), Some(ttl(900)));
    }

    #[test]
    fn an_extension_of_unknown_fate_may_come_into_effect_for_ever() {
        let mut record = Record::new();
        record.ask_extension(CommandId::new(1), ttl(100));
        let _ = record.answer_extension(CommandId::new(1), &unknown());
        record.ask_extension(CommandId::new(2), ttl(900));
        assert_eq!(record.answer_extension(CommandId::new(2), &Vote::Yes(None)), Some(ttl(100)));
    }

    #[test]
    fn too_many_open_extensions_turn_the_oldest_into_one_of_unknown_fate() {
        let mut record = Record::new();
        for number in 0..=MAX_OPEN_EXTENSIONS as u64 {
            record.ask_extension(CommandId::new(number), ttl(10 + number));
        }
        assert_eq!(record.answer_extension(CommandId::new(0), &Vote::Yes(None)), None);
        for number in 1..=MAX_OPEN_EXTENSIONS as u64 {
            assert_eq!(record.answer_extension(CommandId::new(number), &Vote::Yes(None)), Some(ttl(10)));
        }
    }

    #[test]
    fn not_there_is_no_evidence_when_a_later_extension_was_answered_yes() {
        let (earlier, later) = (CommandId::new(2), CommandId::new(3));
        for overtaken in [false, true] {
            let mut record = Record { key: Key::Asked(CommandId::new(1)), ..Record::new() };
            record.ask_extension(earlier, ttl(9));
            record.ask_extension(later, ttl(9));
            let (yes, no) = if overtaken { (later, earlier) } else { (earlier, later) };
            let _ = record.answer_extension(yes, &Vote::Yes(None));
            let _ = record.answer_extension(no, &Vote::No);
            assert_eq!(record.may_hold(), overtaken);
        }
    }

    #[test]
    fn not_there_outlives_a_late_yes_to_the_acquire() {
        let mut record = Record { key: Key::Asked(CommandId::new(1)), ..Record::new() };
        record.ask_extension(CommandId::new(2), ttl(9));
        let _ = record.answer_extension(CommandId::new(2), &Vote::No);
        assert!(!record.may_hold());
        record.answer_acquire(&Vote::Yes(None));
        assert!(!record.may_hold());
        assert_eq!(record.coming(), Coming::Unknown, "it may have been the acquire that came second");
        record.ask_extension(CommandId::new(3), ttl(9));
        let _ = record.answer_extension(CommandId::new(3), &Vote::Yes(None));
        assert!(record.may_hold());
    }
}
