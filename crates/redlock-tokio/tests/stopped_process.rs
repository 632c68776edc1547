//! The client itself is stopped for longer than its lease, and goes on: it learns of the loss at once, and what
//! it writes late is refused where fencing tokens are checked.
//!
//! The client is this test program, started once more for its ignored test.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use std::{env, fs, process, thread};

use redlock_tests::harness::{Stopwatch, report, shared_primaries, unique, wait_until};
use redlock_tokio::{Config, FencingToken, Manager, Renewal};
use rusqlite::{Connection, params};

const TTL: Duration = Duration::from_millis(700);
const URL: &str = "REDLOCK_STOPPED_URL";
const KEY: &str = "REDLOCK_STOPPED_KEY";
const DATABASE: &str = "REDLOCK_STOPPED_DATABASE";

#[test]
fn a_stopped_process_learns_of_its_loss_and_its_late_write_is_refused() {
    let node = shared_primaries(1).remove(0);
    let key = unique("stopped");
    let database = Database::create();
    let mut client = Client::start(&node.url(), &key, &database.path);
    let first: u64 = client.expect("held ").parse().unwrap();

    client.signal("STOP");
    wait_until("its key has expired", TTL * 3, || node.get(&key).is_none());
    let second = runtime().block_on(async {
        let manager = Manager::single(node.url(), config()).unwrap();
        let lease = manager.lock(&*key).fencing(format!("{key}-fence")).acquire().await.unwrap();
        let token = lease.fencing_token().unwrap();
        assert!(database.write("second", token));
        lease.release().await.unwrap();
        token
    });
    assert!(second.get() > first);

    let watch = Stopwatch::start();
    client.signal("CONT");
    let reason = client.expect("lost ");
    let took = watch.elapsed();
    assert_eq!(reason, "its validity ran out");
    assert!(took < Duration::from_millis(300), "{took:?}");
    assert_eq!(client.expect("wrote "), "false", "the stale write went through");
    assert_eq!(database.written_by(), "second");
    assert_eq!(client.expect("released "), "lost");
    assert!(client.child.wait().unwrap().success());
    assert_eq!(node.get(&key), None);
    node.del(&format!("{key}-fence"));
    report(
        "client stopped beyond its ttl (SIGSTOP), and continued",
        "lost: its validity ran out; its late write is refused",
        took,
        "no key",
    );
}

/// The client. It prints what happens to it, a line each.
#[test]
#[ignore = "run by the other test, as a process of its own"]
fn the_client() {
    let [url, key, path] = [URL, KEY, DATABASE].map(|name| env::var(name).expect("run by the other test"));
    let database = Database { path: path.into(), owned: false };
    runtime().block_on(async {
        let manager = Manager::single(url, config()).unwrap();
        let lock = manager.lock(&*key).fencing(format!("{key}-fence")).auto_renew(Renewal::ThirdOfTtl);
        let lease = lock.acquire().await.unwrap();
        let token = lease.fencing_token().unwrap();
        assert!(database.write("first", token));
        // Lines of their own, behind what the test runner has begun to write.
        println!("\nheld {token}");
        let reason = lease.lost().await;
        assert!(!lease.is_valid());
        println!("\nlost {reason}");
        println!("wrote {}", database.write("first, late", token));
        println!("released {}", if lease.release().await.is_err() { "lost" } else { "held" });
    });
}

fn config() -> Config {
    Config::builder().ttl(TTL).operation_timeout(Duration::from_millis(200)).build().unwrap()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Runtime::new().unwrap()
}

/// The other process.
struct Client {
    child: Child,
    lines: Receiver<String>,
}

impl Client {
    fn start(url: &str, key: &str, database: &PathBuf) -> Self {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["the_client", "--exact", "--ignored", "--nocapture"])
            .envs([(URL, url), (KEY, key)])
            .env(DATABASE, database)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                // The test may have ended.
                let _ = sender.send(line);
            }
        });
        Self { child, lines }
    }

    /// The rest of the next line that begins so.
    fn expect(&self, start: &str) -> String {
        loop {
            let line = self.lines.recv_timeout(Duration::from_secs(10));
            let line = line.unwrap_or_else(|_| panic!("the client did not say `{start}`"));
            if let Some(rest) = line.strip_prefix(start) {
                return rest.to_owned();
            }
        }
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status();
        assert!(sent.unwrap().success());
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // It has ended, unless the test has failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The protected resource: a row that remembers the highest fencing token.
struct Database {
    path: PathBuf,
    owned: bool,
}

impl Database {
    fn create() -> Self {
        let path = env::temp_dir().join(format!("redlock-stopped-{}.sqlite", process::id()));
        let database = Self { path, owned: true };
        database
            .open()
            .execute_batch(
                "CREATE TABLE work (by TEXT NOT NULL, fence INTEGER NOT NULL);
                 INSERT INTO work VALUES ('nobody', 0);",
            )
            .unwrap();
        database
    }

    fn open(&self) -> Connection {
        Connection::open(&self.path).unwrap()
    }

    /// Whether it was let through.
    fn write(&self, by: &str, token: FencingToken) -> bool {
        let update = "UPDATE work SET by = ?1, fence = ?2 WHERE fence <= ?2";
        self.open().execute(update, params![by, i64::try_from(token.get()).unwrap()]).unwrap() == 1
    }

    fn written_by(&self) -> String {
        self.open().query_row("SELECT by FROM work", [], |row| row.get(0)).unwrap()
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if self.owned {
            // Nobody is left to tell.
            let _ = fs::remove_file(&self.path);
        }
    }
}
