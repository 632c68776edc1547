//! `cargo xtask bench`: what a lease costs, beside the bare commands and another library.
//!
//! The floor of an operation is the `redis` crate sending the same commands to all nodes in parallel, on one
//! multiplexed connection each, and waiting for a quorum. All contestants take turns in the same run, on the
//! same servers, and each figure is given as a ratio to the floor's, or to a round trip.

#![forbid(unsafe_code)]

mod commands;
mod contender;
mod contention;
mod contestant;
mod core_alone;
mod cycles;
mod figures;
mod hand_over;
mod held;
mod instructions;
mod monotonic;
mod options;
mod peer;
mod ping;
mod plot;
mod renewals;
mod sample;
mod turn;
mod workload;

use std::future::Future;

use redlock_tests::harness::{Server, own_servers};

use contention::Contention;
use hand_over::HandOver;
use options::{Group, Options};
use workload::Workload;

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.split_first() {
        Some((role, arguments)) if role == peer::ROLE => peer::live(arguments),
        Some((role, arguments)) if role == instructions::ROLE => instructions::live(arguments),
        _ => run(&Options::parse(&words)?),
    }
}

fn run(options: &Options) -> Result<(), Failure> {
    if options.instructions {
        return instructions::count(options.check);
    }
    for group in Group::ALL {
        match group {
            Group::Cycles => cycles(options)?,
            Group::HandOver => hand_overs(options)?,
            Group::Contention => contentions(options)?,
            Group::Core if options.wants(group, "rounds", false) => {
                println!("\n{}", core_alone::HEAD);
                core_alone::measure()?;
            }
            Group::Held if options.wants(group, held::NAME, true) => {
                println!("\n{}", held::HEAD);
                let [server] = &servers(1)?[..] else { return Err("one node".into()) };
                held::run(server)?;
            }
            Group::Held | Group::Core => {}
        }
    }
    Ok(())
}

fn cycles(options: &Options) -> Result<(), Failure> {
    let wanted = |workload: &Workload| options.wants(Group::Cycles, workload.name, false);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let rounds = options.rounds();
    let mut all = Vec::new();
    let mut head = Head::new(format!(
        "medians of {rounds} interleaved rounds; in brackets the ratio to the floor\n{}",
        figures::HEAD
    ));
    for workload in Workload::ALL.iter().filter(|workload| wanted(workload)) {
        head.print();
        all.extend(runtime.block_on(cycles::compare(workload, &servers(workload.nodes)?, rounds))?);
    }
    match &options.plot {
        Some(directory) if !all.is_empty() => plot::write(directory, &all),
        _ => Ok(()),
    }
}

fn hand_overs(options: &Options) -> Result<(), Failure> {
    let mut head = Head::new(hand_over::HEAD.to_owned());
    for workload in HandOver::ALL {
        if options.wants(Group::HandOver, workload.name, false) {
            head.print();
            workload.run(&servers(workload.nodes)?)?;
        }
    }
    Ok(())
}

fn contentions(options: &Options) -> Result<(), Failure> {
    let mut head = Head::new(contention::HEAD.to_owned());
    for workload in Contention::ALL {
        if options.wants(Group::Contention, workload.name, workload.long) {
            head.print();
            workload.run(&servers(workload.nodes)?)?;
        }
    }
    Ok(())
}

/// The head of a table, shown before its first line.
struct Head(Option<String>);

impl Head {
    const fn new(text: String) -> Self {
        Self(Some(text))
    }

    fn print(&mut self) {
        if let Some(text) = self.0.take() {
            println!("\n{text}");
        }
    }
}

fn servers(count: usize) -> Result<Vec<Server>, Failure> {
    Ok(own_servers(count).ok_or("the bench starts servers of its own: unset REDLOCK_REDIS_ADDRS")?)
}

fn urls(servers: &[Server]) -> Vec<String> {
    servers.iter().map(|server| server.url()).collect()
}

/// Runs it on a runtime of a single thread, so that nothing is woken across two.
fn in_one_thread<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
}
