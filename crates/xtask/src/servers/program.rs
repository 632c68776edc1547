//! A server program, and what it says that it is.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cargo::output;

/// A program that can be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    /// Such as `Redis 7.0.15`.
    pub(crate) version: String,
}

impl Program {
    /// Asks the program at `path` what it is.
    pub(super) fn at(path: &Path) -> Result<Self, String> {
        let words = output(Command::new(path).arg("--version"))?;
        Ok(Self { path: path.to_owned(), version: version_in(&words) })
    }
}

/// Reads `Redis server v=7.0.15 sha=00000000:0 ...`. Anything else is taken as it is.
fn version_in(words: &str) -> String {
    let kind = words.split_whitespace().next();
    let number = words.split_whitespace().find_map(|word| word.strip_prefix("v="));
    match (kind, number) {
        (Some(kind), Some(number)) => format!("{kind} {number}"),
        _ => words.trim().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_what_servers_print() {
        let redis = "Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=6d5e9b9\n";
        assert_eq!(version_in(redis), "Redis 7.0.15");
        let valkey = "Valkey server v=9.1.2 sha=00000000:1 malloc=libc bits=64 build=1ac57b2\n";
        assert_eq!(version_in(valkey), "Valkey 9.1.2");
        assert_eq!(version_in("something else\n"), "something else");
    }

    #[test]
    fn a_program_that_does_not_run_is_named() {
        let error = Program::at(Path::new("/no/such/server")).unwrap_err();
        assert!(error.starts_with("`/no/such/server --version` cannot be run: "), "{error}");
    }
}
