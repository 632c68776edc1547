//! Whether the nodes are what a lease needs them to be: looked up on request, judged in one place.

mod facts;
mod finding;
mod judge;
mod survey;

pub(crate) use facts::started;
pub use facts::{NodeFacts, Role, ServerFacts};
pub use finding::{Finding, FindingKind, Severity, remedy};
pub(crate) use survey::{Clock, Survey, server_error, survey};

use redlock_core::Config;

/// What [`Manager::verify`](crate::Manager::verify) has found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TopologyReport {
    /// What is wrong or risky, the errors first.
    pub findings: Vec<Finding>,
    /// What each node has said, in the order of the configuration.
    pub nodes: Vec<NodeFacts>,
}

impl TopologyReport {
    pub(crate) fn new(nodes: Vec<NodeFacts>, config: &Config) -> Self {
        let mut findings = judge::judge(&nodes, config);
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        Self { findings, nodes }
    }

    /// The severity of the worst finding; `None` when all is sound.
    #[must_use]
    pub fn worst(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.severity).max()
    }
}
