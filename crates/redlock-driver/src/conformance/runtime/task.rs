//! `spawn` and `here`.

use std::future::Future;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use futures_channel::oneshot;
use futures_util::FutureExt as _;
use futures_util::future::join_all;

use super::super::outcome::{During as _, Failure, Outcome, must};
use super::super::time::{LATE, by, eventually, ms, pause, yield_now};
use crate::timekeeper::Timekeeper;
use crate::{Instant, NotRunning, Runtime, SuspendAwareClock};

pub(super) async fn spawn_does_not_wait<R: Runtime>(runtime: R) -> Outcome {
    let returned = Arc::new(AtomicBool::new(false));
    let (sender, verdict) = oneshot::channel();
    let seen = Arc::clone(&returned);
    let real = SuspendAwareClock::new();
    let task = async move {
        // On another thread the task may well be ahead of the call that spawned it, but not for long.
        let mut waited = false;
        while !seen.load(Ordering::Acquire) && !waited {
            waited = real.now() > Instant::from_epoch(PATIENCE);
            yield_now().await;
        }
        let _ = sender.send(waited);
    };
    runtime.spawn(task).map_err(refused)?;
    returned.store(true, Ordering::Release);
    // Whether it runs at all is the next check's question.
    match by(&runtime, ms(500), verdict).await {
        Some(Ok(true)) => Err(Failure::likely(format_args!(
            "spawn() had not returned after its task had run for {PATIENCE:?}"
        ))),
        Some(Ok(false) | Err(oneshot::Canceled)) | None => Ok(()),
    }
}

pub(super) async fn runs_to_its_end<R: Runtime>(runtime: R) -> Outcome {
    let (sender, mut ending) = oneshot::channel();
    let sleeper = runtime.clone();
    let task = async move {
        for _ in 0..3 {
            yield_now().await;
            pause(&sleeper, ms(2)).await;
        }
        let _ = sender.send(());
    };
    runtime.spawn(task).map_err(refused)?;
    // Looked at, not waited for: a task is to run by itself.
    let mut dropped = false;
    let over = || match ending.try_recv() {
        Ok(Some(())) => true,
        Ok(None) => false,
        Err(oneshot::Canceled) => {
            dropped = true;
            true
        }
    };
    eventually(&runtime, ms(6) + LATE, "a task that sleeps for 6 ms did not end", over).await?;
    must(!dropped, format_args!("a task was dropped before its end"))
}

pub(super) async fn many_run_at_once<R: Runtime>(runtime: R) -> Outcome {
    // Each waits for the end of all the others' beginning.
    let (open, gate) = oneshot::channel::<()>();
    let gate = gate.shared();
    let mut begun = Vec::new();
    let mut ended = Vec::new();
    for number in 0..100 {
        let (beginning, has_begun) = oneshot::channel();
        let gate = gate.clone();
        let task = async move {
            let _ = beginning.send(());
            let _ = gate.await;
            number
        };
        ended.push(spawned(&runtime, task)?);
        begun.push(has_begun);
    }
    let all = by(&runtime, GENEROUS, join_all(begun)).await;
    let all = all.ok_or_else(|| Failure::likely("of 100 tasks that wait for each other not all began"))?;
    must(all.iter().all(Result::is_ok), format_args!("a task was dropped before it began"))?;
    let _ = open.send(());
    for (number, end) in ended.into_iter().enumerate() {
        let same = end.await? == number;
        must(same, format_args!("a task ended with what was another's"))?;
    }
    Ok(())
}

pub(super) async fn may_spawn<R: Runtime>(runtime: R) -> Outcome {
    let outer = runtime.clone();
    // Each ends before the one that it spawned, except the last.
    let end = spawned(&runtime, async move {
        let inner = outer.clone();
        spawned(&outer, async move {
            pause(&inner, ms(1)).await;
            spawned(&inner, async { 3 })?.await
        })
    })?;
    let innermost = end.await??.await??;
    must(innermost == 3, format_args!("a task ended with what was another's"))
}

