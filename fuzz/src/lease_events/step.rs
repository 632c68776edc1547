//! One thing that happens, read from a few bytes.

use std::time::Duration;

use redlock_core::{CommandId, Fault, Instant, NodeId, Patience, Reply, Ttl};

use super::reply;
use super::setup::ms;
use super::world::World;
use crate::bytes::Bytes;

pub(crate) fn take(world: &mut World, bytes: &mut Bytes<'_>) {
    let kind = bytes.below(32);
    let who = usize::from(bytes.byte()) % world.contenders.len();
    match kind {
        0..=2 => acquire(world, who, bytes),
        3..=5 => extend(world, who, bytes),
        6..=7 => world.contenders[who].release(world.now),
        8 => world.contenders[who].abandon(world.now),
        9..=14 => answer_oldest(world, who, bytes),
        15..=18 => answer_one(world, who, bytes),
        19..=20 => execute(world, who, bytes.byte()),
        21 => lose_request(world, who, bytes),
        22 => lose_answer(world, who, bytes),
        23 => answer_again(world, who, bytes),
        24 => world.contenders[who].drain_twin(),
        25 => world.pass(Duration::from_micros(u64::from(bytes.byte()))),
        26..=27 => world.pass(ms(u64::from(bytes.byte()))),
        28 => world.contenders[who].timeout(world.now),
        29 => pass_to_timer(world, who),
        30 => hint(world, who, bytes.byte()),
        _ => jump(world, bytes),
    }
}

fn acquire(world: &mut World, who: usize, bytes: &mut Bytes<'_>) {
    let patience = match bytes.byte() {
        attempts @ 0..=127 => Patience::Attempts(u32::from(attempts % 8)),
        // A few attempts' worth of time.
        eighths => {
            let config = world.contenders[who].machine().spec().config();
            let attempt = config.operation_timeout() + config.retry_delay();
            Patience::Until(world.now.saturating_add(attempt * u32::from(eighths % 32) / 8))
        }
    };
    world.contenders[who].acquire(world.now, patience);
}

fn extend(world: &mut World, who: usize, bytes: &mut Bytes<'_>) {
    let ttl = match bytes.byte() {
        // Not all of these are accepted.
        0 => Duration::ZERO,
        1 => Duration::MAX,
        2 => Ttl::MAX,
        3 => ms(1 << 40),
        byte => Duration::from_micros(2_500 * u64::from(byte)),
    };
    world.contenders[who].extend(world.now, ttl);
}

/// Answers all commands to some nodes, the oldest first.
fn answer_oldest(world: &mut World, who: usize, bytes: &mut Bytes<'_>) {
    let nodes = bytes.byte();
    let limit = 1 + nodes / 32;
    for _ in 0..limit {
        let Some(position) = world.contenders[who].sent.oldest(nodes) else { return };
        answer(world, who, position, bytes);
    }
}

fn answer_one(world: &mut World, who: usize, bytes: &mut Bytes<'_>) {
    if let Some(position) = world.contenders[who].sent.pick(bytes.byte()) {
        answer(world, who, position, bytes);
    }
}

/// The answer of an honest node, or any other.
fn answer(world: &mut World, who: usize, position: usize, bytes: &mut Bytes<'_>) {
    if world.nodes.is_some() {
        return answer_honestly(world, who, position);
    }
    let intent = &world.contenders[who].sent.get(position).command.intent;
    let reply = reply::decode(bytes, Some(intent));
    deliver(world, who, position, reply);
}

pub(crate) fn answer_honestly(world: &mut World, who: usize, position: usize) {
    carry_out(world, who, position);
    if let Some(reply) = world.contenders[who].sent.get(position).answer.clone() {
        deliver(world, who, position, Ok(reply));
    }
}

fn deliver(world: &mut World, who: usize, position: usize, reply: Result<Reply, Fault>) {
    let id = world.contenders[who].sent.get(position).command.id;
    world.contenders[who].sent.close(position);
    world.contenders[who].reply(world.now, id, reply);
}

/// The node carries a command out, and the answer stays under way.
fn execute(world: &mut World, who: usize, number: u8) {
    if let Some(position) = world.contenders[who].sent.pick(number) {
        carry_out(world, who, position);
    }
}

fn carry_out(world: &mut World, who: usize, position: usize) {
    let sent = world.contenders[who].sent.get(position);
    if let Some(nodes) = &mut world.nodes
        && sent.answer.is_none()
    {
        let node = &mut nodes[sent.command.node.index()].node;
        sent.answer = Some(node.execute(world.now, &sent.command.key, &sent.command.intent));
    }
}

/// A command never arrives. The contender may be told.
fn lose_request(world: &mut World, who: usize, bytes: &mut Bytes<'_>) {
    let Some(position) = world.contenders[who].sent.pick(bytes.byte()) else { return };
    let sent = world.contenders[who].sent.get(position);
    if sent.answer.is_none() {
        let id = sent.command.id;
        world.lossy = true;
        world.contenders[who].sent.close(position);
        if bytes.flag() {
            world.contenders[who].reply(world.now, id, Err(reply::fault(Fault::NotExecuted)));
        }
    }
}

/// An answer never arrives, or has not by the time that the contender is told that it never will. The command
/// may still be carried out.
fn lose_answer(world: &mut World, who: usize, bytes: &mut Bytes<'_>) {
    let Some(position) = world.contenders[who].sent.pick(bytes.byte()) else { return };
    let sent = world.contenders[who].sent.get(position);
    let (id, told, executed) = (sent.command.id, bytes.flag(), sent.answer.is_some());
    world.lossy = true;
    if executed {
        world.contenders[who].sent.close(position);
    }
    if told {
        world.contenders[who].reply(world.now, id, Err(reply::fault(Fault::Unknown)));
    }
}

/// An answer to something that was answered before, or never asked.
fn answer_again(world: &mut World, who: usize, bytes: &mut Bytes<'_>) {
    let (number, reply) = (bytes.byte(), reply::decode(bytes, None));
    let sent = world.contenders[who].sent.all();
    let id = match sent.len().checked_sub(1 + usize::from(number)) {
        Some(position) if sent[position].said.is_some() => sent[position].command.id,
        Some(_) => return,
        None => CommandId::new(u64::MAX - u64::from(number)),
    };
    world.contenders[who].reply(world.now, id, reply);
}

/// To the next timer of `who`, which is handled on time.
fn pass_to_timer(world: &mut World, who: usize) {
    if let Some((at, _)) = world.contenders[who].machine().next_timeout() {
        world.pass(at.saturating_since(world.now));
        world.contenders[who].timeout(world.now);
    }
}

/// `who` is told that its key may have gone at these nodes, and perhaps at one that there is not.
fn hint(world: &mut World, who: usize, nodes: u8) {
    for node in (0..8).filter(|node| nodes & (1 << node) != 0) {
        world.contenders[who].hint(world.now, NodeId::new(node));
    }
}

/// Honest nodes come with a clock that does not jump back.
fn jump(world: &mut World, bytes: &mut Bytes<'_>) {
    let (kind, byte) = (bytes.below(4), bytes.byte());
    match kind {
        0 => world.pass(ms(u64::from(byte)) * 64),
        1 => world.pass(ms(1) * (1 << (byte % 31)) * (1 << (byte / 16))),
        2 if world.nodes.is_none() => world.now = world.now.saturating_sub(ms(u64::from(byte))),
        3 if world.nodes.is_none() => world.now = Instant::EPOCH,
        _ => world.pass(Duration::from_nanos(1)),
    }
}
