//! The simulator as a program: `cargo xtask sim`.

#![forbid(unsafe_code)]

mod cli;

use std::env;
use std::process::ExitCode;
use std::time::Instant;

use redlock_sim::{Batch, Mode, Scenario, Violation, run_traced};

use cli::{HELP, Order};

fn main() -> ExitCode {
    match Order::parse(env::args().skip(1)) {
        Ok(Order::Run(batch)) => run(&batch),
        Ok(Order::Show { seed, mode, trace }) => show(seed, mode, trace),
        Ok(Order::Help) => {
            print!("{HELP}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprint!("sim: {message}\n\n{HELP}");
            ExitCode::from(64)
        }
    }
}

fn run(batch: &Batch) -> ExitCode {
    let started = now();
    let findings = batch.run();
    let seconds = started.elapsed().as_secs_f64();
    let ran = findings.summary.scenarios();
    print!("{}", findings.summary);
    println!(
        "\n{ran} scenarios to their end, mode {}, seeds from {}; {} happenings; {seconds:.1} s, {:.0} scenarios a second",
        batch.mode,
        batch.from,
        findings.summary.happenings(),
        ran as f64 / seconds.max(1e-9),
    );
    if let Some(seed) = findings.violation.as_ref().and_then(|violation| violation.seed) {
        println!();
        print!("{}", run_traced(Scenario::from_seed(seed, batch.mode)).1);
    }
    conclude(batch.mode, findings.violation.as_ref())
}

fn show(seed: u64, mode: Mode, trace: bool) -> ExitCode {
    let (outcome, lines) = run_traced(Scenario::from_seed(seed, mode));
    if trace || outcome.is_err() {
        print!("{lines}");
    }
    if let Ok(summary) = &outcome {
        print!("\n{summary}");
    }
    match outcome {
        // One seed of a broken mode need not be one that shows it.
        Ok(_) => ExitCode::SUCCESS,
        Err(violation) => conclude(mode, Some(&violation)),
    }
}

/// The last word. A violation is a failure, unless an assumption was broken: then it is one to find none.
fn conclude(mode: Mode, violation: Option<&Violation>) -> ExitCode {
    match violation {
        None if mode.is_unsafe() => println!("NO VIOLATION FOUND, although mode {mode} breaks an assumption"),
        None => println!("no violation"),
        Some(violation) => {
            let expected = if mode.is_unsafe() { ", as was to be expected" } else { "" };
            println!("\nVIOLATION{expected}: {violation}");
            println!("reproduce: {}", violation.reproduce().unwrap_or_default());
        }
    }
    if violation.is_some() == mode.is_unsafe() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[allow(
    clippy::disallowed_methods,
    reason = "the program is timed for whoever watches it; scenarios are not"
)]
fn now() -> Instant {
    Instant::now()
}
