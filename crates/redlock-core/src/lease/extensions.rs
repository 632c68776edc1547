//! Extensions that are not answered yet, at all nodes.

use alloc::vec::Vec;

use crate::{CommandId, NodeId, Ttl, Vote};

/// How many extensions may be unanswered at one node before the oldest is no longer waited for. It is
/// then taken for one that may come into effect at any time.
pub(super) const MAX_OPEN: usize = 4;

/// In the order in which they were sent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Extensions {
    open: Vec<Extension>,
}

/// An extension that is not answered yet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Extension {
    id: CommandId,
    pub(super) ttl: Ttl,
    /// What a yes is worth: no more than the ttl of a shorter extension that was under way when this one was
    /// sent, since that may come into effect after it. An answer to the other one that has come meanwhile
    /// does not help: nobody knows which of the two was carried out first.
    pub(super) worth: Ttl,
    pub(super) node: NodeId,
    /// One that was sent later has been answered yes.
    pub(super) overtaken: bool,
}

impl Extensions {
    /// None yet, with room for one at each node. Only nodes that leave some unanswered take more.
    pub(super) fn for_nodes(nodes: usize) -> Self {
        Self { open: Vec::with_capacity(nodes) }
    }

    pub(super) fn clear(&mut self) {
        self.open.clear();
    }

    /// Stops waiting for the oldest one at `node` if there are as many as there may be. Returns its ttl.
    pub(super) fn make_room(&mut self, node: NodeId) -> Option<Ttl> {
        if self.open.len() < MAX_OPEN || self.at(node).count() < MAX_OPEN {
            return None;
        }
        let oldest = self.open.iter().position(|open| open.node == node)?;
        Some(self.open.remove(oldest).ttl)
    }

    /// Notes that one was sent; `stray` is the shortest ttl that may come into effect there at any time.
    pub(super) fn ask(&mut self, node: NodeId, id: CommandId, ttl: Ttl, stray: Option<Ttl>) {
        let worth = self.at(node).map(|open| open.ttl).chain(stray).fold(ttl, Ttl::min);
        self.open.push(Extension { id, ttl, worth, node, overtaken: false });
    }

    /// The one that waits for an answer to `id`.
    pub(super) fn find(&self, id: CommandId) -> Option<usize> {
        self.open.iter().position(|open| open.id == id)
    }

    /// Takes out the one that was answered; `None` if there is no such one.
    pub(super) fn answer(&mut self, position: usize, vote: &Vote) -> Option<Extension> {
        let (earlier, rest) = self.open.split_at_mut_checked(position)?;
        let node = rest.first()?.node;
        if matches!(vote, Vote::Yes(_)) {
            earlier.iter_mut().filter(|open| open.node == node).for_each(|open| open.overtaken = true);
        }
        Some(self.open.remove(position))
    }

    fn at(&self, node: NodeId) -> impl Iterator<Item = &Extension> {
        self.open.iter().filter(move |open| open.node == node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extension_is_small() {
        assert!(size_of::<Extension>() <= 32);
    }

    /// What one node leaves unanswered is nothing to the others.
    #[test]
    fn each_node_counts_for_itself() {
        let mut extensions = Extensions::for_nodes(2);
        let [short, long] = [10, 900].map(|millis| Ttl::from_millis(millis).unwrap());
        let [silent, quick] = [0, 1].map(NodeId::new);
        for number in 0..MAX_OPEN as u64 {
            assert_eq!(extensions.make_room(silent), None);
            extensions.ask(silent, CommandId::new(number), short, None);
        }
        assert_eq!(extensions.make_room(quick), None);
        extensions.ask(quick, CommandId::new(9), long, None);
        let answered = extensions.answer(extensions.find(CommandId::new(9)).unwrap(), &Vote::Yes(None));
        assert_eq!(answered.map(|answered| (answered.node, answered.worth)), Some((quick, long)));
        assert_eq!(extensions.make_room(silent), Some(short), "the oldest");
        let next = extensions.answer(extensions.find(CommandId::new(1)).unwrap(), &Vote::No).unwrap();
        assert!(!next.overtaken, "the yes was from another node");
    }
}
