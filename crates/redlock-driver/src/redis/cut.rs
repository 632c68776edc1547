//! A signal that ends whatever waits for it.

use std::sync::Mutex;

use futures_channel::oneshot;
use futures_util::FutureExt;
use futures_util::future::Shared;

use super::lock;

/// Given at most once; seen by any number of waiters, early or late. A dropped `Cut` counts as given.
#[derive(Debug)]
pub(crate) struct Cut {
    sender: Mutex<Option<oneshot::Sender<()>>>,
    signal: Shared<oneshot::Receiver<()>>,
}

impl Cut {
    pub(crate) fn new() -> Self {
        let (sender, receiver) = oneshot::channel();
        Self { sender: Mutex::new(Some(sender)), signal: receiver.shared() }
    }

    /// Gives the signal.
    pub(crate) fn give(&self) {
        let sender = lock(&self.sender).take();
        drop(sender);
    }

    /// Ends when the signal is given, or was, for somebody who does not keep the `Cut` alive.
    pub(crate) fn signal(&self) -> impl Future<Output = ()> + Send + 'static + use<> {
        self.signal.clone().map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_seen_early_and_late() {
        let cut = Cut::new();
        let early = cut.signal();
        assert!(cut.signal().now_or_never().is_none());
        cut.give();
        cut.give();
        assert!(early.now_or_never().is_some());
        assert!(cut.signal().now_or_never().is_some());
    }

    #[test]
    fn a_dropped_cut_counts_as_given() {
        let cut = Cut::new();
        let signal = cut.signal();
        drop(cut);
        assert!(signal.now_or_never().is_some());
    }
}
