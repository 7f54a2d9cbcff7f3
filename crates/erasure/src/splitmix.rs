//! SplitMix64 (Steele 2014): the same numbers on every machine.

/// The odd integer next to 2^64 over the golden ratio.
const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// A sequence of 64-bit numbers, from which codes draw their structure on both sides: the numbers are part of their
/// definition.
#[derive(Debug)]
pub(crate) struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    pub(crate) const fn new(state: u64) -> Self {
        Self { state }
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GAMMA);
        mix(self.state)
    }

    /// Returns a number below `bound`: the high half of their product.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        // Below `bound`.
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// Returns a number below `bound` from the high 32 bits alone, which may differ from that of [`SplitMix64::below`].
    pub(crate) fn below_u32(&mut self, bound: u32) -> u32 {
        // Below `bound`.
        (((self.next() >> 32) * u64::from(bound)) >> 32) as u32
    }
}

/// The output function: neighbouring inputs give unrelated numbers.
pub(crate) const fn mix(mut z: u64) -> u64 {
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first numbers from state 1234567, as published with the generator's reference implementation.
    #[test]
    fn splitmix64_matches_its_reference() {
        let mut random = SplitMix64::new(1_234_567);
        let numbers = [(); 5].map(|()| random.next());
        let expected = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!(numbers, expected);
    }
}
