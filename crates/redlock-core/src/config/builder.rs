use core::num::NonZeroU32;
use core::time::Duration;

use super::{Config, ConfigError, Renewal, check_ttl, guard_for};
use crate::{DriftFactor, Ttl};

pub(super) const DEFAULT_TTL: Ttl = match Ttl::from_millis(30_000) {
    Some(ttl) => ttl,
    None => unreachable!(),
};
pub(super) const DEFAULT_ATTEMPTS: NonZeroU32 = match NonZeroU32::new(3) {
    Some(attempts) => attempts,
    None => unreachable!(),
};
pub(super) const DEFAULT_RETRY_DELAY: Duration = Duration::from_millis(200);

const SHORTEST: Duration = Duration::from_millis(1);

/// Collects settings; [`build`](Self::build) checks them together.
#[derive(Clone, Debug, PartialEq)]
#[must_use = "settings take effect when `build` has checked them"]
pub struct ConfigBuilder {
    ttl: Duration,
    attempts: u32,
    retry_delay: Duration,
    drift: Drift,
    operation_timeout: Option<Duration>,
    renewal: Renewal,
    renew_attempts: Option<u32>,
    max_hold: Option<Duration>,
    repair: bool,
    restart_guard: Option<Duration>,
    wake_on_release: bool,
}

/// A drift factor as it was given: by the user, or by settings that are already checked.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Drift {
    Given(f64),
    Checked(DriftFactor),
}

impl ConfigBuilder {
    /// How long the keys live if nobody renews them. Parts below a millisecond are cut off. Choose it
    /// by what a crash may cost: the resource stays locked that long after its holder has died.
    pub const fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// How many attempts `acquire` makes, at least 1. An attempt that is made in a pause, because the lease
    /// may have become free, does not count.
    pub const fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts;
        self
    }

    /// The pause after a failed attempt; a uniform random 0 to 50 % is added, so that contenders do
    /// not meet again at the next attempt. Zero is allowed and means the shortest pause, 1 ms.
    pub const fn retry_delay(mut self, delay: Duration) -> Self {
        self.retry_delay = delay;
        self
    }

    /// How much clocks may differ in speed, from 0 (included) to 1 (excluded).
    pub const fn drift_factor(mut self, factor: f64) -> Self {
        self.drift = Drift::Given(factor);
        self
    }

    /// How long one parallel pass over the nodes may take, at least 1 ms. Without it: `min(ttl / 5,
    /// 500 ms)`.
    pub const fn operation_timeout(mut self, timeout: Duration) -> Self {
        self.operation_timeout = Some(timeout);
        self
    }

    /// Renews a held lease by itself: every so often, for a duration, or as [`Renewal`] says. Off by default.
    pub fn auto_renew(mut self, renewal: impl Into<Renewal>) -> Self {
        self.renewal = renewal.into();
        self
    }

    /// Gives the lease up after this many failed renewals in a row, at least 1. Without it, renewal is
    /// tried for as long as the lease is valid. Has no effect without
    /// [`auto_renew`](Self::auto_renew).
    pub const fn renew_attempts(mut self, attempts: u32) -> Self {
        self.renew_attempts = Some(attempts);
        self
    }

    /// Ends the lease this long after it was acquired, however often it was renewed: a bound on what
    /// a hung holder can cost. At least 1 ms.
    pub const fn max_hold(mut self, max_hold: Duration) -> Self {
        self.max_hold = Some(max_hold);
        self
    }

    /// Lets an automatic renewal give the token back to nodes that answered without having it, such as
    /// one that restarted empty. A repair never counts towards the quorum. Off by default.
    pub const fn repair(mut self, repair: bool) -> Self {
        self.repair = repair;
        self
    }

    /// Lets a node whose server was started less than this long ago give no votes for an acquire, since it
    /// may have forgotten what it granted. Releases and extensions are still sent to it. Off by default.
    ///
    /// At least the ttl and its drift; and at least that of the longest ttl that *any* client of the nodes
    /// uses, which nothing here can check. All clients must have it. It costs availability: after a
    /// restart, planned ones included, the node is missing for so long.
    ///
    /// A setting of the manager, not of one lock. The user needs the right to `INFO`. Only for nodes whose
    /// connections are the library's own: elsewhere a restart cannot be seen, and the manager is refused.
    pub const fn restart_guard(mut self, guard: Duration) -> Self {
        self.restart_guard = Some(guard);
        self
    }

    /// Whether a caller who waits for a lease is woken when its key goes at a node, released or expired, and
    /// asks again at once instead of at the end of the pause. On by default; off, waiting is asking again
    /// after each `retry_delay`.
    ///
    /// Where a node cannot tell, the pauses are all there is, and nothing fails. It costs, at each node where
    /// somebody waits, one connection more per manager and one `GET` per wait; nothing while nobody waits.
    pub const fn wake_on_release(mut self, wake: bool) -> Self {
        self.wake_on_release = wake;
        self
    }

    /// Checks the settings together.
    ///
    /// # Errors
    /// A [`ConfigError`] that names the setting, its value and the bound it breaks.
    pub fn build(self) -> Result<Config, ConfigError> {
        let drift = match self.drift {
            Drift::Given(factor) => DriftFactor::new(factor)?,
            Drift::Checked(factor) => factor,
        };
        let ttl = check_ttl(drift, self.ttl)?;
        let validity = drift.validity(ttl).unwrap_or_default();
        at_least(SHORTEST, "operation_timeout", self.operation_timeout)?;
        at_least(SHORTEST, "max_hold", self.max_hold)?;
        at_least(guard_for(drift, ttl), "restart_guard", self.restart_guard)?;
        if let Renewal::Every(interval) = self.renewal {
            at_least(SHORTEST, "auto_renew", Some(interval))?;
            if interval >= validity {
                let max = validity.saturating_sub(Duration::from_nanos(1));
                return Err(ConfigError::TooLong { field: "auto_renew", value: interval, max });
            }
        }
        Ok(Config {
            ttl,
            attempts: count("attempts", self.attempts)?,
            retry_delay: self.retry_delay,
            drift,
            operation_timeout: self.operation_timeout,
            renewal: self.renewal,
            renew_attempts: self.renew_attempts.map(|n| count("renew_attempts", n)).transpose()?,
            max_hold: self.max_hold,
            repair: self.repair,
            restart_guard: self.restart_guard,
            wake_on_release: self.wake_on_release,
        })
    }
}

