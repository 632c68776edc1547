//! Taking back an attempt: the deletes that go out, and what the answers to them mean.

use super::outbox::Pass;
use super::round::Ballot;
use super::{LeaseMachine, Phase};
use crate::intent::Kind;
use crate::reply::read;
use crate::{CommandId, Fault, NodeId, Reply};

impl LeaseMachine {
    /// Sends a delete of the current token to EVERY node, whatever it answered: a lost reply is not a
    /// lost command. From here on the attempt lives in the log of what is being taken back.
    ///
    /// With `ask`, that is a pass whose answers are counted.
    pub(super) fn take_back(&mut self, ask: bool) {
        let pass = self.pass();
        // By then a key that was set in time has expired by any clock that the drift allows for.
        let forget_at = pass.deadline.saturating_add(self.spec.longest_life());
        let first = self.outbox.send(pass);
        for (record, number) in self.records.iter_mut().zip(0_u8..) {
            let (node, delete) = (NodeId::new(number), first.after(number));
            if self.undo.open(node, pass.attempt, record.coming(), delete, forget_at) {
                self.stats.0.forgotten_cleanups += 1;
            }
            record.clear();
            if ask {
                record.ballot = Ballot::Open(delete);
            }
        }
        self.extensions.clear();
    }

    pub(super) fn answer_undo(&mut self, position: usize, id: CommandId, reply: Result<Reply, Fault>) {
        let acquires = self.undo.acquires(position, id);
        let vote = read(if acquires { self.acquire_kind() } else { Kind::CompareAndDelete }, reply);
        let (outbox, spec, now) = (&mut self.outbox, &self.spec, self.now);
        let answered = self.undo.answer(position, id, &vote, |node, attempt| {
            let deadline = now.saturating_add(spec.operation_timeout());
            let (ttl, next) = (spec.config().ttl(), node.number());
            let end = next.saturating_add(1);
            outbox.send(Pass { deadline, ttl, attempt, kind: Kind::CompareAndDelete, next, end })
        });
        match (answered, &self.phase) {
            // Stragglers of earlier attempts say nothing about this lease.
            (Some(answered), Phase::Releasing) if answered.attempt == self.attempt => {
                self.answer_release(answered, id, vote);
            }
            // Only an acquire of the attempt that failed last has a ballot to fill.
            (Some(answered), Phase::Acquiring(_)) => self.explain_failure(answered.node, id, vote),
            _ => {}
        }
    }
}
