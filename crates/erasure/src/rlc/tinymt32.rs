//! TinyMT32, the pseudorandom generator of RFC 8682: both ends draw the same coefficients from the same key.

/// The parameter set of RFC 8682, section 2.1: no seed leads to a state of zeros only.
const MAT1: u32 = 0x8f70_11ee;
const MAT2: u32 = 0xfc78_ff1f;
const TMAT: u32 = 0x3793_fdff;

/// Rounds that mix the seed into the state, and steps taken before the first number.
const ROUNDS: u32 = 8;

/// Its state: 127 bits.
#[derive(Clone, Debug)]
pub(super) struct TinyMt32 {
    status: [u32; 4],
}

impl TinyMt32 {
    pub(super) fn new(seed: u32) -> Self {
        let mut status = [seed, MAT1, MAT2, TMAT];
        for round in 1..ROUNDS {
            let before = status[(round as usize - 1) & 3];
            let mixed = 1_812_433_253_u32.wrapping_mul(before ^ (before >> 30));
            status[round as usize & 3] ^= round.wrapping_add(mixed);
        }
        let mut generator = Self { status };
        (0..ROUNDS).for_each(|_| generator.step());
        generator
    }

    /// Returns the next 32 bits.
    pub(super) fn next(&mut self) -> u32 {
        self.step();
        let [first, _, third, last] = self.status;
        let sum = first.wrapping_add(third >> 8);
        last ^ sum ^ if sum & 1 == 1 { TMAT } else { 0 }
    }

    /// Returns `tinymt32_rand16` of RFC 8681, section 3.5: 0 to 15.
    pub(super) fn next16(&mut self) -> u8 {
        (self.next() & 0xf) as u8
    }

    /// Returns `tinymt32_rand256` of RFC 8681, section 3.5: 0 to 255.
    pub(super) fn next256(&mut self) -> u8 {
        (self.next() & 0xff) as u8
    }

    fn step(&mut self) {
        let [first, second, third, last] = self.status;
        let mut x = (first & 0x7fff_ffff) ^ second ^ third;
        x ^= x << 1;
        let y = last ^ (last >> 1) ^ x;
        self.status = [second, third, x ^ (y << 10), y];
        if y & 1 == 1 {
            self.status[1] ^= MAT1;
            self.status[2] ^= MAT2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8682, figure 2: the first 50 numbers of seed 1.
    const CHECK: [u32; 50] = [
        2545341989, 981918433, 3715302833, 2387538352, 3591001365, 3820442102, 2114400566, 2196103051, 2783359912,
        764534509, 643179475, 1822416315, 881558334, 4207026366, 3690273640, 3240535687, 2921447122, 3984931427,
        4092394160, 44209675, 2188315343, 2908663843, 1834519336, 3774670961, 3019990707, 4065554902, 1239765502,
        4035716197, 3412127188, 552822483, 161364450, 353727785, 140085994, 149132008, 2547770827, 4064042525,
        4078297538, 2057335507, 622384752, 2041665899, 2193913817, 1080849512, 33160901, 662956935, 642999063,
        3384709977, 1723175122, 3866752252, 521822317, 2292524454,
    ];

    #[test]
    fn numbers_are_those_of_the_rfc() {
        let mut generator = TinyMt32::new(1);
        assert_eq!(CHECK.map(|_| generator.next()), CHECK);
    }

    /// RFC 8681, appendix A: its check values of the smaller numbers are the low bits of those above.
    #[test]
    fn smaller_numbers_are_low_bits() {
        let (mut sixteen, mut byte) = (TinyMt32::new(1), TinyMt32::new(1));
        assert_eq!(CHECK.map(|_| sixteen.next16()), CHECK.map(|number| (number % 16) as u8));
        assert_eq!(CHECK.map(|_| byte.next256()), CHECK.map(|number| (number % 256) as u8));
        let mut again = TinyMt32::new(1);
        assert_eq!([(); 8].map(|()| again.next256()), [37, 225, 177, 176, 21, 246, 54, 139]);
    }
}
