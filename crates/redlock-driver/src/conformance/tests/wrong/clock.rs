use std::cell::Cell;
use std::panic::resume_unwind;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{Kind, Wrong};
use crate::Instant;

thread_local! {
    static EPOCH: Cell<Option<tokio::time::Instant>> = const { Cell::new(None) };
}

pub(super) fn now(runtime: &Wrong) -> Instant {
    let right = Instant::from_epoch(runtime.epoch.elapsed());
    match runtime.kind {
        Kind::ClockStandsStill => Instant::EPOCH,
        Kind::ClockGoesBack => {
            let reading = runtime.shared.readings.fetch_add(1, Ordering::Relaxed);
            let back = if reading % 100 == 99 { Duration::from_millis(1) } else { Duration::ZERO };
            right.saturating_sub(back)
        }
        Kind::ClockIsSlow => Instant::from_epoch(right.since_epoch() / 2),
        Kind::ClockStartsWithEachThread => {
            let now = tokio::time::Instant::now();
            let epoch = EPOCH.get().unwrap_or(now);
            EPOCH.set(Some(epoch));
            Instant::from_epoch(now - epoch)
        }
        Kind::ClockPanicsElsewhere if runtime.is_elsewhere() => resume_unwind(Box::new("not here")),
        _ => right,
    }
}
