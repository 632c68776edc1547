//! What a fault came to, for the table of faults in `docs/operations.md`.

use std::time::Duration;

/// Prints one line: the fault, what the caller saw of it, after how long, and what was left behind. Seen with
/// `cargo test -- --nocapture`.
pub fn report(fault: &str, seen: &str, took: Duration, left: &str) {
    println!("fault: {fault}; seen: {seen}; took: {took:.1?}; left: {left}");
}
