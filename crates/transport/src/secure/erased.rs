//! The algorithms of a handshake. They erase their keys on drop.

use snow::types::{Cipher, Dh, Hash, Random};
use std::hint::black_box;

/// Diffie-Hellman key agreement that overwrites its private key on drop.
pub(super) struct ErasedDh {
    dh: Box<dyn Dh>,
    /// Whether it has a key. Overwriting one costs a point multiplication.
    used: bool,
}

impl ErasedDh {
    pub(super) const fn new(dh: Box<dyn Dh>) -> Self {
        Self { dh, used: false }
    }
}

impl Drop for ErasedDh {
    fn drop(&mut self) {
        if self.used {
            self.dh.set(&[0; 32]);
            black_box(&mut self.dh);
        }
    }
}

impl Dh for ErasedDh {
    fn name(&self) -> &'static str {
        self.dh.name()
    }

    fn pub_len(&self) -> usize {
        self.dh.pub_len()
    }

    fn priv_len(&self) -> usize {
        self.dh.priv_len()
    }

    fn set(&mut self, privkey: &[u8]) {
        self.used = true;
        self.dh.set(privkey);
    }

    fn generate(&mut self, random: &mut dyn Random) -> Result<(), snow::Error> {
        self.used = true;
        self.dh.generate(random)
    }

    fn pubkey(&self) -> &[u8] {
        self.dh.pubkey()
    }

    fn privkey(&self) -> &[u8] {
        self.dh.privkey()
    }

    fn dh(&self, pubkey: &[u8], out: &mut [u8]) -> Result<(), snow::Error> {
        self.dh.dh(pubkey, out)
    }
}

/// A cipher that overwrites its key on drop.
pub(super) struct ErasedCipher(pub(super) Box<dyn Cipher>);

impl Drop for ErasedCipher {
    fn drop(&mut self) {
        self.0.set(&[0; 32]);
        black_box(&mut self.0);
    }
}

impl Cipher for ErasedCipher {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn set(&mut self, key: &[u8; 32]) {
        self.0.set(key);
    }

    fn encrypt(&self, nonce: u64, authtext: &[u8], plaintext: &[u8], out: &mut [u8]) -> usize {
        self.0.encrypt(nonce, authtext, plaintext, out)
    }

    fn decrypt(&self, nonce: u64, authtext: &[u8], ciphertext: &[u8], out: &mut [u8]) -> Result<usize, snow::Error> {
        self.0.decrypt(nonce, authtext, ciphertext, out)
    }
}

/// A hash that resets its state on drop.
pub(super) struct ErasedHash(pub(super) Box<dyn Hash>);

impl Drop for ErasedHash {
    fn drop(&mut self) {
        self.0.reset();
        black_box(&mut self.0);
    }
}

impl Hash for ErasedHash {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn block_len(&self) -> usize {
        self.0.block_len()
    }

    fn hash_len(&self) -> usize {
        self.0.hash_len()
    }

    fn reset(&mut self) {
        self.0.reset();
    }

    fn input(&mut self, data: &[u8]) {
        self.0.input(data);
    }

    fn result(&mut self, out: &mut [u8]) {
        self.0.result(out);
    }
}
