//! Users with no more rights than they need.

use std::collections::BTreeMap;

use redis::ConnectionLike;
use redlock_driver::{Config, Error, Manager, Node};

use super::Adapter;
use super::support::{ms, pause, timed};
use crate::harness::{Dialect, Server, Watched, may_own_servers};

/// The page that says which rights those are.
const PAGE: &str = include_str!("../../../docs/operations.md");

/// The line of a configuration file in it for this user.
fn documented(user: &str) -> &'static str {
    let start = format!("user {user} ");
    let mut lines = PAGE.lines().filter(|line| line.starts_with(&start));
    let line = lines.next().unwrap_or_else(|| panic!("docs/operations.md has the line of a user `{user}`"));
    assert!(line.contains(" >PASSWORD ") && line.contains(" ~lock:* "), "{line}");
    assert_eq!(lines.next(), None, "only one such line");
    line
}

/// The right to the compare command of the server under test, if it has one, as the page names it.
fn to_compare(dialect: Dialect) -> Option<&'static str> {
    let valkey = after("on Valkey from 9.0 on: ACL SETUSER locker ");
    let redis = after("on Redis from 8.4 on: ACL SETUSER locker ");
    assert_eq!((valkey, redis), ("+delifeq", "+delex"));
    match dialect {
        Dialect { delifeq: true, .. } => Some(valkey),
        Dialect { delex: true, .. } => Some(redis),
        _ => None,
    }
}

/// What the server under test has.
fn dialect() -> Dialect {
    Dialect::of(&Server::start())
}

/// A server with this user, and nobody else who could do anything.
fn server(line: &str) -> Server {
    let line = line.replace("PASSWORD", "hunter2");
    Server::builder().config(&format!("{line}\n")).start()
}

/// Everything that a lease does, on a server that knows no script yet.
async fn all_of_it<R: Adapter>(server: &Server, protocol: &str) -> Result<(), Error> {
    let manager = manager::<R>(server, "locker", protocol);
    let locks = [manager.lock("lock:plain"), manager.lock("lock:fenced").fencing("lock:fence")];
    for lock in locks {
        let lease = lock.acquire().await?;
        lease.extend(ms(30_000)).await?;
        assert!(matches!(lock.acquire().await, Err(Error::NotAcquired(failure)) if failure.is_taken()));
        lease.release().await?;
    }
    manager.close().await;
    assert_eq!(server.keys_matching("lock:*"), ["lock:fence"]);
    Ok(())
}

fn manager<R: Adapter>(server: &Server, user: &str, protocol: &str) -> Manager<R> {
    let url = format!("redis://{user}:hunter2@{}/?protocol={protocol}", server.address());
    Manager::single(url, Config::builder().ttl(ms(20_000)).attempts(1).build().unwrap()).unwrap()
}

pub async fn the_documented_rights_are_enough_and_all_are_needed<R: Adapter>() {
    if !may_own_servers() {
        return;
    }
    let dialect = dialect();
    println!("the server has {dialect}");
    let compare = to_compare(dialect);
    let line = [documented("locker"), compare.unwrap_or_default()].join(" ");
    let line = line.trim_end();
    for protocol in ["resp2", "resp3"] {
        let server = server(line);
        all_of_it::<R>(&server, protocol).await.unwrap();
        let denied = denied(&server);
        assert!(denied.is_empty(), "{protocol}: {denied:?}");
    }

    // One right less, and something fails, where there is no other way.
    let rights: Vec<_> = line.split(' ').filter(|word| word.starts_with('+')).collect();
    assert!(rights.len() > 5, "{rights:?}");
    let server = server(line);
    for right in rights {
        let spare = match right {
            "+del" => dialect.releases_by_comparing(),
            "+pexpire" => dialect.extends_by_comparing(),
            right => compare == Some(right),
        };
        let mut connection = server.connection();
        let change = |connection: &mut redis::Connection, rule: &str| {
            redis::cmd("ACL").arg("SETUSER").arg("locker").arg(rule).exec(connection).unwrap();
            redis::cmd("SCRIPT").arg("FLUSH").exec(connection).unwrap();
        };
        change(&mut connection, &right.replace('+', "-"));
        let outcome = all_of_it::<R>(&server, "resp2").await;
        assert_eq!(outcome.is_ok(), spare, "without {right}: {outcome:?}");
        change(&mut connection, right);
        redis::cmd("DEL").arg("lock:plain").arg("lock:fenced").exec(&mut connection).unwrap();
        assert!(connection.check_connection());
    }
}

/// The rights for any server are enough on those, too, that compare: these are asked once, say no, and are left
/// alone.
pub async fn the_rights_for_scripts_are_enough_everywhere<R: Adapter>() {
    if !may_own_servers() {
        return;
    }
    let server = server(documented("locker"));
    let compare = to_compare(Dialect::of(&server));
    let manager = manager::<R>(&server, "locker", "resp2");
    for _ in 0..3 {
        let lease = manager.lock("lock:plain").acquire().await.unwrap();
        lease.extend(ms(30_000)).await.unwrap();
        lease.release().await.unwrap();
    }
    let expected: Vec<_> = compare.iter().map(|right| right.trim_start_matches('+')).collect();
    assert_eq!(denied(&server), expected);
}

