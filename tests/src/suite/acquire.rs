//! Taking a lease: who gets it, who does not, and what each is told.

use redlock_driver::{Config, ConfigError, Error, Manager, NotAcquired, NotAcquiredReason, Outcome};

use super::Adapter;
use super::support::{eventually, holders, key, ms, pause, redlock, urls};
use crate::harness::{Stopwatch, own_servers, shared_primaries, unused_address};

fn refusal(error: Error) -> NotAcquired {
    match error {
        Error::NotAcquired(failure) => failure,
        other => panic!("{other}"),
    }
}

fn outcomes(failure: &NotAcquired) -> Vec<&Outcome> {
    failure.quorum.nodes.iter().map(|report| &report.outcome).collect()
}

pub async fn a_lease_on_one_node_and_on_three<R: Adapter>() {
    let nodes = shared_primaries(3);
    for nodes in [&nodes[..1], &nodes[..]] {
        let config = Config::builder().ttl(ms(10_000)).build().unwrap();
        let manager: Manager<R> = match nodes {
            [only] => Manager::single(only.url(), config).unwrap(),
            _ => redlock(urls(nodes), config),
        };
        let key = key("plain");
        let lease = manager.lock(key.clone()).acquire().await.unwrap();
        assert!(lease.is_valid() && lease.valid_for() <= ms(10_000 - 102));
        let token = lease.token().to_hex();
        // A majority has it at once, the rest a moment later.
        eventually::<R>("the key on every node", ms(1_000), || {
            nodes.iter().all(|node| node.get(&key).as_deref() == Some(token.as_str()))
        })
        .await;
        assert!(nodes.iter().all(|node| (1..=10_000).contains(&node.pttl(&key))));

        let refused = refusal(manager.lock(key.clone()).try_acquire().await.unwrap_err());
        assert_eq!(refused.reason, NotAcquiredReason::Taken);

        lease.extend(ms(20_000)).await.unwrap();
        assert!(lease.valid_for() > ms(10_000));
        lease.release().await.unwrap();
        eventually::<R>("no key on any node", ms(1_000), || holders(nodes, &key) == 0).await;
        let again = manager.lock(key).try_acquire().await.unwrap();
        assert_ne!(again.token().to_hex(), token);
        again.release().await.unwrap();
    }
}

pub async fn a2_too_few_nodes_answer<R: Adapter>() {
    let Some(nodes) = own_servers(3) else { return };
    let config = Config::builder().ttl(ms(1_000)).attempts(1).build().unwrap();
    let manager = redlock::<R, _>(urls(&nodes), config);
    nodes[1].pause_all(ms(2_000));
    nodes[2].pause_all(ms(2_000));
    let watch = Stopwatch::start();
    let failure = refusal(manager.lock("a2").acquire().await.unwrap_err());
    let taken = watch.elapsed();
    // The operation timeout is a fifth of the ttl.
    assert!(taken < ms(200) + ms(200), "{taken:?}");
    assert_eq!(failure.reason, NotAcquiredReason::Unreachable);
    let message = failure.to_string();
    assert!(message.contains(nodes[1].address()) && message.contains("no answer in 200 ms"), "{message}");
    pause::<R>(ms(3_000)).await;
    assert_eq!(holders(&nodes, "a2"), 0);
}

pub async fn a3_a_late_set_is_taken_back<R: Adapter>() {
    let Some(nodes) = own_servers(3) else { return };
    nodes[0].set("a3", "somebody else");
    nodes[1].set("a3", "somebody else");
    let config = Config::builder().ttl(ms(20_000)).attempts(1).operation_timeout(ms(300)).build().unwrap();
    let manager = redlock::<R, _>(urls(&nodes), config);
    // Connections first, so that the pause meets the command and not the dial.
    drop(manager.lock("a3-warm").acquire().await.unwrap());
    nodes[2].pause_all(ms(1_500));
    let failure = refusal(manager.lock("a3").acquire().await.unwrap_err());
    assert_eq!(failure.reason, NotAcquiredReason::Taken);
    pause::<R>(ms(2_500)).await;
    assert_eq!(nodes[2].get("a3"), None);
    assert_eq!(nodes[0].get("a3").as_deref(), Some("somebody else"));
}

