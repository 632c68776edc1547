//! The node's own clock, which need not agree with anybody else's.

use core::time::Duration;

use crate::Instant;

/// A reading of a node's clock, in nanoseconds. Signed, because a clock can be set back beyond the
/// driver's epoch.
pub(super) type Reading = i128;

/// From the driver's time to the node's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct NodeClock {
    /// A moment at which the reading is known.
    anchor: Instant,
    reading: Reading,
    drift_ppm: i32,
}

impl NodeClock {
    pub(super) fn read(&self, now: Instant) -> Reading {
        let elapsed = nanos(now.since_epoch()) - nanos(self.anchor.since_epoch());
        let drift = elapsed * Reading::from(self.drift_ppm) / 1_000_000;
        self.reading.saturating_add(elapsed + drift)
    }

    pub(super) fn jump_forward(&mut self, by: Duration) {
        self.reading = self.reading.saturating_add(nanos(by));
    }

    pub(super) fn jump_back(&mut self, by: Duration) {
        self.reading = self.reading.saturating_sub(nanos(by));
    }

    /// From `now` on, gain this many parts in a million. A clock can stand still, not run backwards.
    pub(super) fn set_drift(&mut self, now: Instant, ppm: i32) {
        self.reading = self.read(now);
        self.anchor = now;
        self.drift_ppm = ppm.max(-1_000_000);
    }
}

/// The reading `span` after `from`.
pub(super) const fn after(from: Reading, span: Duration) -> Reading {
    from.saturating_add(nanos(span))
}

/// The time from one reading to a later one; zero if it is not later.
pub(super) fn between(from: Reading, to: Reading) -> Duration {
    const SECOND: u128 = 1_000_000_000;
    let nanos = to.saturating_sub(from).max(0).cast_unsigned();
    let (seconds, rest) = (u64::try_from(nanos / SECOND), u32::try_from(nanos % SECOND));
    seconds.map_or(Duration::MAX, |seconds| Duration::new(seconds, rest.unwrap_or_default()))
}

/// Fits: the largest `Duration` is below 2^95 nanoseconds.
const fn nanos(span: Duration) -> Reading {
    span.as_nanos().cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::from_epoch(Duration::from_secs(seconds))
    }

    #[test]
    fn jumps_and_drift_change_the_reading_from_now_on() {
        let mut clock = NodeClock::default();
        assert_eq!(clock.read(at(5)), nanos(Duration::from_secs(5)));
        clock.jump_forward(Duration::from_secs(10));
        assert_eq!(clock.read(at(5)), nanos(Duration::from_secs(15)));
        clock.jump_back(Duration::from_secs(60));
        assert_eq!(clock.read(at(5)), -nanos(Duration::from_secs(45)));

        let before = clock.read(at(5));
        clock.set_drift(at(5), 100_000);
        assert_eq!(clock.read(at(5)), before);
        assert_eq!(between(before, clock.read(at(15))), Duration::from_secs(11));
        clock.set_drift(at(15), i32::MIN);
        assert_eq!(clock.read(at(15)), clock.read(at(1_000)));
    }

    #[test]
    fn the_ends_of_time_do_not_overflow() {
        let last = Instant::from_epoch(Duration::MAX);
        let mut clock = NodeClock::default();
        for _ in 0..3 {
            clock.set_drift(last, i32::MAX);
            clock.jump_forward(Duration::MAX);
            let _ = clock.read(last);
            clock.set_drift(Instant::EPOCH, i32::MAX);
        }
        assert_eq!(between(Reading::MIN, Reading::MAX), Duration::MAX);
        assert_eq!(between(0, nanos(Duration::MAX)), Duration::MAX);
        assert_eq!(between(1, 0), Duration::ZERO);
    }
}
