//! A connection in trouble: what a caller sees, how soon, and what stays behind.
//!
//! As in [`broken_node`](super::broken_node), each test prints a line for the table in `docs/operations.md`.

use std::time::Duration;

use futures_util::future::{join, join_all};
use redlock_driver::{Config, Error, Manager};

use super::Adapter;
use super::support::{cause, eventually, key, known_down, ms, pause, redlock, timed};
use crate::harness::{
    Cut, FakeServer, Played, Primary, Relay, Stopwatch, report, shared_primaries, unused_address,
};

/// So long that no key goes by itself in a test.
const TTL: Duration = ms(20_000);
const OPERATION: Duration = ms(200);
/// What a busy machine adds.
const SLACK: Duration = ms(150);

fn config() -> Config {
    Config::builder().ttl(TTL).operation_timeout(OPERATION).attempts(1).build().unwrap()
}

fn single<R: Adapter>(url: String) -> Manager<R> {
    Manager::single(url, config()).unwrap()
}

/// A relay in front of a sound node, and a manager whose connection through it is made.
async fn through_relay<R: Adapter>() -> (Primary, Relay, Manager<R>) {
    let node = shared_primaries(1).remove(0);
    let relay = Relay::start(node.address());
    let manager = single::<R>(relay.url());
    manager.lock(key("warm")).acquire().await.unwrap().release().await.unwrap();
    (node, relay, manager)
}

/// The same node as one of three: nobody notices, within less than an operation.
async fn is_outvoted<R: Adapter>(url: String) {
    let sound = shared_primaries(2);
    let manager = redlock::<R, _>([url, sound[0].url(), sound[1].url()], config());
    let (lease, took) = timed(manager.lock(key("outvoted")).acquire()).await;
    lease.unwrap().release().await.unwrap();
    assert!(took < OPERATION, "{took:?}");
}

/// Waits until the key has gone, long before its ttl, and says for how long.
async fn await_gone<R: Adapter>(node: &Primary, key: &str) -> Duration {
    timed(eventually::<R>("the key is gone", ms(3_000), || node.get(key).is_none())).await.1
}

/// Both sides believe that it is alive, and nothing passes.
pub async fn a_connection_that_is_half_open<R: Adapter>() {
    let (node, relay, manager) = through_relay::<R>().await;
    let key = key("half-open");
    let lease = manager.lock(key.clone()).acquire().await.unwrap();
    relay.black_hole_existing();
    let (released, took) = timed(lease.release()).await;
    let seen = released.unwrap_err();
    assert!(matches!(seen, Error::NotReleased(_)), "{seen}");
    assert!(took >= OPERATION && took < OPERATION + SLACK, "{took:?}");
    let gone = await_gone::<R>(&node, &key).await;
    report(
        "half-open connection, at release",
        &seen.to_string(),
        took,
        &format!("no key after {gone:.1?} more"),
    );

    relay.black_hole_existing();
    let (refused, took) = timed(manager.lock(key.clone()).acquire()).await;
    let seen = cause(refused);
    assert!(took >= OPERATION && took < OPERATION + SLACK, "{took:?}");
    let (again, at_once) = timed(manager.lock(key.clone()).acquire()).await;
    again.unwrap().release().await.unwrap();
    assert_eq!(node.get(&key), None);
    report("half-open connection, at acquire", &seen, took, "nothing arrived");
    report("half-open connection, the next acquire", "acquired", at_once, "no key");

    // Half of it: the requests arrive, and the replies do not.
    relay.cut_replies_after(0, Cut::Silence);
    let (refused, took) = timed(manager.lock(key.clone()).acquire()).await;
    let seen = cause(refused);
    let gone = await_gone::<R>(&node, &key).await;
    report("replies are lost", &seen, took, &format!("no key after {gone:.1?} more"));
}

pub async fn a_peer_that_accepts_and_never_answers<R: Adapter>() {
    let node = shared_primaries(1).remove(0);
    let relay = Relay::start(node.address());
    relay.black_hole_new(true);
    let manager = single::<R>(relay.url());
    let lock = manager.lock(key("mute"));
    let (first, took) = timed(lock.acquire()).await;
    let seen = cause(first);
    assert!(took < OPERATION + SLACK, "{took:?}");
    let (down, at_once) = known_down(&lock, OPERATION + SLACK).await;
    assert!(at_once < SLACK, "{at_once:?}");
    is_outvoted::<R>(relay.url()).await;
    report("accepts and never answers", &seen, took, "nothing arrived");
    report("accepts and never answers, known", &down, at_once, "nothing was sent");
}

