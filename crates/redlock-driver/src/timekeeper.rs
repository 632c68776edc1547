//! The task that keeps the time of all leases of a manager on one runtime.

use std::any::Any;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use redlock_core::Instant;

use crate::{NotRunning, Runtime};

/// Rings for each lease when its machine wants to be told the time, and has errands run for those that need
/// them.
///
/// If its runtime stops, nobody can renew or release the leases any more, so they end with it.
pub(crate) struct Timekeeper<R> {
    runtime: R,
    /// Tells the runtime from others, if it can be told.
    here: Option<Box<dyn Any + Send + Sync>>,
    state: Mutex<State>,
}

/// A lease, as far as a timekeeper knows it.
pub(crate) trait Timed: Send + Sync {
    /// It was taken in, once and for all.
    fn has_place(&self, place: Place);

    /// It is time.
    fn ring(self: Arc<Self>);

    /// Starts the task for its errands. To be called on its runtime.
    fn run_errands(self: Arc<Self>);

    /// Nobody wants it any more.
    fn abandon(self: Arc<Self>);

    /// There is nobody to keep its time any more.
    fn orphan(self: Arc<Self>);
}

/// A lease's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place(usize);

struct State {
    seats: Vec<Seat>,
    free: Vec<Place>,
    /// The next one first. Those that were put forward or belong to a lease that is over stay until they are
    /// due, or too many.
    alarms: BinaryHeap<Reverse<(Instant, Place)>>,
    /// Leases with errands to run.
    calls: Vec<Arc<dyn Timed>>,
    /// The task is there.
    started: bool,
    /// When it looks at the latest.
    next_look: Instant,
    /// To be woken before that.
    waker: Option<Waker>,
    /// There is something to see.
    called: bool,
    dismissed: bool,
}

struct Seat {
    lease: Option<Arc<dyn Timed>>,
    alarm: Option<Instant>,
}

impl<R: Runtime> Timekeeper<R> {
    /// For the runtime that is running here.
    pub(crate) fn new(runtime: R) -> Self {
        let here = runtime.here().map(|here| Box::new(here) as Box<dyn Any + Send + Sync>);
        // Nobody else will find one that cannot tell where it is.
        let dismissed = here.is_none();
        let state = State {
            seats: Vec::new(),
            free: Vec::new(),
            alarms: BinaryHeap::new(),
            calls: Vec::new(),
            started: false,
            next_look: Instant::EPOCH,
            waker: None,
            called: false,
            dismissed,
        };
        Self { runtime, here, state: Mutex::new(state) }
    }

