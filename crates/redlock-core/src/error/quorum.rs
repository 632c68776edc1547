use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use super::Human;
use crate::{Fault, LockLost, LossReason, NodeId, NotAcquired, NotAcquiredReason};

/// A pass over the nodes did not reach its quorum: what each of them said.
///
/// The message names every node that did not go along:
/// `acquire: 1 of 2 required; node 1 (redis-b:6379): unreachable: connection refused; node 2
/// (redis-c:6379): no answer in 500 ms`. To a server's error it adds what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct QuorumError {
    /// What was tried.
    pub operation: Operation,
    /// How many nodes did it. For a release: how many are known free of our token.
    pub succeeded: usize,
    /// How many had to.
    pub required: usize,
    /// What each node said, in the order of the configuration.
    pub nodes: Vec<NodeReport>,
}

/// What a pass over the nodes was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Taking the lease.
    Acquire,
    /// Extending it on request.
    Extend,
    /// Renewing it automatically.
    Renew,
    /// Giving it back.
    Release,
}

/// What one node said.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NodeReport {
    /// Which node.
    pub node: NodeId,
    /// Its configured name or address, without credentials.
    pub name: Arc<str>,
    /// What it said.
    pub outcome: Outcome,
}

/// What came of a command to one node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Done.
    Yes,
    /// Refused: the key is somebody else's (acquire), or not ours (all others).
    No,
    /// No usable answer.
    Fault(Fault),
    /// No answer by the operation timeout.
    Silent {
        /// How long it was waited for.
        waited: Duration,
    },
    /// The matter was decided before the node had answered.
    NotAwaited,
}

impl core::error::Error for QuorumError {}

impl From<QuorumError> for NotAcquired {
    /// For an acquire: with the reason that the nodes' answers give.
    fn from(quorum: QuorumError) -> Self {
        let reason: NotAcquiredReason = quorum.obstacle().into();
        Self { reason, quorum }
    }
}

impl From<QuorumError> for LockLost {
    /// For a renewal or release that the nodes refused.
    fn from(_: QuorumError) -> Self {
        Self { reason: LossReason::Refused }
    }
}

impl QuorumError {
    /// Which of taken, unreachable and mixed this is.
    ///
    /// Taken: the refusals alone deny a quorum, whatever the silent nodes would say. Unreachable:
    /// nobody refused. Mixed: everything between.
    #[must_use]
    pub fn obstacle(&self) -> super::Obstacle {
        let refused = self.nodes.iter().filter(|report| report.outcome == Outcome::No).count();
        if self.nodes.len() - refused < self.required {
            super::Obstacle::Taken
        } else if refused == 0 {
            super::Obstacle::Unreachable
        } else {
            super::Obstacle::Mixed
        }
    }
}

impl fmt::Display for QuorumError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} of {} required", self.operation, self.succeeded, self.required)?;
        let done = |outcome: &Outcome| match self.operation {
            // A node that does not have our token is as free as one that has deleted it.
            Operation::Release => matches!(outcome, Outcome::Yes | Outcome::No),
            Operation::Acquire | Operation::Extend | Operation::Renew => *outcome == Outcome::Yes,
        };
        for report in self.nodes.iter().filter(|report| !done(&report.outcome)) {
            write!(f, "; {} ({}): ", report.node, report.name)?;
            match &report.outcome {
                Outcome::Yes => f.write_str("done")?,
                Outcome::No if self.operation == Operation::Acquire => f.write_str("held by another")?,
                Outcome::No => f.write_str("does not hold our token")?,
                Outcome::Fault(fault) => {
                    fault.fmt(f)?;
                    if let Some(remedy) = fault.cause().remedy() {
                        write!(f, " (remedy: {remedy})")?;
                    }
                }
                Outcome::Silent { waited } => write!(f, "no answer in {}", Human(*waited))?,
                Outcome::NotAwaited => f.write_str("not awaited")?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Acquire => "acquire",
            Self::Extend => "extend",
            Self::Renew => "renew",
            Self::Release => "release",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cause, CauseKind, Obstacle};
    use alloc::string::ToString;
    use alloc::vec;

    fn report(outcomes: Vec<Outcome>) -> QuorumError {
        let names = ["redis-a:6379", "redis-b:6379", "redis-c:6379"];
        let nodes = outcomes
            .into_iter()
            .zip(names)
            .zip(0..)
            .map(|((outcome, name), index)| NodeReport {
                node: NodeId::new(index),
                name: name.into(),
                outcome,
            })
            .collect();
        QuorumError { operation: Operation::Acquire, succeeded: 1, required: 2, nodes }
    }

    fn refused() -> Outcome {
        Outcome::Fault(Fault::NotExecuted(Cause::with_detail(CauseKind::Unreachable, "connection refused")))
    }

    #[test]
    fn the_message_names_each_node_that_failed() {
        let waited = Duration::from_millis(500);
        let error = report(vec![Outcome::Yes, refused(), Outcome::Silent { waited }]);
        assert_eq!(
            error.to_string(),
            "acquire: 1 of 2 required; node 1 (redis-b:6379): unreachable: connection refused; \
             node 2 (redis-c:6379): no answer in 500 ms"
        );
        let not_acquired = NotAcquired::from(error);
        assert!(
            not_acquired.to_string().starts_with("not acquired, too few nodes reachable: acquire: 1 of 2")
        );
    }

    #[test]
    fn the_obstacle_follows_from_the_refusals() {
        let silent = || Outcome::Silent { waited: Duration::ZERO };
        let cases = [
            (vec![Outcome::No, Outcome::No, silent()], Obstacle::Taken),
            (vec![Outcome::No, Outcome::No, Outcome::No], Obstacle::Taken),
            (vec![Outcome::Yes, Outcome::No, refused()], Obstacle::Mixed),
            (vec![Outcome::No, refused(), refused()], Obstacle::Mixed),
            (vec![Outcome::Yes, silent(), refused()], Obstacle::Unreachable),
            (vec![refused(), refused(), refused()], Obstacle::Unreachable),
        ];
        for (outcomes, obstacle) in cases {
            assert_eq!(report(outcomes.clone()).obstacle(), obstacle, "{outcomes:?}");
        }
    }
}
