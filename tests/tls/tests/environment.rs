//! An authority that the environment names, for a program that says nothing of certificates.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::env;
use std::process::Command;

use redlock_tls_tests::{Authority, TlsServer};
use redlock_tokio::{Config, Manager};

/// Where the other test's process finds the server.
const URL: &str = "REDLOCK_TLS_TESTS_URL";

#[test]
fn the_environment_can_name_the_authority() {
    if !redlock_tests::harness::may_own_servers() {
        return;
    }
    let authority = Authority::new();
    let server = TlsServer::start(&authority, &authority.identity("127.0.0.1"), false);
    let file = server.server.socket().with_file_name("ca.crt");
    let run = |with_file: bool| {
        let mut program = Command::new(env::current_exe().unwrap());
        program.args(["--ignored", "--exact", "a_program_that_says_nothing_of_certificates"]);
        program.env(URL, server.url());
        if with_file {
            program.env("SSL_CERT_FILE", &file);
        }
        let output = program.output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (done, said) = run(true);
    assert!(done && said.contains("1 passed"), "{said}");
    let (done, said) = run(false);
    assert!(!done && said.contains("UnknownIssuer"), "{said}");
}

#[test]
#[ignore = "a part of the other test, which runs it in a process of its own"]
fn a_program_that_says_nothing_of_certificates() {
    rustls::crypto::ring::default_provider().install_default().unwrap();
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let manager = Manager::single(env::var(URL).unwrap(), Config::default()).unwrap();
        let lease = manager.lock("tls").acquire().await.unwrap_or_else(|error| panic!("{error}"));
        lease.release().await.unwrap();
    });
}
