//! One logical node behind sentinels: found, followed, and never trusted for longer than the lease is valid.

use redlock_driver::topology::Role;
use redlock_driver::{Config, Error, LossReason, Manager, Node, NotAcquiredReason};

use super::Adapter;
use super::support::{eventually, ms};
use crate::harness::{Stopwatch, Watched, may_own_servers, unused_address, url_encoded};

fn config() -> Config {
    Config::builder().ttl(ms(10_000)).operation_timeout(ms(500)).attempts(1).build().unwrap()
}

/// The first sentinel of two is never there.
fn sentinels(watched: &Watched) -> [String; 2] {
    [format!("redis://{}", unused_address()), watched.sentinel().url()]
}

pub async fn credentials_of_sentinels_and_primary_may_differ<R: Adapter>() {
    if !may_own_servers() {
        return;
    }
    let watched = Watched::start_with_passwords("hunter2:@/%", "hunter3?&=");
    let [primary, _] = watched.servers();
    for protocol in ["resp2", "resp3"] {
        let like = format!("redis://:{}@any/1?protocol={protocol}", url_encoded("hunter2:@/%"));
        let node = Node::sentinel(sentinels(&watched), Watched::SERVICE).primary_like(like);
        let manager: Manager<R> = Manager::single(node, config()).unwrap();
        let lock = manager.lock("{a}").fencing("{a}:fence");
        let lease = lock.acquire().await.unwrap();
        assert_eq!(primary.info("db1").map(|keys| keys.starts_with("keys=2,")), Some(true));
        lease.extend(ms(20_000)).await.unwrap();
        lease.release().await.unwrap();
        let report = manager.verify(ms(1_000)).await.unwrap();
        let server = report.nodes[0].server.as_ref().unwrap().as_ref().unwrap();
        assert_eq!(server.role, Role::Primary);
    }

    let right = format!("redis://:{}@any", url_encoded("hunter2:@/%"));
    let wrong = "redis://:hunter4@any".to_owned();
    let closed = format!("redis://{}", watched.sentinel().address());
    for (sentinel, service, like, expected) in [
        (closed, Watched::SERVICE, right.clone(), "NOAUTH"),
        (watched.sentinel().url(), "another", right, "knows no primary called another"),
        (watched.sentinel().url(), Watched::SERVICE, "redis://any".to_owned(), "NOAUTH"),
        (watched.sentinel().url(), Watched::SERVICE, wrong, "authentication failed"),
    ] {
        let node = Node::sentinel([sentinel], service).primary_like(like);
        let manager: Manager<R> = Manager::single(node, config()).unwrap();
        let refused = manager.lock("a").acquire().await.unwrap_err();
        let text = format!("{refused} {manager:?}");
        assert!(text.contains(expected), "{text}");
        assert!(text.contains(&format!("{service}@{}", watched.sentinel().address())), "{text}");
        assert!(!text.contains("hunter"), "{text}");
    }
}

