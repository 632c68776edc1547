//! While every assumption holds, no promise is broken; and the scenarios in which that is so are full of
//! trouble.

use redlock_sim::{Batch, Mark, Mode};

const SEEDS: u64 = 2_500;

#[test]
fn no_promise_is_broken_and_everything_has_happened() {
    let findings = Batch { from: 0, seeds: SEEDS, mode: Mode::Sound }.run();
    if let Some(violation) = findings.violation {
        panic!("{violation}\nreproduce: {}", violation.reproduce().unwrap());
    }
    assert_eq!(findings.summary.scenarios(), SEEDS);
    let missing: Vec<Mark> = findings.summary.missing().collect();
    assert_eq!(missing, [], "never happened:\n{}", findings.summary);
    assert_eq!(findings.summary.times(Mark::Healed), SEEDS);
}
