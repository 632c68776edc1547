//! Where every decision in a scenario comes from: a seed, or bytes.

/// An endless source of decisions.
#[derive(Clone, Debug)]
pub(crate) struct Choices(Source);

#[derive(Clone, Debug)]
enum Source {
    Seed(u64),
    Bytes { bytes: Vec<u8>, read: usize },
}

impl Choices {
    /// All that follows from a seed. The generator is written out here, so that a seed means the same
    /// scenario whatever version of a library is in use.
    pub(crate) fn from_seed(seed: u64) -> Self {
        // Neighbouring seeds must not give neighbouring sequences.
        Self(Source::Seed(mix(seed ^ 0x005e_ed0f_1ea5_e5c0)))
    }

    /// What these bytes say. When they are used up, every further decision is the tamest one: see
    /// [`below`](Self::below).
    pub(crate) fn from_bytes(bytes: &[u8]) -> Self {
        Self(Source::Bytes { bytes: bytes.to_vec(), read: 0 })
    }

    /// More decisions of the same origin, which do not change what these are. Bytes are read backwards.
    pub(crate) fn apart(&self) -> Self {
        Self(match &self.0 {
            Source::Seed(state) => Source::Seed(mix(state ^ 0x0a9a_2700_c401_ce50)),
            Source::Bytes { bytes, .. } => {
                Source::Bytes { bytes: bytes.iter().rev().copied().collect(), read: 0 }
            }
        })
    }

    /// A number from 0 to `bound - 1`; 0 when the bytes are used up, and for a bound of 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        match &mut self.0 {
            Source::Seed(state) => {
                // SplitMix64: small, fast, and good enough to choose faults with.
                *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
                scale(mix(*state), 64, bound)
            }
            Source::Bytes { bytes, read } => {
                let width = match bound {
                    0 | 1 => return 0,
                    2..=256 => 1,
                    257..=65_536 => 2,
                    _ => 4,
                };
                let word =
                    bytes.iter().skip(*read).take(width).fold(0, |word, byte| word << 8 | u64::from(*byte));
                let complete = *read + width <= bytes.len();
                *read = (*read + width).min(bytes.len());
                if complete { scale(word, 8 * width as u32, bound) } else { 0 }
            }
        }
    }

    /// A number from `low` to `high`, both included; `low` when the bytes are used up.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low).saturating_add(1))
    }

    /// Whether something happens that does so in `per_mille` of a thousand cases. Not when the bytes are
    /// used up.
    pub(crate) fn chance(&mut self, per_mille: u64) -> bool {
        per_mille > 0 && self.below(256) * 1_000 >= 256 * 1_000_u64.saturating_sub(per_mille)
    }

    /// One of these; the first when the bytes are used up. There must be one.
    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.index(from.len())]
    }

    /// A position in a list of this length.
    pub(crate) fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap_or_default()
    }
}

/// A word of so many bits as a number below `bound`.
fn scale(word: u64, bits: u32, bound: u64) -> u64 {
    let scaled = (u128::from(word) * u128::from(bound)) >> bits;
    // Below `bound`, which is a u64.
    u64::try_from(scaled).unwrap_or_default()
}

const fn mix(state: u64) -> u64 {
    let state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_decides_everything() {
        let draw = |seed| {
            let mut choices = Choices::from_seed(seed);
            (0..20).map(|_| choices.below(1_000_000)).collect::<Vec<_>>()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    #[test]
    fn numbers_stay_in_their_bounds_and_reach_both() {
        for mut choices in [Choices::from_seed(3), Choices::from_bytes(&[0xff; 2_000])] {
            let drawn: Vec<u64> = (0..1_000).map(|_| choices.between(7, 9)).collect();
            assert!(drawn.iter().all(|number| (7..=9).contains(number)));
            assert!(drawn.contains(&9));
            assert_eq!(choices.below(0), 0);
            assert_eq!(choices.below(1), 0);
            assert_eq!(choices.between(5, 5), 5);
        }
        let mut choices = Choices::from_seed(3);
        let drawn = (0..10_000).filter(|_| choices.chance(250)).count();
        assert!((2_200..2_800).contains(&drawn), "{drawn}");
        assert!(!choices.chance(0));
        assert!(choices.chance(1_000));
    }

    #[test]
    fn used_up_bytes_choose_what_is_tamest() {
        let mut choices = Choices::from_bytes(&[0xff, 0xff]);
        assert_eq!(choices.below(256), 0xff);
        assert_eq!(choices.below(65_536), 0, "half a number is none");
        assert_eq!(choices.between(4, 1_000), 4);
        assert!(!choices.chance(999));
        assert_eq!(choices.pick(&['a', 'b']), 'a');
    }
}
