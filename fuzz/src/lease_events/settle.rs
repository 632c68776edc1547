//! The end of every input: whatever is under way comes to an end in time.

use std::time::Duration;

use redlock_core::{Instant, Patience};

use super::contender::Contender;
use super::setup::ms;
use super::world::World;

pub(crate) fn settle(world: &mut World) {
    end_requests(world);
    abandon(world);
    if world.nodes.is_some() {
        answer_all(world);
    }
    forget(world);
    for contender in &mut world.contenders {
        contender.drain_twin();
        contender.promises().check_taken_back();
    }
}

/// Nobody answers any more, and timers are handled on time: every request ends by its deadline.
fn end_requests(world: &mut World) {
    let deadlines: Vec<Instant> =
        world.contenders.iter().map(|contender| deadline(contender, world.now)).collect();
    for _ in 0..MOST_STEPS {
        let pending =
            world.contenders.iter().enumerate().filter(|(_, contender)| contender.promises().is_pending());
        let next = pending.map(|(who, contender)| {
            let (at, _) = contender.machine().next_timeout().expect("a timer for what is pending");
            (at.max(contender.now()), who)
        });
        let Some((at, who)) = next.min() else { return };
        world.now = world.now.max(at);
        assert!(world.now <= deadlines[who], "pending at {at:?}, after {:?}", deadlines[who]);
        world.contenders[who].timeout(world.now);
        world.check();
    }
    panic!("requests without an end");
}

/// By when all that is pending has to end, counted from `now`.
fn deadline(contender: &Contender, now: Instant) -> Instant {
    let config = contender.machine().spec().config();
    let (now, round, pause) = (contender.now().max(now), config.operation_timeout(), config.retry_delay());
    match contender.promises().acquiring() {
        // A round each, and a pause of up to 150 % in between; then a moment to learn why.
        Some(Patience::Attempts(attempts)) => {
            let attempt = round + (pause * 3 / 2).max(ms(1));
            now.saturating_add(attempt * (attempts + 1)).saturating_add(round / 10)
        }
        Some(Patience::Until(end)) => now.saturating_add(round).max(end).saturating_add(round / 10),
        // An extension may have to wait for another round.
        None if contender.promises().extension_pending() => now.saturating_add(2 * round),
        None => now.saturating_add(round),
    }
}

fn abandon(world: &mut World) {
    for contender in &mut world.contenders {
        contender.abandon(world.now.max(contender.now()));
        assert!(!contender.promises().is_pending());
    }
    world.check();
}

/// All commands arrive, the oldest first, and all answers too.
fn answer_all(world: &mut World) {
    for who in 0..world.contenders.len() {
        while let Some(position) = world.contenders[who].sent.oldest(u8::MAX) {
            super::step::answer_honestly(world, who, position);
        }
    }
    world.check();
    world.check_clean();
}

/// Time passes until nothing is waited for.
fn forget(world: &mut World) {
    for contender in &mut world.contenders {
        let mut last = Duration::ZERO;
        while let Some((at, _)) = contender.machine().next_timeout() {
            assert!(at.since_epoch() > last, "no progress");
            last = at.since_epoch();
            contender.timeout(at);
        }
        assert!(contender.machine().is_settled(), "not settled: {:?}", contender.machine().state());
    }
}

const MOST_STEPS: usize = 10_000;
