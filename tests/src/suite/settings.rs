//! What cannot work is refused at the call, with the setting and its bound in the message.

use std::time::Duration;

use redlock_driver::{Config, ConfigError, Error, Manager};

use super::Adapter;
use super::support::{key, ms, redlock, urls};
use crate::harness::shared_primaries;

pub async fn a5_odd_ttls_are_refused_at_the_call<R: Adapter>() {
    let nodes = shared_primaries(1);
    let manager: Manager<R> = Manager::single(nodes[0].url(), Config::default()).unwrap();
    let key = key("a5");
    let odd = [ms(0), Duration::from_micros(500), ms(1), Duration::from_micros(1_500), ms(2), Duration::MAX];
    for ttl in odd {
        let refused = manager.lock(key.clone()).ttl(ttl).acquire().await.unwrap_err();
        let message = refused.to_string();
        let bound = if ttl == Duration::MAX { "at most" } else { "at least 4ms" };
        assert!(matches!(refused, Error::Config(_)) && message.contains(bound), "{message}");
        assert_eq!(nodes[0].get(&key), None);
    }

    let lease = manager.lock(key.clone()).acquire().await.unwrap();
    for ttl in odd {
        let refused = lease.extend(ttl).await.unwrap_err();
        assert!(matches!(refused, Error::Config(_)), "{refused}");
        let left = nodes[0].pttl(&key);
        assert!((1..=30_000).contains(&left), "still there, still with its expiry: {left}");
    }
    assert!(lease.is_valid());

    // The longest ttl that is allowed is one that the server takes.
    let longest = redlock_driver::Ttl::MAX;
    lease.extend(longest).await.unwrap();
    assert!(nodes[0].pttl(&key) > 30_000);
    lease.release().await.unwrap();
    let lease = manager.lock(key.clone()).ttl(longest).acquire().await.unwrap();
    assert!(lease.is_valid());
    lease.release().await.unwrap();
}

pub async fn a17_odd_drift_is_refused<R: Adapter>() {
    for factor in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.1, 1.0, 2.0] {
        let refused = Config::builder().drift_factor(factor).build().unwrap_err();
        assert!(matches!(refused, ConfigError::DriftFactor { .. }), "{refused}");
    }
    let refused = Config::builder().ttl(ms(10)).drift_factor(0.9).build().unwrap_err();
    assert_eq!(refused.to_string(), "ttl 10ms is too short: it must be at least 30ms");
}

pub async fn odd_names_and_addresses_are_named<R: Adapter>() {
    for url in ["", "no url", "http://example.com", "redis://", "redis://user:hunter2@:port/x"] {
        let refused = Manager::<R>::single(url, Config::default()).unwrap_err();
        let message = refused.to_string();
        assert!(matches!(refused, ConfigError::InvalidNode { .. }), "{url}: {message}");
        assert!(!message.contains("hunter2"), "{message}");
    }
    let nodes = shared_primaries(3);
    let manager = redlock::<R, _>(urls(&nodes), Config::default());
    let refused = manager.lock("").acquire().await.unwrap_err();
    assert_eq!(refused.to_string(), "resource is empty: name a key");
    let single: Manager<R> = Manager::single(nodes[0].url(), Config::default()).unwrap();
    let refused = single.lock("r").fencing("").acquire().await.unwrap_err();
    assert_eq!(refused.to_string(), "fencing key is empty: name a key");
    let refused = single.lock("r").fencing("r").acquire().await.unwrap_err();
    assert!(matches!(refused, Error::Config(ConfigError::FencingKeyIsResource { .. })), "{refused}");
}
