//! The command line.

use redlock_sim::{Batch, Mode};

pub(crate) const HELP: &str = "\
Usage: cargo xtask sim [--seeds N] [--from SEED] [--seed S] [--trace] [--mode NAME]

  --seeds N     how many scenarios to run (20000)
  --from SEED   the first seed (0): a number, or hexadecimal such as a commit's hash
  --seed S      run this one only
  --trace       with --seed: show what happens, line by line
  --mode NAME   break an assumption, and expect two holders:
                clock-jump, restart-empty, short-guard, same-server, old-replies, excess-drift,
                reply-time, one-token, twice-sent, stopped-clock; or shared-server, which is
                harmless, or guarded-restart, which restart guards make up for
";

/// How many scenarios are run unless somebody says otherwise.
const CUSTOMARY: u64 = 20_000;

/// What the command line asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Order {
    Run(Batch),
    Show { seed: u64, mode: Mode, trace: bool },
    Help,
}

impl Order {
    pub(crate) fn parse(words: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let mut batch = Batch { from: 0, seeds: CUSTOMARY, mode: Mode::Sound };
        let (mut only, mut trace) = (None, false);
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
            match word.as_str() {
                "--seeds" => batch.seeds = value()?.parse().map_err(|error| format!("{word}: {error}"))?,
                "--from" => batch.from = parse_seed(&value()?)?,
                "--seed" => only = Some(parse_seed(&value()?)?),
                "--mode" => batch.mode = value()?.parse()?,
                "--trace" => trace = true,
                "--help" | "-h" => return Ok(Self::Help),
                _ => return Err(format!("sim has no option {word}")),
            }
        }
        match only {
            Some(seed) => Ok(Self::Show { seed, mode: batch.mode, trace }),
            None if trace => Err("--trace needs --seed: one scenario at a time".to_owned()),
            None => Ok(Self::Run(batch)),
        }
    }
}

/// A number, or the first sixteen digits of something hexadecimal.
fn parse_seed(text: &str) -> Result<u64, String> {
    let hexadecimal = || u64::from_str_radix(text.trim_start_matches("0x").get(..16).unwrap_or(text), 16);
    text.parse().or_else(|_| hexadecimal()).map_err(|_| format!("{text} is no seed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Order, String> {
        Order::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn orders_are_read() {
        assert!(matches!(parse(""), Ok(Order::Run(Batch { from: 0, seeds: CUSTOMARY, mode: Mode::Sound }))));
        assert!(matches!(parse("--from 7 --seeds 9"), Ok(Order::Run(Batch { from: 7, seeds: 9, .. }))));
        assert!(matches!(
            parse("--seed 7 --mode one-token --trace"),
            Ok(Order::Show { seed: 7, mode: Mode::OneToken, trace: true })
        ));
        assert!(matches!(parse("--seeds 4 --help"), Ok(Order::Help)));
    }

    #[test]
    fn mistakes_are_named() {
        for (line, message) in [
            ("--sed 1", "sim has no option --sed"),
            ("--seed", "--seed needs a value"),
            ("--seed x", "x is no seed"),
            ("--seeds -1", "--seeds: invalid digit found in string"),
            ("--trace", "--trace needs --seed: one scenario at a time"),
        ] {
            assert_eq!(parse(line).unwrap_err(), message);
        }
        assert!(parse("--mode none").unwrap_err().starts_with("no such mode: none; there are sound, "));
    }

    #[test]
    fn a_commit_is_a_seed() {
        assert_eq!(parse_seed("17"), Ok(17));
        assert_eq!(parse_seed("f6c1a204212929ebd02427478be930550c83c5ce"), Ok(0xf6c1_a204_2129_29eb));
        assert_eq!(parse_seed("0xff"), Err("0xff is no seed".to_owned()));
    }
}
