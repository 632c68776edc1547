//! `redlock bench`: what a lease costs, beside what it cannot cost less than.

mod figures;
mod floor;

use std::hash::{BuildHasher as _, RandomState};
use std::process;
use std::time::Duration;

use redlock_tokio::{Config, Lock};
use tokio::time::Instant;

use figures::Figures;
use floor::Floor;

use crate::args::BenchArgs;
use crate::exit::{Code, Failure};
use crate::nodes;
use crate::print::{block_on, print};

/// Runs the cycles and prints the table.
pub(crate) fn run(args: &BenchArgs) -> Result<Code, Failure> {
    let targets = nodes::targets(&args.nodes)?;
    let mut config = Config::builder().ttl(args.ttl);
    if let Some(timeout) = args.nodes.timeout {
        config = config.operation_timeout(timeout);
    }
    let manager = nodes::manager(&targets, config.build()?)?;
    let timeout = manager.config().operation_timeout();
    // Nobody else uses these names.
    let run = format!("redlock-bench:{}-{:08x}", process::id(), RandomState::new().hash_one(0) >> 32);
    let lock = manager.lock(format!("{run}:lease"));

    let measured = block_on(async {
        let floor = Floor::connect(&targets, timeout, &format!("{run}:floor"), args.ttl).await?;
        let measured = measure(&lock, &floor, args.cycles).await;
        manager.close().await;
        measured
    })?;
    let nodes = targets.len();
    let plural = if nodes == 1 { "" } else { "s" };
    print(&format!("{} cycles on {nodes} node{plural}\n{}", args.cycles, measured.table()));
    Ok(Code::OK)
}

/// Acquire and release, of leases and of the bare commands.
#[derive(Default)]
struct Measured {
    lease: [Figures; 2],
    floor: [Figures; 2],
}

async fn measure(lock: &Lock, floor: &Floor, cycles: u32) -> Result<Measured, Failure> {
    let mut measured = Measured::default();
    let started = Instant::now();
    let clock = || started.elapsed();
    for cycle in 0..WARM_UP + cycles {
        // Who goes first may find the machine in another state than who goes second.
        let (of_lease, of_floor) = if cycle % 2 == 0 {
            let of_lease = one(lock, clock).await?;
            (of_lease, floor.cycle(clock).await?)
        } else {
            let of_floor = floor.cycle(clock).await?;
            (one(lock, clock).await?, of_floor)
        };
        if cycle >= WARM_UP {
            for index in 0..2 {
                measured.lease[index].add(of_lease[index]);
                measured.floor[index].add(of_floor[index]);
            }
        }
    }
    Ok(measured)
}

/// One acquire and release.
async fn one(lock: &Lock, clock: impl Fn() -> Duration) -> Result<[Duration; 2], Failure> {
    let started = clock();
    let lease = lock.try_acquire().await?;
    let acquired = clock();
    lease.release().await?;
    let released = clock();
    Ok([acquired.saturating_sub(started), released.saturating_sub(acquired)])
}

impl Measured {
    fn table(&self) -> String {
        let mut text = format!("{:22}{:>11}{:>11}{:>11}\n", "", "p50", "p90", "p99");
        for (index, operation) in ["acquire", "release"].into_iter().enumerate() {
            let [lease, floor] = [&self.lease, &self.floor].map(|kind| kind[index].percentiles());
            text += &row(operation, lease.map(|duration| format!("{duration:.1?}")));
            text += &row("  bare commands", floor.map(|duration| format!("{duration:.1?}")));
            let ratio = |rank: usize| lease[rank].as_secs_f64() / floor[rank].as_secs_f64();
            text += &row("  ratio", [0, 1, 2].map(|rank| format!("{:.2}", ratio(rank))));
        }
        let rate = |kind: &[Figures; 2]| {
            let cycles = f64::from(u32::try_from(kind[0].len()).unwrap_or(u32::MAX));
            cycles / (kind[0].sum() + kind[1].sum()).as_secs_f64()
        };
        text + &format!(
            "cycles per second: {:.0}, bare commands: {:.0}\n",
            rate(&self.lease),
            rate(&self.floor)
        )
    }
}

fn row(name: &str, columns: [String; 3]) -> String {
    let [p50, p90, p99] = columns;
    format!("{name:22}{p50:>11}{p90:>11}{p99:>11}\n")
}

/// Connections, caches and the scripts of the servers are warm after this many cycles.
const WARM_UP: u32 = 20;
