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

/// What came of one server.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    /// With this version.
    Passed(String),
    Failed(String),
    /// It could not be had, for this reason.
    NotRun(String),
}

/// Runs the tests on each of the servers, and sums up. A failure on one does not keep the others from being
/// tested.
pub(super) fn run(entries: &[&'static Entry], long: bool) -> Result<(), String> {
    if !servers::running_servers().is_empty() {
        return Err("--servers starts servers of its own: unset REDLOCK_REDIS_ADDRS".to_owned());
    }
    let mut steps = Steps::new();
    println!("\n==== servers");
    let obtained: Vec<_> = entries.iter().map(|entry| (entry.name, entry.obtain())).collect();
    println!("{}", servers::table(&obtained));
    steps.run("build", build)?;
    let outcomes: Vec<_> =
        obtained.into_iter().map(|(name, program)| (name, test(name, program, long, &mut steps))).collect();

    println!("\n==== summary");
    print!("{}", steps.summary());
    println!("run on each: {WHAT}");
    print!("{}", table(&outcomes));
    match outcomes.iter().filter(|(_, outcome)| !matches!(outcome, Outcome::Passed(_))).count() {
        0 => {
            println!("all passed");
            Ok(())
        }
        failed => Err(format!("{failed} of {} servers failed, or could not be had", entries.len())),
    }
}

fn test(name: &str, program: Result<Program, String>, long: bool, steps: &mut Steps) -> Outcome {
    let program = match program {
        Ok(program) => program,
        Err(reason) => {
            println!("\n==== {name}: NOT RUN\n{reason}");
            return Outcome::NotRun(reason.lines().next().unwrap_or_default().to_owned());
        }
    };
    match steps.run(&format!("{} ({name})", program.version), || run_on(&program, long)) {
        Ok(()) => Outcome::Passed(program.version),
        Err(reason) => {
            println!("{reason}");
            Outcome::Failed(program.version)
        }
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

/// A line for each server.
fn table(outcomes: &[(&str, Outcome)]) -> String {
    let lines = outcomes.iter().map(|(name, outcome)| match outcome {
        Outcome::Passed(version) => format!("{name:<11} {version:<13} passed\n"),
        Outcome::Failed(version) => format!("{name:<11} {version:<13} FAILED, see above\n"),
        Outcome::NotRun(reason) => format!("{name:<11} NOT RUN, {reason}\n"),
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_are_told_apart() {
        let outcomes = [
            ("redis-6.2", Outcome::Passed("Redis 6.2.14".to_owned())),
            ("redis-7.0", Outcome::Failed("Redis 7.0.15".to_owned())),
            ("valkey-9.1", Outcome::NotRun("no network".to_owned())),
        ];
        assert_eq!(
            table(&outcomes),
            "redis-6.2   Redis 6.2.14  passed\n\
             redis-7.0   Redis 7.0.15  FAILED, see above\n\
             valkey-9.1  NOT RUN, no network\n"
        );
    }

    #[test]
    fn a_server_that_is_missing_is_not_tested() {
        let mut steps = Steps::new();
        let outcome = test("valkey-9.1", Err("no network\nand so on".to_owned()), false, &mut steps);
        assert_eq!(outcome, Outcome::NotRun("no network".to_owned()));
    }
}
