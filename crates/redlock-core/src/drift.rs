//! What clocks may differ by, and what that leaves of a ttl.

use alloc::format;
use core::time::Duration;

use crate::{ConfigError, Instant, Ttl};

/// Added to every drift, as the Redlock description does: expiry in Redis has a grain of one
/// millisecond, and short ttls would otherwise have no margin at all.
const GRAIN_MS: u64 = 2;

/// Decimal places that are kept of a factor. What lies behind them is rounded up.
const PLACES: usize = 18;

/// How much faster or slower a node's clock may run than ours, as an exact ratio below one.
///
/// Configured as a decimal fraction and turned into whole numbers once, so that no result depends on
/// floating point: 0.01 means one hundredth, although no binary fraction equals it.
///
/// ```
/// use core::time::Duration;
/// use redlock_core::{DriftFactor, Ttl};
///
/// let factor = DriftFactor::new(0.01)?;
/// let ttl = Ttl::new(Duration::from_secs(10))?;
/// assert_eq!(factor.drift(ttl), Duration::from_millis(102)); // ceil(10 000 * 0.01) + 2
/// assert!(DriftFactor::new(f64::NAN).is_err());
/// # Ok::<(), redlock_core::ConfigError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DriftFactor {
    numerator: u64,
    denominator: u64,
}

impl DriftFactor {
    /// One hundredth, the customary value: far above what quartz does, far below what matters.
    pub const DEFAULT: Self = Self { numerator: 1, denominator: 100 };

    /// The factor with this value, 0 included.
    ///
    /// # Errors
    /// [`ConfigError::DriftFactor`] for NaN, infinities, negative values, and 1 or more.
    pub fn new(factor: f64) -> Result<Self, ConfigError> {
        if !(0.0..1.0).contains(&factor) || (factor == 0.0 && factor.is_sign_negative()) {
            return Err(ConfigError::DriftFactor { value: factor });
        }
        // The shortest decimal text that reads back as this value is what the user wrote.
        let text = format!("{factor}");
        let decimals = text.split_once('.').map_or("", |(_, decimals)| decimals);
        let (mut numerator, mut denominator) = (0_u64, 1_u64);
        for digit in decimals.bytes().take(PLACES) {
            numerator = numerator * 10 + u64::from(digit - b'0');
            denominator *= 10;
        }
        if decimals.bytes().skip(PLACES).any(|digit| digit != b'0') {
            numerator += 1;
        }
        Ok(Self { numerator, denominator })
    }

    /// `ceil(ttl * factor) + 2 ms`: what is taken off a ttl because clocks differ.
    #[must_use]
    pub fn drift(self, ttl: Ttl) -> Duration {
        Duration::from_millis(self.drift_ms(ttl))
    }

    /// The longest ttl for which `ttl + drift` fits into `span`.
    #[must_use]
    pub(crate) fn longest_ttl_within(self, span: Duration) -> Duration {
        // ttl + ceil(ttl * n / d) + GRAIN <= span, solved for whole numbers.
        let room = span.as_millis().saturating_sub(u128::from(GRAIN_MS)).min(u128::from(u64::MAX));
        let sum = u128::from(self.numerator) + u128::from(self.denominator);
        let longest = room * u128::from(self.denominator) / sum;
        u64::try_from(longest).map_or(Duration::MAX, Duration::from_millis)
    }

    /// `ttl - drift`, or `None` when nothing is left.
    #[must_use]
    pub fn validity(self, ttl: Ttl) -> Option<Duration> {
        match ttl.as_millis().checked_sub(self.drift_ms(ttl)) {
            None | Some(0) => None,
            Some(left) => Some(Duration::from_millis(left)),
        }
    }

    /// `started + ttl - drift`: the end of a lease whose commands went out from `started` on. When
    /// drift eats the whole ttl that is `started` itself, so nothing counts as held.
    #[must_use]
    pub fn valid_until(self, started: Instant, ttl: Ttl) -> Instant {
        started.saturating_add(self.validity(ttl).unwrap_or_default())
    }

    /// The smallest ttl of which at least one millisecond is left.
    #[must_use]
    pub fn smallest_ttl(self) -> Duration {
        // ttl - ceil(ttl * n / d) = floor(ttl * (d - n) / d) must reach GRAIN + 1.
        let kept = u128::from(self.denominator - self.numerator);
        let wanted = u128::from(GRAIN_MS + 1) * u128::from(self.denominator);
        let millis = wanted.div_ceil(kept);
        u64::try_from(millis).map_or(Duration::MAX, Duration::from_millis)
    }

