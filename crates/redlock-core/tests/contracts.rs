//! The promises of the machine under arbitrary orders of events.

mod support {
    pub(crate) mod steps;
    pub(crate) mod tally;
    pub(crate) mod world;
}

use proptest::prelude::*;

use support::steps::scenario;
use support::world::World;

proptest! {
    /// Never two holders, however late, reordered or lost the commands and answers of all are.
    #[test]
    fn never_two_holders(scenario in scenario(true)) {
        scenario.play(World::check_exclusion)?;
    }

    #[test]
    fn a_quorum_backs_the_holder_to_the_end(scenario in scenario(true)) {
        scenario.play(|world| world.check_majority())?;
    }

    #[test]
    fn what_is_claimed_is_true(scenario in scenario(true)) {
        scenario.play(|world| world.check_claims())?;
    }
}

#[test]
fn tally() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let mut t = vec![0; 20];
    for _ in 0..1000 {
    let s = scenario(true).new_tree(&mut runner).unwrap().current();
    let w = s.play(World::check_exclusion).unwrap();
    let x = w.tally;
    for (i, v) in [x.acquired, x.acquired_at_retry, x.failed, x.extended, x.renewed, x.not_extended, x.lost, x.released, x.already_expired, x.overtaken, x.overtaken_extensions, x.outdated, x.held_moments, x.moments].iter().enumerate() {
        t[i] += v;
    }
    }
    println!("Tally {t:?}");
}
