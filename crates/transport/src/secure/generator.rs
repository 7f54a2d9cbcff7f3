//! A forward-secure generator of random bytes.

use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use std::fmt;
use std::hint::black_box;
use zeroize::Zeroize;

/// Generates secret bytes from a seed. Each draw replaces the key (fast key erasure, Bernstein 2017), so a later leak
/// of memory does not reveal earlier output.
pub struct SecretRng {
    key: Box<[u8; 32]>,
}

impl SecretRng {
    /// Creates a generator from `seed`, which must be secret and never used before.
    pub fn new(seed: [u8; 32]) -> Self {
        Self { key: Box::new(seed) }
    }

    /// Fills `out` with secret bytes.
    pub fn fill(&mut self, out: &mut [u8]) {
        let mut stream = ChaCha20Rng::from_seed(*self.key);
        stream.fill_bytes(&mut *self.key);
        stream.fill_bytes(out);
        erase(&mut stream);
    }

    /// Returns `N` secret bytes.
    pub fn draw<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.fill(&mut bytes);
        bytes
    }
}

impl Drop for SecretRng {
    fn drop(&mut self) {
        self.key.zeroize();
    }
}

impl fmt::Debug for SecretRng {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Generator(..)")
    }
}

/// Overwrites the state of a stream, which contains its key.
pub(super) fn erase(stream: &mut ChaCha20Rng) {
    *stream = ChaCha20Rng::from_seed([0; 32]);
    black_box(stream);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_bytes_and_no_key_stays() {
        let (mut one, mut other) = (SecretRng::new([7; 32]), SecretRng::new([7; 32]));
        let mut keys = vec![[7; 32]];
        for _ in 0..10 {
            let drawn: [u8; 32] = one.draw();
            assert_eq!(drawn, other.draw());
            assert!(!keys.contains(&one.key) && *one.key != drawn, "neither an earlier key nor earlier output");
            keys.push(*one.key);
        }
        assert_ne!(SecretRng::new([8; 32]).draw::<32>(), SecretRng::new([7; 32]).draw());
    }
}
