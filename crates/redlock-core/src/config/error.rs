use alloc::boxed::Box;
use core::time::Duration;

use thiserror::Error;

/// A setting that cannot work, named with its value and the bound it breaks. Nothing was sent.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A duration is too short to be used.
    #[error("{field} {value:?} is too short: it must be at least {min:?}")]
    TooShort {
        /// The setting.
        field: &'static str,
        /// What was asked for.
        value: Duration,
        /// The smallest value accepted.
        min: Duration,
    },
    /// A duration is too long to be used.
    #[error("{field} {value:?} is too long: it must be at most {max:?}")]
    TooLong {
        /// The setting.
        field: &'static str,
        /// What was asked for.
        value: Duration,
        /// The largest value accepted.
        max: Duration,
    },
    /// The drift factor is not a fraction.
    #[error("drift_factor {value} is not a number from 0 (included) to 1 (excluded)")]
    DriftFactor {
        /// What was asked for.
        value: f64,
    },
    /// A count that must not be zero is.
    #[error("{field} is 0: it must be at least 1")]
    Zero {
        /// The setting.
        field: &'static str,
    },
    /// A name is empty.
    #[error("{field} is empty: name a key")]
    Empty {
        /// The setting.
        field: &'static str,
    },
    /// The fencing counter would be the lock itself.
    #[error("the fencing key {key:?} is the resource itself: name another key for the counter")]
    FencingKeyIsResource {
        /// The name given to both.
        key: Box<str>,
    },
    /// Lock and fencing counter live on different shards of a Redis Cluster.
    #[error(
        "on a cluster {resource:?} (slot {resource_slot}) and {fencing_key:?} (slot {fencing_slot}) \
         must share a slot: give both the same {{tag}}, such as \"{{{resource}}}\" and \
         \"{{{resource}}}:fence\""
    )]
    CrossSlot {
        /// The lock's key.
        resource: Box<str>,
        /// Its slot.
        resource_slot: u16,
        /// The counter's key.
        fencing_key: Box<str>,
        /// Its slot.
        fencing_slot: u16,
    },
    /// The number of nodes has no majority worth the name.
    #[error(
        "{given} nodes: Redlock needs an odd number of independent primaries from 3 to 255; \
         for one logical Redis use the single mode"
    )]
    NodeCount {
        /// How many nodes were given.
        given: usize,
    },
    /// The same node was given twice, so its one vote would count as two.
    #[error("{node} is given twice: nodes must be independent of each other")]
    DuplicateNode {
        /// The node's name or address.
        node: Box<str>,
    },
    /// A restart of this node's server cannot be seen, so `restart_guard` cannot be kept there.
    #[error(
        "node {node}: restart_guard cannot be kept on a connection, cluster or transport of your own: \
         give the node by its URL or as a redis::Client, or leave restart_guard out"
    )]
    RestartGuardUnsupported {
        /// The node's name.
        node: Box<str>,
    },
    /// A setting of the manager was changed for one lock, where it would have no effect.
    #[error("{field} is a setting of the manager: set it there")]
    PerManager {
        /// The setting.
        field: &'static str,
    },
    /// A node's address cannot be used. Credentials are left out of `node`.
    #[error("node {node}: {reason}")]
    InvalidNode {
        /// The address, without credentials.
        node: Box<str>,
        /// What is wrong with it.
        reason: Box<str>,
    },
}
