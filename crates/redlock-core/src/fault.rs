//! Why there is no answer, and whether the command may have been carried out all the same.

use alloc::sync::Arc;
use core::fmt;

/// A command that got no usable answer.
///
/// The distinction decides what a lease may assume. Both count as "no" for the quorum; but after
/// [`Unknown`](Self::Unknown) a key of ours may stand at the node, now or a little later. When in
/// doubt, a fault is unknown.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// Certain: the node did not carry the command out and never will.
    NotExecuted(Cause),
    /// The command may have been carried out, or may still be.
    Unknown(Cause),
}

impl Fault {
    /// What went wrong.
    #[must_use]
    pub const fn cause(&self) -> &Cause {
        match self {
            Self::NotExecuted(cause) | Self::Unknown(cause) => cause,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.cause().fmt(f)
    }
}

/// What went wrong between us and a node. Never contains a token or a credential.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cause {
    kind: CauseKind,
    detail: Option<Arc<str>>,
}

/// The kinds of [`Cause`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum CauseKind {
    /// No connection: nobody listens, the host is unknown, the network is unreachable.
    Unreachable,
    /// A connection was refused by what answered: wrong password, wrong user, TLS failure, a protocol
    /// the server does not speak.
    Rejected,
    /// The connection broke while the command was under way.
    Disconnected,
    /// No answer by the deadline.
    Timeout,
    /// The server answered with an error; the detail starts with its code word.
    Server,
    /// The answer is none that the command can have.
    UnexpectedReply,
    /// The node already has as many unanswered commands as are allowed to pile up.
    Overloaded,
    /// The connection was closed on our side.
    Closed,
    /// The node may have forgotten what it granted, and gives no votes for a while: see
    /// [`Quarantine`](crate::Quarantine). Nothing was sent.
    Quarantined,
}

impl Cause {
    /// A cause without further detail.
    #[must_use]
    pub const fn new(kind: CauseKind) -> Self {
        Self { kind, detail: None }
    }

    /// A cause with a text that says more. The text must not contain credentials.
    #[must_use]
    pub fn with_detail(kind: CauseKind, detail: impl Into<Arc<str>>) -> Self {
        Self { kind, detail: Some(detail.into()) }
    }

    /// The kind.
    #[must_use]
    pub const fn kind(&self) -> CauseKind {
        self.kind
    }

    /// The text that says more, if there is one.
    #[must_use]
    pub fn detail(&self) -> Option<&str> {
        self.detail.as_deref()
    }

    /// The code word of a server's error (`READONLY`, `OOM`, `ERR`, ...).
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        match self.kind {
            CauseKind::Server => self.detail()?.split(' ').next(),
            _ => None,
        }
    }

    /// What to do when a server answers with this error; `None` for a cause that is no server's error, or
    /// one that says it itself.
    #[must_use]
    pub fn remedy(&self) -> Option<&'static str> {
        Some(match self.code()? {
            "READONLY" => "name the primary instead of this replica",
            "LOADING" => "wait until the server has read its data",
            "MASTERDOWN" => "this replica has lost its primary: name a primary instead",
            "MISCONF" => "the server cannot save its data: look at its log and disk",
            "OOM" => "the server is out of memory: raise maxmemory, or remove data",
            "NOREPLICAS" => "the server has too few replicas to take writes: see min-replicas-to-write",
            "BUSY" => "the server is busy with a script: end it with SCRIPT KILL",
            "NOPERM" => "give the user the rights that docs/operations.md lists",
            "NOAUTH" => "add user and password to the node's URL",
            "WRONGPASS" => "correct user and password in the node's URL",
            "CLUSTERDOWN" | "MOVED" | "ASK" | "CROSSSLOT" | "TRYAGAIN" => {
                "this is part of a Redis Cluster: use it as one logical node, through a cluster connection"
            }
            _ => return None,
        })
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            CauseKind::Unreachable => "unreachable",
            CauseKind::Rejected => "connection rejected",
            CauseKind::Disconnected => "connection lost",
            CauseKind::Timeout => "no answer in time",
            CauseKind::Server => "server error",
            CauseKind::UnexpectedReply => "unexpected reply",
            CauseKind::Overloaded => "too many unanswered commands",
            CauseKind::Closed => "connection closed",
            CauseKind::Quarantined => "in quarantine",
        };
        match &self.detail {
            Some(detail) => write!(f, "{kind}: {detail}"),
            None => f.write_str(kind),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn each_kind_of_cause_has_words_of_its_own_and_its_detail() {
        let kinds = [
            (CauseKind::Unreachable, "unreachable"),
            (CauseKind::Rejected, "connection rejected"),
            (CauseKind::Disconnected, "connection lost"),
            (CauseKind::Timeout, "no answer in time"),
            (CauseKind::Server, "server error"),
            (CauseKind::UnexpectedReply, "unexpected reply"),
            (CauseKind::Overloaded, "too many unanswered commands"),
            (CauseKind::Closed, "connection closed"),
            (CauseKind::Quarantined, "in quarantine"),
        ];
        for (kind, words) in kinds {
            assert_eq!(Cause::new(kind).to_string(), words);
            assert_eq!(Cause::with_detail(kind, "why").to_string(), [words, ": why"].concat());
        }
    }

    #[test]
    fn what_to_do_is_said_for_errors_that_somebody_can_do_something_about() {
        let remedy = |answer| Cause::with_detail(CauseKind::Server, answer).remedy().unwrap_or_default();
        for (answer, part) in [
            ("READONLY You can't write against a read only replica.", "primary"),
            ("LOADING Redis is loading the dataset in memory", "wait"),
            ("MASTERDOWN Link with MASTER is down", "primary"),
            ("MISCONF Errors writing to the AOF file", "disk"),
            ("OOM command not allowed", "maxmemory"),
            ("NOREPLICAS Not enough good replicas to write.", "min-replicas-to-write"),
            ("BUSY Redis is busy running a script.", "SCRIPT KILL"),
            ("NOPERM this user has no permissions", "rights"),
            ("NOAUTH Authentication required.", "password"),
            ("WRONGPASS invalid username-password pair", "password"),
            ("CLUSTERDOWN Hash slot not served", "Cluster"),
            ("MOVED 1 127.0.0.1:1", "Cluster"),
            ("ASK 1 127.0.0.1:1", "Cluster"),
            ("CROSSSLOT Keys in request don't hash to the same slot", "Cluster"),
            ("TRYAGAIN Multiple keys request during rehashing of slot", "Cluster"),
        ] {
            assert!(remedy(answer).contains(part), "{answer}: {:?}", remedy(answer));
        }
        assert_eq!(remedy("ERR unknown command"), "");
        assert_eq!(Cause::with_detail(CauseKind::Timeout, "OOM").remedy(), None);
    }
}
