//! A first program: take a lease on a resource, work for as long as it is held, give it back.
//!
//! ```text
//! cargo run -p redlock-tokio --example quickstart [redis://HOST:PORT]
//! ```
//!
//! Start it twice at the same time to see the second one wait for the first.

use std::env;
use std::process::ExitCode;
use std::time::Duration;

use redlock_tokio::{Config, Error, LockLost, Manager, NotAcquiredReason, Renewal};
use tokio::time::sleep;

async fn example(url: &str) -> Result<(), Error> {
    // Nothing is connected yet: a manager opens connections when they are first needed. All its clones
    // share them, so one for the whole program is right.
    let manager = Manager::single(url, Config::default())?;

    // What to lock, and how. The resource is the key in Redis. If this process dies, the key goes by
    // itself after the ttl; while it lives, renewal keeps the key (`None`: every third of the ttl). Each
    // holder gets a fencing token, counted in a second key.
    let lock = manager
        .lock("quickstart:{report}:lock")
        .ttl(Duration::from_secs(2))
        .auto_renew(Renewal::ThirdOfTtl)
        .fencing("quickstart:{report}:fence");

    // `try_acquire` asks once, `acquire` a few times, `acquire_within` for as long as one is ready to wait.
    let lease = match lock.try_acquire().await {
        Err(Error::NotAcquired(failure)) if failure.is_taken() => {
            println!("taken; waiting for it");
            lock.acquire_within(Duration::from_secs(20)).await?
        }
        asked => asked?,
    };
    println!("acquired {}, valid for {:.1?} if never renewed", lease.resource(), lease.valid_for());

    // Hand this number to whatever the lease protects, so that it can refuse a holder with an older one.
    // The example guarded_write shows how.
    if let Some(token) = lease.fencing_token() {
        println!("fencing token {token}");
    }

    // A lease can be lost at any time, as when Redis cannot be reached for too long. Work must stop then,
    // because somebody else may be next. The short way: `run` drops the work where it awaits.
    let pages = lease.run(write_report()).await?;
    println!(
        "{pages} pages written, which took longer than the ttl; still valid for {:.1?}",
        lease.valid_for()
    );

    // The long way, for work that has something to do when the lease is lost: `lost` is a future that can
    // be awaited anywhere, any number of times. `biased` looks at it first, so that work which ends
    // together with the lease does not pass for done in time.
    tokio::select! {
        biased;
        reason = lease.lost() => {
            println!("stopping in the middle: {reason}");
            return Err(LockLost { reason }.into());
        }
        () = proofread(pages) => println!("proofread"),
    }

    // More time in one go, for a step during which nothing can be renewed. This is the ttl from now on.
    lease.extend(Duration::from_secs(10)).await?;
    println!("extended: valid for {:.1?}", lease.valid_for());

    // Dropping the lease gives it back too, in the background. This says how that went.
    lease.release().await?;
    println!("released");

    // Before a program ends: lets what runs in the background finish, and closes the connections.
    manager.close().await;
    Ok(())
}

async fn write_report() -> u32 {
    sleep(Duration::from_secs(3)).await;
    12
}

async fn proofread(pages: u32) {
    sleep(Duration::from_millis(50) * pages).await;
}

#[tokio::main]
async fn main() -> ExitCode {
    let url = env::args().nth(1).unwrap_or_else(|| "redis://127.0.0.1:6379".to_owned());
    let Err(error) = example(&url).await else { return ExitCode::SUCCESS };
    eprintln!("{error}");
    if let Error::NotAcquired(failure) = error
        && failure.reason == NotAcquiredReason::Unreachable
    {
        eprintln!("Is a Redis running at {url}? Another address can be given as the argument.");
    }
    ExitCode::FAILURE
}
