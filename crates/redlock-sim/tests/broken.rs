//! With an assumption broken, two clients hold the same lease before long. A checker that cannot fail
//! proves nothing, so each number of seeds is an upper bound that must not grow unnoticed.

use redlock_sim::{Batch, Mark, Mode, Scenario, run};

/// Among so many seeds there is one with two holders, and it says how to see it.
#[track_caller]
fn two_holders_within(mode: Mode, seeds: u64) {
    let findings = Batch { from: 0, seeds, mode }.run();
    let found = findings.violation.as_ref().map(|violation| violation.invariant);
    assert_eq!(found, Some("exclusion"), "mode {mode}, {seeds} seeds: {:?}", findings.violation);
    let reproduce = findings.violation.and_then(|violation| violation.reproduce()).unwrap_or_default();
    assert!(reproduce.ends_with(&format!(" --mode {mode} --trace")), "{reproduce}");
}

#[test]
fn a_server_clock_that_jumps() {
    two_holders_within(Mode::ClockJump, 100);
}

#[test]
fn a_server_that_restarts_without_its_data_and_comes_back_at_once() {
    two_holders_within(Mode::RestartEmpty, 100);
}

/// The same restarts with a restart guard: the very scenarios in which there were two holders without it.
#[test]
fn a_restart_guard_makes_up_for_restarts_without_data() {
    let findings = Batch { from: 0, seeds: 3_000, mode: Mode::GuardedRestart }.run();
    assert_eq!(findings.violation, None);
    assert!(findings.summary.times(Mark::KeptBack) > 1_000, "{}", findings.summary);
    assert!(findings.summary.times(Mark::Acquired) > 3_000, "{}", findings.summary);
    let unguarded = |seed: &u64| run(Scenario::from_seed(*seed, Mode::RestartEmpty)).is_err();
    assert!((0..300).filter(unguarded).count() > 10);
}

#[test]
fn a_restart_guard_that_is_too_short() {
    two_holders_within(Mode::ShortGuard, 200);
}

#[test]
fn two_nodes_that_are_one_server_for_some() {
    two_holders_within(Mode::SameServer, 3_000);
}

#[test]
fn answers_to_an_earlier_attempt_that_count_for_the_current_one() {
    two_holders_within(Mode::OldReplies, 1_000);
}

#[test]
fn clocks_that_differ_by_more_than_the_drift() {
    two_holders_within(Mode::ExcessDrift, 100);
}

#[test]
fn validity_that_counts_from_the_answer() {
    two_holders_within(Mode::ReplyTime, 500);
}

#[test]
fn one_token_for_all_attempts() {
    two_holders_within(Mode::OneToken, 500);
}

#[test]
fn a_network_that_carries_a_request_twice() {
    two_holders_within(Mode::TwiceSent, 3_000);
}

#[test]
fn a_client_clock_that_stands_still_during_a_suspension() {
    two_holders_within(Mode::StoppedClock, 100);
}

#[test]
fn every_mode_that_is_unsafe_has_a_test_here() {
    let tested = 10;
    assert_eq!(Mode::ALL.into_iter().filter(|mode| mode.is_unsafe()).count(), tested);
}

/// Two nodes that are one server for everybody cost availability, and no safety: any two majorities of
/// nodes share a node, and each node is one server that gives a key to one client.
#[test]
fn two_nodes_that_are_one_server_for_everybody_do_not_make_two_holders() {
    let findings = Batch { from: 0, seeds: 1_500, mode: Mode::SharedServer }.run();
    assert_eq!(findings.violation, None);
    assert!(findings.summary.times(Mark::Renewed) > 100);
}

/// The one way to lose a lease that sound scenarios hardly ever show.
#[test]
fn a_quorum_refuses_the_holder_when_servers_forget() {
    let ran = (0..500).filter_map(|seed| run(Scenario::from_seed(seed, Mode::RestartEmpty)).ok());
    let refused: u64 = ran.map(|summary| summary.times(Mark::LostRefused)).sum();
    assert!(refused > 0);
}
