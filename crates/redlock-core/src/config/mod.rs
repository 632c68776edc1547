//! Settings: checked once, when they are built, and valid from then on.

mod builder;
mod error;

use core::num::NonZeroU32;
use core::time::Duration;

pub use builder::ConfigBuilder;
pub use error::ConfigError;

use crate::{DriftFactor, Ttl};

/// The settings of a lease. A value of this type is always usable: [`ConfigBuilder::build`] is the
/// only way to make one, and it refuses what cannot work.
///
/// ```
/// use core::time::Duration;
/// use redlock_core::Config;
///
/// let config = Config::builder().ttl(Duration::from_secs(10)).attempts(5).build()?;
/// assert_eq!(config.operation_timeout(), Duration::from_millis(500));
///
/// let refused = Config::builder().ttl(Duration::from_millis(2)).build().unwrap_err();
/// assert_eq!(refused.to_string(), "ttl 2ms is too short: it must be at least 4ms");
/// # Ok::<(), redlock_core::ConfigError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Config {
    ttl: Ttl,
    attempts: NonZeroU32,
    retry_delay: Duration,
    drift: DriftFactor,
    operation_timeout: Option<Duration>,
    renewal: Renewal,
    renew_attempts: Option<NonZeroU32>,
    max_hold: Option<Duration>,
    repair: bool,
    restart_guard: Option<Duration>,
    wake_on_release: bool,
}

/// Whether and how often a held lease is renewed by itself. A duration is [`Renewal::Every`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Renewal {
    /// Not at all: the lease ends with its ttl unless it is extended.
    #[default]
    Off,
    /// Every third of the ttl, so that two renewals in a row may fail before the lease is in danger.
    ThirdOfTtl,
    /// Every so often. Must be shorter than what drift leaves of the ttl.
    Every(Duration),
}

impl From<Duration> for Renewal {
    fn from(interval: Duration) -> Self {
        Self::Every(interval)
    }
}

impl Config {
    /// Starts from the defaults: ttl 30 s, 3 attempts, 200 ms between them, drift factor 0.01,
    /// operation timeout `min(ttl / 5, 500 ms)`, no automatic renewal.
    pub fn builder() -> ConfigBuilder {
        ConfigBuilder::default()
    }

    /// A builder that starts from these settings.
    pub fn to_builder(&self) -> ConfigBuilder {
        ConfigBuilder::from(self)
    }

    /// How long the keys live if nobody renews them.
    #[must_use]
    pub const fn ttl(&self) -> Ttl {
        self.ttl
    }

    /// How many attempts an acquire makes, those that hints bring about not counted.
    #[must_use]
    pub const fn attempts(&self) -> NonZeroU32 {
        self.attempts
    }

    /// The pause between two attempts, before jitter.
    #[must_use]
    pub const fn retry_delay(&self) -> Duration {
        self.retry_delay
    }

    /// What clocks may differ by.
    #[must_use]
    pub const fn drift(&self) -> DriftFactor {
        self.drift
    }

    /// How long one parallel pass over the nodes may take: as configured, or `min(ttl / 5, 500 ms)`,
    /// but at least one millisecond.
    #[must_use]
    pub fn operation_timeout(&self) -> Duration {
        const CUSTOMARY: Duration = Duration::from_millis(500);
        const SHORTEST: Duration = Duration::from_millis(1);
        self.operation_timeout.unwrap_or_else(|| (self.ttl.as_duration() / 5).clamp(SHORTEST, CUSTOMARY))
    }

    /// The time between two automatic renewals of a lease with this ttl; `None` when it is not
    /// renewed by itself. An interval that was not configured is a third of the ttl.
    ///
    /// A configured interval is for the configured ttl. An extension may make the ttl shorter, and
    /// then a third of that is the limit.
    pub(crate) fn renew_interval(&self, ttl: Ttl) -> Option<Duration> {
        let third = (ttl.as_duration() / 3).max(Duration::from_millis(1));
        match self.renewal {
            Renewal::Off => None,
            Renewal::ThirdOfTtl => Some(third),
            Renewal::Every(interval) if ttl >= self.ttl => Some(interval),
            Renewal::Every(interval) => Some(interval.min(third)),
        }
    }

    /// How many renewals in a row may fail before the lease is given up; `None` for as long as it is
    /// valid.
    pub(crate) const fn renew_attempts(&self) -> Option<NonZeroU32> {
        self.renew_attempts
    }

    /// Whether and how often a held lease is renewed by itself.
    #[must_use]
    pub const fn renewal(&self) -> Renewal {
        self.renewal
    }

    /// The longest time that renewal may keep one lease.
    #[must_use]
    pub const fn max_hold(&self) -> Option<Duration> {
        self.max_hold
    }

    /// Whether a renewal gives the token back to nodes that have lost it.
    #[must_use]
    pub const fn repair(&self) -> bool {
        self.repair
    }

    /// For how long after its start a server gives no votes; `None` when that is not looked at. Kept by
    /// whoever sends the commands: see [`Quarantine`](crate::Quarantine).
    #[must_use]
    pub const fn restart_guard(&self) -> Option<Duration> {
        self.restart_guard
    }

    /// Whether a caller who waits for a lease asks the nodes to be told when it goes. Kept by whoever sends
    /// the commands.
    #[must_use]
    pub const fn wake_on_release(&self) -> bool {
        self.wake_on_release
    }

    /// Checks a ttl against this drift: at least one millisecond of validity must be left. And against the
    /// restart guard: a key must not outlive it.
    ///
    /// # Errors
    /// [`ConfigError::TooShort`] or [`ConfigError::TooLong`], with the bound.
    pub fn check_ttl(&self, ttl: Duration) -> Result<Ttl, ConfigError> {
        let checked = check_ttl(self.drift, ttl)?;
        match self.restart_guard {
            Some(guard) if guard < guard_for(self.drift, checked) => {
                let max = self.drift.longest_ttl_within(guard);
                Err(ConfigError::TooLong { field: "ttl", value: ttl, max })
            }
            Some(_) | None => Ok(checked),
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            ttl: builder::DEFAULT_TTL,
            attempts: builder::DEFAULT_ATTEMPTS,
            retry_delay: builder::DEFAULT_RETRY_DELAY,
            drift: DriftFactor::DEFAULT,
            operation_timeout: None,
            renewal: Renewal::Off,
            renew_attempts: None,
            max_hold: None,
            repair: false,
            restart_guard: None,
            wake_on_release: true,
        }
    }
}

/// The shortest restart guard for keys with this ttl: what a server can have forgotten must have expired
/// when it votes again, on clocks that differ.
fn guard_for(drift: DriftFactor, ttl: Ttl) -> Duration {
    ttl.as_duration().saturating_add(drift.drift(ttl))
}

fn check_ttl(drift: DriftFactor, duration: Duration) -> Result<Ttl, ConfigError> {
    let too_short = ConfigError::TooShort { field: "ttl", value: duration, min: drift.smallest_ttl() };
    match Ttl::new(duration) {
        Ok(ttl) if drift.validity(ttl).is_some() => Ok(ttl),
        Err(error @ ConfigError::TooLong { .. }) => Err(error),
        Ok(_) | Err(_) => Err(too_short),
    }
}
