//! A node that is frozen under load: what waits for it stays bounded, and when it comes back all is served
//! again and nothing stays behind.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use redlock_driver::MAX_UNANSWERED;
use redlock_tests::harness::{Server, Stopwatch, own_servers};
use redlock_tokio::{Config, Error, Manager};
use tokio::runtime::Handle;

const TTL: Duration = Duration::from_millis(2_000);
const OPERATION: Duration = Duration::from_millis(200);
const CALLERS: usize = 64;

/// What is in use, at its worst.
#[derive(Clone, Copy, Debug, Default)]
struct Use {
    /// In the process, in KiB; nothing where the system does not say.
    memory: usize,
    /// Of the runtime.
    tasks: usize,
    /// Leases held, acquires under way, clean-ups that wait.
    running: usize,
    /// Clients of the healthy nodes together, the one that asks not counted.
    connections: usize,
}

impl Use {
    fn now(manager: &Manager, nodes: &[Server]) -> Self {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let memory = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .map_or(0, |line| line.trim().trim_end_matches(" kB").parse().unwrap());
        Self {
            memory,
            tasks: Handle::current().metrics().num_alive_tasks(),
            running: usize::try_from(manager.stats().running).unwrap(),
            connections: nodes.iter().map(clients).sum(),
        }
    }

    fn most(self, other: Self) -> Self {
        Self {
            memory: self.memory.max(other.memory),
            tasks: self.tasks.max(other.tasks),
            running: self.running.max(other.running),
            connections: self.connections.max(other.connections),
        }
    }
}

/// The clients of a server, the one that asks not counted.
fn clients(node: &Server) -> usize {
    let list: String = redis::cmd("CLIENT").arg("LIST").query(&mut node.connection()).unwrap();
    list.lines().count() - 1
}

