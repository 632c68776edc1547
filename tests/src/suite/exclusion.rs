//! The one thing that a lock is for, while its nodes come and go.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use futures_channel::oneshot;
use redlock_driver::{Config, Lock};

use super::Adapter;
use super::support::{ms, pause, redlock, urls};
use crate::harness::{Server, Stopwatch, may_own_servers};

const TTL: Duration = ms(1_000);
const PATIENCE: Duration = ms(3_000);
const TASKS: usize = 16;

/// Sixteen tasks want the same resource on five nodes, of which one at a time is frozen, or killed and
/// restarted: with its data, or without it after more than a ttl. Ten seconds; sixty with `REDLOCK_LONG`.
pub async fn nobody_shares_a_lease_while_nodes_come_and_go<R: Adapter>() {
    if !may_own_servers() {
        return;
    }
    let nodes: Vec<Server> = (0..5)
        .map(|index| {
            // Three of them remember what they granted, also over a kill; two do not.
            let durable = index < 3;
            Server::builder().appendonly(durable).arg("--appendfsync", "always").start()
        })
        .collect();
    let config = Config::builder().ttl(TTL).retry_delay(ms(30)).operation_timeout(ms(150)).build().unwrap();
    let manager = redlock::<R, _>(urls(&nodes), config);
    let span = if std::env::var_os("REDLOCK_LONG").is_some() { ms(60_000) } else { ms(10_000) };

    let scene = Arc::new(Scene::default());
    let over = Arc::new(AtomicBool::new(false));
    let trouble = {
        let over = Arc::clone(&over);
        thread::spawn(move || make_trouble(&nodes, &over))
    };
    let runtime = R::default();
    let mut ends = Vec::new();
    for number in 1..=TASKS {
        let (sender, ended) = oneshot::channel();
        let contender = contend(manager.lock("exclusion"), Arc::clone(&scene), number as u64, span);
        let task = async move {
            contender.await;
            sender.send(()).unwrap();
        };
        runtime.spawn(task).unwrap();
        ends.push(ended);
    }
    let ended = futures_util::future::join_all(ends).await;
    assert!(ended.iter().all(Result::is_ok), "a contender panicked");
    over.store(true, Ordering::Relaxed);
    let faults = trouble.join().unwrap();

    let done = scene.done.load(Ordering::Relaxed);
    let stats = manager.stats();
    println!("{done} turns, {faults} faults, longest wait for a lease {:?}; {stats:?}", scene.longest_gap());
    assert_eq!(scene.shared.load(Ordering::Relaxed), 0, "two holders at once");
    assert_eq!(scene.counter.load(Ordering::Relaxed), done, "an increment was lost");
    assert!(faults >= 3, "the nodes were left in peace: {faults}");
    assert!(done > span.as_secs() * 5, "leases are granted all the time: {done}");
    assert!(scene.longest_gap() < PATIENCE, "and never long not: {:?}", scene.longest_gap());
}

/// What the tasks share, protected by nothing but the lease.
#[derive(Debug, Default)]
struct Scene {
    /// Read, and written a little later.
    counter: AtomicU64,
    /// How often it was written.
    done: AtomicU64,
    /// Who is inside, 0 for nobody.
    inside: AtomicU64,
    /// How often somebody was inside already.
    shared: AtomicU64,
    /// When the last lease was granted, and the longest time between two.
    granted: Mutex<Option<Stopwatch>>,
    gap: Mutex<Duration>,
}

impl Scene {
    fn grant(&self) {
        let last = self.granted.lock().unwrap().replace(Stopwatch::start());
        if let Some(last) = last {
            let mut gap = self.gap.lock().unwrap();
            *gap = gap.max(last.elapsed());
        }
    }

    fn longest_gap(&self) -> Duration {
        *self.gap.lock().unwrap()
    }
}

/// Leaves when it is dropped, as work is that loses its lease.
struct Inside<'a>(&'a Scene, u64);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        let _ = self.0.inside.compare_exchange(self.1, 0, Ordering::SeqCst, Ordering::SeqCst);
    }
}

async fn contend<R: Adapter>(lock: Lock<R>, scene: Arc<Scene>, number: u64, span: Duration) {
    let whole = Stopwatch::start();
    while whole.elapsed() < span {
        let watch = Stopwatch::start();
        let acquired = lock.acquire_within(PATIENCE).await;
        // Its deadline, one operation, and what a busy machine adds.
        assert!(watch.elapsed() < PATIENCE + ms(150) + ms(500), "{:?}", watch.elapsed());
        let Ok(lease) = acquired else { continue };
        scene.grant();
        let work = async {
            let counter = scene.counter.load(Ordering::SeqCst);
            let before = scene.inside.swap(number, Ordering::SeqCst);
            let _inside = Inside(&scene, number);
            if before != 0 && lease.is_valid() {
                scene.shared.fetch_add(1, Ordering::SeqCst);
            }
            for _ in 0..number % 4 {
                pause::<R>(ms(2)).await;
                if scene.inside.load(Ordering::SeqCst) != number && lease.is_valid() {
                    scene.shared.fetch_add(1, Ordering::SeqCst);
                }
            }
            if lease.is_valid() {
                scene.counter.store(counter + 1, Ordering::SeqCst);
                scene.done.fetch_add(1, Ordering::SeqCst);
            }
        };
        let _ = lease.run(work).await;
        let _ = lease.release().await;
    }
}

/// Harms one node at a time until it is over, and says how often.
fn make_trouble(nodes: &[Server], over: &AtomicBool) -> usize {
    let mut faults = 0;
    while !over.load(Ordering::Relaxed) {
        let node = &nodes[faults % nodes.len()];
        if faults % 2 == 0 {
            node.freeze();
            thread::sleep(ms(400 + 300 * (faults as u64 % 4)));
            node.thaw();
        } else {
            node.kill();
            // A node that may have forgotten stays away for more than a ttl; one that remembers need not.
            let remembers = faults % nodes.len() < 3;
            thread::sleep(if remembers { ms(200) } else { TTL + ms(200) });
            node.restart();
        }
        faults += 1;
        thread::sleep(ms(300));
    }
    faults
}
