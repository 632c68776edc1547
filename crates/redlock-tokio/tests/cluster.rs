//! A Redis Cluster as one logical node, through tokio.

#![allow(clippy::expect_used, reason = "a test fails by panicking")]

use std::future::Future;

use redis::cluster::ClusterClientBuilder;
use redis::cluster_async::ClusterConnection;
use redlock_tokio::AioConnection;

fn block_on(test: impl Future<Output = ()>) {
    tokio::runtime::Runtime::new().expect("a runtime").block_on(test);
}

async fn connect(urls: Vec<String>) -> AioConnection<ClusterConnection> {
    let client = ClusterClientBuilder::new(urls).retries(0).build().expect("a client");
    client.get_async_connection().await.expect("a connection").into()
}

redlock_tests::cluster_suite!(redlock_tokio::Tokio, block_on, connect);
