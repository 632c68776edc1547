//! What comes of a run.

use std::fmt;

use thiserror::Error;

/// What a runtime must do, and was seen not to.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{check}: {seen}; {demand}")]
#[non_exhaustive]
pub struct Violation {
    /// The name of the check that failed.
    pub check: &'static str,
    /// What was seen.
    pub seen: String,
    /// What the runtime must do instead.
    pub demand: &'static str,
}

/// A run in which nothing failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    passed: Vec<&'static str>,
    repeated: Vec<&'static str>,
}

impl Report {
    /// The names of the checks, in the order in which they ran. The same for all runtimes.
    #[must_use]
    pub fn passed(&self) -> &[&'static str] {
        &self.passed
    }

    /// The names of those that were too slow at first and then were not. With nothing else to do for the
    /// machine, there are none.
    #[must_use]
    pub fn repeated(&self) -> &[&'static str] {
        &self.repeated
    }

    pub(super) fn enter(&mut self, name: &'static str, repeated: bool) {
        self.passed.push(name);
        if repeated {
            self.repeated.push(name);
        }
    }
}

/// The number of checks, and which had to be repeated.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} checks passed", self.passed.len())?;
        if self.repeated.is_empty() {
            return Ok(());
        }
        write!(f, ", not at the first try: {}", self.repeated.join(", "))
    }
}
