//! Servers whose wall clock jumps: what it costs, and what it breaks.
//!
//! Redis expires keys by the wall clock, so a jump ahead ends leases early and a jump back keeps dead ones. Our
//! own clock takes no part in it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::time::Duration;

use redlock_tests::harness::{Server, Stopwatch, may_own_servers, report};
use redlock_tokio::{Config, Error, LossReason, Manager};

const TTL: Duration = Duration::from_secs(10);
/// Beyond the ttl.
const JUMP: i64 = 20_000;
const HOUR: i64 = 3_600_000;

fn config() -> Config {
    Config::builder().ttl(TTL).attempts(1).build().unwrap()
}

/// Nodes of which the first ones have a clock of their own, and a manager for each of two clients.
fn world(nodes: usize, clocks: usize) -> Option<(Vec<Server>, [Manager; 2])> {
    let start = |number| if number < clocks { Server::builder().clock() } else { Server::builder() }.start();
    let nodes: Vec<_> = may_own_servers().then(|| (0..nodes).map(start).collect())?;
    let manager = || match &nodes[..] {
        [node] => Manager::single(node.url(), config()).unwrap(),
        nodes => Manager::redlock(nodes.iter().map(|node| node.url()), config()).unwrap(),
    };
    let managers = [manager(), manager()];
    Some((nodes, managers))
}

fn is_taken<T>(acquired: Result<T, Error>) -> bool {
    matches!(acquired, Err(Error::NotAcquired(failure)) if failure.is_taken())
}

#[tokio::test]
async fn a_minority_that_jumps_ahead_costs_its_votes() {
    let Some((nodes, [ours, theirs])) = world(5, 2) else { return };
    let lease = ours.lock("minority").acquire().await.unwrap();
    wait_for("the key on every node", || nodes.iter().all(|node| node.get("minority").is_some())).await;
    jump(&nodes[..2], "minority").await;
    // The two are theirs now, and not enough.
    let watch = Stopwatch::start();
    assert!(theirs.lock("minority").acquire().await.is_err());
    lease.extend(TTL).await.unwrap();
    let took = watch.elapsed();
    lease.release().await.unwrap();
    wait_for("no key is left", || nodes.iter().all(|node| node.keys().is_empty())).await;
    report("clocks of two of five nodes 20 s ahead", "nothing; still held, extended", took, "no key");
}

/// What the documentation says cannot be helped: enough clocks that jump give the lease away.
#[tokio::test]
async fn a_majority_that_jumps_ahead_makes_two_holders_until_the_next_renewal() {
    let Some((nodes, [ours, theirs])) = world(5, 3) else { return };
    let renewal = Duration::from_millis(300);
    let lease = ours.lock("majority").auto_renew(renewal).acquire().await.unwrap();
    wait_for("the key on every node", || nodes.iter().all(|node| node.get("majority").is_some())).await;
    jump(&nodes[..3], "majority").await;
    let watch = Stopwatch::start();
    let other = theirs.lock("majority").acquire().await.unwrap();
    let both = lease.is_valid();
    assert_eq!(lease.lost().await, LossReason::Refused);
    let took = watch.elapsed();
    assert!(both, "the test came too late to see it");
    assert!(took < renewal + Duration::from_millis(300), "{took:?}");
    other.release().await.unwrap();
    drop(lease);
    wait_for("no key is left", || nodes.iter().all(|node| node.keys().is_empty())).await;
    report(
        "clocks of three of five nodes 20 s ahead",
        "another holder, and the loss (refused) at the next renewal",
        took,
        "no key",
    );
}

/// The same on one node, where the fencing token puts the two in order.
#[tokio::test]
async fn one_node_that_jumps_ahead_makes_two_holders_with_tokens_in_order() {
    let Some((nodes, [ours, theirs])) = world(1, 1) else { return };
    let lease = ours.lock("single").fencing("single-fence").acquire().await.unwrap();
    jump(&nodes, "single").await;
    let other = theirs.lock("single").fencing("single-fence").acquire().await.unwrap();
    assert!(lease.is_valid(), "nobody told us");
    assert!(other.fencing_token() > lease.fencing_token());
    let watch = Stopwatch::start();
    let told = lease.extend(TTL).await.unwrap_err();
    assert!(matches!(&told, Error::LockLost(lost) if lost.reason == LossReason::Refused), "{told}");
    let took = watch.elapsed();
    assert!(other.is_valid());
    assert_eq!(nodes[0].get("single"), Some(other.token().to_hex().as_str().to_owned()));
    other.release().await.unwrap();
    report(
        "clock of the only node 20 s ahead",
        "another holder, with a higher fencing token; the loss (refused) at the next extension",
        took,
        "no key",
    );
}

#[test]
fn a_node_that_jumps_back_keeps_the_key_of_a_dead_holder() {
    for (count, clocks) in [(1, 1), (5, 2)] {
        let Some((nodes, [ours, theirs])) = world(count, clocks) else { return };
        let ttl = Duration::from_secs(1);
        let dying = tokio::runtime::Runtime::new().unwrap();
        dying.block_on(async {
            let lease = ours.lock("dead").ttl(ttl).acquire().await.unwrap();
            wait_for("the key on every node", || nodes.iter().all(|node| node.get("dead").is_some())).await;
            std::mem::forget(lease);
        });
        // It dies with its runtime, and nobody is left to clean up.
        dying.shutdown_background();
        nodes[..clocks].iter().for_each(|node| node.shift_clock(-HOUR));
        let watch = Stopwatch::start();

        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let kept = || nodes[..clocks].iter().all(|node| node.pttl("dead") > HOUR - 10_000);
            wait_for("an hour more", kept).await;
            let lock = theirs.lock("dead").ttl(ttl);
            assert!(is_taken(lock.acquire().await));
            let waited = lock.acquire_within(ttl + Duration::from_secs(1)).await;
            let took = watch.elapsed();
            assert!(kept());
            if count == 1 {
                assert!(waited.is_err());
                report(
                    "clock of the only node an hour back",
                    "taken",
                    took,
                    "a dead holder's key, an hour longer",
                );
            } else {
                waited.unwrap().release().await.unwrap();
                report(
                    "clocks of two of five nodes an hour back",
                    "acquired from the others when the dead holder's ttl was over",
                    took,
                    "a dead holder's key on the two, an hour longer",
                );
            }
        });
    }
}

/// A holder that lives does not notice.
#[tokio::test]
async fn a_node_that_jumps_back_does_a_living_holder_no_harm() {
    let Some((nodes, [ours, _])) = world(1, 1) else { return };
    let lease = ours.lock("living").acquire().await.unwrap();
    nodes[0].shift_clock(-HOUR);
    let watch = Stopwatch::start();
    lease.extend(TTL).await.unwrap();
    lease.release().await.unwrap();
    assert_eq!(nodes[0].keys(), Vec::<String>::new());
    report("clock of the only node an hour back, holder alive", "nothing", watch.elapsed(), "no key");
}

/// Sets the clocks ahead. The servers expire the key when they next look at them.
async fn jump(nodes: &[Server], key: &str) {
    nodes.iter().for_each(|node| node.shift_clock(JUMP));
    wait_for("the key has expired", || nodes.iter().all(|node| node.get(key).is_none())).await;
}

async fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    let watch = Stopwatch::start();
    while !holds() {
        assert!(watch.elapsed() < Duration::from_secs(3), "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
