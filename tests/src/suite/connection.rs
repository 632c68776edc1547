//! Connections that break in every way that was seen to confuse a lock library.

use redlock_driver::{Config, Error, Manager, NotAcquiredReason};

use super::Adapter;
use super::support::{eventually, key, ms, pause};
use crate::harness::{Relay, Stopwatch, own_servers, shared_primaries, unused_address};

fn quick() -> Config {
    Config::builder().ttl(ms(20_000)).operation_timeout(ms(200)).attempts(1).build().unwrap()
}

fn single<R: Adapter>(url: impl Into<String>, config: Config) -> Manager<R> {
    Manager::single(url.into(), config).unwrap()
}

/// Opens the connection, so that a fault meets a command and not the dial.
async fn warm<R: Adapter>(manager: &Manager<R>) {
    let lease = manager.lock(key("warm")).acquire().await.unwrap();
    lease.release().await.unwrap();
}

fn assert_unreachable(error: &Error) {
    let reason = match error {
        Error::NotAcquired(failure) => failure.reason,
        other => panic!("{other}"),
    };
    assert_eq!(reason, NotAcquiredReason::Unreachable, "{error}");
}

pub async fn a_set_that_timed_out_is_taken_back_when_it_runs<R: Adapter>() {
    let Some(nodes) = own_servers(1) else { return };
    let manager = single::<R>(nodes[0].url(), quick());
    warm(&manager).await;
    let sets = nodes[0].command_calls("set");
    nodes[0].freeze();
    assert_unreachable(&manager.lock("late").acquire().await.unwrap_err());
    nodes[0].thaw();
    eventually::<R>("the late command runs", ms(1_000), || nodes[0].command_calls("set") > sets).await;
    eventually::<R>("its key is taken back", ms(1_000), || nodes[0].get("late").is_none()).await;
    pause::<R>(ms(300)).await;
    assert_eq!(nodes[0].get("late"), None);
    eventually::<R>("the node is found again", ms(8_000), || nodes[0].is_running()).await;
    assert!(manager.lock("late").acquire_within(ms(8_000)).await.is_ok());
}

/// The bytes of the first command are held back on their way; the delete that goes out on another connection
/// arrives before them.
pub async fn held_back_bytes_leave_no_key<R: Adapter>() {
    let nodes = shared_primaries(1);
    let relay = Relay::start(nodes[0].address());
    let manager = single::<R>(relay.url(), quick());
    warm(&manager).await;
    let key = key("held-back");
    relay.hold_requests(true);
    assert_unreachable(&manager.lock(key.clone()).acquire().await.unwrap_err());
    pause::<R>(ms(300)).await;
    relay.hold_requests(false);
    pause::<R>(ms(500)).await;
    assert_eq!(nodes[0].get(&key), None);
}

/// The command is carried out and its answer lost: the attempt fails, its key is taken back, and the next
/// attempt, under a token of its own, gets the lease.
pub async fn a_lost_reply_is_not_a_lost_lease<R: Adapter>() {
    let nodes = shared_primaries(1);
    let relay = Relay::start(nodes[0].address());
    let config = quick().to_builder().attempts(10).retry_delay(ms(50)).build().unwrap();
    let manager = single::<R>(relay.url(), config);
    warm(&manager).await;
    let (key, fence) = (key("lost-reply"), key("lost-reply-fence"));
    let lock = manager.lock(key.clone()).fencing(fence.clone());
    let first = lock.acquire().await.unwrap();
    let number = first.fencing_token().unwrap().get();
    first.release().await.unwrap();
    relay.drop_replies(true);
    let (lease, ()) = futures_util::future::join(lock.acquire(), async {
        pause::<R>(ms(100)).await;
        relay.drop_replies(false);
    })
    .await;
    let lease = lease.unwrap();
    let attempts = manager.stats().attempts_failed + 1;
    assert!(attempts > 1, "the fault met the acquire");
    assert_eq!(nodes[0].get(&key).as_deref(), Some(lease.token().to_hex().as_str()));
    let token = lease.fencing_token().unwrap().get();
    assert!(token > number && token <= number + attempts, "{token} after {number} and {attempts} attempts");
    assert_eq!(nodes[0].get(&fence), Some(token.to_string()));
    lease.release().await.unwrap();
    assert_eq!(nodes[0].get(&key), None);
    nodes[0].del(&fence);
}