/// Two leases while the primary dies: the replica has heard of one of them, and not of the other. Then the
/// new primary dies as well.
pub async fn a_failover_keeps_a_lease_or_says_that_it_is_lost<R: Adapter>() {
    if !may_own_servers() {
        return;
    }
    let watched = Watched::start();
    let [old, new] = watched.servers();
    let node = Node::sentinel(sentinels(&watched), Watched::SERVICE);
    let manager: Manager<R> = Manager::single(node, config()).unwrap();
    let kept = manager.lock("kept").auto_renew(ms(200)).acquire().await.unwrap();
    let forgotten = manager.lock("forgotten").auto_renew(ms(200)).acquire().await.unwrap();
    let unrenewed = manager.lock("unrenewed").acquire().await.unwrap();
    eventually::<R>("the replica has heard of them", ms(5_000), || {
        ["kept", "forgotten", "unrenewed"].iter().all(|key| new.get(key).is_some())
    })
    .await;
    new.config_set("replica-read-only", "no");
    assert!(new.del("forgotten") && new.del("unrenewed"));

    old.kill();
    let (lost, watch) = (forgotten.lost(), Stopwatch::start());
    let mut valid = forgotten.valid_for();
    eventually::<R>("the replica is promoted", ms(20_000), || {
        // Held on paper, and each look is nearer to its end: nothing renews it.
        let left = forgotten.valid_for();
        assert!(left <= valid, "{left:?} after {valid:?}");
        valid = left;
        watched.is_primary(1)
    })
    .await;
    assert_eq!(lost.await, LossReason::Refused, "{:?}", watch.elapsed());
    assert!(!forgotten.is_valid() && forgotten.valid_for().is_zero());
    assert!(matches!(forgotten.extend(ms(20_000)).await, Err(Error::LockLost(_) | Error::NotHeld(_))));
    // An extension asks the new primary, too.
    let refused = unrenewed.extend(ms(20_000)).await.unwrap_err();
    assert!(matches!(&refused, Error::LockLost(lost) if lost.reason == LossReason::Refused), "{refused}");
    assert!(!unrenewed.is_valid());

    // The other one goes on as if nothing had happened, and is held against others.
    let renewed = manager.stats().renewed;
    eventually::<R>("it is renewed", ms(5_000), || manager.stats().renewed > renewed).await;
    assert!(kept.is_valid());
    assert_eq!(new.get("kept").as_deref(), Some(kept.token().to_hex().as_str()));
    let taken = manager.lock("kept").try_acquire().await.unwrap_err();
    assert!(matches!(&taken, Error::NotAcquired(failure) if failure.is_taken()), "{taken}");
    let second = manager.lock("forgotten").try_acquire().await.unwrap();
    assert!(!forgotten.is_valid());
    drop((forgotten, unrenewed));
    second.release().await.unwrap();
    kept.extend(ms(1_500)).await.unwrap();

    // Nobody is left to promote.
    new.kill();
    let (left, watch) = (kept.valid_for(), Stopwatch::start());
    assert_eq!(kept.lost().await, LossReason::Expired);
    assert!(!kept.is_valid());
    // The clock alone decides when it is over; the signal comes as soon as the machine gets to it.
    let taken = watch.elapsed();
    assert!(taken <= left + ms(500), "{taken:?} of {left:?}");
    let refused = manager.lock("kept").try_acquire().await.unwrap_err();
    let unreachable =
        matches!(&refused, Error::NotAcquired(failure) if failure.reason == NotAcquiredReason::Unreachable);
    assert!(unreachable, "{refused}");
}

/// The connection to the old primary is well, and leads to a replica now.
pub async fn a_demoted_primary_is_left_for_the_new_one<R: Adapter>() {
    if !may_own_servers() {
        return;
    }
    let watched = Watched::start();
    let [old, new] = watched.servers();
    let node = Node::sentinel(sentinels(&watched), Watched::SERVICE);
    let manager: Manager<R> =
        Manager::single(node, config().to_builder().attempts(5).build().unwrap()).unwrap();
    let lease = manager.lock("held").acquire().await.unwrap();
    eventually::<R>("the replica has heard of it", ms(5_000), || new.get("held").is_some()).await;
    let connections = old.info("total_connections_received");
    watched.swap();
    let failed = manager.stats().attempts_failed;
    let second = manager.lock("second").acquire().await.unwrap();
    assert!(manager.stats().attempts_failed > failed, "the first attempt met the replica: {connections:?}");
    assert_eq!(new.get("second").as_deref(), Some(second.token().to_hex().as_str()));
    lease.extend(ms(20_000)).await.unwrap();
    lease.release().await.unwrap();
    second.release().await.unwrap();
    assert_eq!((new.get("held"), new.get("second")), (None, None));
}

/// It takes writes for ten seconds more, which nobody will know of. The lease goes on at the new one.
pub async fn a_primary_that_was_replaced_is_left_before_it_knows<R: Adapter>() {
    if !may_own_servers() {
        return;
    }
    let watched = Watched::start();
    let [_, new] = watched.servers();
    let manager: Manager<R> =
        Manager::single(Node::sentinel(sentinels(&watched), Watched::SERVICE), config()).unwrap();
    let lease = manager.lock("held").auto_renew(ms(200)).acquire().await.unwrap();
    eventually::<R>("the replica has heard of it", ms(5_000), || new.get("held").is_some()).await;
    watched.promote();
    let left = new.pttl("held");
    eventually::<R>("it is renewed at the new primary", ms(5_000), || new.pttl("held") > left).await;
    assert!(watched.is_primary(0), "the old one does not know yet");
    assert!(lease.is_valid());
    lease.release().await.unwrap();
    assert_eq!(new.get("held"), None);
}
