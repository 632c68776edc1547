//! How a command gets to its node.

use std::future::Future;

use redlock_core::{Command, Fault, Reply};

/// Carries commands to nodes and brings their answers back.
pub trait Transport: Send + Sync + 'static {
    /// Sends `command` to [`command.node`](Command::node).
    ///
    /// The future ends with the node's answer, however late, or with a [`Fault`] that says whether the
    /// command may have been carried out. Dropping it gives up the answer, not the command. Nothing is
    /// ever sent twice. For one node, commands whose futures are first polled one after the other should
    /// arrive in that order; the lease is safe without it, but cleans up less well.
    fn send(&self, command: &Command) -> impl Future<Output = Result<Reply, Fault>> + Send + 'static;
}
