//! One program, three runtimes, the same servers: leases that know nothing of each other's runtime keep each
//! other out all the same.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use redlock_driver::{Config, Connect, Error, Manager, Renewal};
use redlock_tests::harness::{shared_primaries, unique};

const TURNS: u64 = 40;

fn manager<R: Connect + Default>(urls: &[String]) -> Manager<R> {
    let config = Config::builder().ttl(Duration::from_secs(5)).retry_delay(Duration::from_millis(5));
    Manager::redlock(urls, config.build().unwrap()).unwrap()
}

/// Takes its turns at a counter that nothing protects but the lease.
async fn take_turns<R: Connect + Default>(urls: Vec<String>, key: String, counter: Arc<AtomicU64>) {
    let lock = manager::<R>(&urls).lock(key).auto_renew(Renewal::ThirdOfTtl);
    for _ in 0..TURNS {
        let lease = lock.acquire_within(Duration::from_secs(60)).await.unwrap();
        let seen = counter.load(Ordering::SeqCst);
        R::default().sleep_until(R::default().now().saturating_add(Duration::from_millis(2))).await;
        counter.store(seen + 1, Ordering::SeqCst);
        lease.release().await.unwrap();
    }
}

#[test]
fn leases_of_three_runtimes_exclude_each_other() {
    let urls: Vec<String> = shared_primaries(3).iter().map(|node| node.url()).collect();
    let (key, counter) = (unique("mixed"), Arc::new(AtomicU64::new(0)));
    let threads = [
        {
            let (urls, key, counter) = (urls.clone(), key.clone(), Arc::clone(&counter));
            thread::spawn(move || {
                let runtime = tokio::runtime::Runtime::new().unwrap();
                runtime.block_on(take_turns::<redlock_tokio::Tokio>(urls, key, counter));
            })
        },
        {
            let (urls, key, counter) = (urls.clone(), key.clone(), Arc::clone(&counter));
            thread::spawn(move || {
                async_std::task::block_on(take_turns::<redlock_async_std::AsyncStd>(urls, key, counter));
            })
        },
        {
            let counter = Arc::clone(&counter);
            thread::spawn(move || smol::block_on(take_turns::<redlock_smol::Smol>(urls, key, counter)))
        },
    ];
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(counter.load(Ordering::SeqCst), 3 * TURNS);
}

/// Both held at once in one thread, on two runtimes; each outlives its ttl by renewal and is then given back.
#[test]
fn leases_of_two_runtimes_are_held_side_by_side() {
    let nodes = shared_primaries(3);
    let urls: Vec<String> = nodes.iter().map(|node| node.url()).collect();
    let (one, other) = (unique("side"), unique("side"));
    let ttl = Duration::from_millis(500);
    let tokio = tokio::runtime::Runtime::new().unwrap();
    let first =
        manager::<redlock_tokio::Tokio>(&urls).lock(one.as_str()).ttl(ttl).auto_renew(Renewal::ThirdOfTtl);
    let second = manager::<redlock_async_std::AsyncStd>(&urls)
        .lock(other.as_str())
        .ttl(ttl)
        .auto_renew(Renewal::ThirdOfTtl);
    let first_lease = tokio.block_on(first.acquire()).unwrap();
    let second_lease = async_std::task::block_on(second.acquire()).unwrap();
    thread::sleep(5 * ttl);
    assert!(first_lease.is_valid() && second_lease.is_valid());

    // Each keeps the other's runtime out of its resource.
    let intruder = manager::<redlock_async_std::AsyncStd>(&urls).lock(one.as_str());
    let refused = async_std::task::block_on(intruder.try_acquire()).unwrap_err();
    assert!(matches!(refused, Error::NotAcquired(failure) if failure.is_taken()));
    tokio.block_on(first_lease.release()).unwrap();
    async_std::task::block_on(second_lease.release()).unwrap();
}
