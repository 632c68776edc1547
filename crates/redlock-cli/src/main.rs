//! The program `redlock`: runs a command while a lease on Redis is held, on one machine at a time.
//!
//! `redlock run` is the heart of it; `check`, `status` and `bench` look at the nodes that it relies on.

#![forbid(unsafe_code)]

#[cfg(not(unix))]
compile_error!("redlock needs the signals, process groups and terminals of a Unix-like system");

mod args;
mod bench;
mod check;
mod exit;
mod manual;
mod narrate;
mod nodes;
mod print;
mod run;
mod status;
mod voice;

use std::env;
use std::ffi::OsStr;
use std::process::ExitCode;

use clap::Parser as _;

use args::{Cli, Task};
use exit::{Code, Failure};

fn main() -> ExitCode {
    if env::args_os().nth(1).as_deref() == Some(OsStr::new(run::exec::NAME)) {
        return run::exec::exec(env::args_os().skip(2)).into();
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help goes to standard output, and is no mistake.
            let code = if error.use_stderr() { Code::USAGE } else { Code::OK };
            // Nobody may be listening.
            let _ = error.print();
            return code.into();
        }
    };
    let ended = match &cli.task {
        Task::Run(args) => run::run(args),
        Task::Check(args) => check::run(args),
        Task::Status(args) => status::run(args),
        Task::Bench(args) => bench::run(args),
        Task::Completions { shell } => manual::completions(*shell),
        Task::Man { subcommand } => manual::page(subcommand.as_deref()),
    };
    ended.unwrap_or_else(Failure::report).into()
}