pub async fn a4_a_dead_node_costs_nothing_but_its_vote<R: Adapter>() {
    let nodes = shared_primaries(2);
    let dead = unused_address();
    let all = [nodes[0].url(), nodes[1].url(), format!("redis://{dead}")];
    let config = Config::builder().ttl(ms(20_000)).build().unwrap();
    let manager = redlock::<R, _>(all, config);
    let key = key("a4");
    let watch = Stopwatch::start();
    let lease = manager.lock(key.clone()).acquire().await.unwrap();
    lease.release().await.unwrap();
    assert!(watch.elapsed() < ms(500), "well below the operation timeout: {:?}", watch.elapsed());

    // The report names it, where there is something to report.
    nodes[0].set(&key, "somebody else");
    let failure = refusal(manager.lock(key.clone()).acquire().await.unwrap_err());
    assert!(failure.to_string().contains(&format!("({dead}): unreachable")), "{failure}");
    nodes[0].del(&key);
}

pub async fn a6_the_four_ways_to_fail_are_told_apart<R: Adapter>() {
    let nodes = shared_primaries(3);
    let config = Config::builder().ttl(ms(2_000)).attempts(2).retry_delay(ms(20)).build().unwrap();
    let closed = || format!("redis://{}", unused_address());
    let key = key("a6");
    nodes.iter().for_each(|node| node.set(&key, "somebody else"));

    // (a) a foreign key everywhere
    let manager = redlock::<R, _>(urls(&nodes), config.clone());
    let taken = refusal(manager.lock(key.clone()).acquire().await.unwrap_err());
    assert_eq!(taken.reason, NotAcquiredReason::Taken);
    assert!(outcomes(&taken).iter().filter(|outcome| ***outcome == Outcome::No).count() >= 2, "{taken}");
    assert!(taken.is_taken());

    // (b) all ports closed
    let manager = redlock::<R, _>([closed(), closed(), closed()], config.clone());
    let unreachable = refusal(manager.lock(key.clone()).acquire().await.unwrap_err());
    assert_eq!(unreachable.reason, NotAcquiredReason::Unreachable);
    assert!(
        outcomes(&unreachable).iter().all(|outcome| matches!(outcome, Outcome::Fault(_))),
        "{unreachable}"
    );

    // (c) one foreign, two closed; told apart also with one attempt, when the closed ports decide it first
    for attempts in [1, 2] {
        let config = config.to_builder().attempts(attempts).build().unwrap();
        let manager = redlock::<R, _>([nodes[0].url(), closed(), closed()], config);
        let mixed = refusal(manager.lock(key.clone()).acquire().await.unwrap_err());
        assert_eq!(mixed.reason, NotAcquiredReason::Mixed, "{mixed}");
        assert_eq!(*outcomes(&mixed)[0], Outcome::No, "{mixed}");
        assert!(outcomes(&mixed)[1..].iter().all(|outcome| matches!(outcome, Outcome::Fault(_))), "{mixed}");
    }

    // (d) the caller's patience ends
    let manager = redlock::<R, _>(urls(&nodes), config);
    let watch = Stopwatch::start();
    let waited = refusal(manager.lock(key.clone()).acquire_within(ms(200)).await.unwrap_err());
    // On a busy machine the last attempt may be cut short before the nodes have refused it.
    assert!(matches!(waited.reason, NotAcquiredReason::WaitedInVain { .. }), "{waited}");
    assert!(watch.elapsed() >= ms(100) && watch.elapsed() < ms(1_500), "{:?}", watch.elapsed());
    assert_eq!(outcomes(&waited).len(), 3);
    let once = refusal(manager.lock(key.clone()).acquire_within(ms(0)).await.unwrap_err());
    assert!(once.is_taken(), "zero patience still asks once: {once}");

    let all_different = [taken.to_string(), unreachable.to_string(), waited.to_string()];
    assert!(all_different.iter().all(|a| all_different.iter().filter(|b| a == *b).count() == 1));
    nodes.iter().for_each(|node| assert_eq!(node.get(&key).as_deref(), Some("somebody else")));
    nodes.iter().for_each(|node| assert!(node.del(&key)));
}

