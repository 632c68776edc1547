//! A program in which nobody has installed a crypto provider for rustls: that is found out before anything is
//! dialled, and is no panic.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use redlock_driver::{Config, ConfigError, Connect, IntoNode, Manager, Node};

fn refusal<R: Connect + Default>(node: impl IntoNode<R>) -> String {
    match Manager::<R>::single(node, Config::default()) {
        Err(error @ ConfigError::InvalidNode { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

fn every_node_with_tls_is_refused<R: Connect + Default>() {
    let (tls, plain) = ("rediss://:hunter2@redis-a:6380", "redis://redis-a:6379");
    let refusals = [
        refusal::<R>(tls),
        refusal::<R>(redis::Client::open(tls).unwrap()),
        refusal::<R>(Node::sentinel([tls], "mymaster")),
        refusal::<R>(Node::sentinel([plain], "mymaster").primary_like(tls)),
    ];
    for text in refusals {
        assert!(text.contains("redis-a:6380") && text.contains("install_default()"), "{text}");
        assert!(!text.contains("hunter2"), "{text}");
    }
    assert!(Manager::<R>::single(plain, Config::default()).is_ok());
}

#[test]
fn tls_without_a_crypto_provider_is_refused() {
    every_node_with_tls_is_refused::<redlock_tokio::Tokio>();
    every_node_with_tls_is_refused::<redlock_smol::Smol>();
    every_node_with_tls_is_refused::<redlock_async_std::AsyncStd>();

    rustls::crypto::ring::default_provider().install_default().unwrap();
    assert!(Manager::<redlock_tokio::Tokio>::single("rediss://redis-a:6380", Config::default()).is_ok());
}
