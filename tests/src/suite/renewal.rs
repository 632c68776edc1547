//! Keeping a lease: extension, renewal, and noticing that it is gone.

use redlock_driver::{Config, Error, LossReason, Manager, Renewal};

use super::Adapter;
use super::support::{eventually, holders, key, ms, pause, redlock, urls};
use crate::harness::{Stopwatch, own_servers, shared_primaries};

/// Five hundred leases, released or dropped at any moment of their renewal, then watched for a second.
pub async fn a7_renewal_ends_with_the_release<R: Adapter>() {
    let nodes = shared_primaries(3);
    let config = Config::builder().ttl(ms(300)).auto_renew(Renewal::ThirdOfTtl).build().unwrap();
    let manager = redlock::<R, _>(urls(&nodes), config);
    let one = async |number: u64| {
        let key = key("a7");
        let lease = manager.lock(key.clone()).acquire().await.unwrap();
        // Spread over the whole span, without two neighbours alike.
        pause::<R>(ms(number * 149 % 351)).await;
        if number.is_multiple_of(2) {
            lease.release().await.unwrap();
        } else {
            drop(lease);
        }
        key
    };
    for batch in 0..10 {
        let keys = futures_util::future::join_all((0..50).map(|number| one(batch * 50 + number))).await;
        let mut last = vec![[i64::MAX; 3]; keys.len()];
        let watch = Stopwatch::start();
        let mut gone = false;
        // The last batch is watched for a whole second, the others until their keys are gone.
        while watch.elapsed() < ms(300) || (batch == 9 && watch.elapsed() < ms(1_000)) {
            gone = true;
            for (key, last) in keys.iter().zip(&mut last) {
                for (node, last) in nodes.iter().zip(last) {
                    let left = node.pttl(key);
                    assert!(left <= *last, "the ttl of {key} rose from {last} to {left} after the release");
                    *last = left;
                    gone &= left == -2;
                }
            }
            if gone && batch < 9 {
                break;
            }
            pause::<R>(ms(20)).await;
        }
        assert!(gone, "a key outlived its lease by more than a ttl");
    }
    let stats = manager.stats();
    assert!(stats.renewed > 100, "the test raced nothing: {stats:?}");
}

pub async fn a13_renewal_costs_what_it_should<R: Adapter>() {
    let nodes = shared_primaries(3);
    let config = Config::builder().ttl(ms(1_000)).auto_renew(Renewal::ThirdOfTtl).build().unwrap();
    let manager = redlock::<R, _>(urls(&nodes), config);
    let lease = manager.lock(key("a13")).acquire().await.unwrap();
    pause::<R>(ms(10_000)).await;
    assert!(lease.is_valid());
    let renewed = manager.stats().renewed;
    assert!((25..=31).contains(&renewed), "{renewed} renewals in 10 s");
    lease.release().await.unwrap();
}

pub async fn an_extension_needs_a_quorum<R: Adapter>() {
    let nodes = shared_primaries(3);
    let manager = redlock::<R, _>(urls(&nodes), Config::default());
    let key = key("refused");
    let lease = manager.lock(key.clone()).acquire().await.unwrap();
    eventually::<R>("the key on every node", ms(1_000), || holders(&nodes, &key) == 3).await;
    nodes[0].del(&key);
    nodes[1].set(&key, "somebody else");
    let lost = lease.extend(ms(60_000)).await.unwrap_err();
    assert!(matches!(&lost, Error::LockLost(lost) if lost.reason == LossReason::Refused), "{lost}");
    assert!(!lease.is_valid());
    assert_eq!(lease.lost().await, LossReason::Refused);
    assert_eq!(nodes[0].get(&key), None, "an extension creates no key");
    assert_eq!(nodes[1].get(&key).as_deref(), Some("somebody else"));
    drop(lease);
    nodes[1].del(&key);
}

pub async fn an_unreachable_quorum_is_not_extended_and_not_lost<R: Adapter>() {
    let Some(nodes) = own_servers(3) else { return };
    let config = Config::builder().ttl(ms(3_000)).operation_timeout(ms(200)).build().unwrap();
    let manager = redlock::<R, _>(urls(&nodes), config);
    let lease = manager.lock("unreachable").acquire().await.unwrap();
    eventually::<R>("the key on every node", ms(1_000), || holders(&nodes, "unreachable") == 3).await;
    nodes[0].freeze();
    nodes[1].freeze();
    let before = lease.valid_for();
    let failed = lease.extend(ms(60_000)).await.unwrap_err();
    assert!(matches!(failed, Error::NotExtended(_)), "{failed}");
    assert!(lease.is_valid() && lease.valid_for() < before, "it goes on to its old end");
    nodes[0].thaw();
    nodes[1].thaw();
    eventually::<R>("it can be extended again", ms(2_000), || {
        lease.is_valid() && nodes[0].pttl("unreachable") > 0
    })
    .await;
    assert_eq!(lease.lost().await, LossReason::Expired, "without renewal it ends by itself");
}

pub async fn a_lease_outlives_its_ttl_by_renewal<R: Adapter>() {
    let nodes = shared_primaries(3);
    let config = Config::builder().ttl(ms(400)).auto_renew(ms(100)).build().unwrap();
    let manager = redlock::<R, _>(urls(&nodes), config);
    let lock = manager.lock(key("kept"));
    let lease = lock.acquire().await.unwrap();
    for _ in 0..20 {
        pause::<R>(ms(100)).await;
        assert!(lease.is_valid());
        assert!(lock.try_acquire().await.is_err(), "held, so nobody else gets it");
    }
    lease.release().await.unwrap();
}

pub async fn a_lost_quorum_is_noticed_at_the_local_deadline<R: Adapter>() {
    let Some(nodes) = own_servers(3) else { return };
    let config = Config::builder().ttl(ms(1_000)).auto_renew(Renewal::ThirdOfTtl).build().unwrap();
    let manager = redlock::<R, _>(urls(&nodes), config);
    let lease = manager.lock("quorum").acquire().await.unwrap();
    // Past several ttls, renewal has kept it.
    pause::<R>(ms(5_000)).await;
    assert!(lease.is_valid());
    let lost = lease.lost();
    nodes[0].kill();
    nodes[1].kill();
    let left = lease.valid_for();
    let watch = Stopwatch::start();
    assert_eq!(lost.await, LossReason::Expired);
    let taken = watch.elapsed();
    assert!(!lease.is_valid());
    assert!(taken + ms(400) > left, "still held while valid: {taken:?} of {left:?}");
    assert!(taken < left + ms(50), "noticed within 50 ms: {taken:?} of {left:?}");
}

pub async fn a_stolen_key_is_noticed_at_the_next_renewal<R: Adapter>() {
    let nodes = shared_primaries(1);
    let config = Config::builder().ttl(ms(3_000)).auto_renew(ms(100)).build().unwrap();
    let manager: Manager<R> = Manager::single(nodes[0].url(), config).unwrap();
    let key = key("stolen");
    let lease = manager.lock(key.clone()).acquire().await.unwrap();
    let lost = [lease.lost(), lease.lost()];
    nodes[0].set(&key, "somebody else");
    let watch = Stopwatch::start();
    for lost in lost {
        assert_eq!(lost.await, LossReason::Refused);
    }
    assert!(watch.elapsed() < ms(300), "{:?}", watch.elapsed());
    assert!(!lease.is_valid());
    drop(lease);
    pause::<R>(ms(50)).await;
    assert_eq!(nodes[0].get(&key).as_deref(), Some("somebody else"));
    nodes[0].del(&key);
}
