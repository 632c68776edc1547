//! `sleep_until`.

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::{Either, select};
use futures_util::stream::FuturesUnordered;

use super::super::outcome::{Failure, Outcome, must, should};
use super::super::time::{EARLY, LATE, ms, pause, poll_once, timed};
use crate::{Instant, Runtime};

pub(super) async fn is_never_early_and_not_late<R: Runtime>(runtime: R) -> Outcome {
    for span in [ms(1), Duration::from_micros(2_700), ms(10), ms(50)] {
        let deadline = runtime.now().saturating_add(span);
        runtime.sleep_until(deadline).await;
        let ended = runtime.now();
        not_early(deadline, ended)?;
        let late = ended.saturating_since(deadline);
        should(late <= LATE, format_args!("a sleep of {span:?} ended {late:?} late"))?;
    }
    Ok(())
}

pub(super) async fn ends_at_once_when_its_time_is_over<R: Runtime>(runtime: R) -> Outcome {
    pause(&runtime, ms(5)).await;
    let now = runtime.now();
    let past = [Instant::EPOCH, now.saturating_sub(ms(2)), now.saturating_sub(Duration::from_nanos(1)), now];
    for deadline in past {
        let ((), took) = timed(&runtime, runtime.sleep_until(deadline)).await;
        let over = now.saturating_since(deadline);
        should(
            took <= AT_ONCE,
            format_args!("a sleep whose deadline had passed {over:?} ago took {took:?}"),
        )?;
    }
    // The deadline is a point in time, and not a span from the first poll on.
    let sleep = runtime.sleep_until(runtime.now().saturating_add(ms(30)));
    pause(&runtime, ms(40)).await;
    let ((), took) = timed(&runtime, sleep).await;
    let case = "a sleep of 30 ms that was first polled after 40 ms";
    should(took <= AT_ONCE, format_args!("{case} took another {took:?}"))
}

pub(super) async fn ends_in_order<R: Runtime>(runtime: R) -> Outcome {
    let start = runtime.now();
    let sleeps = [100, 20, 80, 40, 60].map(|span| {
        let sleep = runtime.sleep_until(start.saturating_add(ms(span)));
        async move {
            sleep.await;
            span
        }
    });
    let ended: Vec<_> = FuturesUnordered::from_iter(sleeps).collect().await;
    // A stall of the whole machine puts several ends into one moment.
    should(
        ended.is_sorted(),
        format_args!("sleeps of 100, 20, 80, 40 and 60 ms ended in the order {ended:?}"),
    )
}

pub(super) async fn many_at_once<R: Runtime>(runtime: R) -> Outcome {
    let start = runtime.now();
    let sleeps = (0..300).map(|number| {
        let (deadline, runtime) = (start.saturating_add(ms(number * 7 % 30)), runtime.clone());
        async move {
            runtime.sleep_until(deadline).await;
            not_early(deadline, runtime.now())
        }
    });
    let mut sleeps = FuturesUnordered::from_iter(sleeps);
    while let Some(ended) = sleeps.next().await {
        ended?;
    }
    let took = runtime.now().saturating_since(start);
    should(took <= ms(30) + LATE, format_args!("300 sleeps of up to 30 ms took {took:?}"))
}

pub(super) async fn wakes_whoever_polled_last<R: Runtime>(runtime: R) -> Outcome {
    let deadline = runtime.now().saturating_add(ms(10));
    let mut sleep = Box::pin(runtime.sleep_until(deadline));
    let first = sleep.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    if first.is_pending() {
        // Polled before the sleep: were that not to wake anybody, this would be found over first.
        let control = pin!(pause(&runtime, ms(10) + LATE));
        if let Either::Left(_) = select(control, sleep).await {
            let seen =
                "a sleep of 10 ms, polled by one task and then by another, did not wake that in 110 ms";
            return Err(Failure::likely(seen));
        }
    }
    not_early(deadline, runtime.now())
}

pub(super) async fn may_be_dropped<R: Runtime>(runtime: R) -> Outcome {
    let start = runtime.now();
    let deadline = start.saturating_add(ms(20));
    let mut survivor = Box::pin(runtime.sleep_until(deadline));
    must(poll_once(&mut survivor).await.is_pending(), format_args!("a sleep of 20 ms ended at once"))?;
    for number in 0..100 {
        let mut dropped = Box::pin(runtime.sleep_until(start.saturating_add(ms(number % 40))));
        if number % 3 > 0 {
            // Whether it ended already is no matter here.
            let _ = poll_once(&mut dropped).await;
        }
        if number == 50 {
            pause(&runtime, ms(1)).await;
        }
    }
    survivor.await;
    let ended = runtime.now();
    not_early(deadline, ended)?;
    let late = ended.saturating_since(deadline);
    should(
        late <= LATE,
        format_args!("beside 100 sleeps that were dropped one of 20 ms ended {late:?} late"),
    )?;
    // The deadlines of those that were dropped pass.
    let ((), took) = timed(&runtime, pause(&runtime, ms(30))).await;
    must(took + EARLY >= ms(30), format_args!("after 100 sleeps were dropped one of 30 ms took {took:?}"))
}

pub(super) async fn may_be_for_ever<R: Runtime>(runtime: R) -> Outcome {
    let years = Duration::from_secs(1_000 * 365 * 24 * 60 * 60);
    let ends = [
        Instant::from_epoch(Duration::MAX),
        Instant::from_epoch(Duration::MAX / 2),
        Instant::from_epoch(Duration::from_millis(u64::MAX)),
        runtime.now().saturating_add(years),
    ];
    let mut sleeps = ends.map(|end| Box::pin(runtime.sleep_until(end)));
    for _ in 0..2 {
        for (sleep, end) in sleeps.iter_mut().zip(ends) {
            let polled = poll_once(sleep).await;
            must(polled == Poll::Pending, format_args!("a sleep until {end:?} ended"))?;
        }
        pause(&runtime, ms(5)).await;
    }
    Ok(())
}

fn not_early(deadline: Instant, ended: Instant) -> Outcome {
    let early = deadline.saturating_since(ended);
    must(early <= EARLY, format_args!("a sleep ended {early:?} before its deadline"))
}

/// What "at once" may take.
const AT_ONCE: Duration = ms(15);
