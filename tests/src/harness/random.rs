//! Random choices that come out the same for the same seed.

/// A generator of numbers (SplitMix64) for tests that choose their faults by chance: the same seed gives the
/// same choices, so a failure can be played again.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator that starts from `seed`.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Any number.
    pub const fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which must not be zero.
    pub fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).expect("a usize is no longer than 64 bits");
        usize::try_from(self.number() % bound).expect("below a usize")
    }

    /// One of these, of which there must be some.
    pub fn one_of<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }

    /// Any byte.
    pub const fn byte(&mut self) -> u8 {
        self.number().to_le_bytes()[0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers() {
        let numbers = |seed| {
            let mut random = Random::new(seed);
            (0..8).map(|_| random.number()).collect::<Vec<_>>()
        };
        assert_eq!(numbers(7), numbers(7));
        assert_ne!(numbers(7), numbers(8));
        // From the reference implementation.
        assert_eq!(numbers(1_234_567)[..2], [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]);
    }

    #[test]
    fn choices_stay_within_their_bounds() {
        let mut random = Random::new(1);
        let mut seen = [0; 3];
        for _ in 0..300 {
            seen[random.below(3)] += 1;
            assert!([1, 2].contains(random.one_of(&[1, 2])));
        }
        assert!(seen.iter().all(|&times| times > 50), "{seen:?}");
    }
}
