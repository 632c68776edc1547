//! Many durations, summed up.

use std::time::Duration;

/// What was measured of one operation.
#[derive(Default)]
pub(super) struct Figures(Vec<Duration>);

impl Figures {
    pub(super) fn add(&mut self, duration: Duration) {
        self.0.push(duration);
    }

    /// The durations that 50, 90 and 99 of 100 do not exceed.
    pub(super) fn percentiles(&self) -> [Duration; 3] {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        [50, 90, 99].map(|percent| {
            let rank = (sorted.len() * percent).div_ceil(100).max(1);
            sorted.get(rank - 1).copied().unwrap_or_default()
        })
    }

    pub(super) const fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn sum(&self) -> Duration {
        self.0.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_nearest_ranks() {
        let mut figures = Figures::default();
        for millis in (1..=200).rev() {
            figures.add(Duration::from_millis(millis));
        }
        assert_eq!(figures.percentiles().map(|duration| duration.as_millis()), [100, 180, 198]);
        assert_eq!(figures.sum(), Duration::from_millis(20_100));
    }

    #[test]
    fn few_or_none_are_no_problem() {
        let mut figures = Figures::default();
        assert_eq!(figures.percentiles(), [Duration::ZERO; 3]);
        figures.add(Duration::from_millis(7));
        assert_eq!(figures.percentiles(), [Duration::from_millis(7); 3]);
    }
}
