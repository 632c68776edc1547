//! A primary with a replica, and a sentinel that makes the one take the place of the other.

use std::time::Duration;

use redis::cmd;

use super::clock::wait_until;
use super::primary::field_of;
use super::server::Server;

/// Two servers, one of them the other's replica, and a sentinel that promotes the replica some two seconds
/// after the primary has gone silent.
///
/// One sentinel is enough for that, and decides faster than three.
#[derive(Debug)]
pub struct Watched {
    servers: [Server; 2],
    sentinel: Server,
}

impl Watched {
    /// Starts all three. The first of the [`servers`](Self::servers) is the primary.
    ///
    /// # Panics
    /// Like [`ServerBuilder::start`](super::ServerBuilder::start).
    #[track_caller]
    pub fn start() -> Self {
        Self::launch(None, None)
    }

    /// The same with passwords, one for the servers and another one for the sentinel.
    #[track_caller]
    pub fn start_with_passwords(servers: &str, sentinel: &str) -> Self {
        Self::launch(Some(servers), Some(sentinel))
    }

    #[track_caller]
    fn launch(password: Option<&str>, sentinels_own: Option<&str>) -> Self {
        let server = || {
            let mut server = Server::builder().arg("--repl-diskless-sync-delay", "0");
            if let Some(password) = password {
                server = server.password(password).arg("--masterauth", password);
            }
            server.start()
        };
        let servers = [server(), server()];
        servers[1].follow(&servers[0]);

        let service = Self::SERVICE;
        let mut lines = format!(
            "sentinel monitor {service} 127.0.0.1 {} 1\n\
             sentinel down-after-milliseconds {service} 300\n\
             sentinel failover-timeout {service} 2000\n",
            servers[0].port(),
        );
        if let Some(password) = password {
            lines += &format!("sentinel auth-pass {service} {password}\n");
        }
        let mut sentinel = Server::builder().sentinel().config(&lines);
        if let Some(password) = sentinels_own {
            sentinel = sentinel.password(password);
        }
        let this = Self { servers, sentinel: sentinel.start() };
        wait_until("the sentinel knows the replica", FAILOVER_LIMIT, || this.status().contains(",slaves=1,"));
        this
    }

    /// What the sentinel calls the primary.
    pub const SERVICE: &str = "mymaster";

    /// Both servers, whichever is the primary.
    pub fn servers(&self) -> &[Server; 2] {
        &self.servers
    }

    /// The sentinel, which is a server of its own kind.
    pub fn sentinel(&self) -> &Server {
        &self.sentinel
    }

    /// Has the replica promoted while the primary is well, and returns when both know it: the old primary is
    /// a replica then, and keeps its clients. The sentinel would close their connections.
    pub fn swap(&self) {
        let [from, to] = self.promote();
        self.servers[from].follow(&self.servers[to]);
    }

    /// Has the replica promoted while the primary is well. That one goes on as a primary, until the sentinel
    /// makes it a replica some ten seconds later. Yields the numbers of the old primary and the new one.
    pub fn promote(&self) -> [usize; 2] {
        let [from, to] = if self.is_primary(0) { [0, 1] } else { [1, 0] };
        wait_until("the sentinel can do a failover", FAILOVER_LIMIT, || {
            let mut connection = self.sentinel.connection();
            cmd("SENTINEL").arg("FAILOVER").arg(Self::SERVICE).exec(&mut connection).is_ok()
        });
        self.wait_for_promotion(to);
        [from, to]
    }

    /// Waits until the sentinel names this server as the primary, and it is one.
    pub fn wait_for_promotion(&self, server: usize) {
        let address = format!(",address={},", self.servers[server].address());
        wait_until("the replica is promoted", FAILOVER_LIMIT, || {
            self.status().contains(&address) && self.is_primary(server)
        });
    }

    /// Whether this server is there and a primary. A change of that ends connections, also the one that asks.
    pub fn is_primary(&self, server: usize) -> bool {
        let connection = self.servers[server].try_connection(Duration::from_secs(1));
        let info =
            connection.and_then(|mut connection| cmd("INFO").arg("replication").query(&mut connection));
        info.is_ok_and(|info: String| field_of(&info, "role").as_deref() == Some("master"))
    }

    /// What the sentinel says: `name=mymaster,status=ok,address=127.0.0.1:20001,slaves=1,sentinels=1`.
    fn status(&self) -> String {
        let info: String = self.sentinel.ask(cmd("INFO").arg("sentinel"));
        field_of(&info, "master0").unwrap_or_default()
    }
}

/// It takes two to four seconds; the rest is for machines that do much else at the same time.
const FAILOVER_LIMIT: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use super::super::may_own_servers;
    use super::*;

    #[test]
    fn a_swap_makes_the_replica_the_primary_and_back() {
        if !may_own_servers() {
            return;
        }
        let watched = Watched::start_with_passwords("open-sesame", "close-sesame");
        let [first, second] = watched.servers();
        first.set("key", "value");
        wait_until("the replica has it", FAILOVER_LIMIT, || second.get("key").is_some());
        watched.swap();
        second.set("key", "another");
        wait_until("the new replica has it", FAILOVER_LIMIT, || {
            first.get("key").as_deref() == Some("another")
        });
    }
}
