//! What a node that neither answers nor refuses costs the others' users.

use std::time::Duration;

use redlock_driver::{Config, Lock};

use super::Adapter;
use super::support::{ms, redlock, urls};
use crate::harness::{Stopwatch, own_servers};

/// Prints the ratio; asserts only what holds on the busiest machine.
pub async fn a_frozen_node_slows_nothing_down<R: Adapter>() {
    let Some(nodes) = own_servers(5) else { return };
    let manager = redlock::<R, _>(urls(&nodes), Config::builder().ttl(ms(20_000)).build().unwrap());
    let lock = manager.lock("sick");
    median_cycle(&lock, 20).await;
    let healthy = median_cycle(&lock, 300).await;
    nodes[4].freeze();
    let sick = median_cycle(&lock, 300).await;
    nodes[4].thaw();
    let ratio = sick.as_secs_f64() / healthy.as_secs_f64();
    println!(
        "acquire and release, median: {healthy:?} with five healthy nodes, {sick:?} with one frozen ({ratio:.2} x)"
    );
    assert!(sick < ms(50), "well below the operation timeout of 500 ms: {sick:?}");
}

async fn median_cycle<R: Adapter>(lock: &Lock<R>, cycles: usize) -> Duration {
    let mut times = Vec::with_capacity(cycles);
    for _ in 0..cycles {
        let watch = Stopwatch::start();
        lock.acquire().await.unwrap().release().await.unwrap();
        times.push(watch.elapsed());
    }
    times.sort_unstable();
    times[cycles / 2]
}
