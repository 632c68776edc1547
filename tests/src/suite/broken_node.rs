//! One server in trouble: what a caller sees, how soon, and what stays behind.
//!
//! Each test harms the one node of a manager, prints a line for the table in `docs/operations.md`, and shows
//! that with two sound nodes beside it nobody notices.

use std::cell::Cell;
use std::time::Duration;

use redlock_driver::{Config, Error, LossReason, Manager, Renewal};

use super::Adapter;
use super::support::{cause, eventually, key, known_down, ms, pause, redlock, timed};
use crate::harness::{Random, Relay, Server, may_own_servers, own_servers, report, shared_primaries};

/// So long that no key goes by itself in a test.
const TTL: Duration = ms(20_000);
const OPERATION: Duration = ms(200);
/// What a busy machine adds.
const SLACK: Duration = ms(150);

fn config() -> Config {
    Config::builder().ttl(TTL).operation_timeout(OPERATION).attempts(1).build().unwrap()
}

/// A manager of this node alone, with its connection made.
async fn single<R: Adapter>(url: String) -> Manager<R> {
    let manager = Manager::single(url, config()).unwrap();
    manager.lock(key("warm")).acquire().await.unwrap().release().await.unwrap();
    manager
}

/// The same node as one of three: nobody notices, within less than an operation.
async fn is_outvoted<R: Adapter>(url: String) {
    let sound = shared_primaries(2);
    let manager = redlock::<R, _>([url, sound[0].url(), sound[1].url()], config());
    for _ in 0..3 {
        let (lease, took) = timed(manager.lock(key("outvoted")).acquire()).await;
        lease.unwrap().release().await.unwrap();
        assert!(took < OPERATION, "{took:?}");
    }
}

/// The one server of a test that may have one.
fn own_server() -> Option<Server> {
    own_servers(1)?.pop()
}

async fn await_empty<R: Adapter>(node: &Server) {
    eventually::<R>("no key is left", ms(3_000), || node.keys().is_empty()).await;
}

pub async fn a_node_that_is_frozen<R: Adapter>() {
    let Some(node) = own_server() else { return };
    let manager = single::<R>(node.url()).await;
    let lock = manager.lock("frozen");
    node.freeze();
    let (first, took) = timed(lock.acquire()).await;
    let seen = cause(first);
    assert_eq!(seen, "no answer in 200 ms");
    assert!(took >= OPERATION && took < OPERATION + SLACK, "{took:?}");
    let (down, at_once) = known_down(&lock, OPERATION + SLACK).await;
    assert!(at_once < SLACK, "{at_once:?}");
    is_outvoted::<R>(node.url()).await;
    node.thaw();
    let (again, back) = timed(lock.acquire_within(ms(8_000))).await;
    again.unwrap().release().await.unwrap();
    await_empty::<R>(&node).await;
    report("node frozen", &seen, took, "no key after it thaws");
    report("node frozen, known to be down", &down, at_once, "nothing was sent");
    report("node thawed", "acquired again", back, "no key");
}

pub async fn a_node_that_is_killed<R: Adapter>() {
    let Some(node) = own_server() else { return };
    let manager = single::<R>(node.url()).await;
    let lease = manager.lock("killed").acquire().await.unwrap();
    node.kill();
    let (released, took) = timed(lease.release()).await;
    let seen = released.unwrap_err();
    assert!(matches!(seen, Error::NotReleased(_)), "{seen}");
    assert!(took < SLACK, "{took:?}");
    let (acquired, at_once) = timed(manager.lock("killed").acquire()).await;
    let down = cause(acquired);
    assert!(down.contains("refused"), "{down}");
    assert!(at_once < SLACK, "{at_once:?}");
    is_outvoted::<R>(node.url()).await;
    node.restart();
    let (again, back) = timed(manager.lock("killed").acquire_within(ms(8_000))).await;
    again.unwrap().release().await.unwrap();
    await_empty::<R>(&node).await;
    report(
        "node killed, at release",
        &seen.to_string(),
        took,
        "the key, if the node keeps it, for its ttl at the most",
    );
    report("node killed, at acquire", &down, at_once, "nothing was sent");
    report("node started again", "acquired again", back, "no key");
}