    /// Whether this is the runtime that it runs on.
    pub(crate) fn is_of<T: Eq + 'static>(&self, here: &T) -> bool {
        self.here.as_deref().and_then(<dyn Any + Send + Sync>::downcast_ref::<T>) == Some(here)
    }

    /// Whether it is certain that this is where it runs.
    pub(crate) fn is_here(&self) -> bool {
        self.runtime.here().is_some_and(|here| self.is_of(&here))
    }

    /// Takes a lease in. False if the task has to be [started](Self::start) for it.
    pub(crate) fn enter(&self, lease: Arc<dyn Timed>) -> bool {
        let mut state = self.lock();
        let place = match state.free.pop() {
            Some(place) => place,
            None => Place(state.seats.len()),
        };
        lease.has_place(place);
        let seat = Seat { lease: Some(lease), alarm: None };
        match state.seats.get_mut(place.0) {
            Some(free) => *free = seat,
            None => state.seats.push(seat),
        }
        std::mem::replace(&mut state.started, true)
    }

    /// Starts the task. If that is not possible all leases end.
    pub(crate) fn start(self: &Arc<Self>) -> Result<(), NotRunning> {
        // Made before the task runs: a runtime that stops may drop it unpolled.
        let duty = Duty(Some(Arc::clone(self)));
        self.runtime.spawn(keep_time(duty))
    }

    /// Rings for this lease at this time at the latest.
    pub(crate) fn set(&self, place: Place, at: Instant) {
        let mut state = self.lock();
        let Some(seat) = state.seats.get_mut(place.0) else { return };
        // What comes in another order than it was said is no later for that.
        if seat.alarm.is_some_and(|alarm| alarm <= at) {
            return;
        }
        seat.alarm = Some(at);
        state.alarms.push(Reverse((at, place)));
        state.clear_away();
        if at < state.next_look {
            state.next_look = at;
            call(state);
        }
    }

    /// Has the errands of a lease run.
    pub(crate) fn has_errands(&self, lease: Arc<dyn Timed>) {
        if self.is_here() {
            return lease.run_errands();
        }
        let mut state = self.lock();
        state.calls.push(lease);
        call(state);
    }

    /// A lease is over.
    pub(crate) fn leave(&self, place: Place) {
        let mut state = self.lock();
        let lease = state.seats.get_mut(place.0).and_then(|seat| {
            seat.alarm = None;
            seat.lease.take()
        });
        if lease.is_some() {
            state.free.push(place);
        }
        if state.is_empty() && state.dismissed {
            call(state);
        } else {
            drop(state);
        }
        // Under no lock.
        drop(lease);
    }

    /// The task ends as soon as no lease is left.
    pub(crate) fn dismiss(&self) {
        let mut state = self.lock();
        state.dismissed = true;
        call(state);
    }

    /// All leases.
    pub(crate) fn leases(&self) -> Vec<Arc<dyn Timed>> {
        self.lock().leases()
    }

    /// A look by the task, which has set its timer for `armed`.
    fn look(&self, armed: Option<Instant>, seen: &mut Seen) {
        let now = self.runtime.now();
        let mut state = self.lock();
        let State { alarms, seats, calls, .. } = &mut *state;
        while seen.due.len() < AT_ONCE
            && let Some(Reverse((at, place))) = alarms.peek().copied()
            && at <= now
        {
            alarms.pop();
            if let Some(seat) = seats.get_mut(place.0)
                && seat.alarm == Some(at)
            {
                seat.alarm = None;
                seen.due.extend(seat.lease.clone());
            }
        }
        seen.calls.append(calls);
        let next = alarms.peek().map(|Reverse((at, _))| *at);
        seen.more = next.is_some_and(|next| next <= now);
        state.called = seen.more;
        // Without any lease the task lingers until its timer ends, for those that come soon.
        seen.over = state.is_empty() && (armed.is_none() || state.dismissed);
        state.started = !seen.over;
        let latest = now.saturating_add(LONGEST_SLEEP);
        state.next_look = next.into_iter().chain(armed).fold(latest, Instant::min);
        seen.next_look = state.next_look;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the task sees.
struct Seen {
    due: Vec<Arc<dyn Timed>>,
    calls: Vec<Arc<dyn Timed>>,
    next_look: Instant,
    /// More is due.
    more: bool,
    /// Nothing is left to do.
    over: bool,
}

impl State {
    fn leases(&self) -> Vec<Arc<dyn Timed>> {
        self.seats.iter().filter_map(|seat| seat.lease.clone()).collect()
    }

    fn is_empty(&self) -> bool {
        self.seats.len() == self.free.len()
    }

    /// Drops alarms that are no longer wanted, once they are most of them.
    fn clear_away(&mut self) {
        let leases = self.seats.len() - self.free.len();
        if self.alarms.len() > 2 * leases + 64 {
            let seats = &self.seats;
            self.alarms.retain(|Reverse((at, place))| {
                seats.get(place.0).is_some_and(|seat| seat.alarm == Some(*at))
            });
        }
    }
}

/// Has the task look.
fn call(mut state: MutexGuard<'_, State>) {
    state.called = true;
    let waker = state.waker.take();
    drop(state);
    if let Some(waker) = waker {
        waker.wake();
    }
}

async fn keep_time<R: Runtime>(mut duty: Duty<R>) {
    let Some(timekeeper) = duty.0.clone() else { return };
    let (due, calls) = (Vec::new(), Vec::new());
    let mut seen = Seen { due, calls, next_look: Instant::EPOCH, more: false, over: false };
    let mut timer = pin!(None);
    let mut armed = None;
    loop {
        timekeeper.look(armed, &mut seen);
        if seen.over {
            duty.0 = None;
            return;
        }
        seen.due.drain(..).for_each(Timed::ring);
        seen.calls.drain(..).for_each(Timed::run_errands);
        if armed.is_none_or(|armed| seen.next_look < armed) {
            timer.set(Some(timekeeper.runtime.sleep_until(seen.next_look)));
            armed = Some(seen.next_look);
        }
        let rang = poll_fn(|context| {
            if std::mem::take(&mut seen.more) {
                // Others on this runtime have a turn first.
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            let mut state = timekeeper.lock();
            if state.called {
                return Poll::Ready(false);
            }
            state.waker = Some(context.waker().clone());
            drop(state);
            match timer.as_mut().as_pin_mut() {
                Some(timer) => timer.poll(context).map(|()| true),
                None => Poll::Ready(true),
            }
        })
        .await;
        if rang {
            timer.set(None);
            armed = None;
        }
    }
}

/// Ends all leases when the task is dropped midway, as its runtime does when it stops.
struct Duty<R: Runtime>(Option<Arc<Timekeeper<R>>>);

impl<R: Runtime> Drop for Duty<R> {
    fn drop(&mut self) {
        let Some(timekeeper) = self.0.take() else { return };
        let leases = {
            let mut state = timekeeper.lock();
            // For leases that come later there may be a runtime again.
            state.started = false;
            state.leases()
        };
        leases.into_iter().for_each(Timed::orphan);
    }
}

/// No sleep is longer than this. A timer may stand still while the machine is suspended and the clock
/// does not; then the loss of a lease is noticed at most this long after waking up. Who asks the lease
/// itself gets the right answer at once.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// So many leases are rung for in one go at most, before others on the runtime have a chance to run.
const AT_ONCE: usize = 32;