    fn drift_ms(self, ttl: Ttl) -> u64 {
        // The usual case, without the long division.
        if let Some(product) = ttl.as_millis().checked_mul(self.numerator) {
            return product.div_ceil(self.denominator).saturating_add(GRAIN_MS);
        }
        let product = u128::from(ttl.as_millis()) * u128::from(self.numerator);
        let ceiling = product.div_ceil(u128::from(self.denominator));
        // The factor is below one, so the ceiling is at most the ttl; the grain cannot overflow then.
        u64::try_from(ceiling).unwrap_or(u64::MAX).saturating_add(GRAIN_MS)
    }
}

impl Default for DriftFactor {
    fn default() -> Self {
        Self::DEFAULT
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ttl(millis: u64) -> Ttl {
        Ttl::from_millis(millis).unwrap()
    }

    #[test]
    fn a_decimal_fraction_means_what_it_says() {
        assert_eq!(DriftFactor::new(0.01).unwrap(), DriftFactor::DEFAULT);
        assert_eq!(DriftFactor::DEFAULT.drift(ttl(10_000)), Duration::from_millis(102));
        assert_eq!(DriftFactor::DEFAULT.drift(ttl(10_001)), Duration::from_millis(103));
        assert_eq!(DriftFactor::new(0.0).unwrap().drift(ttl(10_000)), Duration::from_millis(2));
        assert_eq!(DriftFactor::new(0.5).unwrap().drift(ttl(7)), Duration::from_millis(6));
    }

    #[test]
    fn a_factor_that_is_no_fraction_is_refused() {
        for odd in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.1, -0.0, 1.0, 2.0, f64::MAX] {
            let refused = DriftFactor::new(odd).unwrap_err();
            assert!(matches!(refused, ConfigError::DriftFactor { .. }), "{refused}");
        }
    }

    #[test]
    fn a_factor_with_endless_places_is_rounded_up() {
        let tiny = DriftFactor::new(f64::MIN_POSITIVE).unwrap();
        assert_eq!(tiny.drift(ttl(1)), Duration::from_millis(3));
        let almost_one = DriftFactor::new(1.0 - f64::EPSILON).unwrap();
        assert!(almost_one.validity(ttl(1_000)).is_none());
    }

    #[test]
    fn drift_may_eat_a_short_ttl() {
        assert_eq!(DriftFactor::DEFAULT.validity(ttl(3)), None);
        assert_eq!(DriftFactor::DEFAULT.validity(ttl(4)), Some(Duration::from_millis(1)));
        assert_eq!(DriftFactor::DEFAULT.valid_until(Instant::EPOCH, ttl(3)), Instant::EPOCH);
    }

    proptest! {
        #[test]
        fn validity_stays_within_the_ttl_and_grows_with_it(
            factor in 0.0..1.0_f64,
            millis in 1..=i64::MAX as u64 / 2 - 1,
        ) {
            let factor = DriftFactor::new(factor).unwrap();
            let validity = factor.validity(ttl(millis)).unwrap_or_default();
            prop_assert!(validity < Duration::from_millis(millis));
            prop_assert!(factor.validity(ttl(millis + 1)).unwrap_or_default() >= validity);
            // The same in one exact inequality: validity * d <= ttl * (d - n) - 2 * d.
            let (n, d) = (i128::from(factor.numerator), i128::from(factor.denominator));
            let exact = i128::from(millis) * (d - n) - 2 * d;
            prop_assert!(validity.as_millis() as i128 * d <= exact.max(0));
        }

        #[test]
        fn the_longest_ttl_within_a_span_is_the_longest(
            factor in 0.0..0.999_999_f64,
            millis in 4..1_000_000_000_u64,
        ) {
            let factor = DriftFactor::new(factor).unwrap();
            let span = Duration::from_millis(millis);
            let longest = factor.longest_ttl_within(span).as_millis() as u64;
            prop_assert!(longest >= 1);
            let needs = |millis| Duration::from_millis(millis) + factor.drift(ttl(millis));
            prop_assert!(needs(longest) <= span && needs(longest + 1) > span);
        }

        #[test]
        fn the_smallest_ttl_is_the_smallest(factor in 0.0..0.999_999_f64) {
            let factor = DriftFactor::new(factor).unwrap();
            let smallest = Ttl::new(factor.smallest_ttl()).unwrap();
            prop_assert!(factor.validity(smallest).is_some());
            if let Some(shorter) = Ttl::from_millis(smallest.as_millis() - 1) {
                prop_assert!(factor.validity(shorter).is_none());
            }
        }
    }
}
