//! Waiting for a lease that somebody else has: being woken when it goes, and what that costs.

use std::sync::Arc;

use futures_util::future::join;
use redlock_driver::{Config, ConfigBuilder, Lease, Manager, Renewal};

use super::Adapter;
use super::support::{eventually, key, ms, pause, redlock, timed, urls};
use crate::harness::{Server, own_servers, shared_primaries};

/// Settings with which nobody gets in these tests' time what he has not got at once, unless he is woken.
fn patient() -> ConfigBuilder {
    Config::builder().ttl(ms(20_000)).retry_delay(ms(60_000))
}

fn single<R: Adapter>(node: &Server, config: ConfigBuilder) -> Manager<R> {
    Manager::single(node.url(), config.build().unwrap()).unwrap()
}

/// Has a manager of its own wait for `key` until it has the lease, and says how long that took after `key` had
/// gone by what is done.
async fn woken<R: Adapter>(waiter: &Manager<R>, key: &Arc<str>, free: impl Future<Output = ()>) -> Lease<R> {
    let lock = waiter.lock(Arc::clone(key));
    let free = async {
        pause::<R>(ms(300)).await;
        timed(free).await.1
    };
    let ((lease, waited), freeing) = join(timed(lock.acquire_within(ms(20_000))), free).await;
    let lease = lease.unwrap();
    let late = waited.saturating_sub(ms(300) + freeing);
    assert!(waited >= ms(300) && late < ms(2_000), "{waited:?}, of which {late:?} after the key had gone");
    lease
}

/// The connections to a server that are told when keys change.
fn listening(node: &Server) -> Vec<u64> {
    let list: String = redis::cmd("CLIENT").arg("LIST").query(&mut node.connection()).unwrap();
    let field = |line: &str, name: &str| {
        line.split(' ').find_map(|field| field.strip_prefix(name)).unwrap_or_default().to_owned()
    };
    let tracked = list.lines().filter(|line| field(line, "flags=").contains('t'));
    tracked.map(|line| field(line, "id=").parse().unwrap()).collect()
}

/// How often keys were read at a node, but for the reads of scripts.
fn reads(node: &Server) -> u64 {
    let scripts = node.command_calls("evalsha") + node.command_calls("eval");
    // A script that is not known yet is called twice and reads once.
    node.command_calls("get").saturating_sub(scripts)
}

pub async fn a_release_wakes_whoever_waits_in_another_manager<R: Adapter>() {
    for count in [1, 3, 5] {
        let nodes = shared_primaries(count);
        let manager = || -> Manager<R> {
            let config = patient().build().unwrap();
            match &*nodes {
                [node] => Manager::single(node.url(), config).unwrap(),
                nodes => redlock(urls(nodes), config),
            }
        };
        let (holder, waiter, key) = (manager(), manager(), key("woken"));
        let lease = holder.lock(key.clone()).acquire().await.unwrap();
        let second = woken::<R>(&waiter, &key, async { lease.release().await.unwrap() }).await;
        // And back, now that everything is connected.
        let third = woken::<R>(&holder, &key, async { second.release().await.unwrap() }).await;
        drop(third);
        holder.close().await;
        waiter.close().await;
    }
}

pub async fn expiry_wakes_whoever_waits<R: Adapter>() {
    let Some(nodes) = own_servers(3) else { return };
    for nodes in [&nodes[..1], &nodes] {
        let config = patient().build().unwrap();
        let waiter: Manager<R> = match nodes {
            [node] => Manager::single(node.url(), config).unwrap(),
            nodes => redlock(urls(nodes), config),
        };
        let key = key("expires");
        nodes.iter().for_each(|node| node.set_px(&key, "somebody else", ms(700)));
        let expire = pause::<R>(ms(400));
        woken::<R>(&waiter, &key, expire).await.release().await.unwrap();
    }
}

pub async fn a_flushed_server_wakes_whoever_waits<R: Adapter>() {
    let Some(nodes) = own_servers(1) else { return };
    let (waiter, key) = (single::<R>(&nodes[0], patient()), key("flushed"));
    nodes[0].set(&key, "somebody else");
    let flush = async { redis::cmd("FLUSHALL").exec(&mut nodes[0].connection()).unwrap() };
    woken::<R>(&waiter, &key, flush).await.release().await.unwrap();
}

/// The key goes between the refusal and the first look at it.
pub async fn a_key_that_is_free_already_wakes_at_once<R: Adapter>() {
    let Some(nodes) = own_servers(1) else { return };
    let (waiter, key) = (single::<R>(&nodes[0], patient()), key("free"));
    for _ in 0..20 {
        nodes[0].set_px(&key, "somebody else", ms(2));
        let (lease, took) = timed(waiter.lock(key.clone()).acquire_within(ms(20_000))).await;
        assert!(took < ms(2_000), "{took:?}");
        lease.unwrap().release().await.unwrap();
    }
}