pub async fn a_half_dead_connection_is_replaced<R: Adapter>() {
    let nodes = shared_primaries(1);
    let relay = Relay::start(nodes[0].address());
    let manager = single::<R>(relay.url(), quick());
    warm(&manager).await;
    assert_eq!(relay.connections(), 1);
    relay.black_hole_existing();
    let watch = Stopwatch::start();
    assert_unreachable(&manager.lock(key("half-dead")).acquire().await.unwrap_err());
    assert!(watch.elapsed() < ms(350), "{:?}", watch.elapsed());
    let watch = Stopwatch::start();
    let lease = manager.lock(key("half-dead")).acquire().await.unwrap();
    assert!(watch.elapsed() < ms(150), "{:?}", watch.elapsed());
    lease.release().await.unwrap();
    assert_eq!(relay.connections(), 2);
}

pub async fn the_deadline_holds_whatever_the_server_does<R: Adapter>() {
    let nodes = shared_primaries(1);
    let (mute, closing) = (Relay::start(nodes[0].address()), Relay::start(nodes[0].address()));
    mute.black_hole_new(true);
    closing.refuse(true);
    for url in [mute.url(), closing.url(), format!("redis://{}", unused_address())] {
        let manager = single::<R>(url.clone(), quick());
        for attempt in ["the first", "the second"] {
            let watch = Stopwatch::start();
            assert_unreachable(&manager.lock("deadline").acquire().await.unwrap_err());
            assert!(watch.elapsed() < ms(350), "{url}, {attempt}: {:?}", watch.elapsed());
        }
    }
    let Some(own) = own_servers(1) else { return };
    own[0].freeze();
    let manager = single::<R>(own[0].url(), quick());
    let watch = Stopwatch::start();
    assert_unreachable(&manager.lock("deadline").acquire().await.unwrap_err());
    assert!(watch.elapsed() < ms(350), "frozen: {:?}", watch.elapsed());
    own[0].thaw();
}

pub async fn a_killed_server_is_found_again<R: Adapter>() {
    let Some(nodes) = own_servers(1) else { return };
    let manager = single::<R>(nodes[0].url(), quick());
    let fenced = manager.lock("killed").fencing("killed-fence");
    fenced.acquire().await.unwrap().release().await.unwrap();

    // In flight when it dies: nobody can know whether they were carried out.
    nodes[0].freeze();
    let locks: Vec<_> = (0..10).map(|number| manager.lock(format!("in-flight-{number}"))).collect();
    let (failed, ()) = futures_util::future::join(
        futures_util::future::join_all(locks.iter().map(|lock| lock.acquire())),
        async {
            pause::<R>(ms(50)).await;
            nodes[0].kill();
        },
    )
    .await;
    for failed in failed {
        let failed = failed.unwrap_err();
        assert_unreachable(&failed);
        assert!(failed.to_string().contains("connection lost"), "{failed}");
    }

    nodes[0].restart();
    // The script is gone with the server's memory, and so is the counter.
    let lease = fenced.acquire_within(ms(8_000)).await.unwrap();
    assert_eq!(lease.fencing_token().unwrap().get(), 1);
    lease.release().await.unwrap();
}

