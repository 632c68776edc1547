//! How long a key lives: whole milliseconds by construction.

use core::num::NonZeroU64;
use core::time::Duration;

use crate::ConfigError;

/// The time to live of a lease's keys: a non-zero whole number of milliseconds.
///
/// What goes out as `PX` is exactly what validity is computed from, so there is no rounding left to
/// argue about: parts below a millisecond are cut off here, before the value is used anywhere.
///
/// ```
/// use core::time::Duration;
/// use redlock_core::Ttl;
///
/// let ttl = Ttl::new(Duration::from_micros(1_999))?;
/// assert_eq!(ttl.as_millis(), 1);
/// assert!(Ttl::new(Duration::ZERO).is_err());
/// assert!(Ttl::new(Duration::MAX).is_err());
/// # Ok::<(), redlock_core::ConfigError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ttl(NonZeroU64);

impl Ttl {
    /// The largest ttl: Redis keeps expiry times as signed 64-bit milliseconds since 1970 and refuses
    /// a ttl that would overflow them. Half of that range is accepted by every server, at any date.
    pub const MAX: Duration = Duration::from_millis(i64::MAX as u64 / 2);

    /// The smallest ttl there is. What a configuration accepts is a little more: see
    /// [`DriftFactor::smallest_ttl`](crate::DriftFactor::smallest_ttl).
    pub const MIN: Duration = Duration::from_millis(1);

    /// A ttl of this duration, rounded down to whole milliseconds.
    ///
    /// # Errors
    /// [`ConfigError::TooShort`] below one millisecond, [`ConfigError::TooLong`] above [`Ttl::MAX`].
    pub fn new(duration: Duration) -> Result<Self, ConfigError> {
        if duration > Self::MAX {
            return Err(ConfigError::TooLong { field: "ttl", value: duration, max: Self::MAX });
        }
        u64::try_from(duration.as_millis()).ok().and_then(Self::from_millis).ok_or(ConfigError::TooShort {
            field: "ttl",
            value: duration,
            min: Self::MIN,
        })
    }

    /// A ttl of this many milliseconds; `None` for zero and above [`Ttl::MAX`].
    #[must_use]
    pub const fn from_millis(millis: u64) -> Option<Self> {
        if millis > i64::MAX as u64 / 2 {
            return None;
        }
        match NonZeroU64::new(millis) {
            Some(millis) => Some(Self(millis)),
            None => None,
        }
    }

    /// The ttl in milliseconds, as it goes on the wire.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0.get()
    }

    /// The ttl as a duration.
    #[must_use]
    pub const fn as_duration(self) -> Duration {
        Duration::from_millis(self.0.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_milliseconds_up_to_the_longest() {
        let longest = i64::MAX as u64 / 2;
        assert_eq!(u128::from(longest), Ttl::MAX.as_millis());
        assert_eq!(Ttl::from_millis(longest).map(Ttl::as_millis), Some(longest));
        assert_eq!([0, longest + 1, u64::MAX].map(Ttl::from_millis), [None; 3]);
    }

    #[test]
    fn rounds_down_and_refuses_the_ends() {
        assert_eq!(Ttl::new(Duration::from_nanos(1_500_000)).unwrap().as_millis(), 1);
        for (odd, bound) in [
            (Duration::ZERO, "at least 1ms"),
            (Duration::from_micros(500), "at least 1ms"),
            (Ttl::MAX + Duration::from_nanos(1), "at most"),
            (Duration::MAX, "at most"),
        ] {
            let message = alloc::string::ToString::to_string(&Ttl::new(odd).unwrap_err());
            assert!(message.starts_with("ttl ") && message.contains(bound), "{message}");
        }
        assert_eq!(Ttl::new(Ttl::MAX).unwrap().as_duration(), Ttl::MAX);
        assert_eq!(Ttl::from_millis(0), None);
        assert_eq!(Ttl::from_millis(u64::MAX), None);
    }
}