pub async fn a_node_that_restarts_empty<R: Adapter>() {
    let Some(node) = own_server() else { return };
    let manager = single::<R>(node.url()).await;
    let lease = manager.lock("forgotten").auto_renew(ms(50)).acquire().await.unwrap();
    node.kill();
    node.restart();
    let (reason, took) = timed(lease.lost()).await;
    assert_eq!(reason, LossReason::Refused);
    assert!(!lease.is_valid());
    // The interval, and a pause or two of the dialling.
    assert!(took < ms(3_000), "{took:?}");
    assert_eq!(node.keys(), Vec::<String>::new());
    is_outvoted::<R>(node.url()).await;
    report("node restarted empty", &reason.to_string(), took, "no key; others get it at once");
    assert!(matches!(lease.release().await, Err(Error::LockLost(_))));
    await_empty::<R>(&node).await;
}

pub async fn a_node_that_restarts_with_its_data<R: Adapter>() {
    if !may_own_servers() {
        return;
    }
    let node = Server::builder().appendonly(true).start();
    let manager = single::<R>(node.url()).await;
    let lease = manager.lock("kept").auto_renew(ms(50)).acquire().await.unwrap();
    let token = lease.token().to_hex().as_str().to_owned();
    node.kill();
    node.restart();
    let renewed = manager.stats().renewed;
    let ((), took) =
        timed(eventually::<R>("it is renewed", ms(8_000), || manager.stats().renewed > renewed)).await;
    assert!(lease.is_valid());
    assert_eq!(node.get("kept"), Some(token));
    is_outvoted::<R>(node.url()).await;
    lease.release().await.unwrap();
    await_empty::<R>(&node).await;
    assert_eq!(manager.stats().lost, 0);
    report("node restarted with its data", "nothing; renewed again", took, "no key");
}

pub async fn a_node_that_is_slow<R: Adapter>() {
    let nodes = shared_primaries(1);
    let relay = Relay::start(nodes[0].address());
    let manager = single::<R>(relay.url()).await;
    let key = key("slow");
    let lock = manager.lock(key.clone());
    let delay = |each: Duration| {
        relay.delay_requests(each);
        relay.delay_replies(each);
    };
    delay(ms(40));
    let (lease, took) = timed(lock.acquire()).await;
    let lease = lease.unwrap();
    assert!(took >= ms(80), "{took:?}");
    assert!(lease.valid_for() < TTL - ms(80), "the wait counts: {:?}", lease.valid_for());
    lease.release().await.unwrap();
    assert_eq!(nodes[0].get(&key), None);
    report("answers 80 ms late", "acquired", took, "no key");

    delay(ms(150));
    let (refused, took) = timed(lock.acquire()).await;
    let seen = cause(refused);
    assert!(took >= OPERATION && took < OPERATION + SLACK, "{took:?}");
    let sent = nodes[0].get(&key).is_some();
    let ((), gone) =
        timed(eventually::<R>("it is taken back", ms(3_000), || nodes[0].get(&key).is_none())).await;
    is_outvoted::<R>(relay.url()).await;
    assert!(sent, "the command arrives, only late");
    report("answers 300 ms late", &seen, took, &format!("no key after {gone:.1?} more"));
}

pub async fn a_node_that_pauses_its_clients<R: Adapter>() {
    let Some(node) = own_server() else { return };
    let manager = single::<R>(node.url()).await;
    node.pause_all(ms(800));
    let (refused, took) = timed(manager.lock("paused").acquire()).await;
    let seen = cause(refused);
    assert!(took >= OPERATION && took < OPERATION + SLACK, "{took:?}");
    is_outvoted::<R>(node.url()).await;
    // Asking the node waits for the end of the pause.
    await_empty::<R>(&node).await;
    let (again, back) = timed(manager.lock("paused").acquire_within(ms(8_000))).await;
    again.unwrap().release().await.unwrap();
    await_empty::<R>(&node).await;
    report("CLIENT PAUSE", &seen, took, "no key after the pause");
    report("CLIENT PAUSE is over", "acquired again", back, "no key");
}

