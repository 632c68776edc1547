//! A monotonic clock that goes on while the machine sleeps.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use redlock_core::Instant;

/// Differences below this between the two clocks are the time that reading both takes.
const NOISE: Duration = Duration::from_millis(10);

/// A monotonic clock that counts the time during which the machine was suspended.
///
/// The usual monotonic clock of Linux and macOS stands still then, while the servers go on expiring
/// keys: a laptop that sleeps for an hour would wake up with leases that look almost fresh. This one
/// reads the clock that goes on (`CLOCK_BOOTTIME` on Linux and Android,
/// `CLOCK_MONOTONIC` on Apple systems; both include sleep there). On other systems it is the standard
/// library's clock, and suspension is not seen.
///
/// Clones share one epoch.
#[derive(Clone, Debug)]
pub struct SuspendAwareClock {
    started: std::time::Instant,
    started_with_sleep: Option<Duration>,
    /// Nanoseconds of suspension seen so far; it only grows.
    suspended: Arc<AtomicU64>,
}

impl SuspendAwareClock {
    /// A clock whose epoch is now.
    #[must_use]
    pub fn new() -> Self {
        Self {
            started: monotonic(),
            started_with_sleep: with_sleep(),
            suspended: Arc::new(AtomicU64::new(0)),
        }
    }

    /// The time since the epoch, suspension included.
    #[must_use]
    pub fn now(&self) -> Instant {
        Instant::from_epoch(self.with_sleep().unwrap_or_else(|| self.awake()))
    }

    /// How long the machine was suspended since the epoch. For runtimes with a clock of their own, such as one
    /// that tests can pause: what their clock says plus this. `reading` is what that clock has just read, in
    /// terms of the usual monotonic clock; where it differs from that, it costs one more reading.
    #[must_use]
    pub fn suspended(&self, reading: std::time::Instant) -> Duration {
        let seen = self.suspended.load(Ordering::Relaxed);
        let not_more = || Duration::from_nanos(seen);
        let Some(total) = self.with_sleep() else { return not_more() };
        let more = not_more().saturating_add(NOISE);
        if total.saturating_sub(reading.saturating_duration_since(self.started)) < more {
            return not_more();
        }
        // The clock of a test, or the truth.
        let ahead = total.saturating_sub(self.awake());
        if ahead < more {
            return not_more();
        }
        let ahead = u64::try_from(ahead.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(self.suspended.fetch_max(ahead, Ordering::Relaxed).max(ahead))
    }

    fn with_sleep(&self) -> Option<Duration> {
        self.started_with_sleep.and_then(|started| with_sleep()?.checked_sub(started))
    }

    fn awake(&self) -> Duration {
        self.started.elapsed()
    }
}

impl Default for SuspendAwareClock {
    fn default() -> Self {
        Self::new()
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the clock")]
fn monotonic() -> std::time::Instant {
    std::time::Instant::now()
}

/// The reading of a clock that goes on during sleep, where the system has one.
fn with_sleep() -> Option<Duration> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let id = rustix::time::ClockId::Boottime;
    #[cfg(target_vendor = "apple")]
    let id = rustix::time::ClockId::Monotonic;
    #[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
    {
        let reading = rustix::time::clock_gettime(id);
        let seconds = u64::try_from(reading.tv_sec).ok()?;
        let nanos = u32::try_from(reading.tv_nsec).ok()?;
        Some(Duration::new(seconds, nanos))
    }
    #[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_goes_back_and_has_seen_no_sleep_in_a_test() {
        let clock = SuspendAwareClock::new();
        let mut last = clock.now();
        for _ in 0..10_000 {
            let now = clock.now();
            assert!(now >= last);
            last = now;
        }
    }

    #[test]
    fn suspension_moves_the_clock_on() {
        let mut clock = SuspendAwareClock::new();
        let Some(started) = clock.started_with_sleep else { return };
        let before = clock.suspended(monotonic());
        // As if a second had been slept through since the epoch.
        clock.started_with_sleep = started.checked_sub(Duration::from_secs(1));
        if clock.started_with_sleep.is_some() {
            assert!(clock.suspended(monotonic()) >= before + Duration::from_millis(900));
            assert!(clock.now() >= Instant::from_epoch(Duration::from_millis(900)));
        }
    }

    #[test]
    fn a_clock_that_a_test_has_moved_shows_no_suspension() {
        let clock = SuspendAwareClock::new();
        let hour = Duration::from_secs(3_600);
        for moved in [monotonic().checked_sub(hour), monotonic().checked_add(hour)].into_iter().flatten() {
            assert_eq!(clock.suspended(moved), Duration::ZERO);
        }
    }
}
