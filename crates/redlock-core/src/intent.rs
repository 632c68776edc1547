//! What the machine wants done at a node, without saying how it is put on a wire.

use alloc::sync::Arc;

use crate::{CommandId, Instant, NodeId, Token, Ttl};

/// One command to one node. The driver carries it out and feeds the answer to
/// [`LeaseMachine::handle_reply`](crate::LeaseMachine::handle_reply) under the same [`id`](Self::id).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Command {
    /// Names the command; never used again by this machine.
    pub id: CommandId,
    /// Where to send it.
    pub node: NodeId,
    /// From when on the machine stops waiting for the answer. A later answer is still welcome: it
    /// tells whether something was left behind.
    pub deadline: Instant,
    /// The lock's key.
    pub key: Arc<str>,
    /// What to do with the key.
    pub intent: Intent,
}

/// What a [`Command`] does. The four of them are all that a lease ever asks of a node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Intent {
    /// Take the key if nobody has it: `SET key token NX PX ttl`.
    SetNxPx {
        /// The value to store.
        token: Token,
        /// When the key is to expire.
        ttl: Ttl,
    },
    /// The same, and in the same step move the fencing counter on: see
    /// [`script::FENCED_ACQUIRE`](crate::script::FENCED_ACQUIRE).
    FencedAcquire {
        /// The key of the counter.
        fence: Arc<str>,
        /// The value to store.
        token: Token,
        /// When the lock's key is to expire. The counter never does.
        ttl: Ttl,
    },
    /// Delete the key if it holds this token: see
    /// [`script::COMPARE_AND_DELETE`](crate::script::COMPARE_AND_DELETE).
    CompareAndDelete {
        /// The value that the key must have.
        token: Token,
    },
    /// Set the key's time to live if it holds this token: see
    /// [`script::COMPARE_AND_PEXPIRE`](crate::script::COMPARE_AND_PEXPIRE). Never creates a key.
    CompareAndPexpire {
        /// The value that the key must have.
        token: Token,
        /// When the key is to expire, counted from now on.
        ttl: Ttl,
    },
}

impl Intent {
    /// The token that the intent is about.
    #[must_use]
    pub const fn token(&self) -> Token {
        match self {
            Self::SetNxPx { token, .. }
            | Self::FencedAcquire { token, .. }
            | Self::CompareAndDelete { token }
            | Self::CompareAndPexpire { token, .. } => *token,
        }
    }

    /// Whether the intent may put a token on the node, so that an unknown outcome may mean a key left
    /// behind.
    #[must_use]
    pub const fn acquires(&self) -> bool {
        matches!(self, Self::SetNxPx { .. } | Self::FencedAcquire { .. })
    }

    /// The intent's name, for logs and errors.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.kind().name()
    }

    pub(crate) const fn kind(&self) -> Kind {
        match self {
            Self::SetNxPx { .. } => Kind::SetNxPx,
            Self::FencedAcquire { .. } => Kind::FencedAcquire,
            Self::CompareAndDelete { .. } => Kind::CompareAndDelete,
            Self::CompareAndPexpire { .. } => Kind::CompareAndPexpire,
        }
    }
}

/// Which of the four an [`Intent`] is: all that is needed to read its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    SetNxPx,
    FencedAcquire,
    CompareAndDelete,
    CompareAndPexpire,
}

impl Kind {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::SetNxPx => "set-nx-px",
            Self::FencedAcquire => "fenced-acquire",
            Self::CompareAndDelete => "compare-and-delete",
            Self::CompareAndPexpire => "compare-and-pexpire",
        }
    }
}
