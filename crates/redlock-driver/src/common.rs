//! What all leases of a manager share.

use std::sync::Arc;

use crate::Node;
use crate::leases::Leases;
use crate::stats::Counters;

/// The surroundings of a lease.
pub(crate) struct Common<R> {
    pub(crate) runtime: R,
    pub(crate) nodes: Arc<[Node]>,
    pub(crate) leases: Leases<R>,
    pub(crate) counters: Counters,
}
