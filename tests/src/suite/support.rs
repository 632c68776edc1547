//! What the tests share: a runtime that can be blocked on, waiting without blocking it, and managers.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use redlock_driver::{Config, Connect, Error, IntoNode, Lock, Manager, NotAcquiredReason, Outcome};

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

/// What a future yields, and after how long.
pub(super) async fn timed<T>(work: impl Future<Output = T>) -> (T, Duration) {
    let watch = Stopwatch::start();
    let done = work.await;
    (done, watch.elapsed())
}

/// What the only node of a manager was up to, from the error of an acquire that reached no quorum.
#[track_caller]
pub(super) fn cause<T>(acquired: Result<T, Error>) -> String {
    let failure = match acquired {
        Err(Error::NotAcquired(failure)) => failure,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("acquired"),
    };
    assert_eq!(failure.reason, NotAcquiredReason::Unreachable, "{failure}");
    match &failure.quorum.nodes[0].outcome {
        Outcome::Fault(fault) => fault.to_string(),
        Outcome::Silent { waited } => format!("no answer in {} ms", waited.as_millis()),
        other => panic!("{other:?}"),
    }
}

/// Asks the only node of a manager until it is known to be down, each time within `limit`; then once more, for
/// what is said then and how soon.
pub(super) async fn known_down<R: Adapter>(lock: &Lock<R>, limit: Duration) -> (String, Duration) {
    let watch = Stopwatch::start();
    loop {
        assert!(watch.elapsed() < ms(8_000), "every call waits for it");
        let (refused, took) = timed(lock.acquire()).await;
        assert!(took < limit, "{took:?}");
        if cause(refused).starts_with("unreachable") {
            break;
        }
    }
    let (refused, took) = timed(lock.acquire()).await;
    (cause(refused), took)
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
