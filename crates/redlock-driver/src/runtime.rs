//! What a runtime has to bring: a clock, a timer, and a way to run a task.

use std::future::Future;
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt as _;
use redlock_core::Instant;
use thiserror::Error;

/// An async runtime, as far as a lease needs one.
///
/// A value of this type is a cheap handle: it is cloned freely, and all clones share one epoch.
///
/// The first three methods must agree with each other: a sleep until `t` ends when `now()` has reached `t`,
/// give or take the timer's grain, early or late. Nothing breaks when it is early (the driver looks at
/// the clock again) or late (a lease ends on the clock, not on the timer).
pub trait Runtime: Clone + Send + Sync + 'static {
    /// The time on a monotonic clock, since an epoch of the handle's choosing. Must not block and must
    /// work anywhere, also outside the runtime. It should go on while the machine is suspended,
    /// because the servers do: see [`SuspendAwareClock`](crate::SuspendAwareClock).
    fn now(&self) -> Instant;

    /// Ends at `deadline`, or at once when that has passed. Only ever created and polled within a task
    /// of this runtime.
    fn sleep_until(&self, deadline: Instant) -> impl Future<Output = ()> + Send + 'static;

    /// Runs `task` to its end, whether or not anybody waits for it. A panic in it must not reach
    /// anything else.
    ///
    /// # Errors
    /// [`NotRunning`] when there is no runtime here that could run it.
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> Result<(), NotRunning>;

    /// Tells the runtime on which [`spawn`](Self::spawn) would run a task from here, apart from others that a
    /// process may have at the same time. `None` if it cannot be told, or if there is none.
    ///
    /// Leases of one manager that are asked for on the same runtime share the task that keeps their time. The
    /// provided method does not tell, so each has one of its own: that works, and costs more.
    fn here(&self) -> Option<impl Eq + Send + Sync + 'static> {
        None::<()>
    }
}

/// No runtime is running where a task was to be spawned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("no async runtime is running here")]
pub struct NotRunning;

/// A task whose panic ends with it, for executors that would let it out of whatever polls the task. The
/// panic's message is printed as always.
pub fn contained(
    task: impl Future<Output = ()> + Send + 'static,
) -> impl Future<Output = ()> + Send + 'static {
    // Nothing of the task is looked at after a panic, so it cannot be seen in a broken state.
    AssertUnwindSafe(task).catch_unwind().map(|_| ())
}
