//! Servers that answer, but with an error: a failed node, with the server's code kept.

use redlock_driver::{Config, Error, Fault, Manager, NotAcquiredReason, Outcome};

use super::Adapter;
use super::support::{eventually, key, ms, pause};
use crate::harness::{FakeServer, Server, may_own_servers, shared_primaries, unused_address};

fn config() -> Config {
    Config::builder().ttl(ms(2_000)).attempts(1).build().unwrap()
}

/// The fault of the only node of a manager that cannot acquire. What the user reads names the node, and for a
/// server's error that has a remedy, the remedy.
async fn fault<R: Adapter>(manager: &Manager<R>, fenced: bool) -> Fault {
    let mut lock = manager.lock(key("refused"));
    if fenced {
        lock = lock.fencing(key("refused-fence"));
    }
    let failure = match lock.acquire().await.unwrap_err() {
        Error::NotAcquired(failure) => failure,
        other => panic!("{other}"),
    };
    assert_eq!(failure.reason, NotAcquiredReason::Unreachable, "{failure}");
    let node = &failure.quorum.nodes[0];
    match &node.outcome {
        Outcome::Fault(fault) => {
            let remedy = fault.cause().remedy();
            let message = failure.to_string();
            assert!(message.contains(&format!("({}): ", node.name)), "{message}");
            assert_eq!(message.matches("remedy: ").count(), usize::from(remedy.is_some()), "{message}");
            assert!(message.contains(remedy.unwrap_or_default()), "{message}");
            fault.clone()
        }
        other => panic!("{other:?}"),
    }
}

pub async fn every_error_code_is_a_failed_node_with_its_code<R: Adapter>() {
    let certain = [
        "READONLY",
        "BUSY",
        "LOADING",
        "NOAUTH",
        "WRONGPASS",
        "NOPERM",
        "MASTERDOWN",
        "CLUSTERDOWN",
        "MOVED",
        "TRYAGAIN",
        "CROSSSLOT",
    ];
    let certain_for_plain = ["OOM", "MISCONF", "NOREPLICAS"];
    let uncertain = ["ERR", "UNKILLABLE", "MYERR", "EXECABORT"];
    let server = FakeServer::start("ERR");
    let manager: Manager<R> = Manager::single(server.url(), config()).unwrap();
    for code in certain.into_iter().chain(certain_for_plain).chain(uncertain) {
        server.set_error(&format!("{code} so it is"));
        for fenced in [false, true] {
            let fault = fault(&manager, fenced).await;
            assert_eq!(fault.cause().code(), Some(code));
            // Every code that says what is wrong also says what to do; those without a meaning do not.
            assert_eq!(fault.cause().remedy().is_none(), uncertain.contains(&code), "{code}");
            let known = certain.contains(&code) || (certain_for_plain.contains(&code) && !fenced);
            assert_eq!(matches!(fault, Fault::NotExecuted(_)), known, "{code}, fenced: {fenced}");
        }
    }
}

