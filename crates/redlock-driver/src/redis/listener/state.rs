//! Who listens for which key, and over which connection.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::task::AtomicWaker;
use redlock_core::{Cause, CauseKind, Instant};

use super::super::backoff;
use super::super::cut::Cut;

/// What a listener knows. Guarded by a lock that is held for a few steps only, in which no foreign code runs.
pub(super) struct State<C> {
    pub(super) phase: Phase<C>,
    /// Of the last dial; the connection that it makes has the same.
    pub(super) generation: u64,
    /// When a watch last ended, or the connection was made.
    pub(super) used: Instant,
    /// When the connection was made.
    since: Instant,
    /// Dials in a row that came to nothing, and connections that were lost soon.
    failures: u32,
    watched: BTreeMap<Arc<str>, Vec<Arc<Ear>>>,
    watches: usize,
}

pub(super) enum Phase<C> {
    /// Nobody dials.
    Idle,
    /// A task dials; it ends when the signal is gone.
    Dialling { over: Arc<Cut> },
    /// A connection is there, and a task that closes it when it has been idle, or the signal is gone.
    Up { connection: C, over: Arc<Cut> },
    /// It came to nothing. Not to be dialled again before this instant.
    Resting(Instant),
    /// Closed for good.
    Closed,
}

impl<C> State<C> {
    pub(super) const fn new() -> Self {
        Self {
            phase: Phase::Idle,
            generation: 0,
            used: Instant::EPOCH,
            since: Instant::EPOCH,
            failures: 0,
            watched: BTreeMap::new(),
            watches: 0,
        }
    }

    /// Enters the phase of a dial that is about to start; yields its generation.
    pub(super) fn dial(&mut self) -> u64 {
        self.phase = Phase::Dialling { over: Arc::new(Cut::new()) };
        self.generation += 1;
        self.generation
    }

    /// The phase of the dial of this generation that has succeeded.
    pub(super) fn connected(&mut self, generation: u64, now: Instant, connection: C) -> Option<Phase<C>> {
        let Phase::Dialling { over } = &self.phase else { return None };
        if self.generation != generation {
            return None;
        }
        (self.used, self.since) = (now, now);
        Some(Phase::Up { connection, over: Arc::clone(over) })
    }

    /// Until when to let it be after a failure; `None` if that is not the first news of it.
    pub(super) fn rest(&mut self, now: Instant, cause: &Cause) -> Option<Instant> {
        match self.phase {
            Phase::Dialling { .. } => {}
            Phase::Up { .. } if now.saturating_since(self.since) < PROVEN => {}
            Phase::Up { .. } => self.failures = 0,
            Phase::Idle | Phase::Resting(_) | Phase::Closed => return None,
        }
        self.failures = self.failures.saturating_add(1);
        let refused = match cause.kind() {
            CauseKind::Rejected | CauseKind::UnexpectedReply => true,
            // Not one that passes, such as `LOADING`.
            CauseKind::Server => cause.detail().is_none_or(|error| error.starts_with("ERR")),
            _ => false,
        };
        let pause = if refused { REFUSED } else { backoff::pause(self.failures) };
        Some(now.saturating_add(pause))
    }

    pub(super) const fn is_watched(&self) -> bool {
        self.watches > 0
    }

    /// One more who listens for this key.
    pub(super) fn listen(&mut self, key: &Arc<str>) -> Option<Arc<Ear>> {
        if self.watches >= MOST_WATCHES || matches!(self.phase, Phase::Closed) {
            return None;
        }
        self.watches += 1;
        let ear = Arc::new(Ear::default());
        self.watched.entry(Arc::clone(key)).or_default().push(Arc::clone(&ear));
        Some(ear)
    }

    /// One less.
    pub(super) fn forget(&mut self, now: Instant, key: &Arc<str>, ear: &Arc<Ear>) {
        let Some(ears) = self.watched.get_mut(key) else { return };
        let Some(place) = ears.iter().position(|other| Arc::ptr_eq(other, ear)) else { return };
        ears.swap_remove(place);
        if ears.is_empty() {
            self.watched.remove(key);
        }
        self.watches -= 1;
        self.used = now;
    }

    /// Those who listen for this key.
    pub(super) fn ears(&self, key: &[u8]) -> Vec<Arc<Ear>> {
        let key = str::from_utf8(key).ok();
        key.and_then(|key| self.watched.get(key)).cloned().unwrap_or_default()
    }

    pub(super) fn all_ears(&self) -> Vec<Arc<Ear>> {
        self.watched.values().flatten().cloned().collect()
    }
}

impl<C: Clone> Clone for Phase<C> {
    fn clone(&self) -> Self {
        match self {
            Self::Idle => Self::Idle,
            Self::Dialling { over } => Self::Dialling { over: Arc::clone(over) },
            Self::Up { connection, over } => {
                Self::Up { connection: connection.clone(), over: Arc::clone(over) }
            }
            Self::Resting(until) => Self::Resting(*until),
            Self::Closed => Self::Closed,
        }
    }
}

/// Somebody who listens.
#[derive(Debug, Default)]
pub(super) struct Ear {
    changed: AtomicBool,
    pub(super) waker: AtomicWaker,
}

impl Ear {
    /// The key has changed.
    pub(super) fn tell(&self) {
        self.changed.store(true, Ordering::Release);
        self.waker.wake();
    }

    /// Something else has.
    pub(super) fn wake(&self) {
        self.waker.wake();
    }

    /// Whether the key has changed since the last call.
    pub(super) fn take(&self) -> bool {
        self.changed.swap(false, Ordering::AcqRel)
    }
}

/// How many watches there may be at one node at a time.
pub(super) const MOST_WATCHES: usize = 10_000;

/// A connection that lives as long as this was a good one; of others there are fewer and fewer.
const PROVEN: Duration = Duration::from_secs(10);

/// How long to let a server be that refused.
pub(super) const REFUSED: Duration = Duration::from_secs(60);
