//! What the tests of TLS need: certificates that nobody else trusts, and servers that show them.

#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test harness fails by panicking"
)]

use std::process::Command;
use std::sync::Once;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};
use redlock_tests::harness::{Server, unique, unused_address};

/// An authority of one test's own.
#[derive(Debug)]
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key, as PEM.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The certificate.
    pub certificate: String,
    /// The key.
    pub key: String,
}

impl Authority {
    /// An authority that did not exist before.
    pub fn new() -> Self {
        let mut params = CertificateParams::new([]).unwrap();
        params.distinguished_name.push(DnType::CommonName, unique("authority"));
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// Its certificate, as PEM.
    pub fn certificate(&self) -> String {
        self.0.pem()
    }

    /// An identity under this name, which is an address or a host.
    pub fn identity(&self, name: &str) -> Identity {
        self.sign(name, |_| {})
    }

    /// The same, and it has been invalid for long.
    pub fn expired_identity(&self, name: &str) -> Identity {
        self.sign(name, |params| params.not_after = date_time_ymd(2001, 1, 1))
    }

    fn sign(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) -> Identity {
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        Identity { certificate: certificate.pem(), key: key.serialize_pem() }
    }
}

impl Default for Authority {
    fn default() -> Self {
        Self::new()
    }
}

/// A server with a second port, for TLS.
#[derive(Debug)]
pub struct TlsServer {
    /// The server, with what it offers on its other port.
    pub server: Server,
    address: String,
}

impl TlsServer {
    /// A server that shows `identity`, and demands from its clients one of this authority if
    /// `clients_too`.
    ///
    /// # Panics
    /// When there is no `redis-server` on the `PATH`, or one without TLS, saying what to install.
    #[track_caller]
    pub fn start(authority: &Authority, identity: &Identity, clients_too: bool) -> Self {
        assert_tls_is_there();
        let address = unused_address();
        let port = address.rsplit_once(':').expect("an address has a port").1.to_owned();
        let server = Server::builder()
            .of_the_system()
            .file("ca.crt", &authority.certificate())
            .file("own.crt", &identity.certificate)
            .file("own.key", &identity.key)
            .arg("--tls-port", &port)
            .arg("--tls-ca-cert-file", "ca.crt")
            .arg("--tls-cert-file", "own.crt")
            .arg("--tls-key-file", "own.key")
            .arg("--tls-auth-clients", if clients_too { "yes" } else { "no" })
            .start();
        Self { server, address }
    }

    /// `host:port` of the port for TLS.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The URL of that port.
    pub fn url(&self) -> String {
        format!("rediss://{}/", self.address)
    }
}

/// A server that has nowhere to listen says so, if it has understood what it was asked.
#[track_caller]
fn assert_tls_is_there() {
    static LOOKED: Once = Once::new();
    LOOKED.call_once(|| {
        let answer = Command::new("redis-server").args(["--port", "0", "--tls-port", "0"]).output();
        let said = match answer {
            Ok(output) => {
                let (out, err) = (output.stdout, output.stderr);
                format!("{} {}", String::from_utf8_lossy(&out), String::from_utf8_lossy(&err))
            }
            Err(error) => error.to_string(),
        };
        assert!(
            said.contains("not listen anywhere"),
            "these tests need the `redis-server` on the PATH to be built with TLS, as those of Debian, Ubuntu \
             (`apt-get install redis-server`) and Homebrew are. This one says:\n{said}"
        );
    });
}
