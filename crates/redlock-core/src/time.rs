//! Time as the core sees it: a value that somebody else reads.

use core::time::Duration;

/// A reading of the driver's monotonic clock, as the time since an epoch of the driver's choosing.
///
/// The core never asks for the time. Every entry point that depends on it takes `now`, so that one
/// reading decides one question and a test can run hours in microseconds. Arithmetic saturates: an
/// instant beyond the representable range is "never", not a panic.
///
/// ```
/// use core::time::Duration;
/// use redlock_core::Instant;
///
/// let start = Instant::from_epoch(Duration::from_secs(5));
/// let later = start.saturating_add(Duration::from_millis(20));
/// assert_eq!(later.saturating_since(start), Duration::from_millis(20));
/// assert_eq!(start.saturating_since(later), Duration::ZERO);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(Duration);

impl Instant {
    /// The epoch itself.
    pub const EPOCH: Self = Self(Duration::ZERO);

    /// The instant `elapsed` after the epoch.
    #[must_use]
    pub const fn from_epoch(elapsed: Duration) -> Self {
        Self(elapsed)
    }

    /// How long after the epoch this instant lies.
    #[must_use]
    pub const fn since_epoch(self) -> Duration {
        self.0
    }

    /// This instant moved forward by `span`, or the last representable instant.
    #[must_use]
    pub const fn saturating_add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span))
    }

    /// This instant moved back by `span`, or the epoch.
    #[must_use]
    pub const fn saturating_sub(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(span))
    }

    /// The time from `earlier` to this instant; zero when `earlier` is in fact later.
    #[must_use]
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_at_both_ends() {
        let last = Instant::from_epoch(Duration::MAX);
        assert_eq!(last.saturating_add(Duration::from_secs(1)), last);
        assert_eq!(Instant::EPOCH.saturating_sub(Duration::from_secs(1)), Instant::EPOCH);
        assert_eq!(Instant::EPOCH.saturating_since(last), Duration::ZERO);
    }
}
