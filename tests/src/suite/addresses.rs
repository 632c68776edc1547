//! All the ways to say where a server is and who is asking.

use redlock_driver::{Config, Error, Manager};

use super::Adapter;
use super::support::{eventually, key, ms, pause};
use crate::harness::{Primary, Relay, Server, Stopwatch, may_own_servers, own_servers, url_encoded};

fn config() -> Config {
    Config::builder().ttl(ms(20_000)).attempts(1).build().unwrap()
}

/// Everything that a lease does, in both protocols.
async fn all_of_it<R: Adapter>(url: &str, look: impl Fn(&str) -> Option<String>) {
    let separator = if url.contains('?') { '&' } else { '?' };
    for protocol in ["resp2", "resp3"] {
        let url = format!("{url}{separator}protocol={protocol}");
        let manager: Manager<R> = Manager::single(url.as_str(), config()).unwrap();
        let (key, fence) = (key("address"), key("address-fence"));
        for lock in [manager.lock(key.clone()), manager.lock(key.clone()).fencing(fence)] {
            let lease = lock.acquire().await.unwrap_or_else(|error| panic!("{url}: {error}"));
            assert_eq!(look(&key).as_deref(), Some(lease.token().to_hex().as_str()), "{url}");
            lease.extend(ms(30_000)).await.unwrap();
            assert!(matches!(lock.acquire().await, Err(Error::NotAcquired(failure)) if failure.is_taken()));
            lease.release().await.unwrap();
            assert_eq!(look(&key), None, "{url}");
        }
        manager.close().await;
    }
}

pub async fn unix_sockets_in_every_spelling<R: Adapter>() {
    if !may_own_servers() {
        return;
    }
    let open = Server::start();
    let path = open.socket();
    let path = path.to_str().unwrap();
    for scheme in ["unix", "redis+unix", "valkey+unix"] {
        all_of_it::<R>(&format!("{scheme}://{path}"), |key| open.get(key)).await;
    }
    let manager: Manager<R> = Manager::single(format!("unix://{path}"), config()).unwrap();
    open.kill();
    let refused = manager.lock("gone").acquire().await.unwrap_err().to_string();
    assert!(refused.contains(&format!("(unix:{path})")), "{refused}");

    // User, password and database are in the query.
    let guarded = Server::builder().password(ODD).start();
    let path = guarded.socket();
    let url = format!("redis+unix://{}?db=3&pass={}", path.display(), url_encoded(ODD));
    all_of_it::<R>(&url, |key| in_database(&guarded, 3, key)).await;
}

pub async fn odd_credentials_and_databases_in_urls<R: Adapter>() {
    if !may_own_servers() {
        return;
    }
    let server = Server::builder().password(ODD).start();
    let user = ["SETUSER", USER, "on", &format!(">{ODD}"), "~*", "+@all"];
    redis::cmd("ACL").arg(&user).exec(&mut server.connection()).unwrap();
    let (address, password, user) = (server.address(), url_encoded(ODD), url_encoded(USER));
    for (who, database) in [
        (format!(":{password}"), 0),
        (format!("default:{password}"), 5),
        (format!("{user}:{password}"), 0),
        (format!("{user}:{password}"), 15),
    ] {
        let url = format!("redis://{who}@{address}/{database}");
        all_of_it::<R>(&url, |key| in_database(&server, database, key)).await;
        let manager: Manager<R> = Manager::single(url, config()).unwrap();
        assert!(!format!("{manager:?}").contains('@'), "{manager:?}");
    }

    let beyond = format!("redis://:{password}@{address}/16");
    let manager: Manager<R> = Manager::single(beyond, config()).unwrap();
    let refused = manager.lock("beyond").acquire().await.unwrap_err().to_string();
    assert!(refused.contains("DB index is out of range") && !refused.contains('@'), "{refused}");
}

/// Every character that means something in a URL, and some that do in a server's configuration.
const ODD: &str = "p@ss:w/rd%?#&=[] \"'\\+ü";
const USER: &str = "lock/er@home:1";

fn in_database(server: &Primary, database: u32, key: &str) -> Option<String> {
    let mut connection = server.connection();
    redis::cmd("SELECT").arg(database).exec(&mut connection).unwrap();
    redis::cmd("GET").arg(key).query(&mut connection).unwrap()
}

/// A name under which the primary is to be found; the old one is a replica now, and keeps its clients.
pub async fn a_name_that_leads_to_another_primary_is_followed<R: Adapter>() {
    let Some(servers) = own_servers(2) else { return };
    let [old, new] = &servers[..] else { unreachable!() };
    for fenced in [false, true] {
        let name = Relay::start(old.address());
        let manager: Manager<R> =
            Manager::single(name.url(), config().to_builder().attempts(5).build().unwrap()).unwrap();
        let mut lock = manager.lock(key("name"));
        if fenced {
            lock = lock.fencing(key("name-fence"));
        }
        lock.acquire().await.unwrap().release().await.unwrap();
        assert_eq!(name.connections(), 1);
        redis::cmd("REPLICAOF").arg("127.0.0.1").arg(new.port()).exec(&mut old.connection()).unwrap();
        name.lead_to(new.address());
        let lease = lock.acquire().await.unwrap();
        assert!(manager.stats().attempts_failed > 0, "the first attempt met the replica");
        assert_eq!(new.get(lease.resource()).as_deref(), Some(lease.token().to_hex().as_str()));
        lease.release().await.unwrap();
        redis::cmd("REPLICAOF").arg("NO").arg("ONE").exec(&mut old.connection()).unwrap();
    }
}

pub async fn a_replica_is_not_dialled_again_and_again<R: Adapter>() {
    let Some(servers) = own_servers(1) else { return };
    let replicaof = |of: [&str; 2]| {
        redis::cmd("REPLICAOF").arg(&of).exec(&mut servers[0].connection()).unwrap();
    };
    replicaof(["127.0.0.1", "1"]);
    let relay = Relay::start(servers[0].address());
    let manager: Manager<R> = Manager::single(relay.url(), config()).unwrap();
    let lock = manager.lock("replica");
    let (watch, mut asked) = (Stopwatch::start(), 0);
    while watch.elapsed() < ms(1_500) {
        let refused = lock.acquire().await.unwrap_err().to_string();
        assert!(refused.contains("READONLY"), "answered by the server each time: {refused}");
        asked += 1;
        pause::<R>(ms(2)).await;
    }
    let dials = relay.connections();
    assert!(asked > 100 && (2..=30).contains(&dials), "{dials} connections for {asked} questions");

    // Promoted: it need not be found again, it was never lost.
    replicaof(["NO", "ONE"]);
    lock.acquire().await.unwrap().release().await.unwrap();
    eventually::<R>("all is given back", ms(1_000), || servers[0].get("replica").is_none()).await;
}
