//! Releases and extensions without scripts, where the server compares by itself; and with scripts elsewhere.

use redlock_driver::{Config, Error, Lease, LockLost, LossReason, Manager};

use super::Adapter;
use super::support::{eventually, key, ms, pause, redlock};
use crate::harness::{Dialect, Speaker, own_servers, shared_primaries};

fn config() -> Config {
    Config::builder().ttl(ms(20_000)).attempts(1).build().unwrap()
}

/// A user who may not run scripts, on whichever server is under test.
pub async fn scripts_may_be_forbidden_where_the_server_compares<R: Adapter>() {
    let Some(servers) = own_servers(1) else { return };
    let server = &servers[0];
    let dialect = Dialect::of(server);
    println!("the server has {dialect}");
    let mut user = redis::cmd("ACL");
    user.arg("SETUSER").arg("locker").arg("on").arg(">hunter2").arg("~lock:*").arg("-@all").arg("+set");
    for (there, name) in [(dialect.delifeq, "+delifeq"), (dialect.delex, "+delex")] {
        if there {
            user.arg(name);
        }
    }
    user.exec(&mut server.connection()).unwrap();
    let url = format!("redis://locker:hunter2@{}/", server.address());
    let manager: Manager<R> = Manager::single(url, config()).unwrap();

    let lease = manager.lock("lock:plain").acquire().await.unwrap();
    let extended = lease.extend(ms(60_000)).await;
    if dialect.extends_by_comparing() {
        extended.unwrap();
        assert!(server.pttl("lock:plain") > 20_000);
    } else {
        refused_for_want_of_scripts(&extended.unwrap_err());
    }
    let released = lease.release().await;
    if dialect.releases_by_comparing() {
        released.unwrap();
        assert!(server.keys().is_empty());
    } else {
        refused_for_want_of_scripts(&released.unwrap_err());
        assert_eq!(server.keys(), ["lock:plain"]);
    }

    // A fencing token needs a script in any case.
    let fenced = manager.lock("lock:fenced").fencing("lock:fence").acquire().await;
    refused_for_want_of_scripts(&fenced.unwrap_err());
}

fn refused_for_want_of_scripts(error: &Error) {
    let text = error.to_string();
    assert!(text.contains("NOPERM") && text.contains("remedy: "), "{text}");
}

/// The server's statistics show which way was taken.
pub async fn the_best_that_the_server_has_is_used<R: Adapter>() {
    let Some(servers) = own_servers(1) else { return };
    let server = &servers[0];
    let dialect = Dialect::of(server);
    let manager: Manager<R> = Manager::single(server.url(), config()).unwrap();
    let calls = |name| server.command_calls(name);
    let before = ["set", "delifeq", "delex"].map(calls);
    for _ in 0..10 {
        let lease = manager.lock("lock").acquire().await.unwrap();
        lease.extend(ms(30_000)).await.unwrap();
        lease.release().await.unwrap();
    }
    let [sets, delifeqs, delexes] = ["set", "delifeq", "delex"].map(calls);
    let [sets, deletes] = [sets - before[0], delifeqs + delexes - before[1] - before[2]];
    let by_script = u64::from(!dialect.extends_by_comparing()) + u64::from(!dialect.releases_by_comparing());
    assert_eq!(calls("evalsha"), 10 * by_script, "{dialect}");
    assert_eq!(sets, if dialect.extends_by_comparing() { 20 } else { 10 }, "{dialect}");
    // A command that is asked for without arguments is rejected, and counted only as that.
    let expected = if dialect.releases_by_comparing() { 10 } else { 0 };
    assert_eq!(deletes, expected, "{dialect}");
}

