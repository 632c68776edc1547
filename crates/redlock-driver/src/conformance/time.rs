//! Waiting, on the clock and the timer of the runtime that is checked.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use futures_util::future::{Either, select};

use super::outcome::{Failure, Outcome};
use crate::Runtime;

/// By how much a sleep may end before its deadline: one tick of a timer that counts milliseconds, and the
/// rounding of a clock that does.
pub const EARLY: Duration = Duration::from_millis(2);

/// By how much anything may be late before it counts as too late: more than any timer needs, and than a
/// machine with something else to do usually takes.
pub const LATE: Duration = Duration::from_millis(100);

pub(super) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Sleeps for this long.
pub(super) async fn pause<R: Runtime>(runtime: &R, span: Duration) {
    runtime.sleep_until(runtime.now().saturating_add(span)).await;
}

/// The future's output, if it comes within `span`.
pub(super) async fn by<R: Runtime, F: Future>(runtime: &R, span: Duration, future: F) -> Option<F::Output> {
    match select(pin!(future), pin!(pause(runtime, span))).await {
        Either::Left((output, _)) => Some(output),
        Either::Right(((), _)) => None,
    }
}

/// The future's output, and how long it took.
pub(super) async fn timed<R: Runtime, F: Future>(runtime: &R, future: F) -> (F::Output, Duration) {
    let start = runtime.now();
    let output = future.await;
    (output, runtime.now().saturating_since(start))
}

/// Looks every now and then, until `condition` holds.
pub(super) async fn eventually<R: Runtime>(
    runtime: &R,
    limit: Duration,
    otherwise: &str,
    mut condition: impl FnMut() -> bool,
) -> Outcome {
    let deadline = runtime.now().saturating_add(limit);
    while !condition() {
        if runtime.now() >= deadline {
            return Err(Failure::likely(format_args!("{otherwise} within {limit:?}")));
        }
        pause(runtime, ms(2)).await;
        // A sleep that does not wait must not keep the limit in real time from being seen.
        yield_now().await;
    }
    Ok(())
}

/// Lets the runtime do something else.
pub(super) async fn yield_now() {
    let mut yielded = false;
    poll_fn(|context| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Polls once, as the task that it is called in.
pub(super) async fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    poll_fn(|context| Poll::Ready(std::pin::Pin::new(&mut *future).poll(context))).await
}