impl Default for ConfigBuilder {
    fn default() -> Self {
        Self::from(&Config::default())
    }
}

impl From<&Config> for ConfigBuilder {
    fn from(config: &Config) -> Self {
        Self {
            ttl: config.ttl.as_duration(),
            attempts: config.attempts.get(),
            retry_delay: config.retry_delay,
            drift: Drift::Checked(config.drift),
            operation_timeout: config.operation_timeout,
            renewal: config.renewal,
            renew_attempts: config.renew_attempts.map(NonZeroU32::get),
            max_hold: config.max_hold,
            repair: config.repair,
            restart_guard: config.restart_guard,
            wake_on_release: config.wake_on_release,
        }
    }
}

fn at_least(min: Duration, field: &'static str, value: Option<Duration>) -> Result<(), ConfigError> {
    match value {
        Some(value) if value < min => Err(ConfigError::TooShort { field, value, min }),
        Some(_) | None => Ok(()),
    }
}

fn count(field: &'static str, value: u32) -> Result<NonZeroU32, ConfigError> {
    NonZeroU32::new(value).ok_or(ConfigError::Zero { field })
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn the_defaults_are_the_documented_ones() {
        let config = Config::builder().build().unwrap();
        assert_eq!(config, Config::default());
        assert_eq!(config.ttl().as_millis(), 30_000);
        assert_eq!(config.attempts().get(), 3);
        assert_eq!(config.retry_delay(), ms(200));
        assert_eq!(config.drift(), DriftFactor::DEFAULT);
        assert_eq!(config.operation_timeout(), ms(500));
        assert_eq!(config.renew_interval(config.ttl()), None);
    }

    #[test]
    fn the_operation_timeout_follows_a_short_ttl() {
        assert_eq!(Config::builder().ttl(ms(300)).build().unwrap().operation_timeout(), ms(60));
        assert_eq!(Config::builder().ttl(ms(4)).build().unwrap().operation_timeout(), ms(1));
    }

    #[test]
    fn each_mistake_is_named_with_its_bound() {
        let cases = [
            (Config::builder().ttl(Duration::ZERO), "ttl 0ns is too short: it must be at least 4ms"),
            (Config::builder().ttl(ms(3)), "ttl 3ms is too short: it must be at least 4ms"),
            (
                Config::builder().ttl(ms(10)).drift_factor(0.9),
                "ttl 10ms is too short: it must be at least 30ms",
            ),
            (Config::builder().attempts(0), "attempts is 0: it must be at least 1"),
            (Config::builder().renew_attempts(0), "renew_attempts is 0: it must be at least 1"),
            (
                Config::builder().operation_timeout(Duration::ZERO),
                "operation_timeout 0ns is too short: it must be at least 1ms",
            ),
            (
                Config::builder().max_hold(Duration::ZERO),
                "max_hold 0ns is too short: it must be at least 1ms",
            ),
            (
                Config::builder().auto_renew(Duration::ZERO),
                "auto_renew 0ns is too short: it must be at least 1ms",
            ),
            (
                Config::builder().ttl(ms(1_000)).auto_renew(ms(988)),
                "auto_renew 988ms is too long: it must be at most 987.999999ms",
            ),
            (
                Config::builder().ttl(ms(10_000)).restart_guard(ms(10_101)),
                "restart_guard 10.101s is too short: it must be at least 10.102s",
            ),
            (
                Config::builder().drift_factor(f64::NAN),
                "drift_factor NaN is not a number from 0 (included) to 1 (excluded)",
            ),
        ];
        for (builder, message) in cases {
            assert_eq!(builder.build().unwrap_err().to_string(), message);
        }
        assert!(matches!(Config::builder().ttl(Duration::MAX).build(), Err(ConfigError::TooLong { .. })));
    }

    #[test]
    fn a_builder_made_of_settings_builds_the_same_settings() {
        let config = Config::builder()
            .ttl(ms(1_234))
            .attempts(7)
            .retry_delay(ms(5))
            .drift_factor(0.002)
            .operation_timeout(ms(50))
            .auto_renew(ms(100))
            .renew_attempts(2)
            .max_hold(ms(9_999))
            .repair(true)
            .restart_guard(ms(60_000))
            .wake_on_release(false)
            .build()
            .unwrap();
        assert_eq!(config.to_builder().build().unwrap(), config);
    }

    #[test]
    fn no_extension_outlives_the_restart_guard() {
        let config = Config::builder().ttl(ms(10_000)).restart_guard(ms(20_202)).build().unwrap();
        assert_eq!(config.check_ttl(ms(20_000)).unwrap().as_millis(), 20_000);
        assert_eq!(
            config.check_ttl(ms(20_001)).unwrap_err().to_string(),
            "ttl 20.001s is too long: it must be at most 20s"
        );
    }

    #[test]
    fn renewal_defaults_to_a_third_and_follows_a_shorter_extension() {
        let third = Config::builder().ttl(ms(3_000)).auto_renew(Renewal::ThirdOfTtl).build().unwrap();
        assert_eq!(third.renew_interval(third.ttl()), Some(ms(1_000)));
        let own = Config::builder().ttl(ms(3_000)).auto_renew(ms(2_000)).build().unwrap();
        assert_eq!(own.renew_interval(own.ttl()), Some(ms(2_000)));
        assert_eq!(own.renew_interval(Ttl::from_millis(300).unwrap()), Some(ms(100)));
        assert_eq!(own.renew_interval(Ttl::from_millis(30_000).unwrap()), Some(ms(2_000)));
    }
}
