//! Servers that are restarted and have forgotten everything, with a restart guard and without.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::thread;

use futures_util::future::join;
use redlock_driver::{CauseKind, Config, Error, Fault, Lease, Manager, Outcome};

use super::Adapter;
use super::support::{key, ms, pause, redlock, urls};
use crate::harness::{Relay, Server, Stopwatch, may_own_servers};

fn config(ttl: u64, guard: Option<u64>) -> Config {
    let builder = Config::builder().ttl(ms(ttl)).retry_delay(ms(30));
    match guard {
        Some(guard) => builder.restart_guard(ms(guard)),
        None => builder,
    }
    .build()
    .unwrap()
}

/// A has its lease from servers 1 and 2, server 2 forgets it, and server 3, which was out of reach, comes
/// back. Then B gets 2 and 3; but not behind a restart guard.
pub async fn a_restart_guard_keeps_a_second_holder_out<R: Adapter>() {
    if !may_own_servers() {
        return;
    }
    join(forget::<R>(false), forget::<R>(true)).await;
}

async fn forget<R: Adapter>(guarded: bool) {
    let servers = [Server::start(), Server::start(), Server::start()];
    let relay = Relay::start(servers[2].address());
    let nodes = || [servers[0].url(), servers[1].url(), relay.url()];
    let config = config(3_000, guarded.then_some(3_100));
    let (a, b) = (redlock::<R, _>(nodes(), config.clone()), redlock::<R, _>(nodes(), config));
    let key = key("forgotten");

    if guarded {
        // Young servers may have forgotten something, for all that a client can know.
        let young = a.lock(key.clone()).try_acquire().await.unwrap_err();
        assert_eq!(quarantined(&young), 3, "{young}");
        // From here on B knows them too.
        b.lock(key.clone()).try_acquire().await.unwrap_err();
        // All three vote, for both, when the guard has passed since then.
        pause::<R>(ms(3_150)).await;
    }
    relay.refuse(true);
    relay.reset_all();
    let first = a.lock(key.clone()).try_acquire().await.unwrap();
    servers[1].restart();
    relay.refuse(false);
    // B's connections to servers 2 and 3 were reset. It needs a moment to find them again.
    let watch = Stopwatch::start();
    let second = loop {
        let second = b.lock(key.clone()).try_acquire().await;
        let found = match &second {
            Ok(_) => true,
            Err(Error::NotAcquired(failure)) => !failure.quorum.nodes.iter().any(|node| {
                matches!(&node.outcome, Outcome::Fault(fault) if fault.cause().kind() != CauseKind::Quarantined)
            }),
            Err(other) => panic!("{other}"),
        };
        if found {
            break second;
        }
        assert!(first.is_valid(), "not found again in time: {second:?}");
        pause::<R>(ms(20)).await;
    };
    assert!(first.is_valid(), "the machine is too slow for this test: {:?}", watch.elapsed());
    assert_eq!(second.is_ok(), !guarded, "two holders, or not: {second:?}");
    let Err(refused) = second else { return };
    assert_eq!(quarantined(&refused), 1, "{refused}");
    let said = refused.to_string();
    assert!(
        said.contains(servers[1].address())
            && said.contains("in quarantine: restarted 0 s ago, no votes for "),
        "{said}"
    );

    let later = b.lock(key.clone()).acquire_within(ms(10_000)).await.unwrap();
    assert!(later.is_valid() && !first.is_valid());
    later.release().await.unwrap();
    // Server 2 has served its time when the other two are not enough any more.
    servers[0].kill();
    b.lock(key).acquire_within(ms(10_000)).await.unwrap().release().await.unwrap();
}

/// How many nodes did not vote because they are in quarantine.
fn quarantined(error: &Error) -> usize {
    let Error::NotAcquired(failure) = error else { panic!("{error}") };
    let kept = |outcome: &Outcome| matches!(outcome, Outcome::Fault(Fault::NotExecuted(cause)) if cause.kind() == CauseKind::Quarantined);
    failure.quorum.nodes.iter().filter(|node| kept(&node.outcome)).count()
}

/// Who may not ask a server how old it is takes no leases from it, is told what to do, and gets them when
/// the right was granted.
pub async fn a_server_that_may_not_be_asked_does_not_vote<R: Adapter>() {
    if !may_own_servers() {
        return;
    }
    join(ask::<R>("resp2"), ask::<R>("resp3")).await;
}

async fn ask<R: Adapter>(protocol: &str) {
    let server = Server::start();
    let acl =
        |words: &[&str]| redis::cmd("ACL").arg("SETUSER").arg(words).exec(&mut server.connection()).unwrap();
    acl(&["locker", "on", ">secret", "~*", "-@all", "+set", "+evalsha", "+eval", "+get", "+del", "+pexpire"]);
    let url = format!("redis://locker:secret@{}/?protocol={protocol}", server.address());
    let manager: Manager<R> = Manager::single(url, config(500, Some(600))).unwrap();
    let lock = manager.lock(key("unasked"));
    let refused = lock.try_acquire().await.unwrap_err();
    assert_eq!(quarantined(&refused), 1, "{refused}");
    assert!(refused.to_string().contains("give the user the right +info"), "{refused}");
    acl(&["locker", "+info"]);
    lock.acquire_within(ms(10_000)).await.unwrap().release().await.unwrap();
}

