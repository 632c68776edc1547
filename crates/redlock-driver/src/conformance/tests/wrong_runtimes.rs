//! Each thing that a runtime can get wrong fails at the check that is about it.

use std::time::Duration;

use super::super::run::run_all;
use super::super::{Violation, checks};
use super::wrong::{Kind, Wrong};

/// Shorter than usual, for the runtimes on which a check does not end.
const LIMIT: Duration = Duration::from_secs(1);

async fn violation_of(kind: Kind) -> Violation {
    match run_all(checks(), LIMIT, Wrong::new(kind)).await {
        Err(violation) => violation,
        Ok(report) => panic!("{kind:?}: {report}"),
    }
}

async fn all_fail_at(expected: &[(Kind, &str, &str)]) {
    for (kind, check, seen) in expected {
        let violation = violation_of(*kind).await;
        assert_eq!(violation.check, *check, "{kind:?}: {violation}");
        assert!(violation.seen.contains(seen), "{kind:?}: {violation}");
    }
}

#[tokio::test(start_paused = true)]
async fn clocks() {
    all_fail_at(&[
        (Kind::ClockGoesBack, "clock::never_goes_back", "one reading was 1ms less"),
        (Kind::ClockStandsStill, "clock::moves_on", "the clock stood still"),
        (Kind::ClockStartsWithEachClone, "clock::is_shared_by_clones", "read in turn"),
        (Kind::ClockPanicsElsewhere, "clock::works_on_other_threads", "panicked"),
    ])
    .await;
}

#[tokio::test]
async fn clocks_in_real_time() {
    all_fail_at(&[
        (Kind::ClockGoesBack, "clock::never_goes_back", "less than the one before"),
        (Kind::ClockStandsStill, "clock::moves_on", "the clock stood still"),
        (Kind::ClockIsSlow, "clock::moves_on", "while"),
        (Kind::ClockStartsWithEachThread, "clock::works_on_other_threads", "another thread read"),
    ])
    .await;
}

#[tokio::test(start_paused = true)]
async fn sleeps() {
    all_fail_at(&[
        (Kind::SleepsEndEarlyBy(5), "clock::moves_on", "the clock went 35ms during a sleep of 40ms"),
        (Kind::SleepsEndLateBy(101), "sleep::is_never_early_and_not_late", "ended 101ms late"),
        (Kind::SleepsTakeAtLeast(60), "sleep::ends_at_once_when_its_time_is_over", "took 60ms"),
        (Kind::SleepsPanicInThePast, "sleep::ends_at_once_when_its_time_is_over", "panicked: subtraction"),
        (Kind::SleepsStartAtTheFirstPoll, "sleep::ends_at_once_when_its_time_is_over", "took another 30ms"),
        (Kind::SleepsEndInTheOrderOfTheirMaking, "sleep::ends_in_order", "the order [100, 20"),
        (Kind::SleepsAreAHundredAtMost, "sleep::many_at_once", "before its deadline"),
        (Kind::SleepsWakeTheFirstWaker, "sleep::wakes_whoever_polled_last", "did not wake that"),
        (Kind::SleepsEndWhenAnotherIsDropped, "sleep::may_be_dropped", "before its deadline"),
        (Kind::SleepsPanicAtTheEndOfTime, "sleep::may_be_for_ever", "panicked: addition overflowed"),
        (Kind::SleepsEndAtTheEndOfTime, "sleep::may_be_for_ever", "ended"),
    ])
    .await;
}

#[tokio::test(start_paused = true)]
async fn tasks() {
    all_fail_at(&[
        (Kind::SpawnBlocks, "task::spawn_does_not_wait", "had not returned"),
        (Kind::SpawnBlocksOnAThread, "task::spawn_does_not_wait", "had not returned"),
        (Kind::SpawnDrops, "task::runs_to_its_end", "was dropped"),
        (Kind::SpawnForgets, "task::runs_to_its_end", "did not end"),
        (Kind::TasksStartLate, "task::runs_to_its_end", "did not end"),
        (Kind::TasksRunOneByOne, "task::many_run_at_once", "not all began"),
        (Kind::TasksCannotSpawn, "task::may_spawn", "no runtime is running"),
        (Kind::TasksAreDeafToThreads, "task::is_woken_from_other_threads", "nothing more happened"),
        (Kind::TasksEndWithAnothersPanic, "task::panic_stays_inside", "was dropped before its end"),
        (Kind::TasksStopWithAnothersPanic, "task::panic_stays_inside", "did not end and drop"),
        (Kind::SpawnPanicsElsewhere, "task::is_run_or_refused_elsewhere", "panicked"),
        (Kind::SpawnDropsElsewhere, "task::is_run_or_refused_elsewhere", "accepted and dropped"),
        (Kind::TasksSayTheyAreElsewhere, "task::runs_where_here_says", "runs elsewhere"),
    ])
    .await;
}

/// Passes every check of a method by itself, because those are short: in real time, at least.
#[tokio::test]
async fn leases() {
    all_fail_at(&[(Kind::TasksAreDroppedWhenOld, "lease::outlives_its_ttl_by_renewal", "was lost: closed")])
        .await;
}

/// No check of leases passes without leases.
#[tokio::test(start_paused = true)]
async fn every_lease_needs_a_task() {
    for check in checks().iter().filter(|check| check.name().starts_with("lease::")) {
        let violation = check.run(Wrong::new(Kind::SpawnDrops)).await.unwrap_err();
        assert_eq!(violation.check, check.name());
    }
}
