//! Waiting in line within one process, in tokio's paused time on nodes in memory.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use redlock_tokio::{Config, ConfigError, Error, Lease, Manager, MemoryServer, NotAcquiredReason, Tokio};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep, timeout};

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn manager(config: Config) -> Result<(MemoryServer, Manager), ConfigError> {
    let server = MemoryServer::new(Tokio::default());
    let manager = Manager::single(&server, config)?;
    Ok((server, manager))
}

/// Somebody who asks for a minute.
fn wait_in_line(manager: &Manager) -> JoinHandle<Result<Lease, Error>> {
    let lock = manager.lock("r");
    tokio::spawn(async move { lock.acquire_within(ms(60_000)).await })
}

#[tokio::test(start_paused = true)]
async fn all_get_their_turn_in_the_order_of_coming_and_without_a_pause() {
    let nodes: [MemoryServer; 3] = std::array::from_fn(|_| MemoryServer::new(Tokio::default()));
    let manager = Manager::redlock(&nodes, Config::default()).unwrap();
    let served = Arc::new(Mutex::new(Vec::new()));
    let start = Instant::now();
    let mut callers = JoinSet::new();
    for number in 0..50 {
        let (lock, served) = (manager.lock("r"), Arc::clone(&served));
        callers.spawn(async move {
            // Each comes a little after the one before.
            sleep(ms(number)).await;
            let lease = lock.acquire_within(ms(60_000)).await.unwrap();
            served.lock().unwrap().push(number);
            sleep(ms(100)).await;
            lease.release().await.unwrap();
        });
    }
    callers.join_all().await;
    assert_eq!(*served.lock().unwrap(), (0..50).collect::<Vec<_>>());
    assert!(start.elapsed() < ms(5_100), "{:?}", start.elapsed());
    assert_eq!(manager.stats().attempts_failed, 0, "nobody asked out of turn");
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_too_long_gets_the_answer_of_the_nodes() {
    let (_server, manager) =
        manager(Config::builder().attempts(3).retry_delay(ms(200)).build().unwrap()).unwrap();
    let _lease = manager.lock("r").acquire().await.unwrap();
    let start = Instant::now();
    let Err(Error::NotAcquired(failure)) = manager.lock("r").acquire().await else { panic!("it is taken") };
    assert_eq!(failure.reason, NotAcquiredReason::Taken);
    assert!((400..420).contains(&start.elapsed().as_millis()), "two pauses: {:?}", start.elapsed());
    assert_eq!(manager.stats().attempts_failed, 0, "one attempt was made, the last");

    let start = Instant::now();
    let Err(Error::NotAcquired(failure)) = manager.lock("r").acquire_within(ms(1_000)).await else {
        panic!("it is taken")
    };
    assert!(matches!(failure.reason, NotAcquiredReason::WaitedInVain { .. }) && failure.is_taken());
    assert!((700..=1_000).contains(&start.elapsed().as_millis()), "{:?}", start.elapsed());

    let start = Instant::now();
    assert!(manager.lock("r").try_acquire().await.is_err());
    assert!(start.elapsed() < ms(5), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn whoever_gives_up_holds_up_nobody() {
    let (_server, manager) = manager(Config::default()).unwrap();
    let lease = manager.lock("r").acquire().await.unwrap();
    let waits = wait_in_line(&manager);
    sleep(ms(1)).await;
    let last = wait_in_line(&manager);
    sleep(ms(1)).await;
    waits.abort();
    sleep(ms(1)).await;
    let start = Instant::now();
    drop(lease);
    last.await.unwrap().unwrap().release().await.unwrap();
    assert!(start.elapsed() < ms(5), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn whoever_has_all_the_time_in_the_world_waits() {
    let (_server, manager) = manager(Config::default()).unwrap();
    let lock = manager.lock("r").auto_renew(ms(10_000));
    let lease = lock.acquire().await.unwrap();
    let waits = tokio::spawn({
        let lock = lock.clone();
        async move { lock.acquire_within(Duration::MAX).await }
    });
    sleep(ms(86_400_000)).await;
    assert!(!waits.is_finished());
    lease.release().await.unwrap();
    waits.await.unwrap().unwrap().release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_lost_is_no_obstacle() {
    let (server, manager) = manager(Config::builder().ttl(ms(1_000)).build().unwrap()).unwrap();
    let lease = manager.lock("r").acquire().await.unwrap();
    let start = Instant::now();
    let next = manager.lock("r").acquire_within(ms(10_000)).await.unwrap();
    assert!(start.elapsed() >= ms(988) && start.elapsed() < ms(1_600), "{:?}", start.elapsed());
    assert!(!lease.is_valid() && next.is_valid());
    assert!(server.get("r").is_some());
}

#[tokio::test(start_paused = true)]
async fn closing_ends_the_wait() {
    let (_server, manager) = manager(Config::default()).unwrap();
    let _lease = manager.lock("r").acquire().await.unwrap();
    let waits = wait_in_line(&manager);
    sleep(ms(1)).await;
    manager.close().await;
    let ended = timeout(ms(10), waits).await.expect("at once").unwrap();
    assert!(matches!(ended, Err(Error::Closed)), "{ended:?}");
}

#[tokio::test(start_paused = true)]
async fn pauses_for_others_become_rare_if_nobody_comes() {
    let (_server, manager) = manager(Config::default()).unwrap();
    let start = Instant::now();
    for _ in 0..100 {
        let lease = manager.lock("r").acquire().await.unwrap();
        sleep(ms(20)).await;
        lease.release().await.unwrap();
    }
    let paused = start.elapsed().saturating_sub(ms(2_000));
    assert!(paused < ms(20), "{paused:?}");
}
