//! The leases and clean-ups that a manager has running.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use futures_channel::oneshot;

use crate::Runtime;
use crate::cell::Cell;

/// Knows every task that drives a lease, so that closing can end and await them.
#[derive(Debug)]
pub(crate) struct Tasks<R> {
    running: Mutex<Running<R>>,
}

#[derive(Debug)]
struct Running<R> {
    next: u64,
    cells: BTreeMap<u64, Weak<Cell<R>>>,
    closed: bool,
    /// Told when the last task has ended.
    idle: Vec<oneshot::Sender<()>>,
}

/// Stands for one running task; dropped with it.
#[derive(Debug)]
pub(crate) struct Task<R> {
    tasks: Arc<Tasks<R>>,
    id: u64,
}

impl<R: Runtime> Tasks<R> {
    pub(crate) fn new() -> Self {
        let running = Running { next: 0, cells: BTreeMap::new(), closed: false, idle: Vec::new() };
        Self { running: Mutex::new(running) }
    }

    /// Enters a task; `None` once closed.
    pub(crate) fn enter(self: &Arc<Self>, cell: &Arc<Cell<R>>) -> Option<Task<R>> {
        let mut running = self.lock();
        if running.closed {
            return None;
        }
        let id = running.next;
        running.next += 1;
        running.cells.insert(id, Arc::downgrade(cell));
        Some(Task { tasks: Arc::clone(self), id })
    }

    pub(crate) fn count(&self) -> usize {
        self.lock().cells.len()
    }

    /// Lets no task in any more and gives up every lease. The receiver ends when all tasks have.
    pub(crate) fn close(&self) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        let mut running = self.lock();
        running.closed = true;
        if running.cells.is_empty() {
            // The receiver is right here.
            let _ = sender.send(());
        } else {
            running.idle.push(sender);
        }
        drop(running);
        self.for_each(Cell::abandon);
        receiver
    }

    /// Ends every task, with whatever is still open.
    pub(crate) fn stop(&self) {
        self.for_each(Cell::stop);
    }

    fn for_each(&self, act: impl Fn(&Cell<R>)) {
        let cells: Vec<Arc<Cell<R>>> = self.lock().cells.values().filter_map(Weak::upgrade).collect();
        for cell in cells {
            act(&cell);
        }
    }
}

impl<R> Tasks<R> {
    fn lock(&self) -> MutexGuard<'_, Running<R>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<R> Drop for Task<R> {
    fn drop(&mut self) {
        let mut running = self.tasks.lock();
        running.cells.remove(&self.id);
        let idle = if running.cells.is_empty() { std::mem::take(&mut running.idle) } else { Vec::new() };
        drop(running);
        for sender in idle {
            // Whoever closed may have stopped waiting.
            let _ = sender.send(());
        }
    }
}
