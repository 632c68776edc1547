//! What can be wrong with a set of nodes, and what to do about it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use redlock_core::{Cause, CauseKind};

/// One thing that is wrong or risky. `Display` says what, at which nodes, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// The names of the nodes that it is about.
    pub nodes: Vec<Arc<str>>,
    /// What it is.
    pub kind: FindingKind,
}

/// How bad a [`Finding`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Leases work, but a promise is weaker than it could be.
    Warning,
    /// Leases cannot be taken, or not be trusted.
    Error,
}

/// The kinds of [`Finding`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FindingKind {
    /// The node did not answer, or refused the connection.
    Unreachable {
        /// Why.
        cause: Cause,
    },
    /// The node answers, but may not be asked about itself.
    Unchecked {
        /// What it answered.
        cause: Cause,
    },
    /// The node is a replica: it takes no writes, or not for long.
    Replica,
    /// Several nodes are one and the same server, so that it has several votes.
    SameServer,
    /// Several nodes are shards of one Redis Cluster, which fails and fails over as a whole.
    SameCluster,
    /// The server may throw keys away to make room.
    MayEvict {
        /// Its `maxmemory-policy`.
        policy: String,
        /// Whether it has a memory limit, without which it never does.
        limited: bool,
    },
    /// A restart forgets locks: all of them, or those since the last snapshot.
    ForgetsOnRestart {
        /// Whether it takes snapshots.
        snapshots: bool,
    },
    /// A crash or power cut forgets the last locks, because its log is not on disk when it answers.
    ForgetsOnCrash {
        /// Its `appendfsync`.
        appendfsync: String,
    },
    /// The wall clocks of the nodes differ by more than the drift allows for.
    ClocksDiffer {
        /// By how much.
        by: Duration,
        /// How much the drift allows for.
        allowed: Duration,
    },
    /// The server was started less than a ttl ago. If it forgot its keys, it may give them out twice.
    Young {
        /// How long it has been running.
        uptime: Duration,
        /// The ttl that it should have been running for.
        ttl: Duration,
    },
}

impl FindingKind {
    /// What to do about it.
    #[must_use]
    pub fn remedy(&self) -> String {
        match self {
            Self::Unreachable { cause } | Self::Unchecked { cause } => remedy(cause).to_owned(),
            Self::Replica => "name its primary instead, which must not be one of the other nodes".to_owned(),
            Self::SameServer => "name each server once, by one address".to_owned(),
            Self::SameCluster => {
                "use independent servers, or the cluster as one logical node in single mode".to_owned()
            }
            Self::MayEvict { .. } => "set maxmemory-policy noeviction".to_owned(),
            Self::ForgetsOnRestart { .. } | Self::ForgetsOnCrash { .. } => {
                "set appendonly yes and appendfsync always, or keep a restarted node away for a full ttl"
                    .to_owned()
            }
            Self::ClocksDiffer { .. } => {
                "let the nodes follow one time service, and slew instead of step".to_owned()
            }
            Self::Young { .. } => {
                "after a restart without all data, keep the node away until a full ttl has passed".to_owned()
            }
        }
    }
}

/// What to do when a node answers with this, or not at all.
#[must_use]
pub fn remedy(cause: &Cause) -> &'static str {
    if let Some(remedy) = cause.remedy() {
        return remedy;
    }
    match cause.kind() {
        CauseKind::Rejected => "check user, password and TLS settings in the node's URL",
        CauseKind::Server | CauseKind::UnexpectedReply => "check that this is a Redis or Valkey server",
        _ => "check that the server runs, and that host, port and firewall let this client through",
    }
}

impl fmt::Display for FindingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable { cause } => write!(f, "cannot be used: {cause}"),
            Self::Unchecked { cause } => write!(f, "answers, but may not be asked about itself: {cause}"),
            Self::Replica => f.write_str("is a replica"),
            Self::SameServer => f.write_str("are one and the same server"),
            Self::SameCluster => f.write_str("are parts of one Redis Cluster"),
            Self::MayEvict { policy, limited: true } => {
                write!(f, "may evict locks (maxmemory-policy {policy})")
            }
            Self::MayEvict { policy, limited: false } => {
                write!(f, "would evict locks if it had a memory limit (maxmemory-policy {policy})")
            }
            Self::ForgetsOnRestart { snapshots: true } => {
                f.write_str("forgets the locks since its last snapshot when it restarts")
            }
            Self::ForgetsOnRestart { snapshots: false } => f.write_str("forgets all locks when it restarts"),
            Self::ForgetsOnCrash { appendfsync } => {
                write!(f, "forgets its last locks in a crash or power cut (appendfsync {appendfsync})")
            }
            Self::ClocksDiffer { by, allowed } => {
                write!(f, "have clocks that differ by {by:?}, where the drift allows for {allowed:?}")
            }
            Self::Young { uptime, ttl } => {
                write!(f, "was started {uptime:?} ago, less than the ttl of {ttl:?}")
            }
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let label = if self.nodes.len() == 1 { "node" } else { "nodes" };
        write!(f, "{label} {}: {}; {}", self.nodes.join(", "), self.kind, self.kind.remedy())
    }
}
