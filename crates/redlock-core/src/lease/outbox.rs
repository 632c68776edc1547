//! Numbers commands and queues what the driver is to do.
//!
//! A pass over all nodes is one entry, however many they are; its commands are made when they are taken.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;

use crate::intent::Kind;
use crate::{
    Command, CommandId, Event, FencingToken, Instant, Intent, LeaseSpec, LossReason, NodeId, Output,
    ReleaseOutcome, Token, Ttl,
};

/// How many entries one request or input adds when all goes well: an event, and the commands of what was
/// waiting for it. Failures take more, and make reports at that.
const CUSTOMARY: usize = 2;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Outbox {
    queue: VecDeque<Entry>,
    next_id: u64,
    /// Commands that were numbered and not taken yet. Their numbers are the last ones.
    unsent: u64,
}

/// The same to one node or to several in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Pass {
    pub(super) deadline: Instant,
    /// What the keys are to live for. A delete has no use for it.
    pub(super) ttl: Ttl,
    /// Whose token it is about.
    pub(super) attempt: u32,
    pub(super) kind: Kind,
    /// The next node, and the first that is none of them any more.
    pub(super) next: u8,
    pub(super) end: u8,
}

/// Small, since room for several is kept in every machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Entry {
    /// A [`Pass`], spelt out to leave room for the tag.
    Pass {
        deadline: Instant,
        ttl: Ttl,
        attempt: u32,
        kind: Kind,
        next: u8,
        end: u8,
    },
    Acquired {
        valid_until: Instant,
        fencing: Option<FencingToken>,
        attempt: u32,
    },
    Extended(Instant),
    Renewed(Instant),
    Lost(LossReason),
    Released(ReleaseOutcome),
    /// Rare, and with a report that is made of allocations anyway.
    Failure(Box<Event>),
}

impl From<Pass> for Entry {
    fn from(Pass { deadline, ttl, attempt, kind, next, end }: Pass) -> Self {
        Self::Pass { deadline, ttl, attempt, kind, next, end }
    }
}

impl Outbox {
    pub(super) fn new() -> Self {
        Self { queue: VecDeque::with_capacity(CUSTOMARY), next_id: 0, unsent: 0 }
    }

    /// Queues a command to each node of the pass, and returns the id of the first. Those of the others follow.
    pub(super) fn send(&mut self, pass: Pass) -> CommandId {
        let id = CommandId::new(self.next_id);
        let count = u64::from(pass.end.saturating_sub(pass.next));
        // 2^64 commands are never sent.
        self.next_id = self.next_id.wrapping_add(count);
        self.unsent = self.unsent.wrapping_add(count);
        self.queue.push_back(pass.into());
        id
    }

    #[inline]
    pub(super) fn tell(&mut self, event: Event) {
        self.queue.push_back(match event {
            Event::Acquired { valid_until, fencing, attempt } => {
                Entry::Acquired { valid_until, fencing, attempt }
            }
            Event::Extended { valid_until } => Entry::Extended(valid_until),
            Event::Renewed { valid_until } => Entry::Renewed(valid_until),
            Event::Lost { reason } => Entry::Lost(reason),
            Event::Released(outcome) => Entry::Released(outcome),
            Event::AcquireFailed(_)
            | Event::AttemptFailed { .. }
            | Event::ExtendFailed(_)
            | Event::RenewFailed { .. }
            | Event::ReleaseFailed(_) => Entry::Failure(Box::new(event)),
        });
    }

    /// Takes the oldest command or event; the commands are those of a lease on `spec` with tokens from `base`.
    #[inline]
    pub(super) fn pop(&mut self, spec: &LeaseSpec, base: Token) -> Option<Output> {
        if let Some(Entry::Pass { deadline, ttl, attempt, kind, next, end }) = self.queue.front_mut() {
            let command = Command {
                id: CommandId::new(self.next_id.wrapping_sub(self.unsent)),
                node: NodeId::new(*next),
                deadline: *deadline,
                key: Arc::clone(spec.resource()),
                intent: intent(spec, *kind, base.for_attempt(*attempt), *ttl),
            };
            *next = next.saturating_add(1);
            self.unsent = self.unsent.wrapping_sub(1);
            if next >= end {
                self.queue.pop_front();
            }
            return Some(Output::Send(command));
        }
        Some(Output::Event(match self.queue.pop_front()? {
            Entry::Acquired { valid_until, fencing, attempt } => {
                Event::Acquired { valid_until, fencing, attempt }
            }
            Entry::Extended(valid_until) => Event::Extended { valid_until },
            Entry::Renewed(valid_until) => Event::Renewed { valid_until },
            Entry::Lost(reason) => Event::Lost { reason },
            Entry::Released(outcome) => Event::Released(outcome),
            Entry::Failure(event) => *event,
            Entry::Pass { .. } => return None,
        }))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// How many commands and events there are to be taken.
    pub(super) fn len(&self) -> usize {
        let outputs = |entry: &Entry| match entry {
            Entry::Pass { next, end, .. } => usize::from(end.saturating_sub(*next)),
            _ => 1,
        };
        self.queue.iter().map(outputs).sum()
    }

    /// How many ids were given out: every id below this one was.
    pub(super) const fn ids(&self) -> u64 {
        self.next_id
    }
}

fn intent(spec: &LeaseSpec, kind: Kind, token: Token, ttl: Ttl) -> Intent {
    match (kind, spec.fencing_key()) {
        (Kind::FencedAcquire, Some(fence)) => Intent::FencedAcquire { fence: Arc::clone(fence), token, ttl },
        (Kind::SetNxPx | Kind::FencedAcquire, _) => Intent::SetNxPx { token, ttl },
        (Kind::CompareAndDelete, _) => Intent::CompareAndDelete { token },
        (Kind::CompareAndPexpire, _) => Intent::CompareAndPexpire { token, ttl },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    #[test]
    fn an_entry_is_small() {
        assert!(size_of::<Entry>() <= 32);
    }

    #[test]
    fn commands_are_numbered_when_they_are_queued_and_taken_in_that_order() {
        let spec = LeaseSpec::new("lock", ["a", "b", "c"].map(Into::into), Config::default()).unwrap();
        let base = Token::from_bytes([7; Token::LEN]);
        let (deadline, ttl) = (Instant::EPOCH, spec.config().ttl());
        let pass = Pass { deadline, ttl, attempt: 1, kind: Kind::SetNxPx, next: 0, end: 3 };
        let mut outbox = Outbox::new();
        assert_eq!(outbox.send(pass), CommandId::new(0));
        outbox.tell(Event::Extended { valid_until: deadline });
        let delete = Pass { kind: Kind::CompareAndDelete, attempt: 2, next: 2, ..pass };
        assert_eq!(outbox.send(delete), CommandId::new(3));
        assert_eq!((outbox.len(), outbox.ids()), (5, 4));
        for (id, node) in [(0, 0), (1, 1), (2, 2), (3, 2)] {
            if id == 3 {
                let event = outbox.pop(&spec, base);
                assert_eq!(event, Some(Output::Event(Event::Extended { valid_until: deadline })));
            }
            let Some(Output::Send(command)) = outbox.pop(&spec, base) else { panic!("no command") };
            assert_eq!((command.id, command.node), (CommandId::new(id), NodeId::new(node)));
            assert_eq!(command.intent.token(), base.for_attempt(if id == 3 { 2 } else { 1 }));
            assert_eq!(command.intent.acquires(), id != 3);
        }
        assert_eq!((outbox.pop(&spec, base), outbox.is_empty()), (None, true));
    }
}
