use std::fmt;

use crate::Mode;

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Violation {
    /// Which one: the name of its file.
    pub invariant: &'static str,
    /// What was seen.
    pub what: String,
    /// When, in true nanoseconds since the scenario began.
    pub at: u64,
    /// The scenario's seed, if it came from one.
    pub seed: Option<u64>,
    /// The assumption that was broken, if any.
    pub mode: Mode,
}

impl Violation {
    /// The command that shows the same again.
    #[must_use]
    pub fn reproduce(&self) -> Option<String> {
        let mode = match self.mode {
            Mode::Sound => String::new(),
            mode => format!(" --mode {mode}"),
        };
        self.seed.map(|seed| format!("cargo xtask sim --seed {seed}{mode} --trace"))
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {} ms: {}", self.invariant, crate::clock::show(self.at), self.what)
    }
}

impl std::error::Error for Violation {}
