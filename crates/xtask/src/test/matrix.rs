//! The tests that depend on the server, on several servers.

use super::bench::Bench;
use crate::cargo::{cargo, execute};
use crate::servers::{self, Entry, Program};
use crate::steps::Steps;

/// What a server of another version could fail. All else never sees a server, or sees the same through another
/// adapter.
const TESTS: [&[&str]; 4] = [
    &["-p", "redlock-tests", "--lib"],
    &["-p", "redlock-tests", "--test", "differential"],
    &[
        "-p",
        "redlock-tokio",
        "--no-fail-fast",
        "--test",
        "real_servers",
        "--test",
        "own_nodes",
        "--test",
        "cluster",
        "--test",
        "cluster_repeats",
        "--test",
        "clock",
    ],
    &["-p", "redlock-cli", "--test", "black_box", "--", "check::", "status::"],
];

/// The same in words, for the summary.
const WHAT: &str = "the harness; the model of a server; the suite through tokio, nodes of the user's, clusters, \
                    clocks that jump; redlock check and status";

/// Runs the tests on each of the servers, and sums up. A failure on one does not keep the others from being
/// tested.
pub(super) fn run(entries: &[&'static Entry], long: bool) -> Result<(), String> {
    if !servers::running_servers().is_empty() {
        return Err("--servers starts servers of its own: unset REDLOCK_REDIS_ADDRS".to_owned());
    }
    let mut steps = Steps::new();
    let mut outcomes = Vec::new();
    let mut programs = Vec::new();
    println!("\n==== servers");
    for entry in entries {
        match entry.obtain() {
            Ok(program) => {
                println!("{:<11} {:<13} {}", entry.name, program.version, program.path.display());
                programs.push((entry.name, program));
            }
            Err(reason) => {
                println!("{reason}");
                outcomes.push((entry.name, "NOT RUN".to_owned(), Err(first_line(&reason))));
            }
        }
    }
    steps.run("build", build)?;
    for (name, program) in programs {
        let tested = steps.run(&format!("{} ({name})", program.version), || run_on(&program, long));
        if let Err(reason) = &tested {
            println!("{reason}");
        }
        outcomes.push((name, program.version, tested));
    }

    println!("\n==== summary");
    print!("{}", steps.summary());
    println!("run on each: {WHAT}");
    println!("{}", table(entries, &outcomes));
    match outcomes.iter().filter(|(_, _, outcome)| outcome.is_err()).count() {
        0 => {
            println!("all passed");
            Ok(())
        }
        failed => Err(format!("{failed} of {} servers failed, or could not be had", entries.len())),
    }
}

/// Runs the tests on one server: all of them, so that it is known what else fails there.
pub(super) fn run_on(program: &Program, long: bool) -> Result<(), String> {
    let bench = Bench::new(Some(program.path.clone()), long)?;
    let failures: Vec<String> = TESTS.iter().filter_map(|tests| bench.test(tests).err()).collect();
    if failures.is_empty() { Ok(()) } else { Err(failures.join("; ")) }
}

/// Builds the tests, so that it is not the first server that seems slow.
fn build() -> Result<(), String> {
    TESTS.iter().try_for_each(|tests| execute(cargo(&["test", "--locked", "--no-run"]).args(*tests)))
}

/// Name, version and outcome of each, in the order in which they were asked for.
fn table(entries: &[&Entry], outcomes: &[(&str, String, Result<(), String>)]) -> String {
    let in_order = entries.iter().flat_map(|entry| outcomes.iter().filter(|(name, ..)| *name == entry.name));
    let lines = in_order.map(|(name, version, outcome)| {
        let outcome =
            outcome.as_ref().map_or_else(|reason| format!("FAILED, {reason}"), |()| "passed".to_owned());
        format!("{name:<11} {version:<13} {outcome}")
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_are_listed_as_they_were_asked_for() {
        let entries = servers::select("redis-6.2,redis-7.0,valkey-9.1").unwrap();
        let outcomes = [
            ("valkey-9.1", "NOT RUN".to_owned(), Err("no network".to_owned())),
            ("redis-6.2", "Redis 6.2.14".to_owned(), Ok(())),
            ("redis-7.0", "Redis 7.0.15".to_owned(), Err("one test".to_owned())),
        ];
        assert_eq!(
            table(&entries, &outcomes),
            "redis-6.2   Redis 6.2.14  passed\n\
             redis-7.0   Redis 7.0.15  FAILED, one test\n\
             valkey-9.1  NOT RUN       FAILED, no network"
        );
    }
}
