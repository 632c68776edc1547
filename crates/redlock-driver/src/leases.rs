//! The leases and clean-ups that a manager has running.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_channel::oneshot;
use redlock_core::Error;

use crate::Runtime;
use crate::cell::Cell;
use crate::timekeeper::{Timed, Timekeeper};

/// Knows whoever keeps the time of a lease, so that closing can end and await them all.
pub(crate) struct Leases<R> {
    running: AtomicUsize,
    state: Mutex<State<R>>,
}

struct State<R> {
    timekeepers: Vec<Arc<Timekeeper<R>>>,
    closed: bool,
    /// Told when the last lease is over.
    idle: Vec<oneshot::Sender<()>>,
}

impl<R: Runtime> Leases<R> {
    pub(crate) const fn new() -> Self {
        let state = State { timekeepers: Vec::new(), closed: false, idle: Vec::new() };
        Self { running: AtomicUsize::new(0), state: Mutex::new(state) }
    }

    /// Who keeps the time for leases that are asked for here: one for each runtime. Where runtimes do not say
    /// which they are, it is one for each lease.
    pub(crate) fn timekeeper(&self, runtime: &R) -> Arc<Timekeeper<R>> {
        let here = runtime.here();
        let mut state = self.lock();
        let found = here.as_ref().and_then(|here| state.timekeepers.iter().find(|it| it.is_of(here)));
        if let Some(found) = found {
            return Arc::clone(found);
        }
        let timekeeper = Arc::new(Timekeeper::new(runtime.clone()));
        // Each doubling is an occasion to clear those away that nobody has use for.
        if state.timekeepers.len().is_power_of_two() {
            state.timekeepers.retain(|it| Arc::strong_count(it) > 1);
        }
        state.timekeepers.push(Arc::clone(&timekeeper));
        timekeeper
    }

    /// Enters a lease.
    pub(crate) fn enter(&self, cell: &Arc<Cell<R>>) -> Result<(), Error> {
        let timekeeper = cell.timekeeper();
        let started = {
            let state = self.lock();
            if state.closed {
                return Err(Error::Closed);
            }
            self.running.fetch_add(1, Ordering::Relaxed);
            timekeeper.enter(Arc::<Cell<R>>::clone(cell))
        };
        match started {
            true => Ok(()),
            // Without a runtime the lease ends with that.
            false => timekeeper.start().map_err(|_| Error::NoRuntime),
        }
    }

    /// A lease is over.
    pub(crate) fn leave(&self) {
        if self.running.fetch_sub(1, Ordering::AcqRel) > 1 {
            return;
        }
        let idle = std::mem::take(&mut self.lock().idle);
        for sender in idle {
            // Whoever closed may have stopped waiting.
            let _ = sender.send(());
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.running.load(Ordering::Acquire)
    }

    /// Lets no lease in any more and gives up every one. The receiver ends when all are over.
    pub(crate) fn close(&self) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        let mut state = self.lock();
        state.closed = true;
        if self.count() == 0 {
            // The receiver is right here.
            let _ = sender.send(());
        } else {
            state.idle.push(sender);
        }
        drop(state);
        self.for_each(Timed::abandon);
        receiver
    }

    /// Ends every lease, with whatever is still open, and the keeping of time.
    pub(crate) fn stop(&self) {
        self.for_each(Timed::orphan);
        let timekeepers = std::mem::take(&mut self.lock().timekeepers);
        for timekeeper in timekeepers {
            timekeeper.dismiss();
        }
    }

    fn for_each(&self, act: impl Fn(Arc<dyn Timed>)) {
        let leases: Vec<_> = self.lock().timekeepers.iter().flat_map(|it| it.leases()).collect();
        leases.into_iter().for_each(act);
    }

    fn lock(&self) -> MutexGuard<'_, State<R>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
