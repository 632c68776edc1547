//! Numbers commands and queues what the driver is to do.

use alloc::collections::VecDeque;
use alloc::sync::Arc;

use crate::{Command, CommandId, Event, Instant, Intent, NodeId, Output};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Outbox {
    queue: VecDeque<Output>,
    next_id: u64,
}

impl Outbox {
    pub(super) fn with_capacity(capacity: usize) -> Self {
        Self { queue: VecDeque::with_capacity(capacity), next_id: 0 }
    }

    pub(super) fn send(
        &mut self,
        node: NodeId,
        deadline: Instant,
        key: &Arc<str>,
        intent: Intent,
    ) -> CommandId {
        let id = CommandId::new(self.next_id);
        // 2^64 commands are never sent.
        self.next_id = self.next_id.wrapping_add(1);
        self.queue.push_back(Output::Send(Command { id, node, deadline, key: key.clone(), intent }));
        id
    }

    pub(super) fn tell(&mut self, event: Event) {
        self.queue.push_back(Output::Event(event));
    }

    pub(super) fn pop(&mut self) -> Option<Output> {
        self.queue.pop_front()
    }

    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    /// How many ids were given out: every id below this one was.
    pub(super) const fn ids(&self) -> u64 {
        self.next_id
    }
}
