//! Waiting on a runtime's clock.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use futures_util::future::{Either, select};
use redlock_core::Instant;

use crate::Runtime;

/// Ends when the clock has reached `deadline`; a timer that fires early is set again.
pub(crate) async fn reach(runtime: &impl Runtime, deadline: Instant) {
    while runtime.now() < deadline {
        runtime.sleep_until(deadline).await;
    }
}

/// Ends when this much time has passed.
pub(crate) async fn pause(runtime: &impl Runtime, span: Duration) {
    reach(runtime, runtime.now().saturating_add(span)).await;
}

/// The future's output, or `None` once the clock has reached `deadline` without it.
pub(crate) async fn by<F: Future>(runtime: &impl Runtime, deadline: Instant, future: F) -> Option<F::Output> {
    match select(pin!(future), pin!(reach(runtime, deadline))).await {
        Either::Left((output, _)) => Some(output),
        Either::Right(((), _)) => None,
    }
}
