//! The suite itself: that what is right passes, and that each wrong thing fails at its check.

mod connect;
mod server;
mod socket;
mod transport;
mod wrong;
mod wrong_runtimes;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::outcome::Failure;
use super::{Check, Report, check, checks, run, watchdog};
use wrong::{Kind, Wrong};

#[tokio::test(start_paused = true)]
async fn a_right_runtime_passes_in_paused_time() {
    let start = tokio::time::Instant::now();
    let report = check(Wrong::new(Kind::Right)).await.unwrap_or_else(|violation| panic!("{violation}"));
    // Paused time is exact, so this is how long a run takes at least.
    assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
    assert_eq!(report.passed().len(), 40);
    assert_eq!(report.to_string(), "40 checks passed");
}

#[tokio::test]
async fn a_right_runtime_passes_in_real_time() {
    let report = check(Wrong::new(Kind::Right)).await.unwrap_or_else(|violation| panic!("{violation}"));
    let names: Vec<_> = checks::<Wrong>().iter().map(Check::name).collect();
    assert_eq!(report.passed(), names);
}

/// In real time: on a paused clock, one that ends early would go on doing so for ever.
#[tokio::test]
async fn timers_may_have_a_grain() {
    for kind in [Kind::SleepsEndEarlyBy(1), Kind::SleepsEndLateBy(5)] {
        check(Wrong::new(kind)).await.unwrap_or_else(|violation| panic!("{violation}"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_may_be_a_task_and_a_check_may_run_alone() {
    let run = tokio::spawn(check(Wrong::new(Kind::Right)));
    assert!(run.await.unwrap().is_ok());
    let alone = checks().into_iter().find(|check| check.name() == "sleep::ends_in_order").unwrap();
    assert_eq!(alone.run(Wrong::new(Kind::Right)).await, Ok(()));
    assert!(alone.run(Wrong::new(Kind::SleepsEndInTheOrderOfTheirMaking)).await.is_err());
}

#[test]
fn names_are_unique_and_say_what_they_are_about() {
    let checks = checks::<Wrong>();
    let names: BTreeSet<_> = checks.iter().map(Check::name).collect();
    assert_eq!(names.len(), checks.len());
    for check in &checks {
        let (group, rest) = check.name().split_once("::").unwrap();
        assert!(["clock", "sleep", "task", "lease"].contains(&group) && !rest.is_empty());
        assert!(!check.demand().is_empty() && format!("{check:?}").contains(check.name()));
    }
}

/// A check that fails this many times first.
fn failing(times: u32, certain: bool) -> (Check<Wrong>, Arc<AtomicU32>) {
    let tries = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&tries);
    let check = Check::new("test::fails", "it must not fail", move |_| {
        let tried = count.fetch_add(1, Ordering::Relaxed);
        async move {
            match tried < times {
                true if certain => Err(Failure::certain("it failed")),
                true => Err(Failure::likely("it seemed to fail")),
                false => Ok(()),
            }
        }
    });
    (check, tries)
}

#[tokio::test(start_paused = true)]
async fn what_a_busy_machine_may_do_counts_when_it_happens_three_times() {
    for (times, certain, passes, tries) in
        [(0, true, true, 1), (1, true, false, 1), (2, false, true, 3), (3, false, false, 3)]
    {
        let (check, tried) = failing(times, certain);
        let ran = check.run(Wrong::new(Kind::Right)).await;
        assert_eq!(ran.is_ok(), passes, "{times} {certain}");
        assert_eq!(tried.load(Ordering::Relaxed), tries, "{times} {certain}");
    }
}

#[tokio::test(start_paused = true)]
async fn repeated_checks_are_named() {
    let list = vec![failing(0, true).0, failing(2, false).0];
    let report = run::run_all(list, run::LIMIT, Wrong::new(Kind::Right)).await.unwrap();
    assert_eq!(report.passed(), ["test::fails", "test::fails"]);
    assert_eq!(report.repeated(), ["test::fails"]);
    assert_eq!(report.to_string(), "2 checks passed, not at the first try: test::fails");
    assert_eq!(Report::default().to_string(), "0 checks passed");
}

#[tokio::test(start_paused = true)]
async fn a_violation_reads_as_a_sentence() {
    let violation = failing(1, true).0.run(Wrong::new(Kind::Right)).await.unwrap_err();
    assert_eq!(violation.to_string(), "test::fails: it failed; it must not fail");
    assert_eq!((violation.check, violation.demand), ("test::fails", "it must not fail"));
}

#[tokio::test(start_paused = true)]
async fn what_does_not_end_is_ended_in_real_time() {
    let short = Duration::from_millis(20);
    assert_eq!(watchdog::within(short, std::future::pending::<()>()).await, None);
    assert_eq!(watchdog::within(short, async { 5 }).await, Some(5));
    let hangs = Check::new("test::hangs", "it must not hang", |_| std::future::pending());
    let violation = hangs.run_within(short, Wrong::new(Kind::Right)).await.unwrap_err();
    assert_eq!(violation.seen, "nothing more happened, and 20ms were over");
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_a_violation() {
    let panics = Check::new("test::panics", "it must not panic", |_| async {
        std::panic::resume_unwind(Box::new("a payload"))
    });
    let violation = panics.run(Wrong::new(Kind::Right)).await.unwrap_err();
    assert_eq!(violation.to_string(), "test::panics: panicked: a payload; it must not panic");
}
