use std::fmt;

use crate::clock::show;

/// What happened in a scenario, line by line, in true time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    lines: Option<Vec<String>>,
}

impl Trace {
    /// A trace that takes notes. The default one does not.
    pub(crate) const fn recording() -> Self {
        Self { lines: Some(Vec::new()) }
    }

    /// Notes a line, which is only put into words when notes are taken.
    pub(crate) fn note(&mut self, at: u64, line: impl FnOnce() -> String) {
        if let Some(lines) = &mut self.lines {
            lines.push(format!("{:>12} ms  {}", show(at), line()));
        }
    }

    /// Notes something that is true of the whole scenario.
    pub(crate) fn preface(&mut self, line: impl FnOnce() -> String) {
        if let Some(lines) = &mut self.lines {
            lines.push(line());
        }
    }

    /// The lines.
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().flatten().map(String::as_str)
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lines().try_for_each(|line| writeln!(f, "{line}"))
    }
}
