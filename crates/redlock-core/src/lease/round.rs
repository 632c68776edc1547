//! One parallel pass over all nodes, and what its answers add up to.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;

use crate::{
    CommandId, Fault, Instant, LeaseSpec, NodeId, NodeReport, Operation, Outcome, QuorumError, Ttl, quorum,
};

/// The pass that is under way, or the last one. There is never more than one that can still decide
/// anything, so the machine keeps a single value and begins it anew.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Round {
    pub(super) operation: Operation,
    /// The `now` of the input that sent the commands: what validity counts from.
    pub(super) started: Instant,
    pub(super) deadline: Instant,
    /// Whether its outcome is still wanted.
    pub(super) live: bool,
    ballots: Vec<Ballot>,
}

/// What one node said.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Ballot {
    Open(CommandId),
    /// Done, with a ttl that the key lives at least, counted from the start of the round.
    Yes(Ttl),
    No,
    /// Rare: so rare that the others need not be as large.
    Fault(Box<Fault>),
}

/// What the answers so far add up to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It can still go either way.
    Pending,
    /// A quorum said yes.
    Won,
    /// A quorum is impossible.
    Failed,
}

impl Round {
    pub(super) fn new(nodes: usize) -> Self {
        Self {
            operation: Operation::Acquire,
            started: Instant::EPOCH,
            deadline: Instant::EPOCH,
            live: false,
            ballots: Vec::with_capacity(nodes),
        }
    }

    /// Begins a pass; the ballots are then added in the order of the nodes.
    pub(super) fn begin(&mut self, operation: Operation, started: Instant, deadline: Instant) {
        self.operation = operation;
        self.started = started;
        self.deadline = deadline;
        self.live = true;
        self.ballots.clear();
    }

    pub(super) fn ask(&mut self, id: CommandId) {
        self.ballots.push(Ballot::Open(id));
    }

    /// Files the answer to a command of this pass. An answer to any other command changes nothing.
    pub(super) fn record(&mut self, id: CommandId, answer: Ballot) {
        if let Some(ballot) =
            self.ballots.iter_mut().find(|ballot| matches!(ballot, Ballot::Open(open) if *open == id))
        {
            *ballot = answer;
        }
    }

    /// Waits for another command to this node, instead of the one that was answered.
    pub(super) fn ask_again(&mut self, node: NodeId, id: CommandId) {
        if let Some(ballot) = self.ballots.get_mut(node.index()) {
            *ballot = Ballot::Open(id);
        }
    }

    pub(super) fn ballots(&self) -> &[Ballot] {
        &self.ballots
    }

    pub(super) fn count(&self, which: impl Fn(&Ballot) -> bool) -> usize {
        self.ballots.iter().filter(|ballot| which(ballot)).count()
    }

    pub(super) fn open(&self) -> usize {
        self.count(|ballot| matches!(ballot, Ballot::Open(_)))
    }

    pub(super) fn yes(&self) -> usize {
        self.count(|ballot| matches!(ballot, Ballot::Yes(_)))
    }

    /// Decides as early as it can be decided, both ways. When the deadline has passed, a node that has
    /// not answered counts as one that never will.
    pub(super) fn verdict(&self, now: Instant) -> Verdict {
        let required = quorum(self.ballots.len());
        let hoped_for = if now < self.deadline { self.open() } else { 0 };
        if self.yes() >= required {
            Verdict::Won
        } else if self.yes() + hoped_for < required {
            Verdict::Failed
        } else {
            Verdict::Pending
        }
    }

    /// The longest ttl that a quorum of nodes is known to grant: the quorum-th largest of theirs.
    pub(super) fn quorum_ttl(&self) -> Option<Ttl> {
        let granted = || {
            self.ballots.iter().filter_map(|ballot| match ballot {
                Ballot::Yes(ttl) => Some(*ttl),
                Ballot::Open(_) | Ballot::No | Ballot::Fault(_) => None,
            })
        };
        let required = quorum(self.ballots.len());
        granted().filter(|ttl| granted().filter(|other| other >= ttl).count() >= required).max()
    }