pub async fn without_scripts_the_documented_rights_are_enough_and_all_are_needed<R: Adapter>() {
    if !may_own_servers() {
        return;
    }
    let dialect = dialect();
    let documented = documented("unscripted");
    assert!(documented.ends_with("-@all +set +delifeq"), "{documented}");
    let Some(compare) = to_compare(dialect) else {
        // Acquiring is all that works.
        let server = server(documented.trim_end_matches(" +delifeq"));
        let lease = manager::<R>(&server, "unscripted", "resp2").lock("lock:plain").acquire().await.unwrap();
        for refused in [lease.extend(ms(30_000)).await, lease.release().await] {
            let refused = refused.unwrap_err().to_string();
            assert!(refused.contains("NOPERM"), "{refused}");
        }
        return;
    };
    let line = documented.replace("+delifeq", compare);
    for protocol in ["resp2", "resp3"] {
        let server = server(&line);
        let manager = manager::<R>(&server, "unscripted", protocol);
        for _ in 0..2 {
            let lease = manager.lock("lock:plain").acquire().await.unwrap();
            if dialect.extends_by_comparing() {
                lease.extend(ms(30_000)).await.unwrap();
            }
            lease.release().await.unwrap();
        }
        let denied = denied(&server);
        assert!(denied.is_empty() && server.keys().is_empty(), "{protocol}: {denied:?}");

        // Neither can be spared.
        let change = |rule: &str| {
            let mut connection = server.connection();
            redis::cmd("ACL").arg("SETUSER").arg("unscripted").arg(rule).exec(&mut connection).unwrap();
        };
        change("-set");
        let refused = manager.lock("lock:plain").acquire().await.unwrap_err().to_string();
        assert!(refused.contains("NOPERM"), "{refused}");
        change("+set");
        change(&compare.replace('+', "-"));
        let lease = manager.lock("lock:plain").acquire().await.unwrap();
        let refused = lease.release().await.unwrap_err().to_string();
        assert!(refused.contains("NOPERM"), "{refused}");
    }
}

/// One right more, and whoever waits is woken; without it he gets his lease at the end of the pause, and hears of
/// nothing.
pub async fn to_be_woken_takes_one_right_more<R: Adapter>() {
    if !may_own_servers() {
        return;
    }
    let right = after("to be woken: ACL SETUSER locker ");
    assert_eq!(right, "+client|tracking");
    for (line, retry_delay) in [
        ([documented("locker"), right].join(" "), ms(60_000)),
        // It reads the key, for which scripts have the right in any case.
        (documented("unscripted").replace("+delifeq", "+get ") + right, ms(60_000)),
        (documented("locker").to_owned(), ms(200)),
        (documented("locker").replace("+get ", "") + " " + right, ms(200)),
    ] {
        let server = server(&line);
        let user = line.split(' ').nth(1).unwrap();
        let url = format!("redis://{user}:hunter2@{}", server.address());
        let config = Config::builder().ttl(ms(20_000)).retry_delay(retry_delay).build().unwrap();
        let manager: Manager<R> = Manager::single(url, config).unwrap();
        server.set("lock:a", "somebody else");
        let free = async {
            pause::<R>(ms(500)).await;
            server.del("lock:a");
        };
        let lock = manager.lock("lock:a");
        let acquire = timed(lock.acquire_within(ms(20_000)));
        let ((lease, took), ()) = futures_util::future::join(acquire, free).await;
        drop(lease.unwrap_or_else(|error| panic!("{line}: {error}")));
        assert!(took < ms(3_000), "{line}: {took:?}");
        manager.close().await;
    }
}

/// Behind sentinels the primary is asked for its role; and whoever asks the sentinels may ask nothing else.
pub async fn behind_sentinels_one_right_more_is_needed<R: Adapter>() {
    if !may_own_servers() {
        return;
    }
    let watched = Watched::start();
    let [primary, _] = watched.servers();
    let rules = |words: &str| words.replace("PASSWORD", "hunter2").split(' ').map(str::to_owned).collect();
    let set_user = |server: &Server, rules: Vec<String>| {
        redis::cmd("ACL").arg("SETUSER").arg("locker").arg(rules).exec(&mut server.connection()).unwrap();
    };
    set_user(primary, rules(documented("locker").strip_prefix("user locker ").unwrap()));
    if let Some(compare) = to_compare(Dialect::of(primary)) {
        set_user(primary, rules(compare));
    }
    set_user(watched.sentinel(), rules(after("on the sentinels: ACL SETUSER locker ")));

    let sentinel = format!("redis://locker:hunter2@{}", watched.sentinel().address());
    let node = Node::sentinel([sentinel], Watched::SERVICE).primary_like("redis://locker:hunter2@any");
    let config = Config::builder().attempts(1).build().unwrap();
    let manager: Manager<R> = Manager::single(node.clone(), config.clone()).unwrap();
    let refused = manager.lock("lock:a").acquire().await.unwrap_err().to_string();
    assert!(refused.contains("rejected") && refused.contains("NOPERM"), "{refused}");

    set_user(primary, rules(after("on the servers: ACL SETUSER locker ")));
    let manager: Manager<R> = Manager::single(node, config).unwrap();
    manager.lock("lock:a").fencing("lock:fence").acquire().await.unwrap().release().await.unwrap();
    assert_eq!((denied(primary), denied(watched.sentinel())), (vec!["role".to_owned()], vec![]));
}

/// What follows these words on their line of the page.
fn after(words: &str) -> &'static str {
    let found = PAGE.lines().find_map(|line| line.strip_prefix(words));
    found.unwrap_or_else(|| panic!("docs/operations.md has a line that begins with {words:?}"))
}

/// What the server would not let somebody do, but for how the client introduces itself (`CLIENT SETINFO`):
/// that is refused without harm.
fn denied(server: &Server) -> Vec<String> {
    let log = redis::cmd("ACL").arg("LOG").query(&mut server.connection());
    let log: Vec<BTreeMap<String, redis::Value>> = log.unwrap();
    let object = |mut entry: BTreeMap<String, redis::Value>| -> String {
        redis::from_redis_value(entry.remove("object").unwrap()).unwrap()
    };
    log.into_iter().map(object).filter(|object| !matches!(&**object, "client" | "client|setinfo")).collect()
}
