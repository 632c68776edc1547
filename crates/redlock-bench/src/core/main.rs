//! What the machine itself costs: time and allocations of a round, or nothing but rounds for callgrind.

#![forbid(unsafe_code)]

mod rounds;

use std::alloc::System;
use std::time::Instant;

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

use rounds::{NODES, Rounds, spec};

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => measure(),
        ["repeat", times] => repeat(times.parse()?),
        _ => Err("usage: redlock-bench-core [repeat TIMES]".into()),
    }
}

/// Acquires and releases, so many times.
fn repeat(times: usize) -> Result<(), Failure> {
    let mut rounds = Rounds::new(&spec()?);
    for _ in 0..times {
        rounds.acquire()?;
        rounds.release()?;
    }
    Ok(())
}

fn measure() -> Result<(), Failure> {
    let spec = spec()?;
    let mut figures = [Figures::default(), Figures::default(), Figures::default()];
    for _ in 0..BATCHES {
        // Machines that have done nothing yet. Their construction is not measured.
        let mut machines: Vec<Rounds> = (0..BATCH).map(|_| Rounds::new(&spec)).collect();
        let [acquire, extend, release] = &mut figures;
        acquire.batch(&mut machines, Rounds::acquire)?;
        extend.batch(&mut machines, Rounds::extend)?;
        release.batch(&mut machines, Rounds::release)?;
    }
    for (name, figures) in ["acquire", "extend", "release"].into_iter().zip(figures) {
        figures.print(name);
    }
    Ok(())
}

#[derive(Default)]
struct Figures {
    nanos: Vec<f64>,
    most_allocations: f64,
}

impl Figures {
    /// One round of each machine.
    #[expect(clippy::disallowed_methods, reason = "a bench measures real time")]
    fn batch(
        &mut self,
        machines: &mut [Rounds],
        round: impl Fn(&mut Rounds) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let count = machines.len() as f64;
        let region = Region::new(ALLOCATOR);
        let started = Instant::now();
        for machine in machines {
            round(machine)?;
        }
        let elapsed = started.elapsed();
        let change = region.change();
        self.nanos.push(elapsed.as_secs_f64() * 1e9 / count);
        let allocations = (change.allocations + change.reallocations) as f64 / count;
        self.most_allocations = self.most_allocations.max(allocations);
        Ok(())
    }

    fn print(mut self, name: &str) {
        self.nanos.sort_unstable_by(f64::total_cmp);
        let at =
            |percent: usize| self.nanos.get(self.nanos.len() * percent / 100).copied().unwrap_or(f64::NAN);
        let round = format!("{name}, {NODES} nodes");
        println!("{round:<24} | {:>6.0} | {:>6.0} | {:>11.2}", at(50), at(99), self.most_allocations);
    }
}

/// So few that they stay in the cache, as the machine of a lease that is being acquired does.
const BATCH: usize = 16;
const BATCHES: usize = 20_000;
