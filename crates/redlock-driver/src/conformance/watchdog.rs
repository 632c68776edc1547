//! A limit in real time, which no runtime can get in the way of.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::task::Poll;
use std::thread;
use std::time::Duration;

use futures_util::task::AtomicWaker;

/// The future's output, or `None` when this much real time has passed without it.
///
/// The timer is a thread, because timers are among what is checked, and on a paused clock the runtime's
/// would end at once. A future that blocks the thread which polls it blocks this too.
pub(super) async fn within<F: Future>(limit: Duration, future: F) -> Option<F::Output> {
    let alarm = Alarm::set(limit);
    let mut future = pin!(future);
    poll_fn(|context| {
        if let Poll::Ready(output) = future.as_mut().poll(context) {
            return Poll::Ready(Some(output));
        }
        alarm.bell.waker.register(context.waker());
        if alarm.bell.rung.load(Ordering::Acquire) { Poll::Ready(None) } else { Poll::Pending }
    })
    .await
}

struct Alarm {
    bell: Arc<Bell>,
    /// Dropped with the alarm, which ends its thread.
    _running: Sender<()>,
}

#[derive(Default)]
struct Bell {
    rung: AtomicBool,
    waker: AtomicWaker,
}

impl Alarm {
    fn set(limit: Duration) -> Self {
        let bell = Arc::new(Bell::default());
        let (running, ended) = channel();
        let rings = Arc::clone(&bell);
        let ring = move || {
            if ended.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                rings.rung.store(true, Ordering::Release);
                rings.waker.wake();
            }
        };
        // Where there are no threads to be had there is no limit.
        drop(thread::Builder::new().name("redlock-conformance".into()).spawn(ring));
        Self { bell, _running: running }
    }
}
