//! An actor's own clock, and the conversions between its time and the true time.
//!
//! True time is what the simulator counts: nanoseconds since a scenario began. No actor can see it.

use std::time::Duration;

use redlock_core::Instant;

/// True nanoseconds in a millisecond.
pub(crate) const MS: u64 = 1_000_000;

/// No scenario lasts longer, and no conversion goes beyond it.
const HORIZON: u64 = 3_600_000 * MS;

/// What a rate is measured in: parts in a million.
pub(crate) const MILLION: u64 = 1_000_000;

/// A clock that goes at its own rate from its own beginning.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    /// What it shows at the beginning.
    offset: u64,
    /// How much it moves in a million units of true time.
    rate: u64,
    /// For how long it has stood still. A sound clock never does.
    stood_still: u64,
    /// Since when it stands still.
    stopped: Option<u64>,
}

impl Clock {
    pub(crate) const fn new(offset: u64, drift_ppm: i32) -> Self {
        Self { offset, rate: MILLION.saturating_add_signed(drift_ppm as i64), stood_still: 0, stopped: None }
    }

    /// How fast it goes, in parts in a million too fast.
    pub(crate) const fn drift_ppm(&self) -> i64 {
        self.rate.cast_signed() - MILLION.cast_signed()
    }

    /// Sets what it shows at the beginning.
    pub(crate) const fn begin_at(&mut self, offset: u64) {
        self.offset = offset;
    }

    /// What the clock shows at this true time.
    pub(crate) fn read(&self, at: u64) -> Instant {
        let gone = self.stopped.unwrap_or(at).saturating_sub(self.stood_still).min(HORIZON);
        Instant::from_epoch(Duration::from_nanos(self.offset + gone * self.rate / MILLION))
    }

    /// The first true time at which the clock shows this or more.
    pub(crate) fn when(&self, shown: Instant) -> u64 {
        let shown = u64::try_from(shown.since_epoch().as_nanos()).unwrap_or(u64::MAX);
        let gone = shown.saturating_sub(self.offset).min(HORIZON);
        (gone * MILLION).div_ceil(self.rate) + self.stood_still
    }

    /// Stops the clock, as some do while their machine is suspended.
    pub(crate) const fn stop(&mut self, at: u64) {
        self.stopped = Some(at);
    }

    /// Lets it go on from what it showed when it stopped.
    pub(crate) fn start(&mut self, at: u64) {
        if let Some(since) = self.stopped.take() {
            self.stood_still += at.saturating_sub(since);
        }
    }
}

/// How long a span on a clock with this drift takes in true time, rounded down.
pub(crate) fn true_span(span: Duration, drift_ppm: i32) -> u64 {
    let span = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX).min(HORIZON);
    span * MILLION / MILLION.saturating_add_signed(drift_ppm.into())
}

/// True time for people.
pub(crate) fn show(at: u64) -> String {
    format!("{}.{:03}", at / MS, at % MS / 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn when_is_the_first_moment_of_a_reading() {
        for drift in [-200_000, -1, 0, 1, 333, 200_000] {
            let clock = Clock::new(77, drift);
            for shown in [77, 78, 1_000, 123_456_789, 9_876_543_210] {
                let shown = Instant::from_epoch(Duration::from_nanos(shown));
                let at = clock.when(shown);
                assert!(clock.read(at) >= shown);
                assert!(at == 0 || clock.read(at - 1) < shown, "{drift} {shown:?}");
            }
        }
    }

    #[test]
    fn a_clock_that_stood_still_goes_on_from_there() {
        let mut clock = Clock::new(0, 0);
        clock.stop(10);
        assert_eq!(clock.read(30), clock.read(10));
        clock.start(30);
        assert_eq!(clock.read(35), Instant::from_epoch(Duration::from_nanos(15)));
        assert_eq!(clock.when(Instant::from_epoch(Duration::from_nanos(15))), 35);
    }

    #[test]
    fn the_end_of_time_is_no_trouble() {
        let clock = Clock::new(10_000_000 * MS, 300_000);
        let last = clock.when(Instant::from_epoch(Duration::MAX));
        assert!(clock.read(u64::MAX) >= clock.read(last));
        assert_eq!(true_span(Duration::MAX, 0), HORIZON);
    }

    #[test]
    fn true_time_is_shown_in_milliseconds() {
        assert_eq!(show(12_345_678), "12.345");
        assert_eq!(show(5_000), "0.005");
    }
}
