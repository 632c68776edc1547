//! Between two attempts: being told that a node's key may have gone.

use core::time::Duration;

use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};

use super::acquire::{Attempt, Pause, SHORTEST};
use super::record::Record;
use super::round::{Ballot, Sum};
use super::{LeaseMachine, Phase};
use crate::{Instant, NodeId};

/// How long at most hints are passed over after a first split. Long against the time that contenders are apart
/// who were woken by the same release, and short against a pause.
const DEAFNESS: Duration = Duration::from_millis(8);

/// The input.
impl LeaseMachine {
    /// The key of `node` may have gone: it was released, or it has expired.
    ///
    /// A hint is no evidence. It may be lost, late, wrong or given twice, and from a node that says nothing
    /// of that kind none need come. All that it can do is to cut short the pause after a failed attempt:
    /// when as many nodes as a quorum may be free, because they said yes to that attempt or were hinted at
    /// since, another attempt is made at once. Outside a pause it changes nothing.
    ///
    /// - A hinted attempt is none of the [`Patience::Attempts`](crate::Patience::Attempts) and does not move
    ///   the schedule. The next attempt comes when it would have come without hints, and ends a hinted one
    ///   that is still undecided. With less than a millisecond to go until then, none is begun.
    /// - Each set of hints is good for one attempt: after that has failed, new ones are needed, and a node
    ///   counts once. So `n` hints bring about `n` attempts at most, and after an attempt without any votes a
    ///   whole quorum has to be hinted at.
    /// - After a split, which is an attempt that got votes but no quorum, the beginning of the pause is deaf to
    ///   hints: for a random part of 8 ms, of twice as much after each further split that hints bring about, but never for
    ///   more than half of what is left. The contenders who shared out the votes take them back at the
    ///   same moment, each of them a hint to the others. If these were taken, all would ask again together and
    ///   share them out anew, for as long as they are in step; the random part is what gets them out of it. A
    ///   vote may also be late news of a lease that has just been given back, and then there is nothing to wait
    ///   for, so the first deafness is short.
    /// - After an attempt that had a quorum, but too late, hints are of no use: nobody was in the way.
    pub fn handle_hint(&mut self, now: Instant, node: NodeId) {
        self.input(now, |machine| machine.take_hint(node));
    }

    /// The nodes at which to watch the key now: those that said in the last attempt that somebody has it,
    /// and that were not hinted at since. None outside a pause, and none in a pause that they could not cut
    /// short. Costs nothing but a look at each node.
    ///
    /// Each pause follows an attempt of its own, so [`token`](Self::token) tells one from another.
    pub fn watched(&self) -> impl Iterator<Item = NodeId> + '_ {
        let help = self.pause().is_some() && self.taken().count() + self.may_be_free() >= self.spec.quorum();
        self.taken().filter(move |_| help)
    }
}

impl LeaseMachine {
    fn take_hint(&mut self, node: NodeId) {
        let Some(pause) = self.pause() else { return };
        if self.now < self.deaf_until(pause) {
            return;
        }
        match self.records.get_mut(node.index()) {
            Some(record) if !record.hinted => record.hinted = true,
            Some(_) | None => return,
        }
        let in_time = pause.retry_at.saturating_since(self.now) >= SHORTEST;
        if in_time && self.may_be_free() >= self.spec.quorum() {
            let Pause { retry_at, splits, .. } = pause;
            self.begin_attempt(Attempt::Hinted { retry_at, splits });
        }
    }

    /// The pause between two attempts, if there is one and hints can be of use in it.
    fn pause(&self) -> Option<Pause> {
        let pause = match &self.phase {
            Phase::Acquiring(acquiring) => acquiring.pause()?,
            Phase::Idle | Phase::Held(_) | Phase::Lost(_) | Phase::Releasing => return None,
        };
        (Sum::of(&self.records).yes < self.spec.quorum()).then_some(pause)
    }

    /// Until when hints are passed over.
    fn deaf_until(&self, pause: Pause) -> Instant {
        if Sum::of(&self.records).yes == 0 {
            return pause.since;
        }
        let half = pause.retry_at.saturating_since(pause.since) / 2;
        let longest = DEAFNESS.saturating_mul(1_u32.checked_shl(pause.splits.into()).unwrap_or(u32::MAX));
        let most = u64::try_from(longest.min(half).as_nanos()).unwrap_or(u64::MAX);
        // Another one for each attempt, and the same one for each look.
        let mut random = SmallRng::seed_from_u64(self.seed ^ u64::from(self.attempt).rotate_left(48));
        pause.since.saturating_add(Duration::from_nanos(random.random_range(0..=most)))
    }

