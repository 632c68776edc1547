//! Anything that can happen to a few leases, in any order.

mod contender;
mod honest;
mod promises;
mod reply;
mod sent;
mod settle;
mod setup;
mod step;
mod world;

use crate::bytes::Bytes;
use world::World;

/// Makes one to three contenders for one lock, on one, three or five nodes, and lets happen what `data` says:
/// requests, answers, silence, hints, and the passing of time.
///
/// In half of the inputs the nodes are honest: they are [`MemoryNode`]s, whose clocks run as fast or as slowly
/// as the drift factor allows, behind a network that delays, reorders and loses. In the other half they answer
/// whatever they like, twice if they like, and the clock jumps, back as well. Then, checked after every step:
///
/// - Nothing panics, and no assertion of the core fails.
/// - A lease is won, extended and renewed only after a quorum of nodes said yes to that very round, and only
///   until the start of the round + ttl - drift.
/// - It ends no later than it was said to, and grows only by an extension; it is lost only for a reason that
///   there is.
/// - Each request ends with exactly one event that says how, by its deadline if timers are handled on time.
/// - After `handle_timeout(t)` the next timeout lies after `t`.
/// - No input adds more outputs than the documented bound, and draining late gives the same outputs.
/// - Every attempt has a token of its own and is taken back at every node; keys of a lease that is held are not.
/// - A request that the state does not allow, and an answer that is not waited for, change nothing.
/// - Hints bring no news and move no attempt. They lead to one attempt each at most, and outside a pause to nothing.
/// - In the end, everything settles.
/// - With honest nodes: never two holders, a quorum backs the one there is to its end, fencing tokens increase,
///   and if nothing was lost on the way, no key is left.
///
/// [`MemoryNode`]: redlock_core::MemoryNode
pub fn lease_events(data: &[u8]) {
    let mut bytes = Bytes::new(data.get(..LONGEST).unwrap_or(data));
    let mut world = World::new(&setup::decode(&mut bytes));
    while !bytes.is_empty() {
        step::take(&mut world, &mut bytes);
        world.check();
    }
    settle::settle(&mut world);
}

/// What follows in an input is ignored: long inputs are slow, and find nothing that short ones do not.
const LONGEST: usize = 512;
