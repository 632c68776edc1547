//! Who is told what became of a command.

use std::sync::Arc;

use redlock_core::{Command, CommandId, Fault, Reply};

/// Waits for the answers of commands that were handed to a connection. Each ends in one of two ways.
pub(crate) trait Recipient: Send + Sync {
    /// The command was answered, or will never be. True if this lets a caller go on who waited for it.
    fn answered(self: Arc<Self>, id: CommandId, reply: Result<Reply, Fault>) -> bool;

    /// The connection turned out to be broken before it took the command in: it may be sent on another.
    fn given_back(self: Arc<Self>, command: Command);
}

/// Where a command that was handed over is on its way, for as long as it is unanswered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Passage {
    /// Of the connection.
    pub(crate) generation: u64,
    /// Of the command on that connection.
    pub(crate) number: u64,
}
