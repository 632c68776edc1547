//! Any bytes spell a scenario that runs to its end.

use redlock_sim::{Mark, Scenario, Summary, run, run_traced};

/// Bytes that look like noise, the same each time.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    (0..length).map(|_| next()).collect()
}

#[test]
fn no_bytes_at_all_spell_a_quiet_scenario() {
    let summary = run(Scenario::from_bytes(&[])).unwrap();
    assert!(summary.times(Mark::Acquired) > 0);
    assert_eq!(summary.times(Mark::Healed), 1);
}

#[test]
fn noise_spells_scenarios_in_which_things_happen() {
    let mut total = Summary::default();
    for seed in 0..600 {
        let bytes = noise(seed, (seed as usize % 40) * 50);
        match run(Scenario::from_bytes(&bytes)) {
            Ok(summary) => total.add(&summary),
            Err(violation) => panic!("{}\n{violation}", run_traced(Scenario::from_bytes(&bytes)).1),
        }
    }
    for mark in
        [Mark::Acquired, Mark::Taken, Mark::Renewed, Mark::Frozen, Mark::CrashedLosing, Mark::TakenOver]
    {
        assert!(total.times(mark) > 0, "{mark:?} never happened:\n{total}");
    }
}

#[test]
fn one_byte_repeated_spells_a_scenario_too() {
    for byte in [0x00, 0x01, 0x7f, 0x80, 0xfe, 0xff] {
        for length in [1, 10, 1_000, 20_000] {
            run(Scenario::from_bytes(&vec![byte; length])).unwrap();
        }
    }
}

#[test]
fn bytes_do_not_report_a_seed() {
    let (outcome, trace) = run_traced(Scenario::from_bytes(&noise(1, 500)));
    assert!(outcome.is_ok());
    assert!(trace.to_string().starts_with("servers with clocks "));
}
