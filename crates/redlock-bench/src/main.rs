//! `cargo xtask bench`: what acquire and release cost, beside the bare commands and another library.
//!
//! The floor of an operation is the `redis` crate sending the same commands to all nodes in parallel, on one
//! multiplexed connection each, and waiting for a quorum. All contestants take turns in the same run, on the
//! same servers, and each figure is given as a ratio to the floor's.

#![forbid(unsafe_code)]

mod contestant;
mod figures;
mod workload;

use redlock_tests::harness::{Server, own_servers};

use contestant::Contestant;
use workload::Workload;

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let rounds = match std::env::args().nth(1) {
        None => ROUNDS,
        Some(number) => number.parse()?,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    println!("medians of {rounds} interleaved rounds; in brackets the ratio to the floor");
    println!("{}", figures::HEAD);
    for workload in Workload::ALL {
        let servers = own_servers(workload.nodes)
            .ok_or("the bench starts servers of its own: unset REDLOCK_REDIS_ADDRS")?;
        runtime.block_on(compare(&workload, &servers, rounds))?;
    }
    Ok(())
}

/// Runs one workload with every contestant in turn, and prints a line for each.
async fn compare(workload: &Workload, servers: &[Server], rounds: usize) -> Result<(), Failure> {
    let urls: Vec<String> = servers.iter().map(|server| server.url()).collect();
    let contestants = Contestant::all(&urls).await?;
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
    figures::print(workload, &contestants, &measured);
    Ok(())
}

const ROUNDS: usize = 7;
