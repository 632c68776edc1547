//! One lease, shared by the handle in the user's hands, the connections that answer, and the tasks that keep
//! the time and run errands for it.

mod outputs;
mod waiting;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Waker;
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
use crate::common::Common;
use crate::hints::{Hints, Presence};
use crate::timekeeper::{Place, Timekeeper};
use crate::turns::Turn;
use crate::unanswered::AllUnanswered;
use crate::{Runtime, trace};

/// The machine behind a lock that is held for microseconds and never across an await, and the requests that
/// wait for its events.
///
/// Requests, answers and the time go straight into the machine, on the thread that has them: from the moment of
/// the call the lease counts as released. What the machine wants then is sent from there too, if a connection
/// takes it at once; for the rest there is a task that runs errands.
pub(crate) struct Cell<R> {
    common: Arc<Common<R>>,
    timekeeper: Arc<Timekeeper<R>>,
    /// With the timekeeper.
    place: OnceLock<Place>,
    spec: LeaseSpec,
    inner: Mutex<Inner<R>>,
    /// Set before `waker` is woken, so that a wake-up between two looks is not lost.
    requested: AtomicBool,
    /// Of the task that runs errands.
    waker: AtomicWaker,
}

struct Inner<R> {
    machine: LeaseMachine,
    waiting: Waiting,
    unanswered: AllUnanswered,
    /// What is an errand to send.
    slow: Vec<Command>,
    /// The last reading of the clock.
    now: Instant,
    /// For when the timekeeper rings at the latest.
    alarm: Option<Instant>,
    /// Of this process; passed on when the lease is over.
    turn: Option<Turn>,
    presence: Presence,
    /// What was seen of others before the first attempt, for as long as nobody watches.
    hints: Option<Box<Hints<R>>>,
    /// For whoever waits for the loss.
    lost: Option<Shared<oneshot::Receiver<LossReason>>>,
    /// A pause has begun, and is not watched yet.
    paused: bool,
    /// A task runs errands.
    errands: bool,
    /// It is time to look at the clock, for that task.
    rung: bool,
    /// Somebody acts on what the machine wants, and looks once more before leaving.
    acting: bool,
    /// Nothing is left to do, or nobody to do it.
    over: bool,
}

/// The end of a request, as its caller waits for it.
pub(crate) type Ending = oneshot::Receiver<Result<(), Error>>;

impl<R: Runtime> Cell<R> {
    /// `hints` is what was seen of others who want the same.
    pub(crate) fn new(
        common: Arc<Common<R>>,
        timekeeper: Arc<Timekeeper<R>>,
        machine: LeaseMachine,
        turn: Option<Turn>,
        presence: Presence,
        hints: Option<Box<Hints<R>>>,
    ) -> Self {
        let spec = machine.spec().clone();
        let inner = Inner {
            machine,
            waiting: Waiting::default(),
            unanswered: AllUnanswered::for_nodes(common.nodes.len()),
            slow: Vec::new(),
            now: Instant::EPOCH,
            alarm: None,
            turn,
            presence,
            hints,
            lost: None,
            paused: false,
            errands: false,
            rung: false,
            acting: false,
            over: false,
        };
        Self {
            common,
            timekeeper,
            place: OnceLock::new(),
            spec,
            inner: Mutex::new(inner),
            requested: AtomicBool::new(false),
            waker: AtomicWaker::new(),
        }
    }

    pub(crate) fn runtime(&self) -> &R {
        &self.common.runtime
    }

    pub(crate) const fn timekeeper(&self) -> &Arc<Timekeeper<R>> {
        &self.timekeeper
    }

    pub(crate) const fn spec(&self) -> &LeaseSpec {
        &self.spec
    }

    /// Ends with the loss; none if the lease is over, so that no loss will come.
    pub(crate) fn lost(&self) -> Option<Shared<oneshot::Receiver<LossReason>>> {
        let inner = &mut *self.lock();
        if inner.lost.is_none() && !inner.over && inner.waiting.reason.is_none() {
            let (sender, receiver) = oneshot::channel();
            inner.waiting.lost = Some(sender);
            inner.lost = Some(receiver.shared());
        }
        inner.lost.clone()
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
        let now = self.runtime().now();
        let end = self.machine(LeaseMachine::valid_until);
        end.map_or(Duration::ZERO, |end| end.saturating_since(now))
    }

    /// Why the lease is lost, if it is by now. What the clock says counts at once, whether or not the
    /// timekeeper has rung for it.
    pub(crate) fn loss(self: &Arc<Self>) -> Option<LossReason> {
        let mut inner = self.lock();
        let now = self.runtime().now();
        if inner.machine.valid_until().is_some_and(|end| now >= end) {
            inner.machine.handle_timeout(now);
            inner.now = now;
            self.act_on(inner);
            inner = self.lock();
        }
        match inner.machine.state() {
            LeaseState::Lost(reason) => Some(reason),
            _ => inner.waiting.reason,
        }
    }

    /// Asks for the lease.
    pub(crate) fn acquire(self: &Arc<Self>, patience: Patience) -> Result<Ending, Error> {
        self.feed(|inner, now| {
            if inner.over {
                return Err(Error::NoRuntime);
            }
            inner.machine.acquire(now, patience)?;
            Ok(requested(&mut inner.waiting.acquire))
        })
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
    pub(crate) fn abandon(self: &Arc<Self>) {
        self.feed_unless_over(|inner, now| {
            inner.machine.abandon(now);
            inner.waiting.abandoned = true;
        });
    }

    /// Whoever keeps the time or runs errands for the lease is gone. If that is before its time, because the
    /// runtime is gone too, then nobody can renew or release the lease any more, so it is over; whoever waits
    /// is told.
    pub(crate) fn orphan(self: &Arc<Self>) {
        self.feed_unless_over(|inner, now| {
            if !inner.machine.is_settled() {
                // What is to be taken back still goes out where a connection takes it.
                inner.machine.abandon(now);
            }
            inner.waiting.abandoned = true;
        });
        self.end(self.lock());
    }

    /// Nothing is left to do for the lease, or nobody to do it.
    fn end(&self, mut inner: MutexGuard<'_, Inner<R>>) {
        if std::mem::replace(&mut inner.over, true) {
            return;
        }
        self.common.counters.add(inner.machine.stats());
        let (unanswered, turn, hints) = (inner.unanswered.forget(), inner.turn.take(), inner.hints.take());
        let unheard = inner.waiting.dismiss();
        inner.lost = None;
        let errands = inner.errands;
        drop(inner);
        // Outside the lock: it wakes whoever waits.
        drop((unheard, turn, hints));
        if errands {
            self.wake();
        }
        for (passage, command) in unanswered {
            if let Some(node) = self.common.nodes.get(command.node.index()) {
                node.forget(passage);
            }
        }
        if let Some(place) = self.place.get() {
            trace::settled(self);
            self.timekeeper.leave(*place);
            self.common.leases.leave();
        }
    }

    /// Has the task that runs errands look.
    fn wake(&self) {
        self.requested.store(true, Ordering::Release);
        self.waker.wake();
    }

    /// Whether the task that runs errands has something to look at; if not, `waker` is woken when it has.
    pub(crate) fn take_request(&self, waker: &Waker) -> bool {
        self.waker.register(waker);
        self.requested.swap(false, Ordering::AcqRel)
    }

    fn lock(&self) -> MutexGuard<'_, Inner<R>> {
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
