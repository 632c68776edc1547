//! What acquiring and releasing costs without any contention.

use redlock_tests::harness::Server;

use crate::contestant::Contestant;
use crate::figures::Ratios;
use crate::workload::Workload;
use crate::{Failure, figures, urls};

/// Runs one workload with every contestant in turn, and prints a line for each.
pub(crate) async fn compare(
    workload: &Workload,
    servers: &[Server],
    rounds: usize,
) -> Result<Vec<Ratios>, Failure> {
    let contestants = Contestant::all(&urls(servers)).await?;
    for contestant in &contestants {
        // Connections, scripts and caches.
        workload.run(contestant, 0).await?;
    }
    workload.trouble.begin(servers);
    let mut measured = vec![Vec::new(); contestants.len()];
    for round in 0..rounds {
        for turn in 0..contestants.len() {
            // Nobody is always the first.
            let turn = (turn + round) % contestants.len();
            let (Some(contestant), Some(measured)) = (contestants.get(turn), measured.get_mut(turn)) else {
                continue;
            };
            if let Some(figures) = workload.run(contestant, round + 1).await? {
                measured.push(figures);
            }
        }
    }
    workload.trouble.end(servers);
    Ok(figures::print(workload, &contestants, &measured))
}
