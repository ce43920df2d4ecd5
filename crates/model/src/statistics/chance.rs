//! Random numbers from a seed.

/// Sequence of random numbers that a seed determines, the same on every machine: SplitMix64 (Steele, Lea and Flood
/// 2014). Neighbouring seeds give unrelated sequences. For shuffling and sampling, not for secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chance(u64);

impl Chance {
    /// Creates the sequence for `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number in `0.0..1.0`.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns a whole number in `0..bound`, all equally likely (Lemire 2019); 0 for a bound of 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        let Some(surplus) = bound.wrapping_neg().checked_rem(bound) else { return 0 };
        loop {
            let product = u128::from(self.bits()) * u128::from(bound);
            // Reject draws by their low half, because they would make the smallest numbers more likely.
            if product as u64 >= surplus {
                return (product >> 64) as u64;
            }
        }
    }

    /// Shuffles items so that every order is equally likely (Fisher and Yates; Durstenfeld 1964).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn the_sequence_matches_published_values() {
        let mut chance = Chance::new(1_234_567);
        let row: Vec<u64> = (0..3).map(|_| chance.bits()).collect();
        assert_eq!(row, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn numbers_cover_the_whole_range_below_the_bound() {
        let mut chance = Chance::new(7);
        let mut seen = [0u32; 6];
        for _ in 0..6_000 {
            seen[chance.below(6) as usize] += 1;
        }
        assert!(seen.iter().all(|count| (850..1_150).contains(count)), "{seen:?}");
        assert_eq!((chance.below(0), chance.below(1)), (0, 0));
        assert!((0..1_000).map(|_| chance.unit()).all(|unit| (0.0..1.0).contains(&unit)));
    }

    #[test]
    fn a_shuffle_is_uniform_and_deterministic_for_a_seed() {
        let mut orders: BTreeMap<[u8; 3], u32> = BTreeMap::new();
        let mut chance = Chance::new(1);
        for _ in 0..6_000 {
            let mut items = [1, 2, 3];
            chance.shuffle(&mut items);
            *orders.entry(items).or_default() += 1;
        }
        assert_eq!(orders.len(), 6);
        assert!(orders.values().all(|count| (850..1_150).contains(count)), "{orders:?}");

        let shuffled = |seed| {
            let mut items: Vec<u32> = (0..50).collect();
            Chance::new(seed).shuffle(&mut items);
            items
        };
        assert_eq!(shuffled(3), shuffled(3));
        assert_ne!(shuffled(3), shuffled(4));
        Chance::new(0).shuffle::<u8>(&mut []);
    }
}
