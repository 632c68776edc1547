//! Working under a lease, and closing down.

use redlock_driver::{Config, Error, LockLost, LossReason, Renewal, RunError};

use super::Adapter;
use super::support::{eventually, holders, key, ms, pause, redlock, urls};
use crate::harness::{Stopwatch, own_servers, shared_primaries};

pub async fn a12_work_does_not_outlive_its_lease<R: Adapter>() {
    let nodes = shared_primaries(3);
    let config = Config::builder().ttl(ms(400)).build().unwrap();
    let manager = redlock::<R, _>(urls(&nodes), config);
    let lease = manager.lock(key("a12")).acquire().await.unwrap();
    let watch = Stopwatch::start();
    let stopped = lease.run(pause::<R>(ms(1_500))).await.unwrap_err();
    assert_eq!(stopped.reason, LossReason::Expired);
    assert!((ms(300)..ms(450)).contains(&watch.elapsed()), "{:?}", watch.elapsed());

    // Work that blocks its thread cannot be stopped, but it is not called a success.
    let lease = manager.lock(key("a12")).acquire().await.unwrap();
    let blocked = lease.run(async { std::thread::sleep(ms(600)) }).await.unwrap_err();
    assert_eq!(blocked.reason, LossReason::Expired);
}

pub async fn a14_the_works_own_error_is_heard<R: Adapter>() {
    let Some(nodes) = own_servers(3) else { return };
    let config = Config::builder().ttl(ms(5_000)).operation_timeout(ms(200)).build().unwrap();
    let manager = redlock::<R, _>(urls(&nodes), config);
    let heard = manager
        .lock("a14")
        .run(async |lease| {
            assert!(lease.is_valid());
            nodes.iter().for_each(|node| node.freeze());
            Err::<(), _>("the work's own error")
        })
        .await;
    assert_eq!(heard, Ok(Err("the work's own error")));
    nodes.iter().for_each(|node| node.thaw());

    // Also when the lease turns out to be gone: both are told.
    let retried = manager.lock("a14-gone").configure(|settings| settings.attempts(20));
    let heard = retried
        .run(async |_| {
            nodes.iter().for_each(|node| node.set("a14-gone", "somebody else"));
            Err::<(), _>("the work's own error")
        })
        .await;
    let lost = LockLost { reason: LossReason::Refused };
    assert_eq!(heard, Err(RunError::LostMeanwhile { lost, done: Err("the work's own error") }));

    let lease = manager.lock("a14-by-hand").acquire_within(ms(5_000)).await.unwrap();
    nodes.iter().for_each(|node| node.freeze());
    let heard = lease.run(async { Err::<(), _>("the work's own error") }).await;
    assert_eq!(heard, Ok(Err("the work's own error")));
    let release = lease.release().await.unwrap_err();
    assert!(matches!(release, Error::NotReleased(_)), "{release}");
    nodes.iter().for_each(|node| node.thaw());
}

pub async fn a15_asking_is_free<R: Adapter>() {
    let Some(nodes) = own_servers(3) else { return };
    let config = Config::builder().ttl(ms(5_000)).operation_timeout(ms(500)).build().unwrap();
    let manager = redlock::<R, _>(urls(&nodes), config);
    let lease = manager.lock("a15").acquire().await.unwrap();
    nodes.iter().for_each(|node| node.pause_all(ms(1_000)));
    let ask = async {
        pause::<R>(ms(50)).await;
        let watch = Stopwatch::start();
        for _ in 0..1_000 {
            assert!(lease.is_valid());
            assert!(lease.valid_for() > ms(3_000));
        }
        watch.elapsed()
    };
    let (extended, asked) = futures_util::future::join(lease.extend(ms(5_000)), ask).await;
    assert!(matches!(extended, Err(Error::NotExtended(_))), "{extended:?}");
    assert!(asked < ms(200), "a thousand times in {asked:?}, during an extension that took 500 ms");
}

pub async fn scoped_work_gives_the_lease_back<R: Adapter>() {
    let nodes = shared_primaries(3);
    let manager = redlock::<R, _>(urls(&nodes), Config::builder().ttl(ms(2_000)).build().unwrap());
    let key = key("scoped");
    let lock = manager.lock(key.clone());
    let held = lock.run(async |lease| (lease.is_valid(), holders(&nodes, &key) >= 2)).await.unwrap();
    assert_eq!(held, (true, true));
    eventually::<R>("no key on any node", ms(1_000), || holders(&nodes, &key) == 0).await;

    // Cut short by its caller.
    {
        let scoped = std::pin::pin!(lock.run(async |_| pause::<R>(ms(60_000)).await));
        let timeout = std::pin::pin!(pause::<R>(ms(100)));
        assert!(matches!(
            futures_util::future::select(scoped, timeout).await,
            futures_util::future::Either::Right(_)
        ));
    }
    eventually::<R>("no key on any node", ms(1_000), || holders(&nodes, &key) == 0).await;
    assert_eq!(manager.stats().given_up, 1, "given up, not released");
}

pub async fn a_closed_manager_gives_everything_back<R: Adapter>() {
    let nodes = shared_primaries(3);
    let manager = redlock::<R, _>(urls(&nodes), Config::default());
    let (held, wanted) = (key("closed"), key("closed"));
    let lease = manager.lock(held.clone()).auto_renew(Renewal::ThirdOfTtl).acquire().await.unwrap();
    let lost = lease.lost();
    nodes.iter().for_each(|node| node.set(&wanted, "somebody else"));
    let waiting = manager.lock(wanted.clone());
    let (cancelled, ()) = futures_util::future::join(waiting.acquire_within(ms(60_000)), async {
        pause::<R>(ms(50)).await;
        let watch = Stopwatch::start();
        manager.close().await;
        assert!(watch.elapsed() < ms(800), "{:?}", watch.elapsed());
    })
    .await;
    assert!(cancelled.unwrap_err().to_string().contains("cancelled"));
    assert_eq!(lost.await, LossReason::Closed);
    assert!(!lease.is_valid());
    assert!(matches!(lease.release().await, Err(Error::LockLost(lost)) if lost.reason == LossReason::Closed));
    assert_eq!(holders(&nodes, &held), 0);
    assert_eq!(manager.lock(held).acquire().await.unwrap_err(), Error::Closed);
    assert_eq!(manager.stats().running, 0);
    nodes.iter().for_each(|node| assert!(node.del(&wanted)));
}
