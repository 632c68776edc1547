//! Leases in tokio's paused time, on nodes in memory: hours in milliseconds.

use std::time::Duration;

use redlock_tokio::{Config, Error, LockLost, LossReason, Manager, MemoryServer, Renewal, Tokio};
use tokio::time::{Instant, sleep, timeout};

fn nodes<const N: usize>() -> [MemoryServer; N] {
    let runtime = Tokio::default();
    std::array::from_fn(|_| MemoryServer::new(runtime.clone()))
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[expect(clippy::disallowed_methods, reason = "the test is about how little real time passes")]
fn real_time() -> std::time::Instant {
    std::time::Instant::now()
}

#[tokio::test(start_paused = true)]
async fn ten_minutes_of_renewals_take_no_time() {
    let real = real_time();
    let nodes = nodes::<5>();
    let single = Manager::single(&nodes[0], Config::default()).unwrap();
    let redlock = Manager::redlock(&nodes, Config::default()).unwrap();
    for (manager, resource) in [(single, "single"), (redlock, "redlock")] {
        let lease = manager.lock(resource).auto_renew(Renewal::ThirdOfTtl).acquire().await.unwrap();
        let start = Instant::now();
        assert_eq!(timeout(seconds(600), lease.lost()).await.ok(), None);
        assert!(start.elapsed() >= seconds(600));
        assert!(lease.is_valid());
        assert!((58..=60).contains(&manager.stats().renewed), "{:?}", manager.stats());
        lease.release().await.unwrap();
        assert_eq!(manager.stats().clock_regressions, 0);
    }
    assert!(real.elapsed() < seconds(1), "{:?}", real.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_lease_without_renewal_ends_at_its_validity() {
    let nodes = nodes::<3>();
    let manager = Manager::redlock(&nodes, Config::default()).unwrap();
    let lease = manager.lock("r").acquire().await.unwrap();
    let start = Instant::now();
    // 30 s less one percent and two milliseconds.
    assert_eq!(lease.valid_for(), Duration::from_millis(29_698));
    assert_eq!(lease.lost().await, LossReason::Expired);
    assert!((29_698..29_700).contains(&start.elapsed().as_millis()), "{:?}", start.elapsed());
    assert!(!lease.is_valid() && lease.valid_for().is_zero());
    // The key itself is still there, for as long as clocks may differ.
    assert!(nodes[0].get("r").is_some());
}

#[tokio::test(start_paused = true)]
async fn a_lost_quorum_is_a_lost_lease_at_the_local_deadline() {
    let nodes = nodes::<5>();
    let manager = Manager::redlock(&nodes, Config::default()).unwrap();
    let lease = manager.lock("r").auto_renew(Renewal::ThirdOfTtl).acquire().await.unwrap();
    sleep(seconds(3_600)).await;
    nodes[..3].iter().for_each(MemoryServer::hang);
    let left = lease.valid_for();
    let start = Instant::now();
    let stopped = lease.run(std::future::pending::<()>()).await.unwrap_err();
    assert_eq!(stopped, LockLost { reason: LossReason::Expired });
    // Late by no more than the grain of the timer.
    let elapsed = start.elapsed();
    assert!(elapsed >= left && elapsed <= left + Duration::from_millis(2), "{elapsed:?} of {left:?}");
    // What was tried in vain in the meantime did not delete the keys of a lease that was still valid.
    assert!(nodes[3].get("r").is_some());
    drop(lease);
    nodes[..3].iter().for_each(MemoryServer::resume);
    sleep(seconds(1)).await;
    assert!(nodes.iter().all(|node| node.get("r").is_none()));
}

#[tokio::test(start_paused = true)]
async fn renewal_goes_on_when_a_minority_forgets() {
    let nodes = nodes::<5>();
    let manager = Manager::redlock(&nodes, Config::default()).unwrap();
    let repairing =
        manager.lock("repaired").configure(|settings| settings.auto_renew(Renewal::ThirdOfTtl).repair(true));
    let repaired = repairing.acquire().await.unwrap();
    let kept = manager.lock("kept").auto_renew(Renewal::ThirdOfTtl).acquire().await.unwrap();
    sleep(seconds(1)).await;
    nodes[0].restart_empty();
    sleep(seconds(60)).await;
    assert!(repaired.is_valid() && kept.is_valid());
    assert!(nodes[0].get("repaired").is_some(), "the token was given back to it");
    assert!(nodes[0].get("kept").is_none(), "which is not the default");
    nodes[1].restart_empty();
    nodes[2].restart_empty();
    assert_eq!(kept.lost().await, LossReason::Refused);
}

#[tokio::test(start_paused = true)]
async fn the_longest_hold_ends_a_lease_that_renewal_would_keep() {
    let nodes = nodes::<3>();
    let manager = Manager::redlock(&nodes, Config::default()).unwrap();
    let lock = manager
        .lock("r")
        .configure(|settings| settings.auto_renew(Renewal::ThirdOfTtl).max_hold(seconds(300)));
    let lease = lock.acquire().await.unwrap();
    let start = Instant::now();
    assert_eq!(lease.lost().await, LossReason::MaxHold);
    assert_eq!(start.elapsed().as_secs(), 300);
}

#[tokio::test(start_paused = true)]
async fn the_strict_mode_gives_up_at_the_first_failed_renewal() {
    let nodes = nodes::<3>();
    let manager = Manager::redlock(&nodes, Config::default()).unwrap();
    let lock =
        manager.lock("r").configure(|settings| settings.auto_renew(Renewal::ThirdOfTtl).renew_attempts(1));
    let lease = lock.acquire().await.unwrap();
    nodes[..2].iter().for_each(|node| node.refuse(true));
    let start = Instant::now();
    assert_eq!(lease.lost().await, LossReason::RenewalFailed);
    assert_eq!(start.elapsed().as_secs(), 10);
}

#[tokio::test(start_paused = true)]
async fn leases_work_from_spawned_tasks() {
    let nodes = nodes::<3>();
    let manager = Manager::redlock(&nodes, Config::default()).unwrap();
    let lock = manager.lock("r");
    let scoped = lock.clone();
    let done = tokio::spawn(async move {
        scoped
            .run(async |lease| {
                sleep(seconds(1)).await;
                lease.is_valid()
            })
            .await
    });
    assert_eq!(done.await.unwrap(), Ok(true));
    let lease = tokio::spawn(async move { lock.acquire().await }).await.unwrap().unwrap();
    tokio::spawn(async move { lease.release().await }).await.unwrap().unwrap();
}

/// A memory-safe program may still poll a future anywhere it likes.
#[test]
fn without_a_runtime_there_is_an_error_and_no_panic() {
    let runtime = Tokio::default();
    let server = MemoryServer::new(runtime);
    let manager = Manager::single(&server, Config::default()).unwrap();
    let outside = futures_util::FutureExt::now_or_never(manager.lock("r").acquire());
    assert!(matches!(outside, Some(Err(Error::NoRuntime))));
    assert!(server.get("r").is_none());
    assert_eq!(manager.stats().running, 0);
}

/// Who waits for a lease whose runtime shuts down is told, and nobody takes the lease for held.
#[test]
fn a_lease_does_not_survive_its_runtime() {
    let server = MemoryServer::new(Tokio::default());
    let manager = Manager::single(&server, Config::default()).unwrap();
    let first = tokio::runtime::Runtime::new().unwrap();
    let lease = first.block_on(manager.lock("r").auto_renew(Renewal::ThirdOfTtl).acquire()).unwrap();
    let lost = lease.lost();
    drop(first);
    assert!(!lease.is_valid());
    let second = tokio::runtime::Runtime::new().unwrap();
    assert_eq!(second.block_on(lost), LossReason::Closed);
    let released = second.block_on(lease.release());
    assert_eq!(released, Err(Error::LockLost(LockLost { reason: LossReason::Closed })));
    // The manager itself goes on, on whatever runtime it is used from.
    server.remove("r");
    second.block_on(async { manager.lock("r").acquire().await.unwrap().release().await.unwrap() });
}
