//! What the manager has counted.

use std::time::Duration;

use redlock_tokio::Stats;

use super::stage::{Stage, check};
use super::{Demo, Failure};

pub(super) fn show(demo: &Demo, taken: Duration) -> Result<(), Failure> {
    let seconds = format!("{:.1} s. In numbers, out of manager.stats():", taken.as_secs_f64());
    Stage::open("7. Summary", &[&seconds]);
    let stats = [demo.manager.stats(), demo.fenced.stats()];
    let sum = |field: fn(&Stats) -> u64| -> u64 { stats.iter().map(field).sum() };

    let acquired = sum(|stats| stats.acquired);
    let (released, lost) = (sum(|stats| stats.released), sum(|stats| stats.lost));
    for (count, meaning) in [
        (acquired, "leases acquired, of which"),
        (released, "were released in time, and"),
        (lost, "were lost (expired, or refused by the nodes)"),
        (sum(|stats| stats.not_acquired), "requests ended without a lease, as they should have"),
        (sum(|stats| stats.attempts_failed), "attempts failed, and were followed by another"),
        (sum(|stats| stats.renewed), "renewals, and"),
        (sum(|stats| stats.renewals_failed), "that failed"),
        (
            sum(|stats| stats.stale_replies),
            "answers that came when nobody waited any more, and changed nothing",
        ),
    ] {
        println!("{count:>8}  {meaning}");
    }
    let running = sum(|stats| stats.running);
    check(
        acquired == released + lost && running == 0,
        "each lease has come to exactly one end; nothing is left running",
    )
}