/// Contenders on three servers without persistence, of which two are killed and restarted shortly after each
/// other, again and again. Ten seconds; sixty with `REDLOCK_LONG`. Without a guard, two of them soon hold the
/// lease at once.
pub async fn nobody_shares_a_lease_while_servers_forget<R: Adapter>() {
    if !may_own_servers() {
        return;
    }
    let (guarded, unguarded) = join(contend::<R>(true), contend::<R>(false)).await;
    println!("with a guard {guarded:?}, without {unguarded:?}");
    assert_eq!(guarded.shared, 0, "two holders behind a restart guard: {guarded:?}");
    assert!(guarded.granted > ENOUGH && guarded.restarts >= 6, "{guarded:?}");
    assert!(unguarded.shared > 0, "without a guard this would show nothing: {unguarded:?}");
}

#[derive(Debug)]
struct Tally {
    granted: u64,
    shared: u64,
    restarts: usize,
}

const CONTENDERS: u64 = 6;

/// More leases than this show that the servers still grant some.
const ENOUGH: u64 = 5;

async fn contend<R: Adapter>(guarded: bool) -> Tally {
    let servers = [Server::start(), Server::start(), Server::start()];
    let managers: Vec<Manager<R>> =
        (0..CONTENDERS).map(|_| redlock(urls(&servers), config(1_000, guarded.then_some(1_100)))).collect();
    let span = if std::env::var_os("REDLOCK_LONG").is_some() { ms(60_000) } else { ms(10_000) };
    let over = Arc::new(AtomicBool::new(false));
    let trouble = {
        let over = Arc::clone(&over);
        thread::spawn(move || make_trouble(&servers, &over))
    };
    let held: Held<R> = Held::default();
    let watch = Stopwatch::start();
    // A slow machine may need longer to show anything; and without a guard it is over when it has happened.
    let goes_on = || {
        let (granted, shared) = (held.granted.load(Ordering::Relaxed), held.shared.load(Ordering::Relaxed));
        let shown = if guarded { watch.elapsed() > span && granted > ENOUGH } else { shared > 0 };
        !shown && watch.elapsed() < ms(90_000)
    };
    let contenders = managers.iter().zip(1..).map(|(manager, number)| {
        let (held, goes_on) = (&held, &goes_on);
        async move {
            let lock = manager.lock("forgetful");
            while goes_on() {
                let Ok(lease) = lock.acquire_within(ms(1_000)).await else { continue };
                let lease = held.enter(lease);
                // For most of the ttl, so that restarts meet leases that are held.
                for _ in 0..30 + 10 * number {
                    pause::<R>(ms(10)).await;
                    held.look(&lease);
                }
            }
        }
    });
    futures_util::future::join_all(contenders).await;
    over.store(true, Ordering::Relaxed);
    let restarts = trouble.join().unwrap();
    Tally { granted: held.granted.into_inner(), shared: held.shared.into_inner(), restarts }
}

/// Kills and restarts two servers within a ttl, then leaves them in peace until they vote again.
fn make_trouble(servers: &[Server; 3], over: &AtomicBool) -> usize {
    let mut restarts = 0;
    while !over.load(Ordering::Relaxed) {
        for _ in 0..2 {
            servers[restarts % 3].restart();
            restarts += 1;
            thread::sleep(ms(50));
        }
        thread::sleep(ms(2_000));
    }
    restarts
}

/// The leases that somebody has, and how often two of them were held at the same moment.
struct Held<R: Adapter> {
    leases: Mutex<Vec<Weak<Lease<R>>>>,
    granted: AtomicU64,
    shared: AtomicU64,
}

impl<R: Adapter> Default for Held<R> {
    fn default() -> Self {
        Self { leases: Mutex::default(), granted: AtomicU64::new(0), shared: AtomicU64::new(0) }
    }
}

impl<R: Adapter> Held<R> {
    fn enter(&self, lease: Lease<R>) -> Arc<Lease<R>> {
        self.granted.fetch_add(1, Ordering::Relaxed);
        let lease = Arc::new(lease);
        let mut leases = self.leases.lock().unwrap();
        leases.retain(|other| other.strong_count() > 0);
        leases.push(Arc::downgrade(&lease));
        drop(leases);
        self.look(&lease);
        lease
    }

    /// A lease that is valid now was valid a moment ago, when another one was.
    fn look(&self, lease: &Arc<Lease<R>>) {
        let others: Vec<Arc<Lease<R>>> =
            self.leases.lock().unwrap().iter().filter_map(Weak::upgrade).collect();
        let other = others.iter().any(|other| !Arc::ptr_eq(other, lease) && other.is_valid());
        if other && lease.is_valid() {
            self.shared.fetch_add(1, Ordering::Relaxed);
        }
    }
}
