//! Nodes that the user brings along: connections of the `redis` crate, a cluster, a transport.

#![allow(clippy::expect_used, reason = "a test fails by panicking")]

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use redis::aio::{ConnectionManager, MultiplexedConnection};
use redlock_driver::{Command, Fault, Reply, Transport};
use redlock_tests::harness::{Stopwatch, own_servers, shared_primaries, unique};
use redlock_tokio::{AioConnection, Config, ConfigError, Error, Manager, MemoryServer, Node, Renewal, Tokio};

async fn multiplexed(url: &str) -> MultiplexedConnection {
    let client = redis::Client::open(url).expect("a client");
    client.get_multiplexed_async_connection().await.expect("a connection")
}

#[tokio::test]
async fn connections_of_the_redis_crate_are_nodes() {
    let nodes = shared_primaries(3);
    let mut connections = Vec::new();
    for node in &nodes {
        connections
            .push(Node::connection(node.address(), AioConnection::from(multiplexed(&node.url()).await)));
    }
    let manager = Manager::redlock(connections, Config::default()).unwrap();
    let key = unique("own");
    let lease = manager.lock(key.as_str()).auto_renew(Renewal::ThirdOfTtl).acquire().await.unwrap();
    lease.extend(Duration::from_secs(60)).await.unwrap();
    assert!(manager.lock(key.as_str()).try_acquire().await.is_err());
    lease.release().await.unwrap();
    manager.close().await;
    assert!(nodes.iter().all(|node| node.get(&key).is_none()));
}

/// It reconnects by itself, and would keep its callers waiting for seconds; the lease's deadline holds.
#[tokio::test]
async fn a_connection_manager_is_a_node_and_the_deadline_is_ours() {
    let Some(servers) = own_servers(1) else { return };
    let client = redis::Client::open(servers[0].url()).unwrap();
    let connection: AioConnection<ConnectionManager> = client.get_connection_manager().await.unwrap().into();
    let config = Config::builder().attempts(1).operation_timeout(Duration::from_millis(200)).build().unwrap();
    let manager = Manager::single(Node::connection("managed", connection), config).unwrap();
    let lock = manager.lock("managed").fencing("managed-fence");
    lock.acquire().await.unwrap().release().await.unwrap();
    servers[0].kill();
    for _ in 0..3 {
        let watch = Stopwatch::start();
        let refused = lock.acquire().await.unwrap_err();
        assert!(refused.to_string().contains("(managed)"), "{refused}");
        assert!(watch.elapsed() < Duration::from_millis(400), "{:?}", watch.elapsed());
    }
    servers[0].restart();
    lock.acquire_within(Duration::from_secs(20)).await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn on_a_cluster_both_keys_must_share_a_slot() {
    let nodes = shared_primaries(1);
    let connection = multiplexed(&nodes[0].url()).await;
    let cluster = Node::cluster("shards", AioConnection::from(connection));
    let manager = Manager::single(cluster, Config::default()).unwrap();
    let (plain, fence) = (unique("orders"), unique("fence"));
    let refused = manager.lock(plain.as_str()).fencing(fence.as_str()).acquire().await.unwrap_err();
    assert!(matches!(refused, Error::Config(ConfigError::CrossSlot { .. })), "{refused}");
    let message = refused.to_string();
    assert!(message.contains(&plain) && message.contains(&fence) && message.contains("{tag}"), "{message}");
    assert!(nodes[0].get(&plain).is_none());

    let (tagged, fence) = (format!("{{{plain}}}"), format!("{{{plain}}}:fence"));
    let lease = manager.lock(tagged.as_str()).fencing(fence.as_str()).acquire().await.unwrap();
    lease.release().await.unwrap();
    nodes[0].del(&fence);
}

/// Counts what goes through it to a server in memory.
#[derive(Clone)]
struct Counting {
    sent: Arc<std::sync::atomic::AtomicUsize>,
    server: MemoryServer,
}

impl Transport for Counting {
    fn send(&self, command: &Command) -> impl Future<Output = Result<Reply, Fault>> + Send + 'static {
        self.sent.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let reply = self.server.with(|node, now| node.execute(now, &command.key, &command.intent));
        async move { Ok(reply) }
    }
}

#[tokio::test(start_paused = true)]
async fn a_transport_of_ones_own_is_a_node() {
    let server = MemoryServer::new(Tokio::default());
    let counting = Counting { sent: Arc::default(), server };
    let node = Node::transport("counted", counting.clone());
    let manager = Manager::single(node, Config::default()).unwrap();
    manager.lock("r").acquire().await.unwrap().release().await.unwrap();
    assert_eq!(counting.sent.load(std::sync::atomic::Ordering::Relaxed), 2);
}
