//! A Redis Cluster as one logical node, through a connection that the `redis` crate makes.
//!
//! Not part of the [`suite!`](macro@crate::suite): the crate's client for clusters compiles only with a
//! runtime, so each adapter's test file says how to connect. [`cluster_suite!`](macro@crate::cluster_suite)
//! makes the tests.

use redlock_driver::{Config, ConfigError, Connection, Error, LossReason, Manager, Node};

use super::Adapter;
use super::support::{eventually, ms};
use crate::harness::{Cluster, Stopwatch, may_own_servers};

/// Makes a test of every function of this module, for one adapter, one way to block on a future, and one way
/// to connect to the cluster at these URLs.
#[macro_export]
macro_rules! cluster_suite {
    ($adapter:ty, $block_on:path, $connect:path) => {
        $crate::cluster_suite! { @tests $adapter, $block_on, $connect,
            leases_on_every_shard,
            a_slot_that_has_moved_is_found,
            a_dead_shard_takes_its_own_keys_along,
        }
    };
    (@tests $adapter:ty, $block_on:path, $connect:path, $($test:ident),* $(,)?) => {
        $(
            #[test]
            fn $test() {
                $block_on($crate::suite::cluster::$test::<$adapter, _>($connect));
            }
        )*
    };
}

/// Tags whose slots lie on the shards 2, 0, 1 and 2: one more than there are shards.
const TAGS: [&str; 4] = ["{a}", "{b}", "{c}", "{d}"];

fn manager<R: Adapter>(connection: impl Connection, attempts: u32) -> Manager<R> {
    let config = Config::builder().ttl(ms(5_000)).operation_timeout(ms(500)).attempts(attempts);
    Manager::single(Node::cluster("shards", connection), config.build().unwrap()).unwrap()
}

pub async fn leases_on_every_shard<R: Adapter, C: Connection>(connect: impl AsyncFn(Vec<String>) -> C) {
    if !may_own_servers() {
        return;
    }
    let cluster = Cluster::start();
    let manager = manager::<R>(connect(cluster.urls()).await, 1);
    let mut shards = std::collections::BTreeSet::new();
    for tag in TAGS {
        let (key, fence) = (format!("orders:{tag}:lock"), format!("orders:{tag}:fence"));
        let shard = &cluster.shards()[cluster.shard_of(&key)];
        shards.insert(cluster.shard_of(&key));
        let lock = manager.lock(key.as_str()).fencing(fence).auto_renew(ms(100));
        for number in 1..=3 {
            let lease = lock.acquire().await.unwrap();
            assert_eq!(lease.fencing_token().unwrap().get(), number);
            assert_eq!(shard.get(&key).as_deref(), Some(lease.token().to_hex().as_str()));
            let taken = lock.acquire().await.unwrap_err();
            assert!(matches!(&taken, Error::NotAcquired(failure) if failure.is_taken()), "{taken}");
            lease.extend(ms(20_000)).await.unwrap();
            assert!(shard.pttl(&key) > 15_000);
            let renewed = manager.stats().renewed;
            eventually::<R>("it is renewed", ms(2_000), || manager.stats().renewed > renewed).await;
            lease.release().await.unwrap();
            assert_eq!(shard.get(&key), None);
        }
        let plain = manager.lock(key.as_str()).auto_renew(ms(100)).acquire().await.unwrap();
        shard.set(&key, "somebody else");
        assert_eq!(plain.lost().await, LossReason::Refused);
        drop(plain);
        eventually::<R>("the lease has ended", ms(2_000), || manager.stats().running == 0).await;
        assert_eq!(shard.get(&key).as_deref(), Some("somebody else"));
    }
    assert_eq!(shards.len(), 3, "every shard had its turn");

    // Keys that no one shard has: nothing is sent.
    let before: u64 = cluster.shards().iter().map(|shard| shard.command_calls("evalsha")).sum();
    let refused = manager.lock("orders:1").fencing("orders:1:fence").acquire().await.unwrap_err();
    assert!(matches!(refused, Error::Config(ConfigError::CrossSlot { .. })), "{refused}");
    assert_eq!(before, cluster.shards().iter().map(|shard| shard.command_calls("evalsha")).sum::<u64>());
}

/// The client still believes that the slot is where it was; the refusal of the old shard is no outcome to
/// doubt, and the next attempt goes to the new one.
pub async fn a_slot_that_has_moved_is_found<R: Adapter, C: Connection>(
    connect: impl AsyncFn(Vec<String>) -> C,
) {
    if !may_own_servers() {
        return;
    }
    let cluster = Cluster::start();
    let manager = manager::<R>(connect(cluster.urls()).await, 5);
    let key = "{a}";
    let lock = manager.lock(key).fencing("{a}:fence");
    lock.acquire().await.unwrap().release().await.unwrap();
    let (old, new) = (cluster.shard_of(key), (cluster.shard_of(key) + 1) % 3);
    assert!(cluster.shards()[old].del("{a}:fence"));
    cluster.move_slot_of(key, new);

    let lease = lock.acquire().await.unwrap();
    assert!(manager.stats().attempts_failed > 0, "the first attempt met the old shard");
    assert_eq!(cluster.shards()[new].get(key).as_deref(), Some(lease.token().to_hex().as_str()));
    lease.extend(ms(20_000)).await.unwrap();
    lease.release().await.unwrap();
    assert_eq!(cluster.shards()[new].get(key), None);
}

/// Without replicas. The others serve on, and what was held there ends by the clock.
pub async fn a_dead_shard_takes_its_own_keys_along<R: Adapter, C: Connection>(
    connect: impl AsyncFn(Vec<String>) -> C,
) {
    if !may_own_servers() {
        return;
    }
    let cluster = Cluster::start();
    let manager = manager::<R>(connect(cluster.urls()).await, 1);
    let [dead, alive] = ["{a}", "{b}"];
    assert_ne!(cluster.shard_of(dead), cluster.shard_of(alive));
    let doomed = manager.lock(dead).ttl(ms(1_500)).auto_renew(ms(200)).acquire().await.unwrap();
    let kept = manager.lock(alive).ttl(ms(1_500)).auto_renew(ms(200)).acquire().await.unwrap();
    cluster.shards()[cluster.shard_of(dead)].kill();
    let (left, watch) = (doomed.valid_for(), Stopwatch::start());
    assert_eq!(doomed.lost().await, LossReason::Expired);
    assert!(watch.elapsed() <= left + ms(500), "{:?} of {left:?}", watch.elapsed());

    for _ in 0..3 {
        let watch = Stopwatch::start();
        let refused = manager.lock(dead).acquire().await.unwrap_err();
        assert!(watch.elapsed() < ms(800), "{:?}", watch.elapsed());
        let unreachable = matches!(&refused, Error::NotAcquired(failure) if failure.is_unreachable());
        assert!(unreachable, "{refused}");
        assert!(refused.to_string().contains("(shards)"), "{refused}");
    }
    assert!(kept.is_valid(), "its shard is well");
    kept.extend(ms(5_000)).await.unwrap();
    kept.release().await.unwrap();
}
