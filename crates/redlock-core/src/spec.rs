//! What one lease is about: which resource, on which nodes, under which settings.

use alloc::sync::Arc;
use core::time::Duration;

use crate::{Config, ConfigError, Error, FencingUnsupported, Instant, Ttl, quorum};

/// The fixed part of a lease: one pointer, and a clone is one count more.
///
/// ```
/// use redlock_core::{Config, LeaseSpec};
///
/// let nodes = ["a:6379", "b:6379", "c:6379"].map(Into::into);
/// let spec = LeaseSpec::new("orders:42", nodes, Config::default())?;
/// assert_eq!(spec.quorum(), 2);
///
/// // Independent nodes have no common counter to take fencing tokens from.
/// assert!(spec.with_fencing("orders:42:fence").is_err());
/// # Ok::<(), redlock_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LeaseSpec(Arc<Parts>);

/// What all clones share.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Parts {
    resource: Arc<str>,
    fence: Option<Arc<str>>,
    nodes: Arc<[Arc<str>]>,
    config: Config,
    derived: Derived,
}

/// What follows from the settings and is needed at every attempt, worked out once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Derived {
    operation_timeout: Duration,
    /// What drift leaves of the configured ttl.
    validity: Duration,
    /// The ttl and its drift.
    lifetime: Duration,
}

impl From<&Config> for Derived {
    fn from(config: &Config) -> Self {
        let (ttl, drift) = (config.ttl(), config.drift());
        Self {
            operation_timeout: config.operation_timeout(),
            validity: drift.validity(ttl).unwrap_or_default(),
            lifetime: ttl.as_duration().saturating_add(drift.drift(ttl)),
        }
    }
}

impl LeaseSpec {
    /// A lease on `resource`, which is the key that it will stand under, at these nodes. Their names
    /// are for reports; one name is the single mode, an odd number from 3 on is Redlock.
    ///
    /// # Errors
    /// [`ConfigError::Empty`] for an empty resource, [`ConfigError::NodeCount`] for a number of nodes
    /// that has no majority worth the name, [`ConfigError::DuplicateNode`] for a name given twice.
    pub fn new(
        resource: impl Into<Arc<str>>,
        nodes: impl Into<Arc<[Arc<str>]>>,
        config: Config,
    ) -> Result<Self, ConfigError> {
        let (resource, nodes) = (resource.into(), nodes.into());
        if resource.is_empty() {
            return Err(ConfigError::Empty { field: "resource" });
        }
        let given = nodes.len();
        if given.is_multiple_of(2) || given > usize::from(u8::MAX) {
            return Err(ConfigError::NodeCount { given });
        }
        for (index, node) in nodes.iter().enumerate() {
            if nodes[..index].contains(node) {
                return Err(ConfigError::DuplicateNode { node: node.as_ref().into() });
            }
        }
        let derived = Derived::from(&config);
        Ok(Self(Arc::new(Parts { resource, fence: None, nodes, config, derived })))
    }

    /// The same lease with a fencing token taken from the counter at `key` at each acquisition.
    ///
    /// # Errors
    /// [`Error::FencingUnsupported`] on more than one node; [`Error::Config`] for an empty key, or one
    /// that is the resource itself.
    pub fn with_fencing(mut self, key: impl Into<Arc<str>>) -> Result<Self, Error> {
        let key = key.into();
        let nodes = self.nodes().len();
        if nodes > 1 {
            return Err(FencingUnsupported { nodes }.into());
        }
        if key.is_empty() {
            return Err(ConfigError::Empty { field: "fencing key" }.into());
        }
        if key == *self.resource() {
            return Err(ConfigError::FencingKeyIsResource { key: key.as_ref().into() }.into());
        }
        Arc::make_mut(&mut self.0).fence = Some(key);
        Ok(self)
    }

    /// The resource: the key that the lock stands under.
    #[must_use]
    pub fn resource(&self) -> &Arc<str> {
        &self.0.resource
    }

    /// The key of the fencing counter, if there is one.
    #[must_use]
    pub fn fencing_key(&self) -> Option<&Arc<str>> {
        self.0.fence.as_ref()
    }

    /// The names of the nodes.
    #[must_use]
    pub fn nodes(&self) -> &Arc<[Arc<str>]> {
        &self.0.nodes
    }

