//! Waiting for what another manager has, in tokio's paused time on nodes in memory.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use redlock_tokio::{Config, ConfigBuilder, Manager, MemoryServer, Tokio};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn servers<const N: usize>() -> [MemoryServer; N] {
    std::array::from_fn(|_| MemoryServer::new(Tokio::default()))
}

fn manager(nodes: &[MemoryServer], config: ConfigBuilder) -> Manager {
    let config = config.build().unwrap();
    match nodes {
        [node] => Manager::single(node, config).unwrap(),
        nodes => Manager::redlock(nodes, config).unwrap(),
    }
}

/// With pauses of an hour.
fn patient() -> ConfigBuilder {
    Config::builder().ttl(ms(30_000)).retry_delay(ms(3_600_000))
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_is_woken_by_release_and_by_expiry() {
    let (one, five) = (servers::<1>(), servers::<5>());
    for nodes in [&one[..], &five] {
        let (holder, waiter) = (manager(nodes, patient()), manager(nodes, patient()));
        let lease = holder.lock("r").acquire().await.unwrap();
        let waits = tokio::spawn({
            let lock = waiter.lock("r");
            async move { lock.acquire_within(ms(86_400_000)).await }
        });
        sleep(ms(10_000)).await;
        assert!(!waits.is_finished());
        let start = Instant::now();
        lease.release().await.unwrap();
        let lease = waits.await.unwrap().unwrap();
        assert!(start.elapsed() < ms(5), "{:?}", start.elapsed());

        // As a process that has died leaves it.
        std::mem::forget(lease);
        let start = Instant::now();
        holder.lock("r").acquire_within(ms(86_400_000)).await.unwrap().release().await.unwrap();
        assert!((29_600..30_100).contains(&start.elapsed().as_millis()), "{:?}", start.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_does_not_want_to_be_woken_asks_after_the_pause() {
    let nodes = servers::<1>();
    let waiter = manager(&nodes, Config::builder().retry_delay(ms(1_000)).wake_on_release(false));
    nodes[0].set("r", "somebody else", None);
    let waits = tokio::spawn(async move { waiter.lock("r").acquire_within(ms(60_000)).await });
    sleep(ms(1)).await;
    nodes[0].remove("r");
    let start = Instant::now();
    waits.await.unwrap().unwrap().release().await.unwrap();
    assert!((990..1_600).contains(&start.elapsed().as_millis()), "{:?}", start.elapsed());
}

/// Those who have it for a millisecond each and ask again at once.
async fn contend(managers: Vec<Manager>, tasks: usize, span: Duration) -> Vec<u32> {
    let end = Instant::now() + span;
    let mut contenders = JoinSet::new();
    let mut wins = Vec::new();
    for manager in managers {
        let won = Arc::new(AtomicU32::new(0));
        wins.push(Arc::clone(&won));
        for _ in 0..tasks {
            let (lock, won) = (manager.lock("r"), Arc::clone(&won));
            contenders.spawn(async move {
                while Instant::now() < end {
                    let lease = lock.acquire_within(ms(60_000)).await.unwrap();
                    won.fetch_add(1, Ordering::Relaxed);
                    sleep(ms(1)).await;
                    lease.release().await.unwrap();
                }
            });
        }
    }
    contenders.join_all().await;
    wins.iter().map(|wins| wins.load(Ordering::Relaxed)).collect()
}

fn least_of_most(wins: &[u32]) -> f64 {
    f64::from(*wins.iter().min().unwrap()) / f64::from(*wins.iter().max().unwrap())
}

#[tokio::test(start_paused = true)]
async fn managers_take_turns() {
    for (managers, tasks) in [(2, 1), (8, 1), (3, 20)] {
        let nodes = servers::<1>();
        let managers = (0..managers).map(|_| manager(&nodes, Config::builder())).collect();
        let wins = contend(managers, tasks, ms(20_000)).await;
        // Tokio's timer rounds up, so that a millisecond is two.
        assert!(wins.iter().sum::<u32>() > 5_000 && least_of_most(&wins) > 0.7, "{tasks} each: {wins:?}");
    }
}

/// Somebody has to get in between two leases of another before that one knows. On a network there is a gap.
#[tokio::test(start_paused = true)]
async fn managers_that_cannot_see_each_other_let_each_other_in() {
    let nodes = servers::<1>();
    nodes[0].set_request_delay(ms(1));
    let config = || Config::builder().retry_delay(ms(100)).wake_on_release(false);
    let wins = contend((0..4).map(|_| manager(&nodes, config())).collect(), 1, ms(60_000)).await;
    assert!(least_of_most(&wins) > 0.3, "{wins:?}");
}

#[tokio::test(start_paused = true)]
async fn whoever_is_alone_loses_next_to_nothing_by_looking_for_others() {
    let nodes = servers::<1>();
    let alone = manager(&nodes, Config::builder());
    let begun = Instant::now();
    let [wins] = contend(vec![alone], 1, ms(60_000)).await[..] else { panic!("one contender") };
    // What the same takes without.
    let each = begun.elapsed() / wins;
    let lease = manager(&nodes, Config::builder()).lock("other").acquire().await.unwrap();
    let start = Instant::now();
    sleep(ms(1)).await;
    lease.release().await.unwrap();
    assert!(each < start.elapsed() + start.elapsed() / 50, "{each:?} instead of {:?}", start.elapsed());
}
