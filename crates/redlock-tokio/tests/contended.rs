//! Contended leases on five nodes, of which a random minority is in trouble at any time: never two holders,
//! and no key that outlives its ttl.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod contended {
    pub(crate) mod trouble;
    pub(crate) mod witness;
}

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use contended::trouble::{Trouble, World};
use contended::witness::Witness;
use redlock_tests::harness::{Stopwatch, may_own_servers, wait_until};
use redlock_tokio::{Config, Error, Manager};

const TTL: Duration = Duration::from_millis(2_000);
const OPERATION: Duration = Duration::from_millis(100);
const PATIENCE: Duration = Duration::from_secs(10);
const RESOURCES: usize = 24;
const CONTENDERS: usize = 3;
const SEED: u64 = 5;

/// Three thousand cycles; a hundred thousand with `REDLOCK_LONG`.
#[test]
fn contended_cycles_through_random_faults_of_a_minority() {
    if !may_own_servers() {
        return;
    }
    let cycles = if std::env::var_os("REDLOCK_LONG").is_some() { 100_000 } else { 3_000 };
    let world = Arc::new(World::start(TTL));
    let over = Arc::new(AtomicBool::new(false));
    let troubles = Trouble::start(&world, SEED, &over);
    let witness = Arc::new(Witness::start(RESOURCES));

    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (manager, taken, tried) = runtime.block_on(contend(&world, &witness, cycles));
    over.store(true, Ordering::Relaxed);
    let faults: Vec<_> = troubles.into_iter().map(|trouble| trouble.join().unwrap()).collect();

    // Nothing is in trouble any more. What a lease may have left is gone with its ttl.
    let keys = || world.nodes().iter().map(|node| node.keys().len()).sum::<usize>();
    let left = keys();
    let gone = wait_until("no key is left", TTL + Duration::from_secs(1), || keys() == 0);
    let idle = wait_until("nothing runs", TTL + Duration::from_secs(2), || manager.stats().running == 0);
    let stats = manager.stats();
    println!(
        "{} cycles in {taken:.1?} ({:.0} a second), {tried} acquires in vain; faults {faults:?}; {witness:?}; \
         {left} keys left at the end, none after {gone:.1?}, nothing ran after {idle:.1?}; {stats:?}",
        witness.done(),
        witness.done() as f64 / taken.as_secs_f64(),
    );
    witness.verify();
    assert!(witness.done() >= cycles);
    assert!(faults.iter().flatten().all(|(_, times)| *times > 0 || cycles < 100_000), "{faults:?}");
    runtime.block_on(manager.close());
}

async fn contend(world: &Arc<World>, witness: &Arc<Witness>, cycles: usize) -> (Manager, Duration, usize) {
    let config = Config::builder()
        .ttl(TTL)
        .operation_timeout(OPERATION)
        .retry_delay(Duration::from_millis(4))
        .build()
        .unwrap();
    let manager = Manager::redlock(world.urls(), config).unwrap();
    let tried = Arc::new(AtomicUsize::new(0));
    let watch = Stopwatch::start();
    let contenders: Vec<_> = (0..RESOURCES * CONTENDERS)
        .map(|number| {
            let resource = number % RESOURCES;
            let lock = manager.lock(format!("contended-{resource}"));
            let (witness, tried) = (Arc::clone(witness), Arc::clone(&tried));
            tokio::spawn(async move {
                let mut connection = witness.connect().await;
                while witness.done() < cycles {
                    let asked = Stopwatch::start();
                    let acquired = lock.acquire_within(PATIENCE).await;
                    // Its deadline, one operation, and what a busy machine adds.
                    let limit = PATIENCE + OPERATION + Duration::from_secs(2);
                    assert!(asked.elapsed() < limit, "{:?}", asked.elapsed());
                    match acquired {
                        Ok(lease) => {
                            witness.hold(&mut connection, resource, &lease).await;
                            // Which of the nodes know of it is not what is asked here.
                            let _ = lease.release().await;
                        }
                        Err(Error::NotAcquired(_)) => {
                            tried.fetch_add(1, Ordering::Relaxed);
                        }
                        Err(other) => panic!("{other}"),
                    }
                }
            })
        })
        .collect();
    for contender in contenders {
        contender.await.unwrap();
    }
    let taken = watch.elapsed();
    (manager, taken, tried.load(Ordering::Relaxed))
}

/// For the trouble makers, which are threads.
fn sleep(millis: usize) {
    thread::sleep(Duration::from_millis(millis as u64));
}