pub async fn a9_only_odd_sets_and_a_tie_settles<R: Adapter>() {
    let urls = |count: usize| (0..count).map(|index| format!("redis://127.0.0.1:{}", 7_000 + index));
    for count in [0, 1, 2, 4] {
        let refused = Manager::<R>::redlock(urls(count), Config::default()).unwrap_err();
        assert_eq!(refused, ConfigError::NodeCount { given: count });
    }

    // one taken, one free, one down
    let nodes = shared_primaries(2);
    let key = key("a9");
    nodes[0].set(&key, "somebody else");
    let down = format!("redis://{}", unused_address());
    let config = Config::builder().ttl(ms(2_000)).attempts(1).build().unwrap();
    let manager = redlock::<R, _>([nodes[0].url(), nodes[1].url(), down], config);
    let watch = Stopwatch::start();
    let failure = refusal(manager.lock(key.clone()).acquire().await.unwrap_err());
    assert_eq!(failure.reason, NotAcquiredReason::Mixed);
    assert!(watch.elapsed() < ms(400 + 200), "{:?}", watch.elapsed());
    eventually::<R>("the free node is free again", ms(1_000), || nodes[1].get(&key).is_none()).await;
    nodes[0].del(&key);
}

pub async fn a10_one_node_has_one_vote<R: Adapter>() {
    let (a, b) = ("redis://127.0.0.1:7001", "redis://127.0.0.1:7002");
    // Another database or user of a server is still that server.
    for twice in [[a, a, b], [a, b, "redis://127.0.0.1:7001/5"], [a, b, "redis://user:secret@127.0.0.1:7001"]]
    {
        let refused = Manager::<R>::redlock(twice, Config::default()).unwrap_err();
        assert!(matches!(refused, ConfigError::DuplicateNode { .. }), "{refused}");
        assert!(refused.to_string().starts_with("127.0.0.1:7001 is given twice"), "{refused}");
    }
}

pub async fn a11_no_pause_is_no_busy_loop<R: Adapter>() {
    let nodes = shared_primaries(1);
    let key = key("a11");
    nodes[0].set(&key, "somebody else");
    let config = Config::builder().ttl(ms(2_000)).attempts(100).retry_delay(ms(0)).build().unwrap();
    let manager: Manager<R> = Manager::single(nodes[0].url(), config).unwrap();
    let watch = Stopwatch::start();
    let failure = refusal(manager.lock(key.clone()).acquire().await.unwrap_err());
    assert_eq!(failure.reason, NotAcquiredReason::Taken);
    // A hundred attempts with at least a millisecond between them.
    assert!(watch.elapsed() >= ms(99), "{:?}", watch.elapsed());
    assert_eq!(manager.stats().attempts_failed, 99);
    nodes[0].del(&key);
}

pub async fn a20_a_dead_node_on_the_fast_path<R: Adapter>() {
    let Some(nodes) = own_servers(5) else { return };
    let config = Config::builder().ttl(ms(20_000)).build().unwrap();
    let manager = redlock::<R, _>(urls(&nodes), config);
    let lock = manager.lock("a20");
    lock.acquire().await.unwrap().release().await.unwrap();
    nodes[4].kill();
    lock.acquire().await.unwrap().release().await.unwrap();
    let mut slowest = ms(0);
    for _ in 0..1_000 {
        let watch = Stopwatch::start();
        let lease = lock.acquire().await.unwrap();
        lease.release().await.unwrap();
        slowest = slowest.max(watch.elapsed());
    }
    // Far from the operation timeout of 500 ms, a connect timeout or a pause before a second attempt.
    assert!(slowest < ms(150), "{slowest:?}");
    assert_eq!(manager.stats().attempts_failed, 0);
}

