//! Leases in tokio's paused time, on nodes in memory: hours in milliseconds.

use std::future::Future;
use std::time::Duration;

use redlock_tokio::{
    Cause, CauseKind, Config, ConfigError, Error, Fault, LockLost, LossReason, Manager, MemoryServer, Node,
    Renewal, Tokio,
};
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

/// What issue trackers of lock libraries call a split brain, and the guard against it.
#[tokio::test(start_paused = true)]
async fn a_server_that_forgot_helps_nobody_to_a_second_lease_behind_a_restart_guard() {
    for guarded in [false, true] {
        let nodes = nodes::<3>();
        let mut config = Config::builder().ttl(seconds(10)).attempts(1);
        if guarded {
            config = config.restart_guard(seconds(11));
        }
        let config = config.build().unwrap();
        let managers = [&config, &config].map(|config| Manager::redlock(&nodes, config.clone()).unwrap());
        nodes[2].refuse(true);
        let first = managers[0].lock("r").acquire().await.unwrap();
        nodes[2].refuse(false);
        nodes[1].restart_empty();
        let second = managers[1].lock("r").acquire().await;
        assert!(first.is_valid());
        assert_eq!(second.is_ok(), !guarded, "two leases at once, or not: {second:?}");
        let Err(error) = second else { continue };
        let said = error.to_string();
        assert!(said.contains("in quarantine: restarted 0 s ago, no votes for 11 s more"), "{said}");
        let again = managers[1].lock("r").acquire_within(seconds(20)).await.unwrap();
        assert!(again.is_valid() && !first.is_valid());
        assert!(nodes[1].get("r").is_none(), "the other two are enough");
        again.release().await.unwrap();
        // The node has served its time.
        sleep(seconds(2)).await;
        nodes[0].refuse(true);
        managers[1].lock("r").acquire().await.unwrap().release().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_restart_guard_costs_no_lease_that_is_held() {
    let nodes = nodes::<3>();
    let config =
        Config::builder().restart_guard(seconds(31)).auto_renew(Renewal::ThirdOfTtl).build().unwrap();
    let manager = Manager::redlock(&nodes, config).unwrap();
    let lease = manager.lock("r").acquire().await.unwrap();
    nodes.iter().for_each(MemoryServer::restart_with_data);
    sleep(seconds(100)).await;
    assert!(lease.is_valid(), "all restarted at once, and with their data");
    nodes.iter().for_each(MemoryServer::restart_with_data);
    lease.release().await.unwrap();
    assert!(nodes.iter().all(|node| node.get("r").is_none()), "a release goes to nodes in quarantine");
}

#[tokio::test(start_paused = true)]
async fn a_restart_guard_that_cannot_be_kept_is_refused() {
    let guarded = || Config::builder().restart_guard(seconds(31));
    let node = Node::transport("mine", Nowhere);
    let refused = Manager::single(node, guarded().build().unwrap()).unwrap_err();
    assert_eq!(refused, ConfigError::RestartGuardUnsupported { node: "mine".into() });
    assert!(refused.to_string().starts_with("node mine: restart_guard cannot be kept"), "{refused}");

    let short = guarded().ttl(seconds(31)).build().unwrap_err();
    assert!(matches!(short, ConfigError::TooShort { field: "restart_guard", .. }), "{short}");
    let server = MemoryServer::new(Tokio::default());
    let manager = Manager::single(&server, guarded().build().unwrap()).unwrap();
    let longer = manager.lock("r").ttl(seconds(60)).acquire().await.unwrap_err();
    assert!(
        matches!(longer, Error::Config(ConfigError::TooShort { field: "restart_guard", .. })),
        "{longer}"
    );
    let own = manager.lock("r").configure(|settings| settings.restart_guard(seconds(60)));
    let own = own.acquire().await.unwrap_err();
    assert_eq!(own, Error::Config(ConfigError::PerManager { field: "restart_guard" }));
    let lease = manager.lock("r").acquire().await.unwrap();
    let extended = lease.extend(seconds(60)).await.unwrap_err();
    assert!(matches!(extended, Error::Config(ConfigError::TooLong { field: "ttl", .. })), "{extended}");
    assert!(lease.is_valid());
}

/// A transport that brings nothing anywhere.
struct Nowhere;

impl redlock_driver::Transport for Nowhere {
    fn send(
        &self,
        _: &redlock_driver::Command,
    ) -> impl Future<Output = Result<redlock_driver::Reply, Fault>> + Send + 'static {
        std::future::ready(Err(Fault::NotExecuted(Cause::new(CauseKind::Unreachable))))
    }
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
