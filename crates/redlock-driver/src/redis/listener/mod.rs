//! Hearing from a server that a key has changed, instead of asking again and again.
//!
//! ```text
//!   Watch ──GET key──▶ Listener's connection ──▶ server, which keeps in mind who has read what
//!   Watch ◀─Changed─── Listener ◀── Pushes ◀──── >invalidate [key]
//! ```

mod dial;
mod state;
#[cfg(test)]
mod tests;
mod watch;

use std::fmt;
use std::sync::{Arc, Mutex};

use redis::{PushInfo, PushKind, Value};
use redlock_core::{Cause, CauseKind};
use tracing::debug;

use self::state::{Ear, Phase, State};
pub(crate) use self::watch::KeyWatch;
use super::target::Target;
use super::{Connect, lock};

/// The keys of one server that somebody waits for, and the connection over which it tells that they change.
///
/// - The connection is one of its own, in RESP3, with the server's client-side caching on (`CLIENT TRACKING`).
///   It carries one `GET` per look at a key and nothing else: what a server pushes, and what it may refuse, is
///   in no lease's way.
/// - It is dialled when somebody watches a key, and closed when nobody has for [`IDLE`](dial::IDLE).
/// - Nothing here is ever an error to anybody. When it cannot be had, breaks, or is refused, the watches end
///   without having seen anything, and those who wait ask the nodes as if there were none of this. The next
///   dial comes after a pause: a growing one after a failure, [`REFUSED`](state::REFUSED) after a refusal.
/// - No more than [`MOST_WATCHES`](state::MOST_WATCHES) watches at a time; beyond that there are none.
pub(crate) struct Listener<R: Connect> {
    runtime: R,
    target: Target,
    name: Arc<str>,
    state: Mutex<State<R::Connection>>,
}

impl<R: Connect> Listener<R> {
    /// A listener at what `target` says. Does no I/O, and needs no running runtime.
    pub(crate) fn new(runtime: R, target: Target, name: Arc<str>) -> Self {
        Self { runtime, target, name, state: Mutex::new(State::new()) }
    }

    /// Watches a key; `None` when too many are being watched, or it is closed.
    pub(crate) fn watch(self: &Arc<Self>, key: &Arc<str>) -> Option<KeyWatch<R>> {
        let ear = lock(&self.state).listen(key)?;
        Some(KeyWatch::new(Arc::clone(self), Arc::clone(key), ear))
    }

    /// Gives the connection up, for the server may be the wrong one by now. The watches on it end.
    pub(crate) fn leave(&self) {
        self.change(|state| match state.phase {
            Phase::Dialling { .. } | Phase::Up { .. } => Some(Phase::Idle),
            Phase::Idle | Phase::Resting(_) | Phase::Closed => None,
        });
    }

    /// Closes it for good.
    pub(crate) fn close(&self) {
        self.change(|_| Some(Phase::Closed));
    }

    /// A connection to look at a key with, or when there will be one. Begins to dial if nobody does.
    fn seek(self: &Arc<Self>) -> Seek<R::Connection> {
        let now = self.runtime.now();
        let generation = {
            let mut state = lock(&self.state);
            match &state.phase {
                Phase::Up { connection, .. } => return Seek::Found(connection.clone(), state.generation),
                Phase::Dialling { .. } => return Seek::Later,
                Phase::Resting(until) if now < *until => return Seek::Never,
                Phase::Closed => return Seek::Never,
                Phase::Idle | Phase::Resting(_) => {}
            }
            state.dial()
        };
        dial::start(self, generation);
        Seek::Later
    }

    /// Whether the connection of this generation is in use.
    fn hears(&self, generation: u64) -> bool {
        let state = lock(&self.state);
        state.generation == generation && matches!(state.phase, Phase::Up { .. })
    }

    /// What the connection of this generation was sent unasked.
    fn heard(&self, generation: u64, message: &PushInfo) {
        match message.kind {
            PushKind::Invalidate => match message.data.first() {
                Some(Value::Array(keys)) => {
                    for key in keys {
                        if let Value::BulkString(key) = key {
                            self.wake(|state| state.ears(key));
                        }
                    }
                }
                // Everything has changed: the server was flushed.
                _ => self.wake(State::all_ears),
            },
            PushKind::Disconnection => self.lost(generation, &Cause::new(CauseKind::Disconnected)),
            _ => {}
        }
    }

    /// The connection of this generation, or the dial for it, has come to nothing.
    fn lost(&self, generation: u64, cause: &Cause) {
        let now = self.runtime.now();
        let rest = self.change(|state| {
            if state.generation != generation {
                return None;
            }
            state.rest(now, cause).map(Phase::Resting)
        });
        if let Some(Phase::Resting(until)) = rest {
            let rest = until.saturating_since(now);
            debug!(node = %self.name, generation, %cause, ?rest, "nobody is told when a lease goes here");
        }
    }

    fn wake(&self, ears: impl FnOnce(&State<R::Connection>) -> Vec<Arc<Ear>>) {
        let ears = ears(&lock(&self.state));
        for ear in ears {
            ear.tell();
        }
    }

    /// Changes the phase, and has everybody look at the new one. What was there before is dropped outside the
    /// lock: dropping a connection may run foreign code.
    fn change(
        &self,
        next: impl FnOnce(&mut State<R::Connection>) -> Option<Phase<R::Connection>>,
    ) -> Option<Phase<R::Connection>> {
        let (before, after, ears) = {
            let mut state = lock(&self.state);
            if matches!(state.phase, Phase::Closed) {
                return None;
            }
            let after = next(&mut state)?;
            let before = std::mem::replace(&mut state.phase, after.clone());
            (before, after, state.all_ears())
        };
        drop(before);
        for ear in ears {
            ear.wake();
        }
        Some(after)
    }
}

impl<R: Connect> fmt::Debug for Listener<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Where there is a connection.
enum Seek<C> {
    /// Here, and of which generation it is.
    Found(C, u64),
    /// It is being dialled. Whoever asked is woken.
    Later,
    /// Not for now.
    Never,
}
