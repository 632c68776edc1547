//! Figures of a round, and the table of their medians.

use std::time::Duration;

use crate::contestant::{Contestant, Kind};
use crate::sample::{micros, quantile};
use crate::workload::Workload;

/// What a round came to, in microseconds and cycles a second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figures {
    acquire: f64,
    acquire_p99: f64,
    release: f64,
    rate: f64,
    cpu: f64,
}

impl Figures {
    /// `None` without any cycle.
    pub(crate) fn new(times: Vec<[Duration; 2]>, elapsed: Duration, cpu: Duration) -> Option<Self> {
        let cycles = times.len() as f64;
        let (mut acquires, mut releases): (Vec<_>, Vec<_>) =
            times.into_iter().map(|[acquire, release]| (micros(acquire), micros(release))).unzip();
        Some(Self {
            acquire: quantile(&mut acquires, 50)?,
            acquire_p99: quantile(&mut acquires, 99)?,
            release: quantile(&mut releases, 50)?,
            rate: cycles / elapsed.as_secs_f64(),
            cpu: micros(cpu) / cycles,
        })
    }
}

pub(crate) const HEAD: &str = "\
workload                 | who     | acquire p50, us | acquire p99, us | release p50, us |     cycles/s     |  cpu/cycle, us";

/// What a contestant's figures are of the floor's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ratios {
    pub(crate) workload: &'static str,
    pub(crate) who: Kind,
    pub(crate) acquire: f64,
    pub(crate) rate: f64,
    pub(crate) cpu: f64,
}

/// Prints a line for each contestant.
pub(crate) fn print(
    workload: &Workload,
    contestants: &[Contestant],
    measured: &[Vec<Figures>],
) -> Vec<Ratios> {
    let columns: [fn(&Figures) -> f64; 5] =
        [|it| it.acquire, |it| it.acquire_p99, |it| it.release, |it| it.rate, |it| it.cpu];
    let floor = contestants.iter().position(|contestant| contestant.kind() == Kind::Floor);
    let floor = floor.and_then(|floor| measured.get(floor)).map_or(&[][..], Vec::as_slice);
    let mut all = Vec::with_capacity(contestants.len());
    for (contestant, rounds) in contestants.iter().zip(measured) {
        let medians = columns.map(|column| median(rounds.iter().map(column)));
        // Of each round by itself: what slows a round down slows the floor down, too.
        let ratios = columns.map(|column| {
            median(rounds.iter().zip(floor).map(|(figures, floor)| column(figures) / column(floor)))
        });
        let cells = medians.iter().zip(ratios).map(|(figure, ratio)| format!("{figure:>8.0} ({ratio:>5.2})"));
        let cells: Vec<String> = cells.collect();
        let who = contestant.kind();
        println!("{:<24} | {:<7} | {}", workload.name, who.name(), cells.join(" | "));
        let [acquire, _, _, rate, cpu] = ratios;
        all.push(Ratios { workload: workload.name, who, acquire, rate, cpu });
    }
    all
}

/// The middle one; not a number without any value.
fn median(values: impl Iterator<Item = f64>) -> f64 {
    quantile(&mut values.collect::<Vec<_>>(), 50).unwrap_or(f64::NAN)
}
