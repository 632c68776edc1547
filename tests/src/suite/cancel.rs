//! Callers that go away.

use std::pin::pin;
use std::task::{Context, Waker};

use redlock_driver::{Config, Manager};

use super::Adapter;
use super::support::{eventually, holders, key, ms, pause, redlock, urls};
use crate::harness::shared_primaries;

/// Drops the acquire after each number of polls from none to completion, on one node and on five.
pub async fn an_acquire_dropped_at_any_poll_leaves_no_key<R: Adapter>() {
    let nodes = shared_primaries(5);
    for nodes in [&nodes[..1], &nodes[..]] {
        let config = Config::builder().ttl(ms(20_000)).operation_timeout(ms(500)).build().unwrap();
        for polls in 0.. {
            // A manager of its own, so that dialling is among the things that are cut short.
            let manager: Manager<R> = match nodes {
                [only] => Manager::single(only.url(), config.clone()).unwrap(),
                _ => redlock(urls(nodes), config.clone()),
            };
            let key = key("cut");
            let lock = manager.lock(key.clone());
            let mut completed = false;
            {
                let mut acquire = pin!(lock.acquire());
                for _ in 0..polls {
                    if acquire.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready() {
                        completed = true;
                        break;
                    }
                    pause::<R>(ms(1)).await;
                }
            }
            // While it runs the key may come and go; what counts is what is left.
            eventually::<R>("nothing runs", ms(500), || manager.stats().running == 0).await;
            assert_eq!(holders(nodes, &key), 0, "after {polls} polls");
            if completed {
                break;
            }
        }
    }
}

/// More at once than any queue of the client holds, the manager gone with them.
pub async fn leases_dropped_in_a_burst_leave_no_key<R: Adapter>() {
    let nodes = shared_primaries(3);
    let manager = redlock::<R, _>(urls(&nodes), Config::default());
    let keys: Vec<_> = (0..200).map(|_| key("burst")).collect();
    let locks: Vec<_> = keys.iter().map(|key| manager.lock(key.clone())).collect();
    let leases = futures_util::future::join_all(locks.iter().map(|lock| lock.acquire())).await;
    assert!(leases.iter().all(|lease| lease.is_ok()));
    drop((leases, locks, manager));
    eventually::<R>("no key is left", ms(2_000), || keys.iter().all(|key| holders(&nodes, key) == 0)).await;
}

pub async fn leases_dropped_outside_the_runtime_leave_no_key<R: Adapter>() {
    let nodes = shared_primaries(3);
    let manager = redlock::<R, _>(urls(&nodes), Config::default());
    let keys: Vec<_> = (0..60).map(|_| key("outside")).collect();
    let locks: Vec<_> = keys.iter().map(|key| manager.lock(key.clone())).collect();
    let leases = futures_util::future::join_all(locks.iter().map(|lock| lock.acquire())).await;
    std::thread::spawn(move || drop(leases)).join().unwrap();
    eventually::<R>("no key is left", ms(2_000), || keys.iter().all(|key| holders(&nodes, key) == 0)).await;
}
