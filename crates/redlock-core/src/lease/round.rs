//! One parallel pass over all nodes, and what its answers add up to.

use alloc::boxed::Box;
use core::time::Duration;

use super::record::Record;
use crate::{
    CommandId, Fault, Instant, LeaseSpec, NodeId, NodeReport, Operation, Outcome, QuorumError, Ttl, quorum,
};

/// The pass that is under way, or the last one. There is never more than one that can still decide
/// anything, so the machine keeps a single value and begins it anew. What the nodes said in it is kept with
/// each of them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Round {
    pub(super) operation: Operation,
    /// The `now` of the input that sent the commands: what validity counts from.
    pub(super) started: Instant,
    pub(super) deadline: Instant,
    /// Whether its outcome is still wanted.
    pub(super) live: bool,
}

/// What one node said in the last pass.
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

/// How many nodes said yes, and how many have not answered.
#[derive(Clone, Copy)]
pub(super) struct Sum {
    pub(super) yes: usize,
    pub(super) open: usize,
}

impl Sum {
    pub(super) fn of(records: &[Record]) -> Self {
        let mut sum = Self { yes: 0, open: 0 };
        for record in records {
            sum.yes += usize::from(matches!(record.ballot, Ballot::Yes(_)));
            sum.open += usize::from(matches!(record.ballot, Ballot::Open(_)));
        }
        sum
    }
}

impl Round {
    pub(super) const fn new() -> Self {
        Self { operation: Operation::Acquire, started: Instant::EPOCH, deadline: Instant::EPOCH, live: false }
    }

    /// Begins a pass; whoever sends the commands opens the ballots.
    pub(super) const fn begin(&mut self, operation: Operation, started: Instant, deadline: Instant) {
        *self = Self { operation, started, deadline, live: true };
    }

    /// Decides as early as it can be decided, both ways. When the deadline has passed, a node that has
    /// not answered counts as one that never will.
    pub(super) fn verdict(&self, records: &[Record], now: Instant) -> Verdict {
        let required = quorum(records.len());
        let Sum { yes, open } = Sum::of(records);
        if yes >= required {
            Verdict::Won
        } else if yes + if now < self.deadline { open } else { 0 } < required {
            Verdict::Failed
        } else {
            Verdict::Pending
        }
    }

    /// The answers as a report. A node that is still open was silent if its time is up, else it was
    /// simply not needed.
    pub(super) fn report(
        &self,
        spec: &LeaseSpec,
        records: &[Record],
        succeeded: usize,
        now: Instant,
    ) -> QuorumError {
        let waited: Duration = self.deadline.saturating_since(self.started);
        let outcome = |ballot: &Ballot| match ballot {
            Ballot::Open(_) if now < self.deadline => Outcome::NotAwaited,
            Ballot::Open(_) => Outcome::Silent { waited },
            Ballot::Yes(_) => Outcome::Yes,
            Ballot::No => Outcome::No,
            Ballot::Fault(fault) => Outcome::Fault((**fault).clone()),
        };
        let nodes = (records.iter().zip(spec.nodes().iter()).zip(0_u8..))
            .map(|((record, name), index)| NodeReport {
                node: NodeId::new(index),
                name: name.clone(),
                outcome: outcome(&record.ballot),
            })
            .collect();
        QuorumError { operation: self.operation, succeeded, required: spec.quorum(), nodes }
    }

    /// The report of a pass in which success is a yes.
    pub(super) fn failure(&self, spec: &LeaseSpec, records: &[Record], now: Instant) -> QuorumError {
        self.report(spec, records, Sum::of(records).yes, now)
    }
}

/// The longest ttl that a quorum of nodes is known to grant: the quorum-th largest of theirs.
pub(super) fn quorum_ttl(records: &[Record]) -> Option<Ttl> {
    let granted = || {
        records.iter().filter_map(|record| match &record.ballot {
            Ballot::Yes(ttl) => Some(*ttl),
            Ballot::Open(_) | Ballot::No | Ballot::Fault(_) => None,
        })
    };
    let required = quorum(records.len());
    granted().filter(|ttl| granted().filter(|other| other >= ttl).count() >= required).max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn round(answers: &[Option<Ballot>]) -> (Round, Vec<Record>) {
        let mut round = Round::new();
        round.begin(Operation::Acquire, Instant::EPOCH, Instant::from_epoch(Duration::from_secs(1)));
        let record = |(answer, number): (&Option<Ballot>, u64)| {
            let mut record = Record::new();
            record.ask_acquire(CommandId::new(number));
            if let Some(answer) = answer {
                record.answer_ballot(CommandId::new(number), answer.clone());
            }
            record
        };
        (round, answers.iter().zip(0..).map(record).collect())
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
                let (round, records) = round(&answers);
                assert_eq!(round.verdict(&records, Instant::EPOCH), naive, "{answers:?}");
                assert_ne!(round.verdict(&records, round.deadline), Verdict::Pending);
            }
        }
    }

    #[test]
    fn one_node_counts_once() {
        let (round, mut records) = round(&[Some(Ballot::Yes(ttl(1))), None, None]);
        for record in &mut records {
            record.answer_ballot(CommandId::new(0), Ballot::Yes(ttl(1)));
            record.answer_ballot(CommandId::new(99), Ballot::Yes(ttl(1)));
        }
        assert_eq!(round.verdict(&records, Instant::EPOCH), Verdict::Pending);
    }

    #[test]
    fn the_ttl_of_a_quorum_is_what_a_quorum_grants_at_least() {
        let (_, records) = round(&[
            Some(Ballot::Yes(ttl(10))),
            Some(Ballot::Yes(ttl(30))),
            Some(Ballot::Yes(ttl(20))),
            Some(Ballot::Yes(ttl(5))),
            None,
        ]);
        assert_eq!(quorum_ttl(&records), Some(ttl(10)));
    }
}