/// Two of three nodes answer, and the third is frozen under load, again and again: a few seconds, or ten minutes
/// with `REDLOCK_LONG`.
#[test]
fn a_frozen_node_under_load_costs_a_bounded_amount() {
    let Some(nodes) = own_servers(3) else { return };
    let seconds = Duration::from_secs;
    let spans = if std::env::var_os("REDLOCK_LONG").is_some() {
        // Frozen, and thawed.
        vec![(seconds(150), seconds(30)), (seconds(30), seconds(30)), (seconds(240), seconds(120))]
    } else {
        vec![(seconds(2), seconds(1))]
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(load(nodes, spans));
    assert_eq!(runtime.metrics().num_alive_tasks(), 0, "a task is left");
}

async fn load(nodes: Vec<Server>, spans: Vec<(Duration, Duration)>) {
    let config = Config::builder().ttl(TTL).operation_timeout(OPERATION).attempts(1).build().unwrap();
    let all: Vec<_> = nodes.iter().map(|node| node.url()).collect();
    let manager = Manager::redlock(&all, config.clone()).unwrap();
    // And one for which the frozen node is all there is.
    let alone = Manager::single(&all[2], config).unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let [cycles, missed, faults] = [0; 3].map(|zero| Arc::new(AtomicUsize::new(zero)));
    let mut callers: Vec<_> = (0..CALLERS)
        .map(|number| {
            let lock = manager.lock(format!("bounded-{number}"));
            let [cycles, missed] = [&cycles, &missed].map(Arc::clone);
            let over = Arc::clone(&over);
            tokio::spawn(async move {
                while !over.load(Ordering::Relaxed) {
                    let cycle = async { lock.acquire().await?.release().await };
                    // On a machine that is busy with other things even sound nodes are late now and then.
                    let count = if cycle.await.is_ok() { &cycles } else { &missed };
                    count.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    callers.extend((0..CALLERS).map(|number| {
        let lock = alone.lock(format!("alone-{number}"));
        let (over, faults) = (Arc::clone(&over), Arc::clone(&faults));
        tokio::spawn(async move {
            while !over.load(Ordering::Relaxed) {
                match lock.acquire().await {
                    // A node that was frozen a moment ago may have missed the release as well.
                    Ok(lease) => drop(lease.release().await),
                    Err(Error::NotAcquired(_)) => drop(faults.fetch_add(1, Ordering::Relaxed)),
                    Err(other) => panic!("{other}"),
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
    }));

    let sound = &nodes[..2];
    let calm = watch(&manager, sound, Duration::from_secs(1)).await;
    println!("calm: {calm:?}");
    for (frozen, thawed) in spans {
        let [before, late_before, refused] =
            [&cycles, &missed, &faults].map(|count| count.load(Ordering::Relaxed));
        nodes[2].freeze();
        let worst = watch(&manager, sound, frozen).await;
        nodes[2].thaw();
        println!("frozen for {frozen:?}: {worst:?}");
        assert!(worst.memory < calm.memory + 128 * 1_024, "{worst:?}, {calm:?} before");
        // On one connection in use and four that were replaced.
        assert!(worst.running < 5 * MAX_UNANSWERED, "{worst:?}");
        assert!(worst.connections <= 2 * (1 + 4), "{worst:?}");
        let done = cycles.load(Ordering::Relaxed) - before;
        let late = missed.load(Ordering::Relaxed) - late_before;
        println!(
            "{done} cycles, {late} of them not in time, {} faults",
            faults.load(Ordering::Relaxed) - refused
        );
        assert!(done > 100 && late * 100 < done, "two of three nodes are enough: {late} late");
        assert!(faults.load(Ordering::Relaxed) > refused, "nobody noticed");

        let (served, watched) = (manager.lock("served"), Stopwatch::start());
        while clients_of_all(&nodes) < 3 || alone.lock("served-alone").acquire().await.is_err() {
            assert!(watched.elapsed() < Duration::from_secs(10), "it is not found again");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        served.acquire_within(Duration::from_secs(10)).await.unwrap().release().await.unwrap();
        println!("thawed, served again after {:.1?}", watched.elapsed());
        println!("thawed for {thawed:?}: {:?}", watch(&manager, &nodes, thawed).await);
    }
    over.store(true, Ordering::Relaxed);
    for caller in callers {
        caller.await.unwrap();
    }
    leave_nothing(&nodes, [manager, alone]).await;
}

/// Looks for this long, and returns the worst.
async fn watch(manager: &Manager, nodes: &[Server], span: Duration) -> Use {
    let (watch, mut worst) = (Stopwatch::start(), Use::default());
    while watch.elapsed() < span {
        worst = worst.most(Use::now(manager, nodes));
        tokio::time::sleep((span / 20).min(Duration::from_millis(500))).await;
    }
    worst
}

fn clients_of_all(nodes: &[Server]) -> usize {
    nodes.iter().map(clients).sum()
}

/// Nothing is left when the load is gone: first of the leases, then of the managers.
async fn leave_nothing(nodes: &[Server], managers: [Manager; 2]) {
    let watch = Stopwatch::start();
    let until = async |what: &str, mut holds: Box<dyn FnMut() -> bool + '_>| {
        while !holds() {
            assert!(watch.elapsed() < TTL + Duration::from_secs(5), "{what}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let keys = || nodes.iter().map(|node| node.keys().len()).sum::<usize>();
    until("keys are left", Box::new(|| keys() == 0)).await;
    until("clean-ups are left", Box::new(|| managers.iter().all(|manager| manager.stats().running == 0)))
        .await;
    // One for each node and manager.
    until("connections are left", Box::new(|| clients_of_all(nodes) == 3 + 1)).await;
    println!("without load, nothing left after {:.1?}: {:?}", watch.elapsed(), Use::now(&managers[0], nodes));
    for manager in managers {
        manager.close().await;
    }
    until("connections are left open", Box::new(|| clients_of_all(nodes) == 0)).await;
    until("tasks are left", Box::new(|| Handle::current().metrics().num_alive_tasks() == 0)).await;
    println!("closed, nothing left after {:.1?}", watch.elapsed());
}
