//! Several who want one lease.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_channel::oneshot;
use futures_util::future::{join, join_all};

use super::super::outcome::{During as _, Failure, Outcome, must, should};
use super::super::time::{LATE, ms, pause, timed, yield_now};
use super::bench::Bench;
use crate::{Error, Lock, Runtime};

pub(super) async fn goes_to_the_one_who_waits<R: Runtime>(runtime: R) -> Outcome {
    let bench = Bench::new(runtime, 3, |settings| settings.attempts(3).retry_delay(ms(10)))?;
    let held = bench.lock().acquire().await.during("acquiring a lease")?;
    let (refused, took) = timed(&bench.runtime, bench.lock().acquire()).await;
    let taken = matches!(&refused, Err(Error::NotAcquired(failure)) if failure.is_taken());
    should(taken, format_args!("acquiring what another has did not end as taken: {refused:?}"))?;
    // Two pauses of 10 ms and up to half as much again.
    let waited = took >= ms(19) && took <= ms(30) + LATE;
    should(waited, format_args!("three attempts with 10 to 15 ms between them took {took:?}"))?;

    let lock = bench.lock();
    let (won, released) = join(lock.acquire_within(Duration::from_secs(2)), async {
        pause(&bench.runtime, ms(30)).await;
        held.release().await
    })
    .await;
    released.during("releasing what another waits for")?;
    won.during("acquiring what another releases")?.release().await.during("releasing what was waited for")?;
    bench.is_clean("after two leases one after the other").await
}

/// Six tasks, each of which takes the lease three times.
pub(super) async fn is_never_shared<R: Runtime>(runtime: R) -> Outcome {
    let bench = Bench::new(runtime, 3, |settings| settings.retry_delay(ms(2)))?;
    let holders = Arc::new(AtomicUsize::new(0));
    let mut ends = Vec::new();
    for _ in 0..6 {
        let (sender, end) = oneshot::channel();
        let (runtime, lock, holders) = (bench.runtime.clone(), bench.lock(), Arc::clone(&holders));
        let task = async move {
            // The check may have ended without waiting.
            let _ = sender.send(take_turns(runtime, lock, &holders).await);
        };
        bench.runtime.spawn(task).during("spawning a task")?;
        ends.push(end);
    }
    for end in join_all(ends).await {
        end.map_err(|_| Failure::certain("a task was dropped before its end"))??;
    }
    bench.is_clean("after eighteen leases").await
}

async fn take_turns<R: Runtime>(runtime: R, lock: Lock<R>, holders: &AtomicUsize) -> Outcome {
    for _ in 0..3 {
        let lease = lock.acquire_within(Duration::from_secs(3)).await.during("one of six that take turns")?;
        let others = holders.fetch_add(1, Ordering::SeqCst);
        yield_now().await;
        pause(&runtime, ms(1)).await;
        let valid = lease.is_valid();
        holders.fetch_sub(1, Ordering::SeqCst);
        must(others == 0 || !valid, format_args!("{others} others held a lease at the same time"))?;
        lease.release().await.during("releasing, as one of six that take turns")?;
    }
    Ok(())
}