pub async fn a_holder_that_renews_wakes_nobody<R: Adapter>() {
    let Some(nodes) = own_servers(1) else { return };
    let node = &nodes[0];
    let holder = single::<R>(node, patient().ttl(ms(3_000)).auto_renew(Renewal::Every(ms(100))));
    let key = key("renewed");
    let lease = holder.lock(key.clone()).acquire().await.unwrap();
    let waiters: Vec<_> = (0..3).map(|_| single::<R>(node, patient())).collect();
    let wait = async {
        let all = waiters.iter().map(async |waiter| {
            let lease = waiter.lock(key.clone()).acquire_within(ms(20_000)).await.unwrap();
            lease.release().await.unwrap();
        });
        futures_util::future::join_all(all).await;
    };
    let attempts = || waiters.iter().map(|waiter| waiter.stats().attempts_failed).sum::<u64>();
    let look = async {
        pause::<R>(ms(500)).await;
        let before = (holder.stats().renewed, attempts(), reads(node));
        pause::<R>(ms(2_000)).await;
        let after = (holder.stats().renewed, attempts(), reads(node));
        lease.release().await.unwrap();
        (after.0 - before.0, after.1 - before.1, after.2 - before.2)
    };
    let ((), (renewals, attempts, reads)) = join(wait, look).await;
    assert!(renewals >= 10, "{renewals}");
    assert_eq!(attempts, 0, "who renews was found out at the first renewal");
    assert!(reads <= 3 * (renewals + 1), "{reads} reads at {renewals} renewals");
}

pub async fn nobody_listens_without_need<R: Adapter>() {
    let Some(nodes) = own_servers(1) else { return };
    let node = &nodes[0];
    // Nobody is in the way.
    let manager = single::<R>(node, patient());
    for name in ["one", "other"] {
        manager.lock(name).acquire().await.unwrap().release().await.unwrap();
    }
    // Somebody is, but nobody waits.
    node.set("taken", "somebody else");
    assert!(manager.lock("taken").try_acquire().await.is_err());
    assert_eq!((listening(node), node.command_calls("client|tracking")), (vec![], 0));

    // Somebody waits, and does not want it.
    let off = single::<R>(node, Config::builder().ttl(ms(20_000)).retry_delay(ms(20)).wake_on_release(false));
    let read = reads(node);
    let free = async {
        pause::<R>(ms(200)).await;
        assert_eq!((listening(node), reads(node)), (vec![], read));
        node.del("taken");
    };
    let (lease, ()) = join(off.lock("taken").acquire_within(ms(10_000)), free).await;
    lease.unwrap().release().await.unwrap();
}

pub async fn closing_ends_the_listening<R: Adapter>() {
    let Some(nodes) = own_servers(3) else { return };
    let clients = |node: &Server| node.info("connected_clients").unwrap();
    let before: Vec<_> = nodes.iter().map(clients).collect();
    let manager = redlock::<R, _>(urls(&nodes), patient().build().unwrap());
    nodes.iter().for_each(|node| node.set("taken", "somebody else"));
    let look = async {
        for node in &nodes {
            eventually::<R>("it listens", ms(2_000), || listening(node).len() == 1).await;
        }
        manager.close().await;
    };
    let (refused, ()) = join(manager.lock("taken").acquire_within(ms(20_000)), look).await;
    assert!(refused.is_err());
    for (node, before) in nodes.iter().zip(before) {
        eventually::<R>("nothing is left", ms(2_000), || clients(node) == before).await;
    }
}

pub async fn a_lost_listener_costs_a_pause_and_is_replaced<R: Adapter>() {
    let Some(nodes) = own_servers(1) else { return };
    let node = &nodes[0];
    let manager = single::<R>(node, patient().retry_delay(ms(1_000)));
    node.set("taken", "somebody else");
    let harm = async {
        eventually::<R>("it listens", ms(2_000), || listening(node).len() == 1).await;
        let first = listening(node)[0];
        redis::cmd("CLIENT").arg("KILL").arg("ID").arg(first).exec(&mut node.connection()).unwrap();
        // In the next pause there is another, and so the pause is not waited for to its end.
        eventually::<R>("it listens again", ms(5_000), || listening(node).len() == 1).await;
        pause::<R>(ms(50)).await;
        node.del("taken");
    };
    let (lease, took) = timed(join(manager.lock("taken").acquire_within(ms(20_000)), harm)).await;
    assert!(took < ms(3_000), "{took:?}");
    lease.0.unwrap().release().await.unwrap();
    // And a listener that is lost when nobody waits.
    let lost = listening(node)[0];
    redis::cmd("CLIENT").arg("KILL").arg("ID").arg(lost).exec(&mut node.connection()).unwrap();
    pause::<R>(ms(200)).await;
    node.set("taken", "somebody else");
    let free = async { assert!(node.del("taken")) };
    woken::<R>(&manager, &"taken".into(), free).await.release().await.unwrap();
}

/// Three who ask again as soon as they have released.
pub async fn managers_take_turns<R: Adapter>() {
    for count in [1, 3] {
        let nodes = shared_primaries(count);
        let key = key("turns");
        let wins = std::array::from_fn::<_, 3, _>(|_| std::cell::Cell::new(0));
        let contend = async |own: &std::cell::Cell<u32>| {
            let config = Config::builder().ttl(ms(20_000)).build().unwrap();
            let manager: Manager<R> = match &*nodes {
                [node] => Manager::single(node.url(), config).unwrap(),
                nodes => redlock(urls(nodes), config),
            };
            let lock = manager.lock(key.clone());
            while wins.iter().all(|wins| wins.get() < 100) {
                let lease = lock.acquire_within(ms(20_000)).await.unwrap();
                own.set(own.get() + 1);
                pause::<R>(ms(1)).await;
                lease.release().await.unwrap();
            }
            manager.close().await;
        };
        futures_util::future::join_all(wins.iter().map(contend)).await;
        // As a rule, 95 and more. This is about those who get 2.
        assert!(wins.iter().all(|wins| wins.get() >= 30), "{count} nodes: {wins:?}");
    }
}
