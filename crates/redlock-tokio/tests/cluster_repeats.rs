//! A command whose reply is lost on a Redis Cluster: the `redis` crate's client would send it again, and has to
//! be told not to.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::time::Duration;

use redis::cluster::{ClusterClientBuilder, NodeAddress};
use redlock_tests::harness::{Cut, Relay, Server, may_own_servers, wait_until};
use redlock_tokio::{AioConnection, Config, Error, Manager, Node};

/// A cluster of one node, and a relay in front of it.
fn cluster() -> (Server, Relay) {
    let server = Server::builder().arg("--cluster-enabled", "yes").start();
    let relay = Relay::start(server.address());
    let mut slots = redis::cmd("CLUSTER");
    slots.arg("ADDSLOTS");
    (0..16_384).for_each(|slot| {
        slots.arg(slot);
    });
    slots.exec(&mut server.connection()).unwrap();
    wait_until("the cluster is ready", Duration::from_secs(10), || {
        let info: String = redis::cmd("CLUSTER").arg("INFO").query(&mut server.connection()).unwrap();
        info.contains("cluster_state:ok")
    });
    (server, relay)
}

/// With retries it is: then the second sending finds the key of the first, and the lease is taken, by us.
#[tokio::test]
async fn without_retries_a_lost_reply_is_an_unknown_outcome() {
    if !may_own_servers() {
        return;
    }
    for retries in [0, 3] {
        let (server, relay) = cluster();
        // The cluster names its node by the server's address.
        let address = |port| NodeAddress::new("127.0.0.1", port);
        let through_relay = [(address(server.port()), address(relay.port()))];
        let client = ClusterClientBuilder::new([relay.url()])
            .node_address_map(through_relay.into())
            .retries(retries)
            .min_retry_wait(1)
            .build()
            .unwrap();
        let connection = client.get_async_connection().await.unwrap();
        let config =
            Config::builder().operation_timeout(Duration::from_millis(500)).attempts(1).build().unwrap();
        let manager =
            Manager::single(Node::cluster("shards", AioConnection::from(connection)), config).unwrap();
        let lock = manager.lock("{a}").fencing("{a}:fence");
        // Its script is known from here on.
        lock.acquire().await.unwrap().release().await.unwrap();
        relay.cut_replies_after(0, Cut::Reset);
        let failure = match lock.acquire().await {
            Err(Error::NotAcquired(failure)) => failure,
            other => panic!("{other:?}"),
        };
        println!("with {retries} retries: {failure}");
        assert_eq!(server.get("{a}:fence").as_deref(), Some("2"), "it was carried out, once");
        assert_eq!((failure.is_unreachable(), failure.is_taken()), (retries == 0, retries > 0), "{failure}");
        manager.close().await;
    }
}