    /// The settings.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.0.config
    }

    /// How many nodes make a majority.
    #[must_use]
    pub fn quorum(&self) -> usize {
        quorum(self.0.nodes.len())
    }

    /// [`Config::operation_timeout`].
    pub(crate) fn operation_timeout(&self) -> Duration {
        self.0.derived.operation_timeout
    }

    /// How long a key with the configured ttl can live at most, by any clock that the drift allows for.
    pub(crate) fn longest_life(&self) -> Duration {
        self.0.derived.lifetime
    }

    /// Until when a key counts whose command went out after `started`.
    pub(crate) fn valid_until(&self, started: Instant, ttl: Ttl) -> Instant {
        if ttl == self.0.config.ttl() {
            started.saturating_add(self.0.derived.validity)
        } else {
            self.0.config.drift().valid_until(started, ttl)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::string::ToString;
    use alloc::vec::Vec;

    fn nodes(count: usize) -> Vec<Arc<str>> {
        (0..count).map(|index| format!("n{index}").into()).collect()
    }

    #[test]
    fn fencing_is_for_one_node() {
        for count in [1, 3] {
            let spec = LeaseSpec::new("lock", nodes(count), Config::default()).unwrap();
            let unsupported = Error::from(FencingUnsupported { nodes: count });
            assert_eq!(spec.with_fencing("fence").err(), (count > 1).then_some(unsupported));
        }
    }

    #[test]
    fn only_one_node_or_an_odd_number_has_a_majority_worth_the_name() {
        for count in [0, 2, 4, 6, 254, 256, 257] {
            let refused = LeaseSpec::new("r", nodes(count), Config::default()).unwrap_err();
            assert_eq!(refused, ConfigError::NodeCount { given: count });
        }
        for count in [1, 3, 5, 7, 255] {
            assert!(LeaseSpec::new("r", nodes(count), Config::default()).is_ok());
        }
    }

    #[test]
    fn a_handle_is_one_pointer_and_changing_one_leaves_its_clones_alone() {
        assert_eq!(size_of::<LeaseSpec>(), size_of::<usize>());
        let spec = LeaseSpec::new("r", nodes(1), Config::default()).unwrap();
        let fenced = spec.clone().with_fencing("f").unwrap();
        assert_eq!((spec.fencing_key(), fenced.fencing_key().is_some()), (None, true));
        assert_ne!(spec, fenced);
    }

    #[test]
    fn what_is_worked_out_once_is_what_the_settings_say() {
        let config = Config::builder().ttl(Duration::from_millis(1_234)).drift_factor(0.02).build().unwrap();
        let spec = LeaseSpec::new("r", nodes(1), config.clone()).unwrap();
        assert_eq!(spec.operation_timeout(), config.operation_timeout());
        let drift = config.drift();
        assert_eq!(spec.longest_life(), config.ttl().as_duration() + drift.drift(config.ttl()));
        for ttl in [1, 500, 1_234, 9_999].map(|millis| Ttl::from_millis(millis).unwrap()) {
            assert_eq!(spec.valid_until(Instant::EPOCH, ttl), drift.valid_until(Instant::EPOCH, ttl));
        }
    }

    #[test]
    fn a_node_has_one_vote() {
        let twice: Vec<Arc<str>> = ["a", "b", "a"].map(Into::into).into();
        let refused = LeaseSpec::new("r", twice, Config::default()).unwrap_err();
        assert_eq!(refused.to_string(), "a is given twice: nodes must be independent of each other");
    }

    #[test]
    fn names_must_be_names() {
        let refused = LeaseSpec::new("", nodes(1), Config::default()).unwrap_err();
        assert_eq!(refused.to_string(), "resource is empty: name a key");
        let spec = LeaseSpec::new("r", nodes(1), Config::default()).unwrap();
        assert_eq!(
            spec.clone().with_fencing("").unwrap_err().to_string(),
            "fencing key is empty: name a key"
        );
        assert!(matches!(
            spec.clone().with_fencing("r"),
            Err(Error::Config(ConfigError::FencingKeyIsResource { .. }))
        ));
        assert_eq!(spec.with_fencing("f").unwrap().fencing_key().map(AsRef::as_ref), Some("f"));
    }
}
