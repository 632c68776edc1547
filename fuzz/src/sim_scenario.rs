//! The simulator, with bytes in the place of its seed.

use redlock_sim::{Scenario, run, run_traced};

/// Runs the scenario that `data` spells, and fails with its trace when an invariant is broken. What they are,
/// and what a scenario is, the simulator says: see `redlock_sim`.
pub fn sim_scenario(data: &[u8]) {
    if let Err(violation) = run(Scenario::from_bytes(data)) {
        let (_, trace) = run_traced(Scenario::from_bytes(data));
        panic!("{trace}\n{violation}");
    }
}
