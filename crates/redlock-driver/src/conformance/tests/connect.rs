//! What is right about dialling and calling passes, and each wrong thing fails at its check.

use std::time::Duration;

use super::super::run::run_all;
use super::super::{Check, Violation, check_connect, connect_checks};
use super::server::Server;
use super::socket::{Dialler, Flaw};

#[tokio::test]
async fn right_connections_pass() {
    let server = Server::start();
    for flaw in [Flaw::None, Flaw::FlatErrors] {
        let report = check_connect(Dialler::new(flaw), server.url()).await;
        let report = report.unwrap_or_else(|violation| panic!("{violation}"));
        let names: Vec<_> = connect_checks::<Dialler>("").iter().map(Check::name).collect();
        assert_eq!((report.passed(), names.len()), (&names[..], 13));
    }
}

async fn violation_of(flaw: Flaw, url: &str) -> Violation {
    match run_all(connect_checks(url), Duration::from_secs(3), Dialler::new(flaw)).await {
        Err(violation) => violation,
        Ok(report) => panic!("{flaw:?}: {report}"),
    }
}

async fn all_fail_at(expected: &[(Flaw, &str, &str)]) {
    let server = Server::start();
    for (flaw, check, seen) in expected {
        let violation = violation_of(*flaw, server.url()).await;
        assert_eq!(violation.check, *check, "{flaw:?}: {violation}");
        assert!(violation.seen.contains(seen), "{flaw:?}: {violation}");
    }
}

#[tokio::test]
async fn wrong_dials() {
    all_fail_at(&[
        (Flaw::HidesRefusal, "connect::reports_a_refused_connection", "succeeded"),
        (Flaw::DialsToTheEnd, "connect::may_be_dropped", "its socket was still open"),
        (Flaw::DialsOnce, "connect::makes_one_connection", "two calls of connect()"),
        (Flaw::NeverCloses, "connect::closes_with_the_last_clone", "still open"),
    ])
    .await;
}

#[tokio::test]
async fn wrong_calls() {
    all_fail_at(&[
        (Flaw::SendsLate, "connect::keeps_order", "polled as number 60 answered Ok(int(1))"),
        (Flaw::HasASmallBuffer, "connect::keeps_order", "polled as number 60"),
        (Flaw::MixesUpMany, "connect::serves_many_callers", "was answered"),
        (Flaw::HidesErrors, "connect::shows_server_errors", "NOSCRIPT was answered Ok(nil)"),
        (Flaw::ForgetsWithTheCall, "connect::forgets_dropped_calls", "was answered"),
        (Flaw::TimesOut, "connect::has_no_timeout", "what took the server 700ms"),
    ])
    .await;
}

#[tokio::test]
async fn wrong_ends() {
    all_fail_at(&[
        (Flaw::HangsWhenCut, "connect::ends_calls_when_cut", "did not end"),
        (Flaw::RepeatsWhenCut, "connect::ends_calls_when_cut", "did not end"),
        (Flaw::ListensInVain, "connect::hears_of_changes", "CLIENT TRACKING ON"),
        (Flaw::BreaksOffLongCommands, "connect::carries_a_lease", "acquiring a lease"),
    ])
    .await;
}

#[tokio::test]
async fn a_server_that_is_not_there_and_a_url_that_is_none() {
    let nowhere = violation_of(Flaw::None, "redis://127.0.0.1:1").await;
    assert_eq!(nowhere.check, "connect::dials_and_calls");
    assert!(nowhere.seen.starts_with("connecting to the server: "), "{nowhere}");
    let unusable = violation_of(Flaw::None, "http://user:secret@127.0.0.1").await;
    assert_eq!(unusable.seen, "the url that the suite was given is none");
}