/// What every server answers to every state of the key, in whichever way it is asked.
pub async fn what_is_not_ours_is_neither_extended_nor_deleted<R: Adapter>() {
    let nodes = shared_primaries(1);
    let manager: Manager<R> = Manager::single(nodes[0].url(), config()).unwrap();
    let held = async |name: &str| -> (std::sync::Arc<str>, Lease<R>) {
        let key = key(name);
        let lease = manager.lock(key.clone()).acquire().await.unwrap();
        (key, lease)
    };
    let refused = Error::LockLost(LockLost { reason: LossReason::Refused });

    let (gone, lease) = held("gone").await;
    assert!(nodes[0].del(&gone));
    assert_eq!(lease.extend(ms(30_000)).await.unwrap_err(), refused);
    assert_eq!(nodes[0].get(&gone), None, "an extension creates nothing");

    for extends in [true, false] {
        let (taken, lease) = held("taken").await;
        nodes[0].set_px(&taken, "somebody else", ms(60_000));
        let told = if extends { lease.extend(ms(10_000)).await } else { lease.release().await };
        assert_eq!(told.unwrap_err(), refused);
        assert_eq!(nodes[0].get(&taken).as_deref(), Some("somebody else"));
        assert!(nodes[0].pttl(&taken) > 50_000);
        assert!(nodes[0].del(&taken));

        // Of another type: an error, not an answer.
        let (odd, lease) = held("odd").await;
        assert!(nodes[0].del(&odd));
        redis::cmd("RPUSH").arg(&*odd).arg("x").exec(&mut nodes[0].connection()).unwrap();
        let told = if extends { lease.extend(ms(10_000)).await } else { lease.release().await };
        let told = told.unwrap_err();
        assert!(matches!(told, Error::NotExtended(_) | Error::NotReleased(_)), "{told}");
        assert_eq!(nodes[0].pttl(&odd), -1);
        assert!(nodes[0].del(&odd));
    }
}

/// There a server refuses every `SET`, but what is held can still be extended.
pub async fn at_the_memory_limit_leases_go_on<R: Adapter>() {
    let Some(servers) = own_servers(1) else { return };
    let server = &servers[0];
    let manager: Manager<R> = Manager::single(server.url(), config()).unwrap();
    for known in [false, true] {
        let lease = manager.lock("lock").acquire().await.unwrap();
        if known {
            lease.extend(ms(30_000)).await.unwrap();
        }
        server.config_set("maxmemory", "1");
        lease.extend(ms(60_000)).await.unwrap();
        assert!(server.pttl("lock") > 30_000);
        lease.release().await.unwrap();
        assert!(server.keys().is_empty());
        server.config_set("maxmemory", "0");
    }
}

/// Acquires, extends and releases.
async fn cycle<R: Adapter>(manager: &Manager<R>) {
    let lease = manager.lock("lock").acquire().await.unwrap();
    lease.extend(ms(30_000)).await.unwrap();
    lease.release().await.unwrap();
}

pub async fn every_dialect_is_spoken_after_one_trial<R: Adapter>() {
    type Calls = &'static [&'static str];
    let by_script: [Calls; 2] =
        [&["SET", "DELIFEQ", "EVALSHA", "DELEX", "EVALSHA"], &["SET", "EVALSHA", "EVALSHA"]];
    let by_valkey: [Calls; 2] = [&["SET", "DELIFEQ", "SET", "DELIFEQ"], &["SET", "SET", "DELIFEQ"]];
    let table: [(Dialect, [Calls; 2]); 5] = [
        (Dialect::OLD, by_script),
        (Dialect::VALKEY_8_1, by_script),
        (Dialect::VALKEY_9, by_valkey),
        (Dialect::VALKEY_9.without_scripts(), by_valkey),
        (Dialect::REDIS_8_4, [&["SET", "DELIFEQ", "EVALSHA", "DELEX"], &["SET", "EVALSHA", "DELEX"]]),
    ];
    for (dialect, [first, then]) in table {
        let server = Speaker::start(dialect);
        let manager: Manager<R> = Manager::single(server.url(), config()).unwrap();
        cycle(&manager).await;
        assert_eq!(server.calls(), first, "{dialect}");
        for _ in 0..3 {
            cycle(&manager).await;
            assert_eq!(server.calls(), then, "{dialect}");
        }
        assert!(server.keys().is_empty());
    }
}

