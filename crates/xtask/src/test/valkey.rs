//! The Valkey that every run has beside the system's Redis.

use std::env;

use super::matrix;
use crate::servers::{self, DEFAULT_VALKEY, Program};

/// Found, or not. What came of the tests is told by the step.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Valkey {
    Found(Program),
    /// For this reason.
    NotRun(String),
}

impl Valkey {
    /// Finds it or fetches it. That there is none is a failure where nobody reads the summary.
    pub(super) fn provide() -> Result<Self, String> {
        if !servers::running_servers().is_empty() {
            return Ok(Self::NotRun("REDLOCK_REDIS_ADDRS names the servers to use".to_owned()));
        }
        Self::judge(DEFAULT_VALKEY.obtain(), is_ci(env::var("CI").ok().as_deref()))
    }

    fn judge(obtained: Result<Program, String>, is_ci: bool) -> Result<Self, String> {
        match obtained {
            Ok(program) => Ok(Self::Found(program)),
            Err(reason) if is_ci => Err(reason),
            Err(reason) => {
                println!("Valkey will not be run\n{reason}");
                // The rest has just been said.
                Ok(Self::NotRun(reason.lines().next().unwrap_or_default().to_owned()))
            }
        }
    }

    /// Runs the tests that depend on the server.
    pub(super) fn test(&self, long: bool) -> Result<(), String> {
        match self {
            Self::Found(program) => matrix::run_on(program, long),
            Self::NotRun(reason) => {
                println!("NOT RUN, {reason}");
                Ok(())
            }
        }
    }
}

/// Reads the variable that services for continuous integration set.
fn is_ci(value: Option<&str>) -> bool {
    value.is_some_and(|value| !["", "0", "false"].contains(&value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_had_is_a_failure_in_ci_only() {
        let reason = || Err("no network\nand so on".to_owned());
        assert_eq!(Valkey::judge(reason(), false), Ok(Valkey::NotRun("no network".to_owned())));
        assert_eq!(Valkey::judge(reason(), true), Err("no network\nand so on".to_owned()));
        let program = Program { path: "/opt/valkey-server".into(), version: "Valkey 9.1.2".to_owned() };
        assert_eq!(Valkey::judge(Ok(program.clone()), true), Ok(Valkey::Found(program)));
    }

    #[test]
    fn ci_says_that_it_is_one() {
        assert!(is_ci(Some("true")) && is_ci(Some("1")) && is_ci(Some("some-service")));
        assert!(!is_ci(None) && !is_ci(Some("")) && !is_ci(Some("false")) && !is_ci(Some("0")));
    }
}
