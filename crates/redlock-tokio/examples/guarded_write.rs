//! A fencing token that is checked where it counts: at the protected resource.
//!
//! ```text
//! cargo run -p redlock-tokio --example guarded_write                       # needs no Redis
//! cargo run -p redlock-tokio --example guarded_write redis://HOST:PORT
//! ```
//!
//! A lease ends on a clock, and a process can be stopped between its look at the clock and its write: by a
//! garbage collector, by the scheduler, with its whole virtual machine. It goes on in the belief that it
//! still holds the lease, and no lock service can prevent that. The resource can: it remembers the highest
//! fencing token that it has seen, and refuses lower ones.

use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{self, ExitCode};
use std::time::Duration;

use redlock_tokio::{Config, FencingToken, Manager, MemoryServer, Tokio};
use rusqlite::{Connection, params};

/// Anything that went wrong, fit to be sent between tasks.
type Failure = Box<dyn Error + Send + Sync>;

async fn example() -> Result<(), Failure> {
    let config = Config::builder().ttl(Duration::from_millis(500)).attempts(20).build()?;
    let manager = match env::args().nth(1) {
        Some(url) => Manager::single(url, config)?,
        None => Manager::single(MemoryServer::new(Tokio::default()), config)?,
    };
    // The counter behind the tokens stays in Redis when the lease is released, and has to stay there for as
    // long as the resource remembers its values: keep it where keys are persisted and never evicted.
    let lock = manager.lock("example:{stock}:lock").fencing("example:{stock}:fence");
    let database = Database::create()?;

    // The first holder finds its lease valid, and is paused before it can write.
    let lease = lock.acquire().await?;
    let stale = lease.fencing_token().ok_or("the lock takes no fencing token")?;
    println!("first holder:  token {stale}, lease valid: {}; about to write, paused ...", lease.is_valid());

    // The second one, a task of its own, waits until the first one's key has expired.
    let path = database.path.clone();
    let second = tokio::spawn(async move {
        lock.run(async |lease| {
            let token = lease.fencing_token().ok_or("the lock takes no fencing token")?;
            let stock = Stock::open(&path)?;
            for items in [41, 40] {
                println!(
                    "second holder: token {token}, writes {items}: {}",
                    verdict(stock.write(items, token)?)
                );
            }
            Ok::<_, Failure>(())
        })
        .await
    });
    // The first holder's pause lasts until then. There are three things to go wrong: the task may have
    // panicked, the lease may not have been there or not to the end, and the work itself may have failed.
    second.await???;

    // Here it would be easy to ask the lease. But however late one asks, the pause can come after that.
    let stock = Stock::open(&database.path)?;
    let written = stock.write(99, stale)?;
    println!("first holder:  ... goes on: token {stale}, writes 99: {}", verdict(written));
    if let Err(error) = lease.release().await {
        println!("first holder:  release: {error}");
    }
    manager.close().await;

    let items = stock.read()?;
    println!("in stock: {items}");
    if written || items != 40 { Err("a stale write went through".into()) } else { Ok(()) }
}

const fn verdict(written: bool) -> &'static str {
    if written { "done" } else { "REFUSED, there was a newer holder" }
}

/// The protected resource.
struct Stock {
    connection: Connection,
}

impl Stock {
    fn open(path: &Path) -> Result<Self, rusqlite::Error> {
        Ok(Self { connection: Connection::open(path)? })
    }

    /// Writes, unless somebody with a higher token has written before. The check and the write are one
    /// statement: between two there would be room for a pause again.
    ///
    /// Not `last_fence < ?2`, which would let each holder write only once.
    fn write(&self, items: u32, token: FencingToken) -> Result<bool, Failure> {
        // Always fits: both SQLite's integers and the counter in Redis are signed 64 bits.
        let fence = i64::try_from(token.get())?;
        let update = "UPDATE stock SET items = ?1, last_fence = ?2 WHERE last_fence <= ?2";
        Ok(self.connection.execute(update, params![items, fence])? == 1)
    }

    fn read(&self) -> Result<u32, rusqlite::Error> {
        self.connection.query_row("SELECT items FROM stock", [], |row| row.get(0))
    }
}

/// The file behind it, which goes when the example ends.
struct Database {
    path: PathBuf,
}

impl Database {
    fn create() -> Result<Self, rusqlite::Error> {
        let path = env::temp_dir().join(format!("redlock-guarded-write-{}.sqlite", process::id()));
        let database = Self { path };
        Connection::open(&database.path)?.execute_batch(
            "CREATE TABLE stock (items INTEGER NOT NULL, last_fence INTEGER NOT NULL);
             INSERT INTO stock VALUES (42, 0);",
        )?;
        Ok(database)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.path) {
            eprintln!("{}: {error}", self.path.display());
        }
    }
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