/// A server, or something between, that closes connections which are idle: nobody is to notice.
pub async fn an_idle_connection_may_be_closed<R: Adapter>() {
    let nodes = shared_primaries(1);
    let relay = Relay::start(nodes[0].address());
    let manager = single::<R>(relay.url(), quick());
    let key = key("idle");
    let lock = manager.lock(key.clone());
    for _ in 0..5 {
        relay.reset_all();
        pause::<R>(ms(20)).await;
        let lease = lock.acquire().await.unwrap();
        relay.reset_all();
        pause::<R>(ms(20)).await;
        lease.extend(ms(30_000)).await.unwrap();
        relay.reset_all();
        pause::<R>(ms(20)).await;
        lease.release().await.unwrap();
        assert_eq!(nodes[0].get(&key), None);
    }
}

/// Callers that go on asking a server that does not answer: what runs when it comes back is bounded.
pub async fn a_stalled_server_gathers_no_pile<R: Adapter>() {
    let Some(nodes) = own_servers(1) else { return };
    let config = quick().to_builder().operation_timeout(ms(20)).build().unwrap();
    let manager = single::<R>(nodes[0].url(), config);
    warm(&manager).await;
    let before = nodes[0].command_calls("set");
    nodes[0].freeze();
    let watch = Stopwatch::start();
    let ask = async |number: usize| {
        let mut calls = 0;
        while watch.elapsed() < ms(2_000) {
            assert!(manager.lock(format!("stalled-{number}")).acquire().await.is_err());
            calls += 1;
            pause::<R>(ms(1)).await;
        }
        calls
    };
    let calls: usize = futures_util::future::join_all((0..16).map(ask)).await.into_iter().sum();
    nodes[0].thaw();
    let keys = (0..16).map(|number| format!("stalled-{number}")).collect::<Vec<_>>();
    eventually::<R>("no key is left", ms(2_000), || keys.iter().all(|key| nodes[0].get(key).is_none())).await;
    let ran = nodes[0].command_calls("set") - before;
    assert!(calls > 1_000, "{calls} calls");
    assert!(ran <= 16 * 4, "{ran} of {calls} calls ran after all");
}

pub async fn both_protocols_and_the_ends_of_the_counter<R: Adapter>() {
    let nodes = shared_primaries(1);
    for protocol in ["resp2", "resp3"] {
        let url = format!("{}?protocol={protocol}", nodes[0].url());
        let manager = single::<R>(url, quick());
        let (key, fence) = (key("protocol"), key("protocol-fence"));
        let lock = manager.lock(key.clone()).fencing(fence.clone());

        let lease = lock.acquire().await.unwrap();
        assert!(matches!(lock.acquire().await, Err(Error::NotAcquired(failure)) if failure.is_taken()));
        lease.extend(ms(30_000)).await.unwrap();
        nodes[0].set(&key, "somebody else");
        assert!(matches!(lease.extend(ms(30_000)).await, Err(Error::LockLost(_))));
        assert!(matches!(lease.release().await, Err(Error::LockLost(_))));
        nodes[0].del(&key);
        // The plain command too.
        let plain = manager.lock(key.clone()).acquire().await.unwrap();
        assert!(matches!(manager.lock(key.clone()).acquire().await, Err(Error::NotAcquired(_))));
        plain.release().await.unwrap();

        let good = [("9007199254740992", 9_007_199_254_740_993), ("9223372036854775806", i64::MAX as u64)];
        for (counter, token) in good {
            nodes[0].set(&fence, counter);
            let lease = lock.acquire().await.unwrap();
            assert_eq!(lease.fencing_token().unwrap().get(), token, "{protocol}");
            lease.release().await.unwrap();
        }
        for counter in ["9223372036854775807", "-1", "-9223372036854775808", "one", "1.5", ""] {
            nodes[0].set(&fence, counter);
            let refused = lock.acquire().await.unwrap_err();
            assert!(refused.to_string().contains("server error: ERR "), "{protocol} {counter:?}: {refused}");
            assert_eq!(nodes[0].get(&key), None, "no lock is taken");
            assert_eq!(nodes[0].get(&fence).as_deref(), Some(counter), "and the counter is left alone");
        }
        nodes[0].del(&fence);
    }
}
