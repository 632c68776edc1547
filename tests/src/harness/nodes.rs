//! Sets of nodes, as many as a test asks for, and who may harm them.

use std::env;
use std::fs::OpenOptions;
use std::hash::{BuildHasher, RandomState};
use std::io::Write;
use std::panic::{Location, resume_unwind};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;

use super::primary::Primary;
use super::server::Server;

/// `count` servers that belong to the caller, started at the same time.
///
/// A test wants [`own_servers`] instead, which respects `REDLOCK_REDIS_ADDRS`.
#[track_caller]
#[allow(clippy::needless_collect, reason = "all of them are started before the first one is waited for")]
pub fn servers(count: usize) -> Vec<Server> {
    thread::scope(|scope| {
        let started: Vec<_> = (0..count).map(|_| scope.spawn(Server::start)).collect();
        started
            .into_iter()
            .map(|server| server.join().unwrap_or_else(|reason| resume_unwind(reason)))
            .collect()
    })
}

/// `count` servers for the calling test to harm as it likes, or `None` when it must not run.
///
/// ```no_run
/// # use redlock_tests::harness::own_servers;
/// # fn some_test() {
/// let Some(nodes) = own_servers(3) else { return };
/// nodes[0].freeze();
/// # }
/// ```
#[track_caller]
pub fn own_servers(count: usize) -> Option<Vec<Server>> {
    may_own_servers().then(|| servers(count))
}

/// Whether the calling test may start servers of its own. It may not when the environment names the servers
/// to use, in `REDLOCK_REDIS_ADDRS`; then the test's name is printed, and appended to the file that
/// `REDLOCK_SKIPPED_FILE` names, so that nobody takes it for passed.
///
/// ```no_run
/// # use redlock_tests::harness::{Server, may_own_servers};
/// # fn some_test() {
/// if !may_own_servers() {
///     return;
/// }
/// let node = Server::builder().appendonly(true).start();
/// # }
/// ```
#[track_caller]
pub fn may_own_servers() -> bool {
    if external().is_empty() {
        return true;
    }
    let name = test_name(thread::current().name(), Location::caller());
    eprintln!("not run with REDLOCK_REDIS_ADDRS: {name}");
    if let Some(path) = env::var_os("REDLOCK_SKIPPED_FILE") {
        // One write, so that lines of tests that run at the same time do not mix.
        let line = format!("{name}\n");
        let written = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .and_then(|mut file| file.write_all(line.as_bytes()));
        written.unwrap_or_else(|error| panic!("REDLOCK_SKIPPED_FILE {}: {error}", path.display()));
    }
    false
}

/// `count` nodes that the calling test shares with others: the first of those that `REDLOCK_REDIS_ADDRS`
/// names, if it names so many, and otherwise servers that live as long as the test process.
///
/// Keys need names from [`unique`]. Nothing may be done to such a node but to use its own keys.
#[track_caller]
pub fn shared_primaries(count: usize) -> Vec<Primary> {
    static STARTED: Mutex<Vec<Server>> = Mutex::new(Vec::new());

    if let Some(named) = external().get(..count) {
        return named.iter().map(|address| Primary::new(address.clone(), None)).collect();
    }
    // Poisoned means that some server did not start; those that did are still good.
    let mut started = STARTED.lock().unwrap_or_else(PoisonError::into_inner);
    let missing = count.saturating_sub(started.len());
    started.extend(servers(missing));
    started[..count].iter().map(|server| Primary::clone(server)).collect()
}

/// `name` with a suffix that no other call gets, in this process or in any other that uses the same servers,
/// now or later.
pub fn unique(name: &str) -> String {
    // Process ids alone come round again, in containers soon, and keys of earlier runs may still be there.
    static RUN: OnceLock<u32> = OnceLock::new();
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let run = RUN.get_or_init(|| RandomState::new().hash_one(0) as u32);
    format!("{name}-{}-{run:08x}-{}", process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// The addresses that the environment names.
fn external() -> &'static [String] {
    static NAMED: OnceLock<Vec<String>> = OnceLock::new();
    NAMED.get_or_init(|| addresses(&env::var("REDLOCK_REDIS_ADDRS").unwrap_or_default()))
}

/// Reads `host:port,host:port`.
fn addresses(list: &str) -> Vec<String> {
    list.split(',')
        .map(str::trim)
        .filter(|address| !address.is_empty())
        .inspect(|address| {
            let port = address.rsplit_once(':').map(|(_, port)| port.parse::<u16>());
            assert!(matches!(port, Some(Ok(_))), "REDLOCK_REDIS_ADDRS: not host:port: {address:?}");
        })
        .map(str::to_owned)
        .collect()
}

/// The test runner names a thread after the test that it runs, except when all run on the main thread.
fn test_name(thread: Option<&str>, caller: &Location<'_>) -> String {
    match thread {
        Some(name) if name != "main" => name.to_owned(),
        _ => format!("{}:{}", caller.file(), caller.line()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn addresses_are_split_at_commas() {
        assert_eq!(addresses("127.0.0.1:6381, redis-b:6382,"), ["127.0.0.1:6381", "redis-b:6382"]);
        assert_eq!(addresses("[::1]:6381"), ["[::1]:6381"]);
        assert_eq!(addresses(" "), Vec::<String>::new());
    }

    #[test]
    #[should_panic(expected = "not host:port: \"redis-b\"")]
    fn address_without_a_port_is_refused() {
        addresses("127.0.0.1:6381,redis-b");
    }

    #[test]
    fn tests_are_named_after_their_thread_or_their_place() {
        let here = Location::caller();
        assert_eq!(test_name(Some("suite::tokio::a3"), here), "suite::tokio::a3");
        assert!(test_name(Some("main"), here).ends_with(&format!("nodes.rs:{}", here.line())));
        assert_eq!(test_name(None, here), test_name(Some("main"), here));
    }

    #[test]
    fn unique_names_keep_their_beginning() {
        let names: BTreeSet<String> = (0..10).map(|_| unique("orders:{42}")).collect();
        assert_eq!(names.len(), 10);
        assert!(names.iter().all(|name| name.starts_with("orders:{42}-")));
    }

    #[test]
    fn own_servers_are_independent() {
        let Some(nodes) = own_servers(3) else { return };
        nodes[0].set("key", "first");
        nodes[1].set("key", "second");
        let values: Vec<_> = nodes.iter().map(|node| node.get("key")).collect();
        assert_eq!(values, [Some("first".to_owned()), Some("second".to_owned()), None]);
    }

    #[test]
    fn shared_primaries_are_the_same_for_all() {
        let (few, more) = (shared_primaries(1), shared_primaries(2));
        assert_eq!(few[0].address(), more[0].address());
        assert_ne!(more[0].address(), more[1].address());
    }
}