pub(super) async fn is_woken_from_other_threads<R: Runtime>(runtime: R) -> Outcome {
    let mut ends = Vec::new();
    for pause in [Duration::ZERO, ms(1), ms(10)] {
        let (sender, receiver) = oneshot::channel();
        ends.push(spawned(&runtime, receiver)?);
        let wake = move || {
            thread::sleep(pause);
            let _ = sender.send(pause);
        };
        // It ends by itself.
        drop(thread::Builder::new().spawn(wake).during("starting a thread")?);
    }
    for end in ends {
        end.await?.during("waiting for another thread")?;
    }
    Ok(())
}

pub(super) async fn panic_stays_inside<R: Runtime>(runtime: R) -> Outcome {
    if cfg!(not(panic = "unwind")) {
        return Ok(());
    }
    let (open, gate) = oneshot::channel();
    let bystander = spawned(&runtime, gate)?;
    for sleeps in [false, true, false] {
        let (sender, receiver) = oneshot::channel::<()>();
        let sleeper = runtime.clone();
        let task = async move {
            let _owned = sender;
            if sleeps {
                pause(&sleeper, ms(1)).await;
            }
            // No message is printed, because nothing went wrong.
            resume_unwind(Box::new("a panic of the conformance suite, which should have stayed in its task"));
        };
        runtime.spawn(task).map_err(refused)?;
        let dropped = by(&runtime, GENEROUS, receiver).await.is_some();
        must(dropped, format_args!("a task that was to panic did not end and drop what it owned"))?;
    }
    let _ = open.send(5);
    let kept = by(&runtime, GENEROUS, bystander).await;
    let kept = kept.ok_or_else(|| Failure::certain("after a panic in one task another did not go on"))?;
    must(matches!(kept?, Ok(5)), format_args!("a panic in one task ended another"))?;
    let next = by(&runtime, GENEROUS, spawned(&runtime, async { 6 })?).await;
    let next = next.ok_or_else(|| Failure::certain("after a panic in one task no other was run"))?;
    must(next? == 6, format_args!("a task ended with what was another's"))
}

pub(super) async fn is_run_or_refused_elsewhere<R: Runtime>(runtime: R) -> Outcome {
    let (sender, receiver) = oneshot::channel();
    let elsewhere = runtime.clone();
    let spawn = move || {
        elsewhere.spawn(async move {
            let _ = sender.send(());
        })
    };
    let thread = thread::Builder::new().spawn(spawn).during("starting a thread")?;
    let spawned = thread.join();
    let spawned =
        spawned.map_err(|_| Failure::certain("spawn() panicked on a thread that is none of its own"))?;
    match (spawned, receiver.await) {
        (Ok(()), Ok(())) | (Err(NotRunning), Err(oneshot::Canceled)) => Ok(()),
        (Ok(()), Err(oneshot::Canceled)) => Err(Failure::certain("a task was accepted and dropped")),
        (Err(NotRunning), Ok(())) => Err(Failure::certain("a task was refused and run")),
    }
}

pub(super) async fn runs_where_here_says<R: Runtime>(runtime: R) -> Outcome {
    let (timekeeper, told) = (Timekeeper::new(runtime.clone()), runtime.here().is_some());
    let end = spawned(&runtime, async move { timekeeper.is_here() })?;
    must(end.await? == told, format_args!("a task runs elsewhere than here() said where it was spawned"))
}

/// Spawns a task, and yields the means to wait for its end.
fn spawned<R: Runtime, F>(
    runtime: &R,
    task: F,
) -> Outcome<impl Future<Output = Outcome<F::Output>> + Send + Unpin + use<R, F>>
where
    F: Future<Output: Send> + Send + 'static,
{
    let (sender, receiver) = oneshot::channel();
    let task = task.map(|output| {
        // Whoever spawned it may be gone.
        let _ = sender.send(output);
    });
    runtime.spawn(task).map_err(refused)?;
    let dropped = |_| Failure::certain("a task was dropped before its end");
    Ok(receiver.map(move |end| end.map_err(dropped)))
}

fn refused(_: NotRunning) -> Failure {
    Failure::certain("spawn() says that no runtime is running, within one of its tasks")
}

/// How long a task of one check waits for the call that spawned it to return.
const PATIENCE: Duration = ms(200);

/// How long what should take no time may take, before it is said never to come.
const GENEROUS: Duration = Duration::from_secs(2);
