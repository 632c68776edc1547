//! The trace in docs/simulator.md is what the simulator prints.

use redlock_sim::{Mode, Scenario, run_traced};

#[test]
fn the_documented_trace_is_a_true_one() {
    let document = include_str!("../../../docs/simulator.md");
    let (outcome, trace) = run_traced(Scenario::from_seed(11_107, Mode::RestartEmpty));
    let violation = outcome.unwrap_err();
    for text in [&trace.to_string(), &violation.to_string(), &violation.reproduce().unwrap()] {
        assert!(document.contains(text.as_str()), "docs/simulator.md does not show this:\n{text}");
    }
}
