//! The one place of the harness that reads clocks.

use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// How often a condition is looked at again.
const POLL: Duration = Duration::from_millis(5);

/// Real time that has passed since its start, for tests that bound how long something takes.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts at zero.
    pub fn start() -> Self {
        Self(now())
    }

    /// The time since the start.
    pub fn elapsed(&self) -> Duration {
        now().saturating_duration_since(self.0)
    }
}

/// Waits until `condition` holds, looking every few milliseconds, and returns how long that took.
///
/// # Panics
/// When it does not hold within `limit`, naming `what` was waited for. The condition is looked at once more
/// after the limit, so that a machine that was merely busy does not fail the test.
#[track_caller]
pub fn wait_until(what: &str, limit: Duration, mut condition: impl FnMut() -> bool) -> Duration {
    let watch = Stopwatch::start();
    loop {
        let out_of_time = watch.elapsed() >= limit;
        if condition() {
            return watch.elapsed();
        }
        assert!(!out_of_time, "{what}: not within {limit:?}");
        thread::sleep(POLL);
    }
}

/// The current time.
#[allow(clippy::disallowed_methods, reason = "the harness watches real servers in real time")]
pub(super) fn now() -> Instant {
    Instant::now()
}

/// What the system's wall clock shows, in microseconds.
#[allow(clippy::disallowed_methods, reason = "the clocks of servers are compared with it")]
pub(super) fn wall_clock_micros() -> i64 {
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since_1970.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_ends_when_the_condition_holds() {
        let mut looks = 0;
        let taken = wait_until("third look", Duration::from_secs(10), || {
            looks += 1;
            looks == 3
        });
        assert!(taken >= POLL * 2, "{taken:?}");
    }

    #[test]
    #[should_panic(expected = "a blue moon: not within 20ms")]
    fn waiting_ends_at_the_limit() {
        wait_until("a blue moon", Duration::from_millis(20), || false);
    }

    #[test]
    fn a_condition_is_looked_at_even_without_time() {
        assert!(wait_until("nothing", Duration::ZERO, || true) < Duration::from_secs(1));
    }
}