pub async fn fencing_tokens_increase<R: Adapter>() {
    let nodes = shared_primaries(1);
    let manager: Manager<R> = Manager::single(nodes[0].url(), Config::default()).unwrap();
    let (key, fence) = (key("fenced"), key("fence"));
    let lock = manager.lock(key).fencing(fence.clone());
    for expected in 1..=5 {
        let lease = lock.acquire().await.unwrap();
        assert_eq!(lease.fencing_token().unwrap().get(), expected);
        lease.extend(ms(40_000)).await.unwrap();
        assert_eq!(lease.fencing_token().unwrap().get(), expected, "an extension takes no new token");
        lease.release().await.unwrap();
    }
    assert_eq!(nodes[0].get(&fence).as_deref(), Some("5"), "the counter is kept after the release");
    assert_eq!(nodes[0].pttl(&fence), -1);
    nodes[0].del(&fence);
}

pub async fn fencing_is_refused_on_independent_nodes<R: Adapter>() {
    let nodes = shared_primaries(3);
    let manager = redlock::<R, _>(urls(&nodes), Config::default());
    let (key, fence) = (key("fenced"), key("fence"));
    let refused = manager.lock(key.clone()).fencing(fence.clone()).acquire().await.unwrap_err();
    assert!(matches!(refused, Error::FencingUnsupported(_)), "{refused}");
    pause::<R>(ms(50)).await;
    assert_eq!(holders(&nodes, &key) + holders(&nodes, &fence), 0);
}

pub async fn a18_a_waiting_contender_gets_its_turn<R: Adapter>() {
    let nodes = shared_primaries(3);
    let config = Config::builder().ttl(ms(600)).attempts(1).retry_delay(ms(20)).build().unwrap();
    let manager = redlock::<R, _>(urls(&nodes), config);
    let lock = manager.lock(key("turn"));
    let lease = lock.acquire().await.unwrap();
    // Released by hand ...
    let release = async {
        pause::<R>(ms(150)).await;
        lease.release().await.unwrap();
    };
    let (turn, ()) = futures_util::future::join(lock.acquire_within(ms(5_000)), release).await;
    // ... and left to expire: forgetting a lease is what a crashed process does.
    std::mem::forget(turn.unwrap());
    let watch = Stopwatch::start();
    let turn = lock.acquire_within(ms(5_000)).await.unwrap();
    assert!(watch.elapsed() >= ms(300), "{:?}", watch.elapsed());
    turn.release().await.unwrap();
}

pub async fn callers_of_one_manager_are_served_in_the_order_of_coming<R: Adapter>() {
    let nodes = shared_primaries(3);
    let manager = redlock::<R, _>(urls(&nodes), Config::default());
    let lock = manager.lock(key("line"));
    // The first release finds out in which form the nodes take it, and may come behind the next acquire.
    lock.acquire().await.unwrap().release().await.unwrap();
    let served = std::sync::Mutex::new(Vec::new());
    let callers = (0..8).map(async |number| {
        let lease = lock.acquire_within(ms(20_000)).await.unwrap();
        served.lock().unwrap().push(number);
        pause::<R>(ms(5)).await;
        lease.release().await.unwrap();
    });
    futures_util::future::join_all(callers).await;
    assert_eq!(*served.lock().unwrap(), (0..8).collect::<Vec<_>>());
    assert_eq!(manager.stats().attempts_failed, 0, "nobody asked out of turn");
}
