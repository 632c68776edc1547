//! Who had the lease when: the records that contenders keep, and what they come to when merged.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::{Failure, monotonic};

/// A contender's wait for the lease, and its time with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    pub(crate) seat: usize,
    pub(crate) asked: Duration,
    /// Read after the lease was granted. Equal to `released` for a wait that the end cut short.
    pub(crate) acquired: Duration,
    /// Read before the lease was given back.
    pub(crate) released: Duration,
}

impl Turn {
    fn was_had(&self) -> bool {
        self.released > self.acquired
    }
}

impl fmt::Display for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [asked, acquired, released] =
            [self.asked, self.acquired, self.released].map(|time| time.as_nanos());
        write!(f, "{} {asked} {acquired} {released}", self.seat)
    }
}

impl FromStr for Turn {
    type Err = Failure;

    fn from_str(line: &str) -> Result<Self, Failure> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [seat, asked, acquired, released] = words.as_slice() else {
            return Err(format!("no turn: {line:?}").into());
        };
        Ok(Self {
            seat: seat.parse()?,
            asked: monotonic::parse(asked)?,
            acquired: monotonic::parse(acquired)?,
            released: monotonic::parse(released)?,
        })
    }
}

/// What the turns of all contenders come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) acquisitions: usize,
    /// Acquisitions by another contender than the one before.
    pub(crate) changes: usize,
    /// Waits that the end cut short count, so that one who starves is seen.
    pub(crate) longest_wait: Duration,
    pub(crate) least_wins: usize,
    pub(crate) most_wins: usize,
}

impl Tally {
    /// Merges the turns of `seats` contenders.
    ///
    /// # Errors
    /// When two contenders had the lease at the same time.
    pub(crate) fn of(mut turns: Vec<Turn>, seats: usize) -> Result<Self, Failure> {
        let longest_wait = turns.iter().map(|turn| turn.acquired.saturating_sub(turn.asked)).max();
        turns.retain(Turn::was_had);
        turns.sort_unstable_by_key(|turn| turn.acquired);
        let mut changes = 0;
        for (earlier, later) in turns.iter().zip(turns.iter().skip(1)) {
            changes += usize::from(earlier.seat != later.seat);
            if later.acquired < earlier.released {
                return Err(format!("two holders at once: {earlier} and {later}").into());
            }
        }
        let wins = |seat| turns.iter().filter(|turn| turn.seat == seat).count();
        let wins: Vec<usize> = (0..seats).map(wins).collect();
        Ok(Self {
            acquisitions: turns.len(),
            changes,
            longest_wait: longest_wait.unwrap_or_default(),
            least_wins: wins.iter().min().copied().unwrap_or_default(),
            most_wins: wins.iter().max().copied().unwrap_or_default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(seat: usize, [asked, acquired, released]: [u64; 3]) -> Turn {
        let [asked, acquired, released] = [asked, acquired, released].map(Duration::from_millis);
        Turn { seat, asked, acquired, released }
    }

    #[test]
    fn turns_survive_the_pipe() {
        let turn = turn(3, [1, 20, 300]);
        assert_eq!(turn.to_string().parse::<Turn>().unwrap(), turn);
        assert!("3 1 20".parse::<Turn>().is_err());
    }

    #[test]
    fn turns_are_merged_in_the_order_of_acquisition() {
        let turns = vec![
            turn(0, [0, 1, 2]),
            turn(0, [2, 3, 4]),
            turn(1, [0, 5, 6]),
            turn(0, [4, 7, 8]),
            turn(2, [0, 9, 9]),
        ];
        let tally = Tally::of(turns, 3).unwrap();
        assert_eq!((tally.acquisitions, tally.changes), (4, 2));
        assert_eq!((tally.least_wins, tally.most_wins), (0, 3));
        assert_eq!(tally.longest_wait, Duration::from_millis(9), "of the one that never got it");
    }

    #[test]
    fn two_holders_at_once_are_seen() {
        let error = Tally::of(vec![turn(0, [0, 1, 5]), turn(1, [0, 4, 6])], 2).unwrap_err();
        assert!(error.to_string().starts_with("two holders at once"), "{error}");
    }
}