pub async fn without_any_way_the_error_names_the_right<R: Adapter>() {
    for dialect in [Dialect::OLD, Dialect::VALKEY_8_1, Dialect::REDIS_8_4].map(Dialect::without_scripts) {
        let server = Speaker::start(dialect);
        let manager: Manager<R> = Manager::single(server.url(), config()).unwrap();
        let lease = manager.lock("lock").acquire().await.unwrap();
        refused_for_want_of_scripts(&lease.extend(ms(30_000)).await.unwrap_err());
        match lease.release().await {
            Ok(()) => assert!(dialect.releases_by_comparing()),
            Err(error) => refused_for_want_of_scripts(&error),
        }
    }
}

/// Redis 8.6.2 and 8.6.3 corrupt their memory by `SET ... IFEQ ... PX` while keys come and go, and crash within
/// seconds. So this would kill them.
pub async fn a_server_survives_leases_that_come_and_go<R: Adapter>() {
    let Some(servers) = own_servers(1) else { return };
    let server = &servers[0];
    let manager: Manager<R> = Manager::single(server.url(), config()).unwrap();
    let one = async |number: u64| {
        let lease = manager.lock(format!("lock-{number}")).acquire().await.unwrap();
        for extension in 0..number % 4 {
            pause::<R>(ms(number % 7)).await;
            lease.extend(ms(20_000 + extension)).await.unwrap();
        }
        lease.release().await.unwrap();
    };
    for batch in 0..40 {
        futures_util::future::join_all((0..50).map(|number| one(batch * 50 + number))).await;
    }
    assert!(server.is_running() && server.keys().is_empty());
}

/// Another server takes over, which has less, more or other commands.
pub async fn after_a_failover_the_new_servers_commands_are_used<R: Adapter>() {
    let (old, redis, valkey) = (Dialect::OLD, Dialect::REDIS_8_4, Dialect::VALKEY_9);
    let table = [
        (valkey, old),
        (redis, old),
        (redis, valkey.without_scripts()),
        (old, valkey.without_scripts()),
        (valkey, redis),
        (valkey, Dialect::VALKEY_8_1),
    ];
    for (before, after) in table {
        let server = Speaker::start(before);
        let manager: Manager<R> = Manager::single(server.url(), config()).unwrap();
        cycle(&manager).await;
        let lease = manager.lock("lock").acquire().await.unwrap();
        server.becomes(after);
        // The connection was closed, which the first command cannot know.
        let told = lease.extend(ms(30_000)).await;
        assert!(matches!(told, Ok(()) | Err(Error::NotExtended(_))), "{told:?}");
        lease.extend(ms(30_000)).await.unwrap();
        lease.release().await.unwrap();
        cycle(&manager).await;
        assert!(server.keys().is_empty(), "{before} to {after}");
    }
}

pub async fn nodes_of_one_set_may_differ<R: Adapter>() {
    let dialects = [
        Dialect::OLD,
        Dialect::VALKEY_8_1,
        Dialect::VALKEY_9.without_scripts(),
        Dialect::VALKEY_9,
        Dialect::REDIS_8_4,
    ];
    let nodes = dialects.map(Speaker::start);
    let manager: Manager<R> = redlock(nodes.iter().map(Speaker::url), config());
    for _ in 0..5 {
        cycle(&manager).await;
        // The slowest node too.
        eventually::<R>("all is answered", ms(2_000), || manager.stats().running == 0).await;
        assert!(nodes.iter().all(|node| node.keys().is_empty()));
    }
    let scripted: Vec<_> = nodes.iter().map(|node| node.calls().contains(&"EVALSHA".to_owned())).collect();
    assert_eq!(scripted, [true, true, false, false, true]);
}
