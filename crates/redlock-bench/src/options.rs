//! What the command line asks for.

use std::path::PathBuf;

use crate::Failure;

/// The groups of workloads, in the order in which they run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    Cycles,
    HandOver,
    Contention,
    Held,
    Core,
}

impl Group {
    pub(crate) const ALL: [Self; 5] =
        [Self::Cycles, Self::HandOver, Self::Contention, Self::Held, Self::Core];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Cycles => "cycles",
            Self::HandOver => "hand-over",
            Self::Contention => "contention",
            Self::Held => "held",
            Self::Core => "core",
        }
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// How often each contestant runs each workload of the cycles.
    rounds: Option<usize>,
    only: Option<String>,
    /// Also what takes a minute each.
    pub(crate) long: bool,
    /// Counts instructions instead of measuring time.
    pub(crate) instructions: bool,
    /// Fails when the core takes more instructions than are on record.
    pub(crate) check: bool,
    /// Where the bars are drawn.
    pub(crate) plot: Option<PathBuf>,
}

impl Options {
    pub(crate) fn parse(words: &[String]) -> Result<Self, Failure> {
        let mut options = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().cloned().ok_or_else(|| format!("{word} what?"));
            match word.as_str() {
                "--only" => options.only = Some(value()?),
                "--plot" => options.plot = Some(value()?.into()),
                "--long" => options.long = true,
                "--instructions" => options.instructions = true,
                "--check" => options.check = true,
                rounds if options.rounds.is_none() && !rounds.starts_with('-') => {
                    options.rounds =
                        Some(rounds.parse().map_err(|_| format!("no number of rounds: {rounds}"))?);
                }
                _ => return Err(format!("bench has no option {word}").into()),
            }
        }
        if options.check && !options.instructions {
            return Err("--check is about --instructions".into());
        }
        Ok(options)
    }

    pub(crate) fn rounds(&self) -> usize {
        self.rounds.unwrap_or(7)
    }

    /// Whether a workload was asked for, by its name or that of its group. One that is long takes `--long`, or,
    /// if leases are held, its name.
    pub(crate) fn wants(&self, group: Group, workload: &str, long: bool) -> bool {
        let is_long = long && !self.long;
        match &self.only {
            Some(only) if group == Group::Held => group.name().contains(only) || workload.contains(only),
            Some(only) => !is_long && (group.name().contains(only) || workload.contains(only)),
            None => !is_long,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Options::parse(&words).map_err(|error| error.to_string())
    }

    #[test]
    fn options_are_read() {
        assert_eq!(parse("").unwrap().rounds(), 7);
        let options = parse("3 --only hand --long --plot docs").unwrap();
        assert_eq!((options.rounds(), options.long), (3, true));
        assert_eq!(options.plot, Some("docs".into()));
        assert!(parse("--instructions --check").unwrap().check);
    }

    #[test]
    fn anything_else_is_refused_by_name() {
        assert_eq!(parse("--lnog"), Err("bench has no option --lnog".to_owned()));
        assert_eq!(parse("3 4"), Err("bench has no option 4".to_owned()));
        assert_eq!(parse("many"), Err("no number of rounds: many".to_owned()));
        assert_eq!(parse("--only"), Err("--only what?".to_owned()));
        assert_eq!(parse("--check"), Err("--check is about --instructions".to_owned()));
    }

    #[test]
    fn long_workloads_must_be_asked_for() {
        let wants = |line, group, workload, long| parse(line).unwrap().wants(group, workload, long);
        assert!(wants("", Group::Cycles, "alone, 1 node", false));
        assert!(!wants("", Group::Held, "10000 leases", true));
        assert!(wants("--long", Group::Held, "10000 leases", true));
        assert!(wants("--only held", Group::Held, "10000 leases", true));
        assert!(!wants("--only held", Group::Cycles, "alone, 1 node", false));
        assert!(wants("--only alone", Group::Cycles, "alone, 1 node", false));
        assert!(!wants("--only contention", Group::Contention, "8 processes, 60 s", true));
        assert!(!wants("--only processes", Group::Contention, "8 processes, 60 s", true));
        assert!(wants("--only 60 --long", Group::Contention, "8 processes, 60 s", true));
        assert!(!wants("--only 60 --long", Group::Contention, "8 processes, 1 node", false));
    }
}
