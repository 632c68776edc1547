//! Names for nodes and commands.

use core::fmt;

/// The position of a node in the list that the lease was configured with, counted from zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(u8);

impl NodeId {
    /// The node at `index`.
    #[must_use]
    pub const fn new(index: u8) -> Self {
        Self(index)
    }

    /// The position as an index into the list of nodes.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    pub(crate) const fn number(self) -> u8 {
        self.0
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {}", self.0)
    }
}

/// Names one command of one [`LeaseMachine`](crate::LeaseMachine) for good: ids are never used again
/// in the machine's life.
///
/// A reply is matched by this id and by nothing else. Neither the order of replies nor the node they
/// come from says which question they answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommandId(u64);

impl CommandId {
    /// The id with this number.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number behind the id.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The id of the command that was numbered `count` after this one.
    pub(crate) const fn after(self, count: u8) -> Self {
        Self(self.0.wrapping_add(count as u64))
    }
}

impl fmt::Display for CommandId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}
