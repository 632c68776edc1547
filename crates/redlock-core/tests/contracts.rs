//! The promises of the machine under arbitrary orders of events.
//!
//! `PROPTEST_CASES` makes longer runs; every fault that the machine is meant to stand was tried out by
//! taking its defence away and seeing a test here fail.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a panic is how a test fails")]

#[path = "support/inputs.rs"]
mod inputs;
#[path = "support/probe.rs"]
mod probe;
#[path = "support/steps.rs"]
mod steps;
#[path = "support/tally.rs"]
mod tally;
#[path = "support/world.rs"]
mod world;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use probe::Probe;
use steps::{Focus, Scenario, scenario};
use tally::Tally;
use world::World;

fn lossy_scenario() -> impl Strategy<Value = Scenario> {
    prop_oneof![scenario(Focus::Contention, true), scenario(Focus::Extension, true)]
}

/// More cases than usual: a case here is cheap, and what is looked for is rare.
fn many() -> ProptestConfig {
    let usual = ProptestConfig::default();
    ProptestConfig { cases: usual.cases.saturating_mul(3), ..usual }
}

proptest! {
    #![proptest_config(many())]

    /// Never two holders at once, however late, reordered or lost the commands and answers of all are,
    /// as long as no clock runs faster than the drift allows for.
    #[test]
    fn never_two_holders(scenario in lossy_scenario()) {
        scenario.play(World::check_exclusion)?;
    }

    /// What that rests on: while a lease is held, a majority of nodes holds its token to its very end.
    #[test]
    fn a_majority_backs_the_holder_to_the_end(scenario in lossy_scenario()) {
        scenario.play(|world| world.check_majority())?;
    }
}

proptest! {
    /// "Released" means that a majority of nodes is free of our token for good; a fencing token is
    /// greater than all before.
    #[test]
    fn what_is_claimed_is_true(scenario in lossy_scenario()) {
        scenario.play(|world| world.check_claims())?;
    }

    /// When all commands and answers arrive in the end, in whatever order, no key of ours is left.
    #[test]
    fn nothing_is_left_behind(
        scenario in scenario(Focus::Contention, false),
        numbers in vec(any::<usize>(), 64),
    ) {
        let mut numbers = numbers.iter().copied().cycle();
        scenario.play(|_| Ok(()))?.check_leftovers(|| numbers.next().unwrap_or_default())?;
    }

    /// Whatever is fed to a machine, at whatever times: it never panics, answers each request once and
    /// nothing out of turn, keeps to its bounds, and settles when it is left alone.
    #[test]
    fn a_machine_keeps_its_contract(
        spec in inputs::spec(),
        seed: u64,
        steps in vec(inputs::step(), 0..160),
        abandon: bool,
    ) {
        let mut probe = Probe::new(&spec, seed);
        for step in &steps {
            probe.step(step)?;
        }
        probe.settle(abandon)?;
    }
}

/// The worlds above are no test unless in them leases are held, contended for, extended out of order,
/// lost and released.
#[test]
fn scenarios_reach_what_they_are_for() {
    for (focus, at_least) in [(Focus::Contention, 50), (Focus::Extension, 10)] {
        let mut runner = TestRunner::deterministic();
        let mut sum = Tally::default();
        for _ in 0..200 {
            let scenario = scenario(focus, true).new_tree(&mut runner).unwrap().current();
            sum.add(&scenario.play(World::check_exclusion).unwrap().tally);
        }
        println!("{focus:?}: {sum:?}");
        assert!(sum.smallest() >= at_least, "{focus:?}: {sum:?}");
    }
}
