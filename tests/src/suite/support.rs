//! What the tests share: a runtime that can be blocked on, waiting without blocking it, and managers.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use redlock_driver::{Config, Connect, IntoNode, Manager};

use crate::harness::{Primary, Server, Stopwatch};

/// A runtime under test.
pub trait Adapter: Connect + Default {}

impl<R: Connect + Default> Adapter for R {}

/// Lets `span` pass without blocking the runtime.
pub(super) async fn pause<R: Adapter>(span: Duration) {
    let runtime = R::default();
    runtime.sleep_until(redlock_driver::Runtime::now(&runtime).saturating_add(span)).await;
}

/// Waits until `condition` holds, looking every few milliseconds and letting the runtime work meanwhile.
#[track_caller]
pub(super) fn eventually<R: Adapter>(
    what: &str,
    limit: Duration,
    mut condition: impl FnMut() -> bool,
) -> impl Future<Output = ()> {
    let caller = std::panic::Location::caller();
    let what = format!("{what} ({caller})");
    async move {
        let watch = Stopwatch::start();
        while !condition() {
            assert!(watch.elapsed() < limit, "{what}: not within {limit:?}");
            pause::<R>(ms(5)).await;
        }
    }
}

pub(super) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(super) fn redlock<R: Adapter, N: IntoNode<R>>(
    nodes: impl IntoIterator<Item = N>,
    config: Config,
) -> Manager<R> {
    Manager::redlock(nodes, config).expect("a manager")
}

pub(super) fn urls<P: Look>(nodes: &[P]) -> Vec<String> {
    nodes.iter().map(|node| node.primary().url()).collect()
}

/// On how many of the nodes `key` stands.
pub(super) fn holders<P: Look>(nodes: &[P], key: &str) -> usize {
    nodes.iter().filter(|node| node.primary().get(key).is_some()).count()
}

/// A key that differs from test to test and run to run.
pub(super) fn key(name: &str) -> Arc<str> {
    crate::harness::unique(name).into()
}

/// A node to look at, whoever it belongs to.
pub(super) trait Look {
    fn primary(&self) -> &Primary;
}

impl Look for Primary {
    fn primary(&self) -> &Primary {
        self
    }
}

impl Look for Server {
    fn primary(&self) -> &Primary {
        self
    }
}
