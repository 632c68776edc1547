//! What the command line of `cargo xtask test` chooses.

use crate::servers::{self, Entry};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// Also the tests that take minutes.
    pub(crate) long: bool,
    /// Only the tests that depend on the server, on each of these.
    pub(crate) servers: Option<Vec<&'static Entry>>,
}

impl Options {
    pub(crate) fn parse(words: &[&str]) -> Result<Self, String> {
        let mut options = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match *word {
                "--long" => options.long = true,
                "--servers" => {
                    let names = words.next().ok_or("--servers needs names, or all")?;
                    options.servers = Some(servers::select(names)?);
                }
                _ => return Err(format!("test has no option {word}")),
            }
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read() {
        assert_eq!(Options::parse(&[]), Ok(Options::default()));
        let long = Options { long: true, servers: None };
        assert_eq!(Options::parse(&["--long", "--long"]), Ok(long));
        assert!(Options::parse(&["--long", "all"]).is_err());
        let some = Options::parse(&["--servers", "redis-6.2,valkey-9.1", "--long"]).unwrap();
        assert!(some.long);
        assert_eq!(some.servers.unwrap().len(), 2);
        let error = Options::parse(&["--servers"]).unwrap_err();
        assert_eq!(error, "--servers needs names, or all");
        assert!(Options::parse(&["--servers", "redis-1"]).is_err());
    }
}
