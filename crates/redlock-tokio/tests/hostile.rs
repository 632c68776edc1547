//! A server that answers nonsense, ten thousand times: nothing panics, and nothing is held that it did not
//! grant.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod hostile {
    pub(crate) mod mutate;
    pub(crate) mod sense;
    pub(crate) mod server;
}

use std::collections::BTreeMap;
use std::panic;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hostile::server::{Hostile, said};
use redlock_tests::harness::Stopwatch;
use redlock_tokio::{Config, Error, Manager};

const ANSWERS: usize = 10_000;
const SERVERS: usize = 8;
const SEED: u64 = 14;

/// What came of it, counted.
type Tally = BTreeMap<&'static str, usize>;

#[test]
fn ten_thousand_malformed_answers() {
    println!("answers are made with seeds from {SEED}");
    // A panic in a task would go unnoticed otherwise.
    let panics = Arc::new(AtomicUsize::new(0));
    let (counted, usual) = (Arc::clone(&panics), panic::take_hook());
    panic::set_hook(Box::new(move |info| {
        counted.fetch_add(1, Ordering::Relaxed);
        usual(info);
    }));
    let watch = Stopwatch::start();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (answers, tally) = runtime.block_on(async {
        let asking: Vec<_> = (0..SERVERS as u64).map(|number| tokio::spawn(ask(SEED + number))).collect();
        let (mut answers, mut tally) = (0, Tally::new());
        for asked in asking {
            let (given, came_of_it) = asked.await.unwrap();
            answers += given;
            came_of_it.into_iter().for_each(|(what, times)| *tally.entry(what).or_default() += times);
        }
        (answers, tally)
    });
    println!("{answers} answers in {:.1?}: {tally:?}", watch.elapsed());
    assert_eq!(panics.load(Ordering::Relaxed), 0);
    assert!(answers >= ANSWERS);
    // A test in which nothing is ever granted shows nothing.
    for what in [
        "held",
        "fenced",
        "extended by a command",
        "extended by a script",
        "not acquired",
        "not extended",
        "released",
    ] {
        assert!(tally.get(what).is_some_and(|&times| times > 20), "{what}: {tally:?}");
    }
}

/// Asks a server of its own until that has given its share of answers.
async fn ask(seed: u64) -> (usize, Tally) {
    let compares = seed.is_multiple_of(2);
    let server = Hostile::start(seed, compares);
    let config = Config::builder()
        .ttl(Duration::from_secs(10))
        .operation_timeout(Duration::from_millis(20))
        .attempts(1)
        .build()
        .unwrap();
    let manager = Manager::single(server.url(), config).unwrap();
    let mut tally = Tally::new();
    let mut count = |what| *tally.entry(what).or_default() += 1;
    for round in 0.. {
        if server.answers() >= ANSWERS / SERVERS {
            break;
        }
        // Node known to be down: nothing is sent, so nothing is learnt.
        let lock = manager.lock("hostile");
        let lock = if round % 2 == 0 { lock } else { lock.fencing("fence") };
        let lease = match lock.acquire().await {
            Ok(lease) => lease,
            Err(Error::NotAcquired(_)) => {
                count("not acquired");
                tokio::time::sleep(Duration::from_millis(1)).await;
                continue;
            }
            Err(other) => panic!("{other}"),
        };
        let token = lease.token().to_hex().as_str().to_owned();
        let grant = server.grant_of(&token).expect("the server was asked for it");
        if let Some(fence) = lease.fencing_token() {
            assert_eq!(grant.fenced(), Some(fence.get()), "held by {}", said(&grant.bytes));
            count("fenced");
        } else {
            assert!(grant.is_ok(), "held by {}", said(&grant.bytes));
            count("held");
        }
        let before = lease.valid_for();
        match lease.extend(Duration::from_secs(60)).await {
            Ok(()) => {
                let yes = server.extension_of(&token).expect("the server was asked for it");
                let is_yes = if compares { yes.is_ok() } else { yes.is_one() };
                assert!(is_yes, "extended by {}", said(&yes.bytes));
                count(if compares { "extended by a command" } else { "extended by a script" });
            }
            Err(_) => {
                assert!(lease.valid_for() <= before, "{:?} after {before:?}", lease.valid_for());
                count("not extended");
            }
        }
        match lease.release().await {
            Ok(()) => count("released"),
            Err(Error::NotReleased(_)) => count("not released"),
            Err(Error::LockLost(_)) => count("lost"),
            Err(other) => panic!("{other}"),
        }
    }
    manager.close().await;
    (server.answers(), tally)
}
