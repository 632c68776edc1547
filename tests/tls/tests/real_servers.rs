//! Leases over TLS on real servers, through every adapter.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::time::Duration;

use redis::{Client, ClientTlsConfig, TlsCertificates};
use redlock_driver::{Cause, CauseKind, Config, Connect, Error, Manager, Node, Outcome};
use redlock_tests::harness::{Stopwatch, may_own_servers};
use redlock_tls_tests::{Authority, Identity, TlsServer};

fn config() -> Config {
    let config = Config::builder().ttl(Duration::from_secs(20)).attempts(1);
    config.operation_timeout(Duration::from_secs(2)).build().unwrap()
}

fn provider() {
    // A second call changes nothing.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

fn client(url: &str, authority: &Authority, identity: Option<&Identity>) -> Client {
    let certificates = TlsCertificates {
        client_tls: identity.map(|identity| ClientTlsConfig {
            client_cert: identity.certificate.clone().into_bytes(),
            client_key: identity.key.clone().into_bytes(),
        }),
        root_cert: Some(authority.certificate().into_bytes()),
    };
    Client::build_with_tls(url, certificates).unwrap()
}

async fn all_of_it<R: Connect + Default>(client: Client, server: &TlsServer) {
    let manager: Manager<R> = Manager::single(client, config()).unwrap();
    for lock in [manager.lock("tls"), manager.lock("tls").fencing("tls:fence")] {
        let lease = lock.acquire().await.unwrap();
        let held = server.server.get("tls");
        assert_eq!(held.as_deref(), Some(lease.token().to_hex().as_str()));
        lease.extend(Duration::from_secs(30)).await.unwrap();
        assert!(matches!(lock.acquire().await, Err(Error::NotAcquired(failure)) if failure.is_taken()));
        lease.release().await.unwrap();
        assert_eq!(server.server.get("tls"), None);
    }
    assert!(manager.verify(Duration::from_secs(2)).await.unwrap().nodes[0].server.is_ok());
    manager.close().await;
}

async fn a_private_authority_is_enough<R: Connect + Default>() {
    let authority = Authority::new();
    let server = TlsServer::start(&authority, &authority.identity("127.0.0.1"), false);
    for url in [server.url(), format!("{}?protocol=resp3", server.url())] {
        all_of_it::<R>(client(&url, &authority, None), &server).await;
    }
}

async fn client_certificates_are_shown<R: Connect + Default>() {
    let authority = Authority::new();
    let server = TlsServer::start(&authority, &authority.identity("127.0.0.1"), true);
    let identity = authority.identity("locker.example");
    for url in [server.url(), format!("{}?protocol=resp3", server.url())] {
        all_of_it::<R>(client(&url, &authority, Some(&identity)), &server).await;
    }
}

/// Why the only node could not grant a lease; twice, because the second time it may be known already.
async fn cause<R: Connect + Default>(client: Client) -> Cause {
    let manager: Manager<R> = Manager::single(client, config()).unwrap();
    let mut causes = Vec::new();
    for _ in 0..2 {
        let watch = Stopwatch::start();
        let failure = match manager.lock("tls").acquire().await.unwrap_err() {
            Error::NotAcquired(failure) => failure,
            other => panic!("{other}"),
        };
        assert!(watch.elapsed() < Duration::from_millis(2_500), "{failure}: {:?}", watch.elapsed());
        assert!(failure.is_unreachable(), "{failure}");
        let Outcome::Fault(fault) = &failure.quorum.nodes[0].outcome else { panic!("{failure}") };
        causes.push(fault.cause().clone());
    }
    causes.pop().unwrap()
}

async fn what_is_wrong_is_said<R: Connect + Default>() {
    let (authority, other) = (Authority::new(), Authority::new());
    let good = authority.identity("127.0.0.1");
    let [open, closed] = [false, true].map(|clients_too| TlsServer::start(&authority, &good, clients_too));
    let elsewhere = TlsServer::start(&authority, &authority.identity("redis.example"), false);
    let expired = TlsServer::start(&authority, &authority.expired_identity("127.0.0.1"), false);
    let plain = format!("rediss://{}/", open.server.address());

    let cases = [
        ("an authority that is not the server's", client(&open.url(), &other, None), "UnknownIssuer"),
        ("the system's authorities", Client::open(open.url()).unwrap(), "UnknownIssuer"),
        ("a certificate for another name", client(&elsewhere.url(), &authority, None), "not valid for name"),
        ("a certificate of the past", client(&expired.url(), &authority, None), "xpired"),
        ("no client certificate", client(&closed.url(), &authority, None), "CertificateRequired"),
        (
            "a client certificate of another authority",
            client(&closed.url(), &authority, Some(&other.identity("locker.example"))),
            "UnknownCA",
        ),
    ];
    for (what, client, expected) in cases {
        let cause = cause::<R>(client).await;
        let text = cause.to_string();
        assert_eq!(cause.kind(), CauseKind::Rejected, "{what}: {text}");
        assert!(text.contains(expected), "{what}: {text}");
    }
    // Read as a command, the greeting may have an end, and is answered; or not, and the server waits for it.
    let cause_of_plain = cause::<R>(client(&plain, &authority, None)).await.to_string();
    let expected = ["InvalidContentType", "no connection in time"];
    assert!(expected.iter().any(|text| cause_of_plain.contains(text)), "{cause_of_plain}");
    let cause = cause::<R>(Client::open(format!("redis://{}/", open.address())).unwrap()).await;
    assert_eq!(cause.kind(), CauseKind::Unreachable, "without TLS to a port with it: {cause}");

    // And none of this did the servers any harm.
    all_of_it::<R>(client(&open.url(), &authority, None), &open).await;
}

/// The certificates of the primary go where the sentinels say.
async fn sentinels_over_tls_are_asked<R: Connect + Default>() {
    let authority = Authority::new();
    let server = TlsServer::start(&authority, &authority.identity("127.0.0.1"), false);
    let client = client(&server.url(), &authority, None);
    // This is no sentinel, and says so over TLS.
    let node = Node::sentinel([client.clone()], "mymaster").primary_like(client);
    let manager: Manager<R> = Manager::single(node, config()).unwrap();
    // It has half a second for that, handshake included, which a busy machine may miss.
    let watch = Stopwatch::start();
    loop {
        let refused = manager.lock("tls").acquire().await.unwrap_err().to_string();
        if refused.contains("unknown command") && refused.contains("SENTINEL") {
            return;
        }
        assert!(watch.elapsed() < Duration::from_secs(10), "{refused}");
        R::default().sleep_until(R::default().now().saturating_add(Duration::from_millis(100))).await;
    }
}

macro_rules! tests {
    ($module:ident, $adapter:ty, $block_on:path) => {
        tests! { @each $module, $adapter, $block_on,
            a_private_authority_is_enough,
            client_certificates_are_shown,
            what_is_wrong_is_said,
            sentinels_over_tls_are_asked,
        }
    };
    (@each $module:ident, $adapter:ty, $block_on:path, $($test:ident),* $(,)?) => {
        mod $module {
            $(
                #[test]
                fn $test() {
                    super::provider();
                    if super::may_own_servers() {
                        $block_on(super::$test::<$adapter>());
                    }
                }
            )*
        }
    };
}

fn on_tokio(test: impl Future<Output = ()>) {
    tokio::runtime::Runtime::new().unwrap().block_on(test);
}

tests!(tokio_adapter, redlock_tokio::Tokio, crate::on_tokio);
tests!(smol_adapter, redlock_smol::Smol, smol::block_on);
tests!(async_std_adapter, redlock_async_std::AsyncStd, async_std::task::block_on);
