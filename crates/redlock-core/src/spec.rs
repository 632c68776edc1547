//! What one lease is about: which resource, on which nodes, under which settings.

use alloc::sync::Arc;

use crate::{Config, ConfigError, Error, FencingUnsupported, quorum};

/// The fixed part of a lease. Cheap to clone.
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
pub struct LeaseSpec {
    resource: Arc<str>,
    fence: Option<Arc<str>>,
    nodes: Arc<[Arc<str>]>,
    config: Config,
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
        Ok(Self { resource, fence: None, nodes, config })
    }

    /// The same lease with a fencing token taken from the counter at `key` at each acquisition.
    ///
    /// # Errors
    /// [`Error::FencingUnsupported`] on more than one node; [`Error::Config`] for an empty key, or one
    /// that is the resource itself.
    pub fn with_fencing(mut self, key: impl Into<Arc<str>>) -> Result<Self, Error> {
        let key = key.into();
        if self.nodes.len() > 1 {
            return Err(FencingUnsupported { nodes: self.nodes.len() }.into());
        }
        if key.is_empty() {
            return Err(ConfigError::Empty { field: "fencing key" }.into());
        }
        if key == self.resource {
            return Err(ConfigError::FencingKeyIsResource { key: key.as_ref().into() }.into());
        }
        self.fence = Some(key);
        Ok(self)
    }

    /// The resource: the key that the lock stands under.
    #[must_use]
    pub const fn resource(&self) -> &Arc<str> {
        &self.resource
    }

    /// The key of the fencing counter, if there is one.
    #[must_use]
    pub const fn fencing_key(&self) -> Option<&Arc<str>> {
        self.fence.as_ref()
    }

    /// The names of the nodes.
    #[must_use]
    pub const fn nodes(&self) -> &Arc<[Arc<str>]> {
        &self.nodes
    }

    /// The settings.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// How many nodes make a majority.
    #[must_use]
    pub fn quorum(&self) -> usize {
        quorum(self.nodes.len())
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
