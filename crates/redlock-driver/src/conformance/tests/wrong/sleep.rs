use std::future::{Future, poll_fn, ready};
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::time::sleep;

use super::{Kind, State, Wrong};
use crate::{Instant, Runtime as _};

type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

pub(super) fn until(runtime: &Wrong, deadline: Instant) -> Sleep {
    let now = runtime.now();
    let left = deadline.saturating_since(now);
    let shared = Arc::clone(&runtime.shared);
    let far = left > Duration::from_secs(1 << 32);
    match runtime.kind {
        Kind::ClockIsSlow => sleep(left.saturating_mul(2)).boxed(),
        Kind::SleepsEndEarlyBy(by) => sleep(left.saturating_sub(Duration::from_millis(by))).boxed(),
        Kind::SleepsEndLateBy(by) if !left.is_zero() => {
            sleep(left.saturating_add(Duration::from_millis(by))).boxed()
        }
        Kind::SleepsTakeAtLeast(least) => sleep(left.max(Duration::from_millis(least))).boxed(),
        Kind::SleepsPanicInThePast if deadline < now => resume_unwind(Box::new("subtraction overflowed")),
        Kind::SleepsStartAtTheFirstPoll => async move { sleep(left).await }.boxed(),
        Kind::SleepsEndInTheOrderOfTheirMaking => in_the_order_of_their_making(&shared, left),
        Kind::SleepsAreAHundredAtMost => a_hundred_at_most(shared, left),
        Kind::SleepsWakeTheFirstWaker => wakes_the_first_waker(left),
        Kind::SleepsEndWhenAnotherIsDropped => ends_when_another_is_dropped(shared, left),
        Kind::SleepsPanicAtTheEndOfTime if far => resume_unwind(Box::new("addition overflowed")),
        Kind::SleepsEndAtTheEndOfTime if far => ready(()).boxed(),
        _ => sleep(left).boxed(),
    }
}

fn in_the_order_of_their_making(shared: &State, left: Duration) -> Sleep {
    let mut last = shared.last_sleep.lock().unwrap();
    let before = last.take();
    let timer = sleep(left);
    let this = async move {
        timer.await;
        if let Some(before) = before {
            before.await;
        }
    };
    last.insert(this.boxed().shared()).clone().boxed()
}

fn a_hundred_at_most(shared: Arc<State>, left: Duration) -> Sleep {
    struct Running(Arc<State>);
    impl Drop for Running {
        fn drop(&mut self) {
            self.0.sleeps.fetch_sub(1, Ordering::Relaxed);
        }
    }
    let running = shared.sleeps.fetch_add(1, Ordering::Relaxed);
    let count = Running(shared);
    let left = if running < 100 { left } else { Duration::ZERO };
    let timer = sleep(left);
    async move {
        timer.await;
        drop(count);
    }
    .boxed()
}

fn wakes_the_first_waker(left: Duration) -> Sleep {
    let end = tokio::time::Instant::now().checked_add(left);
    let mut first = true;
    poll_fn(move |context| {
        if end.is_some_and(|end| end <= tokio::time::Instant::now()) {
            return Poll::Ready(());
        }
        if std::mem::replace(&mut first, false) {
            let waker = context.waker().clone();
            tokio::spawn(async move {
                sleep(left).await;
                waker.wake();
            });
        }
        Poll::Pending
    })
    .boxed()
}

fn ends_when_another_is_dropped(shared: Arc<State>, left: Duration) -> Sleep {
    struct Dropped(Arc<State>, bool);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.dropped_sleeps.fetch_add(u64::from(!self.1), Ordering::Relaxed);
        }
    }
    let before = shared.dropped_sleeps.load(Ordering::Relaxed);
    let mut this = Dropped(shared, false);
    let mut timer = Box::pin(sleep(left));
    poll_fn(move |context| {
        if this.0.dropped_sleeps.load(Ordering::Relaxed) == before
            && timer.as_mut().poll(context).is_pending()
        {
            return Poll::Pending;
        }
        this.1 = true;
        Poll::Ready(())
    })
    .boxed()
}
