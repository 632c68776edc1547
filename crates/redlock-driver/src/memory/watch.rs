//! Watching a key of a server in memory.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use redlock_core::{Instant, Pttl};

use super::{MemoryServer, Shared};
use crate::Runtime;
use crate::hints::{Mark, Sight, Watch};

/// Sees a key as it is, without a network in between, and says so whenever it has become another. There is no
/// task behind the server: whoever changes something has those who watch look again, and for the end of a key
/// they wait by themselves.
pub(crate) struct MemoryWatch<R> {
    shared: Arc<Shared>,
    runtime: R,
    key: Arc<str>,
    number: u64,
    seen: Option<Sight>,
    timer: Option<(Instant, Sleep)>,
}

type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

impl MemoryServer {
    /// Watches a key.
    pub(crate) fn watch<R: Runtime>(&self, runtime: &R, key: &Arc<str>) -> MemoryWatch<R> {
        let shared = Arc::clone(&self.shared);
        let number = {
            let mut state = shared.lock();
            state.last_ticket += 1;
            state.last_ticket
        };
        let (runtime, key) = (runtime.clone(), Arc::clone(key));
        MemoryWatch { shared, runtime, key, number, seen: None, timer: None }
    }
}

impl<R: Runtime> Watch for MemoryWatch<R> {
    fn poll_sight(&mut self, context: &mut Context<'_>) -> Poll<Sight> {
        loop {
            let (sight, left, before) = {
                let mut state = self.shared.lock();
                let now = (self.shared.clock)();
                let sight = match state.node.get(now, &self.key) {
                    Some(value) => Sight::Held(Mark::of(value.as_bytes())),
                    None => Sight::Free,
                };
                let left = match state.node.pttl(now, &self.key) {
                    Pttl::Expires(left) => Some(left),
                    _ => None,
                };
                let before = state.watching.insert(self.number, context.waker().clone());
                (sight, left, before)
            };
            // Outside the lock, as everywhere.
            drop(before);
            if self.seen.replace(sight) != Some(sight) {
                return Poll::Ready(sight);
            }
            let Some(left) = left else {
                self.timer = None;
                return Poll::Pending;
            };
            let end = self.runtime.now().saturating_add(left);
            let sleep = match &mut self.timer {
                Some((at, sleep)) if *at == end => sleep,
                timer => &mut timer.insert((end, Box::pin(self.runtime.sleep_until(end)))).1,
            };
            if sleep.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            self.timer = None;
            if left.is_zero() {
                return Poll::Pending;
            }
        }
    }
}

impl<R> Drop for MemoryWatch<R> {
    fn drop(&mut self) {
        let forgotten = self.shared.lock().watching.remove(&self.number);
        drop(forgotten);
    }
}
