//! Giving a lease back: what stays behind, and what is said about it.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};

use redlock_driver::{Config, Error, LockLost, LossReason, Manager};

use super::Adapter;
use super::support::{eventually, holders, key, ms, pause, redlock, urls};
use crate::harness::{Relay, Stopwatch, own_servers, shared_primaries, unused_address};

pub async fn a1_release_after_expiry<R: Adapter>() {
    let nodes = shared_primaries(1);
    let config = Config::builder().ttl(ms(200)).build().unwrap();
    let manager: Manager<R> = Manager::single(nodes[0].url(), config).unwrap();
    let lease = manager.lock(key("a1")).acquire().await.unwrap();
    pause::<R>(ms(300)).await;
    let watch = Stopwatch::start();
    let ended = lease.release().await.unwrap_err();
    assert_eq!(ended, Error::LockLost(LockLost { reason: LossReason::Expired }));
    // Less than the operation timeout of 40 ms: nothing was waited for or tried again.
    assert!(watch.elapsed() < ms(30), "{:?}", watch.elapsed());
}

/// Drops the release after each number of polls from none to completion.
pub async fn a8_a_release_cut_short_is_a_release<R: Adapter>() {
    let nodes = shared_primaries(3);
    let manager = redlock::<R, _>(urls(&nodes), Config::builder().ttl(ms(20_000)).build().unwrap());
    for polls in 0.. {
        let key = key("a8");
        let lease = manager.lock(key.clone()).acquire().await.unwrap();
        let mut completed = false;
        {
            let mut release = pin!(lease.release());
            for _ in 0..polls {
                if release.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready() {
                    completed = true;
                    break;
                }
                pause::<R>(ms(1)).await;
            }
        }
        eventually::<R>("the keys are gone", ms(1_000), || holders(&nodes, &key) == 0).await;
        if completed {
            assert!(polls > 0);
            break;
        }
    }
}

pub async fn a16_a_foreign_key_at_release_is_a_loss<R: Adapter>() {
    let nodes = shared_primaries(3);
    let manager = redlock::<R, _>(urls(&nodes), Config::builder().ttl(ms(20_000)).build().unwrap());
    let key = key("a16");
    let lease = manager.lock(key.clone()).acquire().await.unwrap();
    eventually::<R>("the key on every node", ms(1_000), || holders(&nodes, &key) == 3).await;
    nodes[0].set(&key, "somebody else");
    nodes[2].set(&key, "somebody else");
    let lost = lease.release().await.unwrap_err();
    assert_eq!(lost, Error::LockLost(LockLost { reason: LossReason::Refused }));
    eventually::<R>("our key is gone", ms(1_000), || nodes[1].get(&key).is_none()).await;
    assert_eq!(nodes[0].get(&key).as_deref(), Some("somebody else"));
    assert_eq!(nodes[2].get(&key).as_deref(), Some("somebody else"));
    nodes[0].del(&key);
    nodes[2].del(&key);
}

pub async fn a19_a_release_does_not_overtake_its_stragglers<R: Adapter>() {
    let nodes = shared_primaries(5);
    let relay = Relay::start(nodes[4].address());
    let mut urls = urls(&nodes);
    for delay in [0, 20] {
        if delay > 0 {
            urls[4] = relay.url();
            relay.delay_requests(ms(delay));
        }
        let manager = redlock::<R, _>(&urls, Config::builder().ttl(ms(20_000)).build().unwrap());
        let key = key("a19");
        let lock = manager.lock(key.clone());
        for _ in 0..300 {
            lock.acquire().await.unwrap().release().await.unwrap();
        }
        pause::<R>(ms(300)).await;
        assert_eq!(holders(&nodes, &key), 0, "with one node {delay} ms late");
    }
}

pub async fn a_release_with_a_node_down_succeeds<R: Adapter>() {
    let nodes = shared_primaries(2);
    let all = [nodes[0].url(), nodes[1].url(), format!("redis://{}", unused_address())];
    let manager = redlock::<R, _>(all, Config::default());
    let key = key("down");
    let lease = manager.lock(key.clone()).acquire().await.unwrap();
    lease.release().await.unwrap();
    eventually::<R>("no key on any node", ms(1_000), || holders(&nodes, &key) == 0).await;

    // On one node that is gone there is no quorum to be sure of.
    let Some(mut own) = own_servers(1) else { return };
    let manager: Manager<R> = Manager::single(own[0].url(), Config::default()).unwrap();
    let lease = manager.lock("gone").acquire().await.unwrap();
    let server = own.remove(0);
    let address = server.address().to_owned();
    server.kill();
    let unsure = lease.release().await.unwrap_err();
    assert!(matches!(unsure, Error::NotReleased(_)), "{unsure}");
    assert!(unsure.to_string().contains(&address), "{unsure}");
}

pub async fn another_owners_key_is_left_alone<R: Adapter>() {
    let nodes = shared_primaries(1);
    let manager: Manager<R> = Manager::single(nodes[0].url(), Config::default()).unwrap();
    let key = key("other");
    let lease = manager.lock(key.clone()).acquire().await.unwrap();
    nodes[0].set(&key, "somebody else");
    let lost = lease.release().await.unwrap_err();
    assert!(matches!(lost, Error::LockLost(_)), "{lost}");
    assert_eq!(nodes[0].get(&key).as_deref(), Some("somebody else"));
    nodes[0].del(&key);
}
