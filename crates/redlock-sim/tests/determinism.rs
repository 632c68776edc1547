//! A seed means one scenario, down to the last line of its trace.

use redlock_sim::{Batch, Mode, Scenario, Summary, run, run_traced};

#[test]
fn the_same_seed_gives_the_same_trace() {
    for mode in Mode::ALL {
        for seed in 0..20 {
            let once = run_traced(Scenario::from_seed(seed, mode));
            let again = run_traced(Scenario::from_seed(seed, mode));
            assert_eq!(once, again, "seed {seed}, mode {mode}");
            assert!(once.1.lines().count() > 10);
        }
    }
}

#[test]
fn taking_notes_changes_nothing() {
    for seed in 0..50 {
        let scenario = Scenario::from_seed(seed, Mode::Sound);
        assert_eq!(run(scenario.clone()), run_traced(scenario).0, "seed {seed}");
    }
}

#[test]
fn threads_change_nothing() {
    let mut alone = Summary::default();
    for seed in 100..300 {
        alone.add(&run(Scenario::from_seed(seed, Mode::Sound)).unwrap());
    }
    let together = Batch { from: 100, seeds: 200, mode: Mode::Sound }.run();
    assert_eq!(together.summary, alone);
}

#[test]
fn the_lowest_seed_is_reported_whoever_finds_it() {
    let batch = Batch { from: 0, seeds: 2_000, mode: Mode::OneToken };
    let lowest = (0..2_000).find(|seed| run(Scenario::from_seed(*seed, Mode::OneToken)).is_err());
    for _ in 0..3 {
        assert_eq!(batch.run().violation.and_then(|violation| violation.seed), lowest);
    }
}
