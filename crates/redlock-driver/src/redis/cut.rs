//! A signal that ends whatever waits for it.

use std::sync::{Mutex, OnceLock};

use futures_channel::oneshot;
use futures_util::FutureExt;
use futures_util::future::Shared;
use redlock_core::{Cause, CauseKind};

use super::lock;

/// Given at most once, with a cause; seen by any number of waiters, early or late. A dropped `Cut`
/// counts as given.
#[derive(Debug)]
pub(crate) struct Cut {
    cause: OnceLock<Cause>,
    sender: Mutex<Option<oneshot::Sender<()>>>,
    signal: Shared<oneshot::Receiver<()>>,
}

impl Cut {
    pub(crate) fn new() -> Self {
        let (sender, receiver) = oneshot::channel();
        Self { cause: OnceLock::new(), sender: Mutex::new(Some(sender)), signal: receiver.shared() }
    }

    /// Gives the signal. The first cause stays.
    pub(crate) fn give(&self, cause: Cause) {
        // A second caller finds the cause set and the sender gone.
        let _ = self.cause.set(cause);
        let sender = lock(&self.sender).take();
        drop(sender);
    }

    /// Why, if the signal was given.
    pub(crate) fn given(&self) -> Option<&Cause> {
        self.cause.get()
    }

    /// Ends when the signal is given, or was.
    pub(crate) async fn wait(&self) -> Cause {
        self.signal().await;
        self.given().cloned().unwrap_or_else(|| Cause::new(CauseKind::Closed))
    }

    /// The same for somebody who does not keep the `Cut` alive.
    pub(crate) fn signal(&self) -> impl Future<Output = ()> + Send + 'static + use<> {
        self.signal.clone().map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_cause_stays() {
        let cut = Cut::new();
        assert!(cut.given().is_none());
        assert!(cut.wait().now_or_never().is_none());
        cut.give(Cause::new(CauseKind::Disconnected));
        cut.give(Cause::new(CauseKind::Closed));
        assert_eq!(cut.wait().now_or_never(), Some(Cause::new(CauseKind::Disconnected)));
        assert_eq!(cut.given().map(Cause::kind), Some(CauseKind::Disconnected));
    }

    #[test]
    fn a_dropped_cut_counts_as_given() {
        let cut = Cut::new();
        let signal = cut.signal();
        drop(cut);
        assert!(signal.now_or_never().is_some());
    }
}