pub async fn real_servers_refuse_with_their_codes<R: Adapter>() {
    if !may_own_servers() {
        return;
    }
    let server = Server::start();
    let manager: Manager<R> = Manager::single(server.url(), config()).unwrap();
    let (host, port) = ("127.0.0.1", unused_address());
    let port = port.rsplit_once(':').unwrap().1.to_owned();
    let mut connection = server.connection();
    let mut ask = |words: &[&str]| {
        let mut command = redis::cmd(words[0]);
        words[1..].iter().for_each(|word| {
            command.arg(word);
        });
        command.exec(&mut connection).unwrap();
    };

    ask(&["CONFIG", "SET", "min-replicas-to-write", "1"]);
    assert_eq!(fault(&manager, false).await.cause().code(), Some("NOREPLICAS"));
    ask(&["CONFIG", "SET", "min-replicas-to-write", "0"]);

    ask(&["CONFIG", "SET", "maxmemory", "1"]);
    assert_eq!(fault(&manager, false).await.cause().code(), Some("OOM"));
    // Before Redis 7 a script's error has a code of its own, and the reason in its text.
    assert!(fault(&manager, true).await.to_string().contains("OOM "));
    ask(&["CONFIG", "SET", "maxmemory", "0"]);

    // A snapshot that fails, because a folder is where it is to go.
    let snapshot = format!("{}/dump.rdb", server.config_get("dir"));
    ask(&["CONFIG", "SET", "save", "3600 1"]);
    ask(&["SET", &key("changed"), "1"]);
    std::fs::create_dir(&snapshot).unwrap();
    ask(&["BGSAVE"]);
    eventually::<R>("the snapshot fails", ms(5_000), || {
        server.info("rdb_last_bgsave_status").as_deref() == Some("err")
    })
    .await;
    assert_eq!(fault(&manager, false).await.cause().code(), Some("MISCONF"));
    assert!(fault(&manager, true).await.to_string().contains("MISCONF "));
    ask(&["CONFIG", "SET", "save", ""]);

    ask(&["REPLICAOF", host, &port]);
    assert_eq!(fault(&manager, false).await.cause().code(), Some("READONLY"));
    assert!(fault(&manager, true).await.to_string().contains("READONLY "));
    ask(&["CONFIG", "SET", "replica-read-only", "no"]);
    ask(&["CONFIG", "SET", "replica-serve-stale-data", "no"]);
    assert_eq!(fault(&manager, false).await.cause().code(), Some("MASTERDOWN"));
    ask(&["REPLICAOF", "NO", "ONE"]);

    // Busy with a script that goes on until it is killed.
    ask(&["CONFIG", "SET", "lua-time-limit", "1"]);
    let mut other = server.connection();
    let script = std::thread::spawn(move || {
        redis::cmd("EVAL").arg("while true do end").arg(0).exec(&mut other).unwrap_err()
    });
    pause::<R>(ms(100)).await;
    assert_eq!(fault(&manager, false).await.cause().code(), Some("BUSY"));
    ask(&["SCRIPT", "KILL"]);
    script.join().unwrap();

    // A user without the right to what is asked.
    ask(&["ACL", "SETUSER", "poor", "on", ">secret", "~*", "+get"]);
    let url = format!("redis://poor:secret@{}/", server.address());
    let poor: Manager<R> = Manager::single(url, config()).unwrap();
    assert_eq!(fault(&poor, false).await.cause().code(), Some("NOPERM"));

    // And all is well again.
    let lock = manager.lock(key("well")).fencing(key("well-fence"));
    lock.acquire_within(ms(5_000)).await.unwrap().release().await.unwrap();
}

pub async fn wrong_passwords_are_named_and_not_shown<R: Adapter>() {
    if !may_own_servers() {
        return;
    }
    let server = Server::builder().password("swordfish").start();
    let address = server.address().to_owned();
    for (url, code) in [
        (format!("redis://{address}/"), "NOAUTH"),
        (format!("redis://{address}/?protocol=resp3"), "NOAUTH"),
        (format!("redis://:hunter2@{address}/"), "rejected"),
        (format!("redis://:hunter2@{address}/?protocol=resp3"), "rejected"),
        (format!("redis://somebody:hunter2@{address}/"), "rejected"),
    ] {
        let manager: Manager<R> = Manager::single(url.clone(), config()).unwrap();
        let message = manager.lock(key("auth")).acquire().await.unwrap_err().to_string();
        assert!(message.contains(code) || message.contains("rejected"), "{url}: {message}");
        assert!(message.contains(&address) && !message.contains("hunter2"), "{message}");
    }
    // Special characters are written as in any URL.
    let user = ["SETUSER", "odd", "on", ">correct:horse/battery", "~*", "+@all"];
    redis::cmd("ACL").arg(&user).exec(&mut server.connection()).unwrap();
    let right = format!("redis://odd:correct%3Ahorse%2Fbattery@{address}/");
    let manager: Manager<R> = Manager::single(right, config()).unwrap();
    manager.lock(key("auth")).acquire().await.unwrap().release().await.unwrap();
    let debug = format!("{manager:?}");
    assert!(!debug.contains("battery"), "{debug}");

    // The same over servers that others use as well: a wrong password where none is set.
    let nodes = shared_primaries(1);
    let url = format!("redis://:hunter2@{}/", nodes[0].address());
    let manager: Manager<R> = Manager::single(url, config()).unwrap();
    let message = manager.lock(key("auth")).acquire().await.unwrap_err().to_string();
    assert!(message.contains("rejected") && !message.contains("hunter2"), "{message}");
    eventually::<R>("nothing runs", ms(1_000), || manager.stats().running == 0).await;
}
