//! SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): random numbers that are the same on every machine.

/// The odd integer next to 2^64 over the golden ratio.
const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// A sequence of 64-bit numbers.
#[derive(Debug)]
pub(super) struct Random {
    state: u64,
}

impl Random {
    /// The sequence of encoding symbol `esi` in the code of `k` symbols with this seed.
    pub(super) fn of_symbol(seed: u64, k: u32, esi: u32) -> Self {
        // Mixed once, or the sequence of one symbol would go on in that of another.
        Self { state: mix(seed ^ (u64::from(k) << 32 | u64::from(esi))) }
    }

    pub(super) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GAMMA);
        mix(self.state)
    }

    /// A number below `bound`: the high half of a product, without a float or a remainder.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        // Below `bound`.
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first numbers from state 1234567, as published with the generator's reference implementation.
    #[test]
    fn it_is_splitmix64() {
        let mut random = Random { state: 1_234_567 };
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
