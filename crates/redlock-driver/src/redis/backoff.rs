//! How long to wait before the next attempt to connect.

use std::time::Duration;

/// The pause after this many failures in a row: anything from nothing up to [`ceiling`], drawn from
/// the system's random numbers, so that processes that lost a server together do not come back together.
pub(crate) fn pause(failures: u32) -> Duration {
    // Without random numbers the pauses are as long as they get, which is still correct.
    part_of(ceiling(failures), getrandom::u64().unwrap_or(u64::MAX))
}

/// The longest pause after this many failures: doubling, up to a cap.
fn ceiling(failures: u32) -> Duration {
    let doubled = 1_u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX);
    SHORTEST.saturating_mul(doubled).min(LONGEST)
}

/// `random` as a part of the whole range of numbers, times `ceiling`.
fn part_of(ceiling: Duration, random: u64) -> Duration {
    let nanos = u64::try_from(ceiling.as_nanos()).unwrap_or(u64::MAX);
    let part = (u128::from(nanos) * u128::from(random)) >> 64;
    Duration::from_nanos(u64::try_from(part).unwrap_or(nanos))
}

const SHORTEST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_up_to_the_cap() {
        let ceilings = [1, 2, 3, 7, 8, 32, 33, u32::MAX].map(|failures| ceiling(failures).as_millis());
        assert_eq!(ceilings, [50, 100, 200, 3_200, 5_000, 5_000, 5_000, 5_000]);
        assert_eq!(ceiling(0), SHORTEST);
    }

    #[test]
    fn jitter_covers_the_whole_range() {
        let ceiling = Duration::from_millis(200);
        assert_eq!(part_of(ceiling, 0), Duration::ZERO);
        assert_eq!(part_of(ceiling, 1 << 63), Duration::from_millis(100));
        let longest = part_of(ceiling, u64::MAX);
        assert!(longest <= ceiling && longest > Duration::from_millis(199));
    }

    #[test]
    fn two_pauses_differ() {
        let pauses: Vec<_> = (0..4).map(|_| pause(8)).collect();
        assert!(pauses.iter().any(|other| *other != pauses[0]), "{pauses:?}");
        assert!(pauses.iter().all(|pause| *pause <= LONGEST));
    }
}
