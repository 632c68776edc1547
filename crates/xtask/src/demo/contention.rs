//! Many want one resource at the same time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use redlock_tokio::Error;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::stage::{Stage, check, human};
use super::{Demo, Failure, ms};

const WORKERS: u32 = 6;
const EACH: u32 = 5;
const ADDITIONS: u32 = WORKERS * EACH;

pub(super) async fn show(demo: &Demo) -> Result<(), Failure> {
    let stage = Stage::open(
        "1. Contention: six workers, one counter",
        &[
            "Each adds one to a counter, five times: it reads, waits for 2 ms, and writes back what it read",
            "plus one. Nothing protects the counter, so whoever comes in between is overwritten.",
        ],
    );

    let bare = Arc::new(Counter::default());
    let mut workers = JoinSet::new();
    for _ in 0..WORKERS {
        let counter = Arc::clone(&bare);
        workers.spawn(async move {
            for _ in 0..EACH {
                counter.add_one().await;
            }
        });
    }
    workers.join_all().await;
    stage.now("no lease", bare.report());

    let counter = Arc::new(Counter::default());
    let began = stage.elapsed();
    let before = demo.manager.stats();
    // Each request for a lease is a contender of its own to the nodes, wherever it comes from.
    let lock = demo.lock("counter").configure(|settings| settings.attempts(1_000));
    let mut workers = JoinSet::new();
    for _ in 0..WORKERS {
        let (lock, counter) = (lock.clone(), Arc::clone(&counter));
        workers.spawn(async move {
            for _ in 0..EACH {
                lock.run(async |_| counter.add_one().await).await?;
            }
            Ok::<_, Error>(())
        });
    }
    while let Some(done) = workers.join_next().await {
        done??;
    }
    let taken = stage.elapsed() - began;
    let after = demo.manager.stats();
    let (won, failed) = (after.acquired - before.acquired, after.attempts_failed - before.attempts_failed);
    stage.now("leases", counter.report());
    let each = human(taken / ADDITIONS);
    stage.more(format_args!("{won} leases won; asked in vain {failed} times, and again a little later"));
    stage.more(format_args!("{each} for each turn, the work included"));

    let load = |number: &AtomicU32| number.load(Ordering::SeqCst);
    check(
        load(&bare.value) < ADDITIONS && load(&counter.value) == ADDITIONS && load(&counter.most_inside) == 1,
        "without a lease additions get lost; with one, no two workers were ever inside at once",
    )
}

#[derive(Default)]
struct Counter {
    value: AtomicU32,
    inside: AtomicU32,
    most_inside: AtomicU32,
}

impl Counter {
    async fn add_one(&self) {
        let inside = self.inside.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_inside.fetch_max(inside, Ordering::SeqCst);
        let read = self.value.load(Ordering::SeqCst);
        sleep(ms(2)).await;
        self.value.store(read + 1, Ordering::SeqCst);
        self.inside.fetch_sub(1, Ordering::SeqCst);
    }

    fn report(&self) -> String {
        let (value, most) = (self.value.load(Ordering::SeqCst), self.most_inside.load(Ordering::SeqCst));
        format!("{ADDITIONS} additions, the counter says {value}; workers inside at once: up to {most}")
    }
}