    /// The answers as a report. A node that is still open was silent if its time is up, else it was
    /// simply not needed.
    pub(super) fn report(&self, spec: &LeaseSpec, succeeded: usize, now: Instant) -> QuorumError {
        let waited: Duration = self.deadline.saturating_since(self.started);
        let outcome = |ballot: &Ballot| match ballot {
            Ballot::Open(_) if now < self.deadline => Outcome::NotAwaited,
            Ballot::Open(_) => Outcome::Silent { waited },
            Ballot::Yes(_) => Outcome::Yes,
            Ballot::No => Outcome::No,
            Ballot::Fault(fault) => Outcome::Fault((**fault).clone()),
        };
        let nodes = (self.ballots.iter().zip(spec.nodes().iter()).zip(0_u8..))
            .map(|((ballot, name), index)| NodeReport {
                node: NodeId::new(index),
                name: name.clone(),
                outcome: outcome(ballot),
            })
            .collect();
        QuorumError { operation: self.operation, succeeded, required: spec.quorum(), nodes }
    }

    /// The report of a pass in which success is a yes.
    pub(super) fn failure(&self, spec: &LeaseSpec, now: Instant) -> QuorumError {
        self.report(spec, self.yes(), now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(answers: &[Option<Ballot>]) -> Round {
        let mut round = Round::new(answers.len());
        round.begin(Operation::Acquire, Instant::EPOCH, Instant::from_epoch(Duration::from_secs(1)));
        for (answer, number) in answers.iter().zip(0..) {
            round.ask(CommandId::new(number));
            if let Some(answer) = answer {
                round.record(CommandId::new(number), answer.clone());
            }
        }
        round
    }

    fn ttl(millis: u64) -> Ttl {
        Ttl::from_millis(millis).unwrap()
    }

    /// Every possible set of answers of up to seven nodes against the definition, spelt out.
    #[test]
    fn the_verdict_is_the_earliest_certain_one() {
        for nodes in [1_u32, 3, 5, 7] {
            for code in 0..3_u32.pow(nodes) {
                let answers: Vec<Option<Ballot>> = (0..nodes)
                    .map(|node| match code / 3_u32.pow(node) % 3 {
                        0 => None,
                        1 => Some(Ballot::Yes(ttl(1))),
                        _ => Some(Ballot::No),
                    })
                    .collect();
                let required = nodes as usize / 2 + 1;
                let yes = answers.iter().filter(|answer| matches!(answer, Some(Ballot::Yes(_)))).count();
                let no = answers.iter().filter(|answer| matches!(answer, Some(Ballot::No))).count();
                let naive = if yes >= required {
                    Verdict::Won
                } else if nodes as usize - no < required {
                    Verdict::Failed
                } else {
                    Verdict::Pending
                };
                let round = round(&answers);
                assert_eq!(round.verdict(Instant::EPOCH), naive, "{answers:?}");
                assert_ne!(round.verdict(round.deadline), Verdict::Pending);
            }
        }
    }

    #[test]
    fn one_node_counts_once() {
        let mut round = round(&[Some(Ballot::Yes(ttl(1))), None, None]);
        round.record(CommandId::new(0), Ballot::Yes(ttl(1)));
        round.record(CommandId::new(99), Ballot::Yes(ttl(1)));
        assert_eq!(round.verdict(Instant::EPOCH), Verdict::Pending);
    }

    #[test]
    fn the_ttl_of_a_quorum_is_what_a_quorum_grants_at_least() {
        let round = round(&[
            Some(Ballot::Yes(ttl(10))),
            Some(Ballot::Yes(ttl(30))),
            Some(Ballot::Yes(ttl(20))),
            Some(Ballot::Yes(ttl(5))),
            None,
        ]);
        assert_eq!(round.quorum_ttl(), Some(ttl(10)));
    }
}
