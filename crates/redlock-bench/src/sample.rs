//! Figures out of many measurements of the same.

use std::time::Duration;

/// The value that so many percent do not exceed.
pub(crate) fn quantile(values: &mut [f64], percent: usize) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    values.get((values.len() * percent / 100).min(values.len().saturating_sub(1))).copied()
}

/// The average; not a number without any value.
pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

pub(crate) fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values_that_occur() {
        let mut values: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert_eq!(quantile(&mut values, 50), Some(51.0));
        assert_eq!(quantile(&mut values, 99), Some(100.0));
        assert_eq!(quantile(&mut [7.0], 99), Some(7.0));
        assert_eq!(quantile(&mut [], 50), None);
    }

    #[test]
    fn a_mean_weighs_all_alike() {
        assert_eq!(mean(&[1.0, 2.0, 6.0]), 3.0);
        assert!(mean(&[]).is_nan());
    }
}
