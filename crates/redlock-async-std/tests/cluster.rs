//! A Redis Cluster as one logical node, through async-std.

#![allow(clippy::expect_used, reason = "a test fails by panicking")]

use redis::cluster::ClusterClientBuilder;
use redis::cluster_async::ClusterConnection;
use redlock_async_std::AioConnection;

async fn connect(urls: Vec<String>) -> AioConnection<ClusterConnection> {
    let client = ClusterClientBuilder::new(urls).retries(0).build().expect("a client");
    client.get_async_connection().await.expect("a connection").into()
}

redlock_tests::cluster_suite!(redlock_async_std::AsyncStd, async_std::task::block_on, connect);