pub async fn a_node_that_forgets_its_scripts<R: Adapter>() {
    let Some(node) = own_server() else { return };
    let manager = single::<R>(node.url()).await;
    let lock = manager.lock("scripts").fencing("scripts-fence");
    lock.acquire().await.unwrap().release().await.unwrap();
    let in_full = node.command_calls("eval");
    let flush = || redis::cmd("SCRIPT").arg("FLUSH").exec(&mut node.connection()).unwrap();
    flush();
    let (lease, took) = timed(lock.acquire()).await;
    let lease = lease.unwrap();
    assert_eq!(lease.fencing_token().unwrap().get(), 2, "counted up once");
    assert_eq!(node.command_calls("eval"), in_full + 1);
    flush();
    lease.extend(ms(30_000)).await.unwrap();
    flush();
    lease.release().await.unwrap();
    assert_eq!(node.keys(), ["scripts-fence"]);
    report("script cache flushed", "nothing: the script follows in full", took, "no key");
}

/// Kills the connection at any moment of a lease, many times.
pub async fn a_node_that_kills_its_clients<R: Adapter>() {
    let Some(node) = own_server() else { return };
    let manager = single::<R>(node.url()).await;
    let mut killer = node.connection();
    let mut random = Random::new(14);
    // A delete that is turned away, because the node was slow twice in a row and counts as down, leaves its key to
    // the ttl; that takes a machine that is busy with other things.
    let ttl = ms(2_000);
    let (mut unharmed, mut failed, mut expired, mut longest) = (0, 0, 0, Duration::ZERO);
    for number in 0..60 {
        let lock = manager.lock(format!("killed-{number}")).ttl(ttl);
        let killed = Cell::new(false);
        let cycles = async {
            while !killed.get() {
                let lease = lock.acquire().await?;
                lease.extend(ttl).await?;
                lease.release().await?;
            }
            Ok(())
        };
        let kill = async {
            pause::<R>(ms(1) + Duration::from_micros(random.number() % 3_000)).await;
            redis::cmd("CLIENT").arg(&["KILL", "TYPE", "normal"]).exec(&mut killer).unwrap();
            killed.set(true);
        };
        let ((ended, took), ()) = futures_util::future::join(timed(cycles), kill).await;
        match ended {
            Ok(()) => unharmed += 1,
            Err(Error::NotAcquired(_) | Error::NotExtended(_) | Error::NotReleased(_)) => failed += 1,
            Err(other) => panic!("{other}"),
        }
        let ((), gone) =
            timed(eventually::<R>("its key is gone", ms(3_000), || node.keys().is_empty())).await;
        assert!(took < ms(2_000), "{took:?}");
        if gone < ms(1_000) { longest = longest.max(took).max(gone) } else { expired += 1 }
    }
    assert!(expired < 3, "{expired} keys were left to their ttl");
    is_outvoted::<R>(node.url()).await;
    report(
        "CLIENT KILL",
        &format!("nothing in {unharmed} of 60 times, `connection lost` in {failed}"),
        longest,
        "no key, by the same time at the latest",
    );
}

pub async fn a_node_without_room_for_clients<R: Adapter>() {
    let Some(node) = own_server() else { return };
    // The connection that changes it has the one place that is left.
    let mut inside = node.connection();
    let mut room_for = |clients: &str| {
        redis::cmd("CONFIG").arg(&["SET", "maxclients", clients]).exec(&mut inside).unwrap();
    };
    room_for("1");
    let manager: Manager<R> = Manager::single(node.url(), config()).unwrap();
    let lock = manager.lock("maxclients").auto_renew(Renewal::ThirdOfTtl);
    let (refused, took) = timed(lock.acquire()).await;
    let seen = cause(refused);
    assert!(took < OPERATION + SLACK, "{took:?}");
    is_outvoted::<R>(node.url()).await;
    room_for("1000");
    let (again, back) = timed(lock.acquire_within(ms(8_000))).await;
    again.unwrap().release().await.unwrap();
    await_empty::<R>(&node).await;
    report("maxclients reached", &seen, took, "nothing was sent");
    report("maxclients raised", "acquired again", back, "no key");
}
