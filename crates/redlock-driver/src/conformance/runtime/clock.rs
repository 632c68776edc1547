//! `now`.

use std::thread;
use std::time::Duration;

use super::super::outcome::{During as _, Failure, Outcome, must, should};
use super::super::time::{EARLY, ms, pause};
use crate::{Runtime, SuspendAwareClock};

pub(super) async fn never_goes_back<R: Runtime>(runtime: R) -> Outcome {
    let mut last = runtime.now();
    for _ in 0..5 {
        for _ in 0..1_000 {
            let now = runtime.now();
            let by = last.saturating_since(now);
            must(by.is_zero(), format_args!("one reading was {by:?} less than the one before"))?;
            last = now;
        }
        pause(&runtime, ms(2)).await;
    }
    Ok(())
}

pub(super) async fn moves_on<R: Runtime>(runtime: R) -> Outcome {
    let real = SuspendAwareClock::new();
    let start = runtime.now();
    let span = ms(40);
    pause(&runtime, span).await;
    let (went, passed) = (runtime.now().saturating_since(start), real.now().since_epoch());
    must(went > Duration::ZERO, format_args!("the clock stood still during a sleep of {span:?}"))?;
    must(went + EARLY >= span, format_args!("the clock went {went:?} during a sleep of {span:?}"))?;
    // Faster than real time it may be, in a test. Slower is how a lease outlives its keys.
    let least = passed.mul_f64(0.8).saturating_sub(ms(5));
    should(went >= least, format_args!("the clock went {went:?} while {passed:?} passed"))
}

pub(super) async fn is_shared_by_clones<R: Runtime>(runtime: R) -> Outcome {
    let early = runtime.clone();
    pause(&runtime, ms(10)).await;
    let late = runtime.clone();
    for (clone, which) in [(&early, "a clone"), (&late, "a clone made 10 ms later")] {
        let readings = [runtime.now(), clone.now(), runtime.now(), clone.now()];
        let ordered = readings.is_sorted();
        must(ordered, format_args!("a runtime and {which}, read in turn, said {readings:?}"))?;
    }
    Ok(())
}

pub(super) async fn works_on_other_threads<R: Runtime>(runtime: R) -> Outcome {
    // So that a clock which starts anew on each thread is behind.
    pause(&runtime, ms(10)).await;
    let elsewhere = runtime.clone();
    let before = runtime.now();
    let thread = thread::Builder::new().spawn(move || {
        thread::sleep(HALF);
        let now = elsewhere.now();
        thread::sleep(HALF);
        now
    });
    let read = thread.during("starting a thread")?.join();
    let after = runtime.now();
    let now =
        read.map_err(|_| Failure::certain("now() panicked on a thread that is none of the runtime's"))?;
    if after.saturating_since(before) < HALF {
        // The clock stands still while real time passes, so a test steers it; tokio's paused clock, for
        // one, is that of its own threads only.
        return Ok(());
    }
    must(
        before <= now && now <= after,
        format_args!("between {before:?} and {after:?} another thread read {now:?}"),
    )
}

const HALF: Duration = ms(5);
