//! Waiting for the loss of a lease.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_channel::oneshot;
use futures_util::FutureExt as _;
use futures_util::future::Shared;
use redlock_core::LossReason;

use crate::Runtime;
use crate::cell::Cell;

/// Ends when its lease is lost, with the reason. Any number of clones may be waited for, anywhere; they
/// do not keep the lease alive.
///
/// Stays pending for ever when the lease is released: that is no loss. When the handle is dropped or the
/// manager closed it ends with [`LossReason::Closed`].
#[must_use = "a future does nothing unless it is awaited"]
pub struct Lost<R> {
    cell: Arc<Cell<R>>,
    /// Gone once it is certain that there will be no signal.
    signal: Option<Shared<oneshot::Receiver<LossReason>>>,
}

impl<R: Runtime> Lost<R> {
    pub(crate) fn new(cell: &Arc<Cell<R>>) -> Self {
        Self { signal: cell.lost(), cell: Arc::clone(cell) }
    }
}

impl<R: Runtime> Future for Lost<R> {
    type Output = LossReason;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<LossReason> {
        // The clock before the signal: after a suspension the signal may lag.
        if let Some(reason) = self.cell.loss() {
            return Poll::Ready(reason);
        }
        let Some(signal) = &mut self.signal else { return Poll::Pending };
        let signal = ready!(signal.poll_unpin(cx));
        self.signal = None;
        match signal {
            Ok(reason) => Poll::Ready(reason),
            Err(oneshot::Canceled) => Poll::Pending,
        }
    }
}

impl<R> Clone for Lost<R> {
    fn clone(&self) -> Self {
        Self { cell: Arc::clone(&self.cell), signal: self.signal.clone() }
    }
}

impl<R> fmt::Debug for Lost<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lost").finish_non_exhaustive()
    }
}
