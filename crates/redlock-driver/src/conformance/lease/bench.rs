//! Nodes in memory and a manager on them.

use std::future::Future;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use super::super::outcome::{During as _, Outcome, should};
use super::super::time::{LATE, eventually, ms, pause, poll_once};
use crate::{Config, ConfigBuilder, Lock, Manager, MemoryServer, Runtime};

/// Fresh nodes for one try of one check.
pub(super) struct Bench<R> {
    pub(super) runtime: R,
    pub(super) nodes: Vec<MemoryServer>,
    pub(super) manager: Manager<R>,
}

pub(super) const RESOURCE: &str = "conformance";

impl<R: Runtime> Bench<R> {
    /// A manager of these many nodes, with these changes to the settings.
    pub(super) fn new(
        runtime: R,
        nodes: usize,
        change: impl FnOnce(ConfigBuilder) -> ConfigBuilder,
    ) -> Outcome<Self> {
        let config = change(Config::builder().ttl(LONG)).build().during("settings")?;
        let nodes: Vec<_> = (0..nodes).map(|_| MemoryServer::new(runtime.clone())).collect();
        let manager = match &nodes[..] {
            [only] => Manager::single_on(runtime.clone(), only, config),
            several => Manager::redlock_on(runtime.clone(), several, config),
        };
        Ok(Self { manager: manager.during("a manager")?, runtime, nodes })
    }

    pub(super) fn lock(&self) -> Lock<R> {
        self.manager.lock(RESOURCE)
    }

    /// On how many nodes the resource is taken.
    pub(super) fn holders(&self) -> usize {
        self.nodes.iter().filter(|node| node.get(RESOURCE).is_some()).count()
    }

    pub(super) fn each(&self, act: impl Fn(&MemoryServer)) {
        self.nodes.iter().for_each(act);
    }

    /// Nothing of any lease is left: no task, and no key.
    pub(super) async fn is_clean(&self, after: &str) -> Outcome {
        let limit = self.manager.config().operation_timeout() + LATE;
        let running = format!("{after} the task of the lease did not end");
        eventually(&self.runtime, limit, &running, || self.manager.stats().running == 0).await?;
        let left = self.holders();
        should(left == 0, format_args!("{after} the key was left on {left} of {} nodes", self.nodes.len()))
    }
}

/// Polls up to so many times, a millisecond apart, and drops the future then; yields whether it ended.
pub(super) async fn poll_up_to<R: Runtime, F: Future>(
    runtime: &R,
    polls: usize,
    future: F,
) -> Option<F::Output> {
    let mut future = pin!(future);
    for _ in 0..polls {
        if let Poll::Ready(output) = poll_once(&mut future).await {
            return Some(output);
        }
        pause(runtime, ms(1)).await;
    }
    None
}

/// A ttl that does not end while a check runs.
pub(super) const LONG: Duration = Duration::from_secs(30);
