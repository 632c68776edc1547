//! Taking turns with other processes, as far as one can see them.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use redlock_core::Instant;

/// What a manager remembers of the contention for the resources that its callers have had lately.
///
/// Whoever asks for a lease right behind its own release comes before everybody who waits: they first have to
/// hear of it. Among those who have heard, the fastest would win, and it would be the same one each time. So
/// whoever had to wait for a lease counts how many other managers had it meanwhile, and after its own lets as
/// many go before: it rests until it has seen them, or for as long as it took them the last time, or until those
/// who had their turn even longer ago could have come and did not. So contenders take turns. The count is made
/// anew each time, and follows when some leave or come.
///
/// Who has never had to wait knows of no others. From time to time it makes a short pause, in which they can
/// get in: seldom, if nobody does.
///
/// It is a courtesy and no part of the promise. It covers the resources that were had lately, up to [`PLACES`]
/// of them; what is forgotten is asked for without any.
#[derive(Debug, Default)]
pub(crate) struct Courtesy {
    /// Made when the first of them is needed. Each has a lock of its own: every lease of a manager comes here.
    places: OnceLock<Box<[Mutex<Option<Place>>]>>,
}

#[derive(Debug)]
struct Place {
    resource: Arc<str>,
    memory: Memory,
}

#[derive(Clone, Copy, Debug)]
struct Memory {
    /// When our last lease was over; none while there is one.
    over: Option<Instant>,
    /// How many others had the lease between our last two.
    others: u32,
    /// And how long that took them.
    meanwhile: Duration,
    /// Since when nobody but us has had it, as far as we know.
    alone_since: Instant,
    /// When others were last given time to get in, and for how long to be alone before the next time.
    looked: Instant,
    next_look: Duration,
    /// There were others, and no seeing them.
    unseen: bool,
}

/// What to do before asking for a resource that one of us has just had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    /// Let so many others have it first, but not longer than until then.
    Others(u32, Instant),
    /// Wait until then.
    Until(Instant),
}

/// How a lease was won.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// At once.
    None,
    /// After a wait in which so many others were seen to have it.
    Seen(u32),
    /// After a wait in which nothing could be seen.
    Unseen,
}

impl Courtesy {
    /// What to do before asking for this resource, which may have been `passed_on` to one of us who waited for
    /// it in line.
    pub(crate) fn before(
        &self,
        resource: &Arc<str>,
        passed_on: bool,
        now: Instant,
        retry_delay: Duration,
    ) -> Option<Rest> {
        let mut place = self.at(resource)?;
        let place = place.as_mut().filter(|place| place.resource == *resource)?;
        let memory = &mut place.memory;
        let over = memory.over?;
        let alone = now.saturating_since(memory.alone_since);
        if memory.unseen && alone > retry_delay {
            // As long as the longest pause of one who asks again and again.
            return after(over, retry_delay.saturating_mul(3) / 2, now);
        }
        if now.saturating_since(over) > LATELY {
            return None;
        }
        if memory.others > 0 {
            return Some(Rest::Others(memory.others, over.saturating_add(memory.meanwhile)));
        }
        // A line here moves on without a rest for as long as may be.
        let next_look = if passed_on { LAST_LOOK } else { memory.next_look };
        if now.saturating_since(memory.looked) > next_look {
            memory.next_look = memory.next_look.saturating_mul(2).min(LAST_LOOK);
            memory.looked = now;
            return after(over, HEAD_START, now);
        }
        None
    }

    /// One of us has it.
    pub(crate) fn won(&self, resource: &Arc<str>, now: Instant, wait: Wait) {
        let Some(mut place) = self.at(resource) else { return };
        let fresh = || Place {
            resource: Arc::clone(resource),
            memory: Memory {
                over: None,
                others: 0,
                meanwhile: LATELY,
                alone_since: now,
                looked: now,
                next_look: FIRST_LOOK,
                unseen: false,
            },
        };
        if place.as_ref().is_none_or(|place| place.resource != *resource) {
            *place = None;
        }
        let memory = &mut place.get_or_insert_with(fresh).memory;
        let others = match wait {
            Wait::None | Wait::Unseen => 0,
            Wait::Seen(others) => others.min(MOST_OTHERS),
        };
        let lately = memory.over.is_some_and(|over| now.saturating_since(over) <= LATELY);
        if others > 0 || wait == Wait::Unseen || !lately {
            (memory.alone_since, memory.looked, memory.next_look) = (now, now, FIRST_LOOK);
        }
        memory.unseen = match wait {
            Wait::Unseen => true,
            Wait::Seen(_) => false,
            // It may have been mere luck, until a rest has shown that it was not.
            Wait::None => memory.unseen && lately,
        };
        if let Some(over) = memory.over {
            memory.meanwhile = now.saturating_since(over);
        }
        (memory.others, memory.over) = (others, None);
    }

    /// And has it no more.
    pub(crate) fn over(&self, resource: &Arc<str>, now: Instant) {
        let Some(mut place) = self.at(resource) else { return };
        if let Some(place) = place.as_mut().filter(|place| place.resource == *resource) {
            place.memory.over = Some(now);
        }
    }

    /// The place of a resource, which it may share with others.
    fn at(&self, resource: &str) -> Option<MutexGuard<'_, Option<Place>>> {
        let places = self.places.get_or_init(|| (0..PLACES).map(|_| Mutex::default()).collect());
        // FNV-1a: short, and nothing depends on it but who shares a place.
        let mix = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        let hash = resource.bytes().fold(0xcbf2_9ce4_8422_2325, mix);
        let place = places.get(usize::try_from(hash % PLACES as u64).ok()?)?;
        Some(place.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// For how long to leave a free key to others, for one who is to let `expected` of them go first and has seen
/// `seen`: the longer the fewer it has seen, so that of several who do so the one goes first whose turn was the
/// longest ago. Who has just had it leaves time for everybody to hear of that.
pub(crate) fn leave(expected: u32, seen: u32) -> Option<Duration> {
    let left = expected.checked_sub(seen).filter(|left| *left > 0)?;
    let head_start = if seen == 0 { HEAD_START } else { Duration::ZERO };
    Some(head_start.saturating_add(STEP.saturating_mul(left)))
}

/// What is left of this span after an instant.
fn after(instant: Instant, span: Duration, now: Instant) -> Option<Rest> {
    let end = instant.saturating_add(span);
    (end > now).then_some(Rest::Until(end))
}

/// How many resources are remembered.
const PLACES: usize = 256;

/// The most that one lets go before oneself.
pub(crate) const MOST_OTHERS: u32 = 32;

/// For how long after its lease somebody counts as one who asks again at once.
const LATELY: Duration = Duration::from_millis(100);

/// How long it may take everybody to hear that a key is free, and to ask for it.
const HEAD_START: Duration = Duration::from_millis(1);

/// How far apart those come who leave each other a free key.
const STEP: Duration = Duration::from_micros(250);

const FIRST_LOOK: Duration = Duration::from_millis(10);
const LAST_LOOK: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;
