//! One lease, shared by the handle in the user's hands and the task that drives it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use futures_channel::oneshot;
use futures_util::FutureExt as _;
use futures_util::future::Shared;
use futures_util::task::AtomicWaker;
use redlock_core::{
    Error, Event, FencingToken, Instant, LeaseMachine, LeaseSpec, LeaseState, LockLost, LossReason, Output,
    Patience, ReleaseOutcome,
};

use crate::Runtime;
use crate::stats::Counters;

/// The machine behind a lock that is held for microseconds and never across an await, the requests that
/// wait for its events, and the means to wake the task that drives it.
///
/// Requests go straight into the machine, on the caller's thread: from the moment of the call the lease
/// counts as released, whether or not the task has run since.
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
}

#[derive(Debug)]
struct Inner {
    machine: LeaseMachine,
    waiting: Waiting,
}

/// Who waits for which terminal event.
#[derive(Debug)]
struct Waiting {
    acquire: Option<oneshot::Sender<Result<(), Error>>>,
    extend: Option<oneshot::Sender<Result<(), Error>>>,
    release: Option<oneshot::Sender<Result<(), Error>>>,
    lost: Option<oneshot::Sender<LossReason>>,
    /// Why the lease was lost, for a release that comes after.
    reason: Option<LossReason>,
    /// The fencing token of the lease, for as long as anybody asks.
    fencing: Option<FencingToken>,
    /// Given up: by its handle, its manager or its runtime.
    abandoned: bool,
}

impl Waiting {
    /// What to say of a lease that was given up behind its holder's back: it is lost, not merely unheld.
    fn given_up(&self) -> Option<Error> {
        let reason = self.reason.or_else(|| self.abandoned.then_some(LossReason::Closed))?;
        Some(LockLost { reason }.into())
    }
}

/// The end of a request, as its caller waits for it.
pub(crate) type Ending = oneshot::Receiver<Result<(), Error>>;

impl<R: Runtime> Cell<R> {
    pub(crate) fn new(runtime: R, machine: LeaseMachine, counters: Arc<Counters>) -> Self {
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
        Self {
            runtime,
            spec: machine.spec().clone(),
            inner: Mutex::new(Inner { machine, waiting }),
            stopped: AtomicBool::new(false),
            requested: AtomicBool::new(false),
            waker: AtomicWaker::new(),
            lost: receiver.shared(),
            counters,
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

    pub(crate) fn acquire(&self, patience: Patience) -> Result<Ending, Error> {
        self.request(|inner, now| {
            inner.machine.acquire(now, patience)?;
            Ok(&mut inner.waiting.acquire)
        })
    }

    pub(crate) fn extend(&self, ttl: Duration) -> Result<Ending, Error> {
        self.request(|inner, now| {
            let extended = inner.machine.extend(now, ttl);
            extended.map_err(|error| inner.waiting.given_up().unwrap_or(error))?;
            Ok(&mut inner.waiting.extend)
        })
    }

    pub(crate) fn release(&self) -> Result<Ending, Error> {
        self.request(|inner, now| {
            let released = inner.machine.release(now);
            released.map_err(|not_held| inner.waiting.given_up().unwrap_or_else(|| not_held.into()))?;
            Ok(&mut inner.waiting.release)
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
    pub(crate) fn orphan(&self) {
        let events = {
            let mut inner = self.lock();
            inner.machine.abandon(self.runtime.now());
            inner.waiting.abandoned = true;
            let mut events = Vec::new();
            loop {
                match inner.machine.poll_output() {
                    Output::Send(_) => {}
                    Output::Event(event) => events.push(event),
                    Output::Wait(_) => break events,
                }
            }
        };
        self.dispatch(events);
        let mut inner = self.lock();
        self.counters.add(inner.machine.stats());
        inner.waiting.acquire = None;
        inner.waiting.extend = None;
        inner.waiting.release = None;
        inner.waiting.lost = None;
    }

    fn request(
        &self,
        act: impl FnOnce(&mut Inner, Instant) -> Result<&mut Option<oneshot::Sender<Result<(), Error>>>, Error>,
    ) -> Result<Ending, Error> {
        let (sender, receiver) = oneshot::channel();
        let mut inner = self.lock();
        // Read under the lock, as everywhere: else two threads could bring the machine their readings in
        // the wrong order.
        let now = self.runtime.now();
        *act(&mut inner, now)? = Some(sender);
        drop(inner);
        self.wake();
        Ok(receiver)
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

/// The task's side.
impl<R: Runtime> Cell<R> {
    /// Feeds the machine, under one lock and one reading of the clock.
    pub(crate) fn feed<T>(&self, act: impl FnOnce(&mut LeaseMachine, Instant) -> T) -> T {
        let mut inner = self.lock();
        let now = self.runtime.now();
        act(&mut inner.machine, now)
    }

    /// Whether something was requested since the last call; if not, `waker` is woken when it is.
    pub(crate) fn take_request(&self, waker: &Waker) -> bool {
        self.waker.register(waker);
        self.requested.swap(false, Ordering::AcqRel)
    }

    /// Tells the waiting callers. Outside the lock, because telling runs their wakers.
    pub(crate) fn dispatch(&self, events: impl IntoIterator<Item = Event>) {
        for event in events {
            self.counters.count(&event);
            match event {
                Event::Acquired { fencing, .. } => {
                    self.lock().waiting.fencing = fencing;
                    self.tell(|waiting| &mut waiting.acquire, Ok(()));
                }
                Event::AcquireFailed(failure) => {
                    self.tell(|waiting| &mut waiting.acquire, Err(failure.into()));
                }
                Event::Extended { .. } => self.tell(|waiting| &mut waiting.extend, Ok(())),
                Event::ExtendFailed(failure) => self.tell(|waiting| &mut waiting.extend, Err(failure.into())),
                Event::Lost { reason } => {
                    let sender = {
                        let waiting = &mut self.lock().waiting;
                        waiting.reason = Some(reason);
                        waiting.lost.take()
                    };
                    // Nobody listens: nobody needs to know.
                    let _ = sender.map(|sender| sender.send(reason));
                }
                Event::Released(ReleaseOutcome::Released) => {
                    self.tell(|waiting| &mut waiting.release, Ok(()));
                }
                Event::Released(ReleaseOutcome::AlreadyExpired) => {
                    let reason = self.lock().waiting.reason.unwrap_or(LossReason::Refused);
                    self.tell(|waiting| &mut waiting.release, Err(LockLost { reason }.into()));
                }
                Event::ReleaseFailed(quorum) => {
                    self.tell(|waiting| &mut waiting.release, Err(Error::NotReleased(quorum)));
                }
                _ => {}
            }
        }
    }

    fn tell(
        &self,
        who: impl FnOnce(&mut Waiting) -> &mut Option<oneshot::Sender<Result<(), Error>>>,
        ending: Result<(), Error>,
    ) {
        let sender = who(&mut self.lock().waiting).take();
        // The caller may have gone away, which is its right.
        let _ = sender.map(|sender| sender.send(ending));
    }
}
