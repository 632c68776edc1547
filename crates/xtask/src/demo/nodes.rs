//! What the demo runs on: nodes in this process, or somebody's servers.

use redlock_tokio::{IntoNode as _, Manager, MemoryServer, Tokio};

use super::{Failure, config, ms};

#[derive(Debug)]
pub(crate) enum Nodes {
    /// They can be broken at will.
    Memory(Vec<MemoryServer>),
    /// URLs of servers that must come to no harm.
    Real(Vec<String>),
}

impl Nodes {
    pub(super) fn memory() -> Self {
        let runtime = Tokio::default();
        Self::Memory((0..5).map(|_| nearby(MemoryServer::new(runtime.clone()))).collect())
    }

    /// For leases on all nodes.
    pub(super) fn manager(&self) -> Result<Manager, Failure> {
        Ok(match self {
            Self::Memory(servers) => Manager::redlock(servers, config()?)?,
            Self::Real(urls) => match urls.as_slice() {
                [url] => Manager::single(url, config()?)?,
                urls => Manager::redlock(urls, config()?)?,
            },
        })
    }

    /// For leases on one node.
    pub(super) fn fenced(&self) -> Result<Manager, Failure> {
        Ok(match self {
            Self::Memory(_) => Manager::single(nearby(MemoryServer::new(Tokio::default())), config()?)?,
            Self::Real(urls) => Manager::single(urls.first().ok_or("no node")?, config()?)?,
        })
    }

    pub(super) const fn count(&self) -> usize {
        match self {
            Self::Memory(servers) => servers.len(),
            Self::Real(urls) => urls.len(),
        }
    }

    pub(super) const fn quorum(&self) -> usize {
        self.count() / 2 + 1
    }

    pub(super) fn introduce(&self) {
        println!("What a lease does, and how one can tell.\n");
        match self {
            Self::Memory(servers) => {
                let names: Vec<&str> = servers.iter().map(MemoryServer::name).collect();
                println!("Nodes: {}: models of Redis servers, 1 ms away, in this process.", names.join(", "));
                println!("(To see it on servers of yours: cargo xtask demo --node redis://HOST:PORT ...)");
            }
            Self::Real(urls) => {
                let names: Vec<String> = urls.iter().map(|url| name(url)).collect();
                println!("Nodes: {}. They come to no harm, and no key is left.", names.join(", "));
            }
        }
        if self.count() == 1 {
            println!("A lease is held when the node has granted it.");
        } else {
            let (quorum, count) = (self.quorum(), self.count());
            println!("A lease is held when a majority has granted it: {quorum} of {count}.");
        }
    }

    /// Makes the nodes forget keys of this run. Nodes in memory go with the process.
    pub(super) async fn remove(&self, keys: &[String]) {
        let Self::Real(urls) = self else { return };
        let mut delete = redis::cmd("DEL");
        delete.arg(keys);
        for url in urls {
            if let Err(error) = execute(url, &delete).await {
                // All keys have a ttl.
                println!("{error}; what is left there will be gone in a minute");
            }
        }
    }
}

/// Sets a key of this run at one server, for a minute at most.
pub(super) async fn set(url: &str, key: &str, value: &str) -> Result<(), Failure> {
    let mut set = redis::cmd("SET");
    set.arg(key).arg(value).arg("PX").arg(60_000);
    execute(url, &set).await
}

async fn execute(url: &str, command: &redis::Cmd) -> Result<(), Failure> {
    let run = async {
        let mut connection = redis::Client::open(url)?.get_multiplexed_async_connection().await?;
        command.exec_async(&mut connection).await
    };
    Ok(run.await.map_err(|error: redis::RedisError| format!("{}: {error}", name(url)))?)
}

/// Without credentials.
fn name(url: &str) -> String {
    url.into_node(&Tokio::default()).map_or_else(|error| error.to_string(), |node| node.name().to_string())
}

/// Puts a server about as far away as the next machine.
fn nearby(server: MemoryServer) -> MemoryServer {
    server.set_request_delay(ms(1));
    server.set_reply_delay(ms(1));
    server
}
