//! One lease, shared by the handle in the user's hands, the connections that answer, and the task that keeps
//! the time.

mod outputs;
mod waiting;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_channel::oneshot;
use futures_util::FutureExt as _;
use futures_util::future::Shared;
use futures_util::task::AtomicWaker;
use redlock_core::{
    Command, Error, FencingToken, Instant, LeaseMachine, LeaseSpec, LeaseState, LossReason, Patience,
};

pub(crate) use self::outputs::Look;
use self::waiting::Waiting;
use crate::hints::Presence;
use crate::stats::Counters;
use crate::turns::Turn;
use crate::unanswered::AllUnanswered;
use crate::{Node, Runtime};

/// The machine behind a lock that is held for microseconds and never across an await, the requests that
/// wait for its events, and the means to wake the task that keeps the time.
///
/// Requests and answers go straight into the machine, on the thread that has them: from the moment of the call
/// the lease counts as released. What the machine wants then is sent from there too, if a connection takes it
/// at once; the task sends the rest.
#[derive(Debug)]
pub(crate) struct Cell<R> {
    runtime: R,
    spec: LeaseSpec,
    inner: Mutex<Inner>,
    /// The task is to end, whatever is left to do.
    stopped: AtomicBool,
    /// Set before `waker` is woken, so that a wake-up between two looks is not lost.
    requested: AtomicBool,
    waker: AtomicWaker,
    lost: Shared<oneshot::Receiver<LossReason>>,
    counters: Arc<Counters>,
    nodes: Arc<[Node]>,
}

#[derive(Debug)]
struct Inner {
    machine: LeaseMachine,
    waiting: Waiting,
    unanswered: AllUnanswered,
    /// What is left to the task to send.
    slow: Vec<Command>,
    /// When the task looks next; none before it has looked, and it has then.
    armed: Option<Instant>,
    /// Of this process; passed on when the lease is over.
    turn: Option<Turn>,
    presence: Presence,
    /// A pause has begun, and the task has not looked since.
    paused: bool,
    /// The task watches the key, or has watched it.
    watching: bool,
    /// Somebody acts on what the machine wants, and looks once more before leaving.
    acting: bool,
}

/// The end of a request, as its caller waits for it.
pub(crate) type Ending = oneshot::Receiver<Result<(), Error>>;

impl<R: Runtime> Cell<R> {
    pub(crate) fn new(
        runtime: R,
        machine: LeaseMachine,
        counters: Arc<Counters>,
        nodes: Arc<[Node]>,
        turn: Option<Turn>,
        presence: Presence,
    ) -> Self {
        let (sender, receiver) = oneshot::channel();
        let waiting = Waiting {
            acquire: None,
            extend: None,
            release: None,
            lost: Some(sender),
            reason: None,
            fencing: None,
            abandoned: false,
        };
        let spec = machine.spec().clone();
        let inner = Inner {
            machine,
            waiting,
            unanswered: AllUnanswered::for_nodes(nodes.len()),
            slow: Vec::new(),
            armed: None,
            turn,
            presence,
            paused: false,
            watching: false,
            acting: false,
        };
        Self {
            runtime,
            spec,
            inner: Mutex::new(inner),
            stopped: AtomicBool::new(false),
            requested: AtomicBool::new(false),
            waker: AtomicWaker::new(),
            lost: receiver.shared(),
            counters,
            nodes,
        }
    }

    pub(crate) const fn runtime(&self) -> &R {
        &self.runtime
    }

    pub(crate) const fn spec(&self) -> &LeaseSpec {
        &self.spec
    }

    pub(crate) fn lost(&self) -> Shared<oneshot::Receiver<LossReason>> {
        self.lost.clone()
    }

    /// Looks at the machine.
    pub(crate) fn machine<T>(&self, look: impl FnOnce(&LeaseMachine) -> T) -> T {
        look(&self.lock().machine)
    }

    pub(crate) fn fencing(&self) -> Option<FencingToken> {
        self.lock().waiting.fencing
    }

    /// How long the lease is still held.
    pub(crate) fn valid_for(&self) -> Duration {
        let now = self.runtime.now();
        let end = self.machine(LeaseMachine::valid_until);
        end.map_or(Duration::ZERO, |end| end.saturating_since(now))
    }

    /// Why the lease is lost, if it is by now. What the clock says counts at once, whether or not the
    /// task has been woken for it.
    pub(crate) fn loss(&self) -> Option<LossReason> {
        let mut inner = self.lock();
        let now = self.runtime.now();
        if inner.machine.valid_until().is_some_and(|end| now >= end) {
            inner.machine.handle_timeout(now);
            self.wake();
        }
        match inner.machine.state() {
            LeaseState::Lost(reason) => Some(reason),
            _ => inner.waiting.reason,
        }
    }

    /// Begins to ask for the lease. Nothing is sent before [`act`](Self::act).
    pub(crate) fn acquire(&self, patience: Patience) -> Result<Ending, Error> {
        let inner = &mut *self.lock();
        inner.machine.acquire(self.runtime.now(), patience)?;
        Ok(requested(&mut inner.waiting.acquire))
    }

    pub(crate) fn extend(self: &Arc<Self>, ttl: Duration) -> Result<Ending, Error> {
        self.feed(|inner, now| {
            let extended = inner.machine.extend(now, ttl);
            extended.map_err(|error| inner.waiting.given_up().unwrap_or(error))?;
            Ok(requested(&mut inner.waiting.extend))
        })
    }

    pub(crate) fn release(self: &Arc<Self>) -> Result<Ending, Error> {
        self.feed(|inner, now| {
            let released = inner.machine.release(now);
            released.map_err(|not_held| inner.waiting.given_up().unwrap_or_else(|| not_held.into()))?;
            Ok(requested(&mut inner.waiting.release))
        })
    }

    /// Nobody wants the lease any more.
    pub(crate) fn abandon(&self) {
        let mut inner = self.lock();
        inner.machine.abandon(self.runtime.now());
        inner.waiting.abandoned = true;
        drop(inner);
        self.wake();
    }

    /// Makes the task end, with whatever is still open.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        self.wake();
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// The task that drives the lease is gone. If that is before its time, because its runtime is gone
    /// too, then nobody can renew or release the lease any more, so it is over; whoever waits is told.
    pub(crate) fn orphan(self: &Arc<Self>) {
        self.feed(|inner, now| {
            if !inner.machine.is_settled() {
                // What is to be taken back still goes out where a connection takes it.
                inner.machine.abandon(now);
            }
            inner.waiting.abandoned = true;
        });
        let mut inner = self.lock();
        self.counters.add(inner.machine.stats());
        let (unanswered, turn) = (inner.unanswered.forget(), inner.turn.take());
        let unheard = inner.waiting.dismiss();
        drop(inner);
        // Outside the lock: it wakes whoever waits.
        drop((unheard, turn));
        for (passage, command) in unanswered {
            if let Some(node) = self.nodes.get(command.node.index()) {
                node.forget(passage);
            }
        }
    }

    fn wake(&self) {
        self.requested.store(true, Ordering::Release);
        self.waker.wake();
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // The machine does not panic; whatever did while it was locked has not harmed it.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Somebody waits for the end of a request.
fn requested(waiting: &mut Option<oneshot::Sender<Result<(), Error>>>) -> Ending {
    let (sender, receiver) = oneshot::channel();
    *waiting = Some(sender);
    receiver
}
