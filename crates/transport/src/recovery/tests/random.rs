//! Randomness for the tests of this module: the same seed gives the same numbers (splitmix64).

#[derive(Debug)]
pub(in crate::recovery) struct Random(u64);

impl Random {
    pub(in crate::recovery) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `bound`, which is not 0.
    pub(in crate::recovery) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// Returns true with this probability.
    pub(in crate::recovery) fn chance(&mut self, probability: f64) -> bool {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64 <= probability && probability > 0.0
    }
}