    /// How many nodes may be free: they said yes, and are being cleaned up, or were hinted at since.
    fn may_be_free(&self) -> usize {
        let free = |record: &&Record| matches!(record.ballot, Ballot::Yes(_)) || record.hinted;
        self.records.iter().filter(free).count()
    }

    /// The nodes where somebody else's key was in the way, and may still be.
    fn taken(&self) -> impl Iterator<Item = NodeId> + '_ {
        let nodes = self.records.iter().zip(0_u8..);
        nodes
            .filter(|(record, _)| matches!(record.ballot, Ballot::No) && !record.hinted)
            .map(|(_, node)| NodeId::new(node))
    }

    pub(super) fn forget_hints(&mut self) {
        self.records.iter_mut().for_each(|record| record.hinted = false);
    }
}

#[cfg(test)]
mod tests {
    use alloc::sync::Arc;
    use alloc::vec::Vec;
    use core::time::Duration;

    use super::*;
    use crate::{Command, CommandId, Config, LeaseSpec, Output, Patience, Reply, Token};

    const LATER: Instant = Instant::from_epoch(Duration::from_millis(20));

    fn drain(machine: &mut LeaseMachine) {
        while !matches!(machine.poll_output(), Output::Wait(_)) {}
    }

    /// In the pause after an attempt to which no node said yes.
    fn pausing(nodes: u64) -> LeaseMachine {
        let names: Vec<Arc<str>> = (0..nodes).map(|node| alloc::format!("n{node}").into()).collect();
        let spec = LeaseSpec::new("lock", names, Config::default()).unwrap();
        let mut machine = LeaseMachine::new(spec, Token::from_bytes([7; Token::LEN]), 1);
        machine.acquire(Instant::EPOCH, Patience::Attempts(2)).unwrap();
        drain(&mut machine);
        for id in 0..nodes {
            machine.handle_reply(Instant::EPOCH, CommandId::new(id), Ok(Reply::Nil));
        }
        drain(&mut machine);
        machine
    }

    #[test]
    fn as_many_hints_as_a_quorum_of_the_most_nodes_that_there_can_be() {
        let mut machine = pausing(255);
        let before = machine.token();
        for node in (0..127).chain(0..127) {
            machine.handle_hint(LATER, NodeId::new(node));
        }
        assert_eq!((machine.token(), machine.watched().count()), (before, 128), "one is missing");
        machine.handle_hint(LATER, NodeId::new(254));
        assert_eq!(machine.token(), before.for_attempt(1));
        assert_eq!(machine.watched().count(), 0);
    }

    /// Each time one node says yes and the others no, and at each millisecond everybody hints.
    #[test]
    fn those_who_share_out_the_votes_do_not_keep_each_other_awake() {
        let mut machine = pausing(3);
        let retry_at = machine.next_timeout().map(|(at, _)| at).unwrap();
        let mut attempts = 0;
        for millis in 1..retry_at.since_epoch().as_millis() as u64 {
            let now = Instant::from_epoch(Duration::from_millis(millis));
            (0..3).for_each(|node| machine.handle_hint(now, NodeId::new(node)));
            while let Output::Send(Command { id, node, intent, .. }) = machine.poll_output() {
                if intent.acquires() {
                    attempts += u32::from(node == NodeId::new(0));
                    let vote = if node == NodeId::new(0) { Reply::Ok } else { Reply::Nil };
                    machine.handle_reply(now, id, Ok(vote));
                }
            }
            drain(&mut machine);
        }
        // The deaf times double, until they are half of what is left, of which each leaves half.
        assert!((5..=20).contains(&attempts), "{attempts}");
    }

    #[test]
    fn what_hints_left_ends_with_the_request() {
        let (mut hinted, mut unhinted) = (pausing(3), pausing(3));
        hinted.handle_hint(LATER, NodeId::new(1));
        assert_ne!(hinted, unhinted);
        hinted.abandon(LATER);
        unhinted.abandon(LATER);
        assert_eq!(hinted, unhinted);
    }

    #[test]
    fn whoever_watches_is_told_where() {
        let mut machine = pausing(3);
        let watched = |machine: &LeaseMachine| machine.watched().map(NodeId::index).collect::<Vec<_>>();
        // The third was not waited for; its answer came all the same.
        assert_eq!(watched(&machine), [0, 1, 2]);
        machine.handle_hint(LATER, NodeId::new(1));
        assert_eq!(watched(&machine), [0, 2]);
        machine.handle_hint(LATER, NodeId::new(0));
        assert_eq!(watched(&machine), []);
    }
}
