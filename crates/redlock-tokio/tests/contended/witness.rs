//! Who sees that two hold one lease: this process, and a server that no lease knows.

use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redlock_tests::harness::{Server, Stopwatch};
use redlock_tokio::Lease;

/// For each resource: its holder, as this process sees it, and on a server of its own a counter of those who
/// are inside and one that is read, increased and written back under the protection of nothing but the lease.
pub(crate) struct Witness {
    server: Server,
    inside: Vec<Mutex<Option<Holder>>>,
    done: AtomicUsize,
    /// Another holder was inside, and its lease valid.
    shared: AtomicUsize,
    /// The server saw somebody else inside.
    seen_inside: AtomicUsize,
    /// Somebody was still inside when the lease was over, or too near to its end: then the server's witness
    /// may see two, and it is the holder's fault.
    overran: AtomicUsize,
}

/// Somebody inside.
#[derive(Clone, Copy)]
struct Holder {
    since: Stopwatch,
    valid_for: Duration,
}

impl Witness {
    pub(crate) fn start(resources: usize) -> Self {
        Self {
            server: Server::start(),
            inside: (0..resources).map(|_| Mutex::new(None)).collect(),
            done: AtomicUsize::new(0),
            shared: AtomicUsize::new(0),
            seen_inside: AtomicUsize::new(0),
            overran: AtomicUsize::new(0),
        }
    }

    pub(crate) async fn connect(&self) -> MultiplexedConnection {
        let client = redis::Client::open(self.server.url()).unwrap();
        client.get_multiplexed_async_connection().await.unwrap()
    }

    pub(crate) fn done(&self) -> usize {
        self.done.load(Ordering::Relaxed)
    }

    /// Works under a lease for a moment.
    pub(crate) async fn hold(&self, server: &mut MultiplexedConnection, resource: usize, lease: &Lease) {
        let (inside, counter) = (format!("inside-{resource}"), format!("counter-{resource}"));
        let count = |what: &AtomicUsize| what.fetch_add(1, Ordering::Relaxed);
        // Taken before it is looked whether it is valid: the shorter reading.
        let holder = Holder { since: Stopwatch::start(), valid_for: lease.valid_for() };
        let before = self.inside[resource].lock().unwrap().replace(holder);
        if before.is_some_and(|other| other.since.elapsed() < other.valid_for) && lease.is_valid() {
            count(&self.shared);
        }
        let (there, number): (usize, Option<usize>) = redis::pipe()
            .cmd("INCR")
            .arg(&inside)
            .cmd("GET")
            .arg(&counter)
            .query_async(server)
            .await
            .unwrap();
        if there != 1 && lease.is_valid() {
            count(&self.seen_inside);
        }
        tokio::task::yield_now().await;
        // The write has to arrive while the lease is valid, so it is not begun shortly before its end.
        let in_time = lease.valid_for() > Duration::from_millis(500);
        let mut leave = redis::pipe();
        if in_time {
            leave.cmd("SET").arg(&counter).arg(number.unwrap_or(0) + 1).ignore();
        }
        leave.cmd("DECR").arg(&inside).ignore();
        leave.exec_async(server).await.unwrap();
        if !lease.is_valid() || !in_time {
            count(&self.overran);
        }
        let mut holder = self.inside[resource].lock().unwrap();
        if lease.is_valid() && holder.is_none() {
            // Somebody else has been here, and gone.
            count(&self.shared);
        }
        *holder = None;
        drop(holder);
        if in_time {
            count(&self.done);
        }
    }

    /// Nobody was ever there together with somebody else.
    pub(crate) fn verify(&self) {
        assert_eq!(self.shared.load(Ordering::Relaxed), 0, "two holders at once");
        let counted: usize = (0..self.inside.len())
            .filter_map(|resource| self.server.get(&format!("counter-{resource}")))
            .map(|counter| counter.parse::<usize>().unwrap())
            .sum();
        let overran = self.overran.load(Ordering::Relaxed);
        if overran == 0 {
            assert_eq!(self.seen_inside.load(Ordering::Relaxed), 0, "the server saw two holders at once");
            assert_eq!(counted, self.done(), "an increment was lost");
        }
        assert!(overran * 1_000 < self.done(), "{overran} holders were too slow to tell anything");
    }
}

impl fmt::Debug for Witness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Witness")
            .field("shared", &self.shared)
            .field("seen_inside", &self.seen_inside)
            .field("overran", &self.overran)
            .finish_non_exhaustive()
    }
}
