//! A job that only one of several processes runs at each tick.
//!
//! ```text
//! cargo run -p redlock-tokio --example cron -- redis://A:6379 redis://B:6379 redis://C:6379
//! cargo run -p redlock-tokio --example cron -- redis://127.0.0.1:6379
//! ```
//!
//! Start it three times: each tick is run by one of them. With `--late MILLISECONDS` a process believes that
//! it is so much earlier than it is; it does not run a tick again for all that. Ctrl-C ends a process and
//! gives back what it holds.
//!
//! A lease says who may run a tick now, not whether it was run. A process that dies leaves its tick undone.
//! And where a tick that is run twice would do harm, note its number together with the job's result, in one
//! transaction: clocks can be further apart than anybody thought.

use std::env;
use std::error::Error as StdError;
use std::process::{self, ExitCode};
use std::time::{Duration, SystemTime, SystemTimeError, UNIX_EPOCH};

use redlock_tokio::{Config, Error, Lock, Manager, Renewal};
use tokio::signal::ctrl_c;
use tokio::time::sleep;

/// From tick to tick.
const PERIOD: Duration = Duration::from_secs(4);

async fn example() -> Result<(), Box<dyn StdError>> {
    let (late, urls) = arguments()?;
    let config = Config::builder()
        // What a crash costs: nobody can run the job for this long. So it is over before the next tick.
        .ttl(PERIOD / 4)
        // As long as the process lives, its lease is renewed; every third of the ttl, when not told otherwise.
        .auto_renew(Renewal::ThirdOfTtl)
        // But a job that hangs is not to keep it for ever. After this time, which no sound job needs, the job
        // is dropped and the lease ends. Until then ticks are skipped, so that no two jobs ever overlap.
        .max_hold(PERIOD * 3)
        // All processes ask at the same moment. Each of three nodes may grant another one, so that nobody has
        // a majority, and asking once would leave the tick to nobody. On one node there is always a winner.
        .attempts(if urls.len() == 1 { 1 } else { 4 })
        .retry_delay(Duration::from_millis(100))
        .build()?;
    let manager = match urls.as_slice() {
        [url] => Manager::single(url, config)?,
        urls => Manager::redlock(urls, config)?,
    };
    let lock = manager.lock("example:{report}:cron");

    println!("process {} is ready; Ctrl-C ends it", process::id());
    tokio::select! {
        ended = run_ticks(&lock, late) => ended?,
        // The loop is dropped, and with it the lease that it may hold: a dropped lease is given back.
        signal = ctrl_c() => signal?,
    }
    // That happens in the background, where it would end with the process. This waits for it, within bounds.
    manager.close().await;
    println!("process {} has given back everything", process::id());
    Ok(())
}

async fn run_ticks(lock: &Lock, late: Duration) -> Result<(), Box<dyn StdError>> {
    let mut tick = 0;
    loop {
        let now = clock(late)?;
        tick = (now.as_millis() / PERIOD.as_millis() + 1).max(tick + 1);
        let start = PERIOD * u32::try_from(tick)?;
        sleep(start.saturating_sub(now)).await;

        let lease = match lock.acquire().await {
            Ok(lease) => lease,
            Err(Error::NotAcquired(failure)) if failure.is_taken() => {
                println!("tick {tick}: another process runs it");
                continue;
            }
            // Nodes come back: a tick without a majority of them is no reason to end the process.
            Err(Error::NotAcquired(failure)) => {
                eprintln!("tick {tick}: {failure}");
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        let work = async {
            job(tick).await;
            // The lease is kept until the middle of the period, however short the job was. A process whose
            // clock is late asks then, finds it taken, and does not run the tick again. The same goes for one
            // whose clock is early, and has the lease when the others ask. So clocks may be apart by half a
            // period, less the half second for which a process goes on asking.
            let over = start + PERIOD / 2;
            sleep(over.saturating_sub(clock(late)?)).await;
            Ok::<_, SystemTimeError>(())
        };
        match lease.run(work).await {
            Ok(kept) => kept?,
            Err(lost) => eprintln!("tick {tick}: stopped: {lost}"),
        }
        if let Err(error) = lease.release().await {
            eprintln!("tick {tick}: {error}");
        }
    }
}

async fn job(tick: u128) {
    println!("tick {tick}: process {} runs it", process::id());
    sleep(PERIOD / 10).await;
}

/// The time since 1970, as this process sees it.
#[expect(
    clippy::disallowed_methods,
    reason = "processes agree on ticks by the time of day; leases do not use it"
)]
fn clock(late: Duration) -> Result<Duration, SystemTimeError> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH)?.saturating_sub(late))
}

/// How late the clock is to be, and the nodes.
fn arguments() -> Result<(Duration, Vec<String>), Box<dyn StdError>> {
    let (mut late, mut urls) = (Duration::ZERO, Vec::new());
    let mut words = env::args().skip(1);
    while let Some(word) = words.next() {
        if word == "--late" {
            late =
                Duration::from_millis(words.next().ok_or("--late needs a number of milliseconds")?.parse()?);
        } else {
            urls.push(word);
        }
    }
    if urls.is_empty() {
        urls.push("redis://127.0.0.1:6379".to_owned());
    }
    Ok((late, urls))
}

#[tokio::main]
async fn main() -> ExitCode {
    match example().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