pub async fn a_reply_cut_in_the_middle<R: Adapter>() {
    for bytes in [0, 1, 2, 4] {
        let (node, relay, manager) = through_relay::<R>().await;
        let key = key("cut");
        relay.cut_replies_after(bytes, Cut::Reset);
        let (refused, took) = timed(manager.lock(key.clone()).acquire()).await;
        let seen = cause(refused);
        assert!(seen.contains("connection lost"), "{seen}");
        assert!(took < SLACK, "{took:?}");
        let gone = await_gone::<R>(&node, &key).await;
        let (again, _) = timed(manager.lock(key.clone()).acquire()).await;
        again.unwrap().release().await.unwrap();
        report(
            &format!("reset after {bytes} of 5 bytes of a reply"),
            &seen,
            took,
            &format!("no key after {gone:.1?} more"),
        );
    }
}

/// The key stays until the ttl, unless the delete is sent once more.
pub async fn a_release_cut_in_mid_flight<R: Adapter>() {
    let (node, relay, manager) = through_relay::<R>().await;
    let key = key("cut-release");
    let lease = manager.lock(key.clone()).acquire().await.unwrap();
    relay.hold_requests(true);
    let (released, ()) = join(timed(lease.release()), async {
        pause::<R>(ms(50)).await;
        relay.reset_all();
        relay.hold_requests(false);
    })
    .await;
    let seen = released.0.unwrap_err();
    assert!(matches!(seen, Error::NotReleased(_)), "what became of it is not known: {seen}");
    assert!(seen.to_string().contains("connection lost"), "{seen}");
    let gone = await_gone::<R>(&node, &key).await;
    assert_eq!(relay.connections(), 2, "one redial");
    report(
        "connection lost under a release",
        &seen.to_string(),
        released.1.saturating_sub(ms(50)),
        &format!("no key after {gone:.1?} more"),
    );

    // The delete ran, and its answer was lost: the second one finds nothing, which is no news.
    let lease = manager.lock(key.clone()).acquire().await.unwrap();
    relay.cut_replies_after(0, Cut::Reset);
    let seen = lease.release().await.unwrap_err();
    assert!(matches!(seen, Error::NotReleased(_)), "not reported as lost: {seen}");
    assert_eq!(node.get(&key), None);
}

pub async fn a_peer_that_speaks_another_language<R: Adapter>() {
    let web = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n".to_vec();
    let huge = [b"$1048576\r\n".to_vec(), vec![b'x'; 1_048_576], b"\r\n".to_vec()].concat();
    let endless = [b"$2000000000\r\n".to_vec(), vec![b'x'; 1_000_000]].concat();
    for (what, reply, first) in [
        ("garbage instead of a reply", web, "unexpected reply"),
        ("a reply of 1 MiB", huge, "unexpected reply"),
        ("a reply of 2 GB of which 1 MB comes", endless, "no answer in 200 ms"),
    ] {
        let server = FakeServer::play(move |_, _| Played::Bytes(reply.clone()));
        let manager = single::<R>(server.url());
        for number in 0..3 {
            let (refused, took) = timed(manager.lock(key("odd")).acquire()).await;
            let seen = cause(refused);
            assert!(took < OPERATION + SLACK, "{took:?}");
            assert!(number > 0 || seen.starts_with(first), "{what}: {seen}");
            report(what, &seen, took, "unknown to us");
        }
        is_outvoted::<R>(server.url()).await;
    }
}

/// Many callers, and nobody who listens: each learns it at once, and the node is dialled now and then.
pub async fn connects_that_are_refused<R: Adapter>() {
    let manager = single::<R>(format!("redis://{}", unused_address()));
    let lock = manager.lock(key("refused"));
    let (first, took) = timed(lock.acquire()).await;
    report("connects refused", &cause(first), took, "nothing was sent");

    let node = shared_primaries(1).remove(0);
    let relay = Relay::start(node.address());
    relay.refuse(true);
    let manager = single::<R>(relay.url());
    let lock = manager.lock(key("refused"));
    let watch = Stopwatch::start();
    let ask = async || {
        let (mut calls, mut longest) = (0_usize, Duration::ZERO);
        while watch.elapsed() < ms(1_000) {
            let (refused, took) = timed(lock.acquire()).await;
            cause(refused);
            (calls, longest) = (calls + 1, longest.max(took));
            pause::<R>(ms(1)).await;
        }
        (calls, longest)
    };
    let asked = join_all((0..32).map(|_| ask())).await;
    let calls: usize = asked.iter().map(|(calls, _)| calls).sum();
    let longest = asked.iter().map(|(_, longest)| *longest).max().unwrap();
    let dials = relay.connections();
    assert!(longest < OPERATION + SLACK, "{longest:?}");
    assert!(calls > 500 && dials < 50, "{dials} dials for {calls} calls");
    relay.refuse(false);
    let (again, back) = timed(lock.acquire_within(ms(8_000))).await;
    again.unwrap().release().await.unwrap();
    report(
        "a flood of connects refused",
        &format!("{calls} calls refused with {dials} dials"),
        longest,
        "nothing was sent",
    );
    report("connects accepted again", "acquired", back, "no key");
}
