//! The key schedule: HKDF-SHA256 (RFC 5869) from the pre-shared key to the keys of every epoch.

use std::fmt;
use std::hint::black_box;
use std::sync::Arc;

use ring::aead::{LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, KeyType, Prk, Salt};
use zeroize::Zeroize;

use super::cipher::Cipher;
use super::erase::with_clean_stack;
use crate::wire::KeyId;

/// Packets per key: 2^22, half of the limit of AES-GCM (RFC 9001, section 6.6).
pub const EPOCH_BITS: u32 = 22;

const _: () = assert!(1 << EPOCH_BITS <= Cipher::Aes256Gcm.confidentiality_limit());
const _: () = assert!(1 << EPOCH_BITS <= Cipher::ChaCha20Poly1305.confidentiality_limit());

/// Returns the key epoch of a packet number.
pub const fn epoch_of(number: u64) -> u64 {
    number >> EPOCH_BITS
}

/// A pre-shared key with 256 random bits. Never printed; overwritten on drop.
#[derive(Clone)]
pub struct Psk(Box<[u8; 32]>);

impl Psk {
    /// Creates a key from these bytes.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(Box::new(bytes))
    }

    /// Returns the key's bytes, for a ticket.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns the key's identifier on the wire, which does not reveal the key.
    pub fn id(&self) -> KeyId {
        with_clean_stack(|| KeyId(expand(&self.extract(), &[b"key id"])))
    }

    /// Returns the pre-shared key that the handshake mixes in.
    pub(super) fn noise_key(&self) -> [u8; 32] {
        expand(&self.extract(), &[b"noise psk"])
    }

    fn extract(&self) -> Prk {
        Salt::new(HKDF_SHA256, b"downpour v1").extract(&*self.0)
    }
}

impl Drop for Psk {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl fmt::Debug for Psk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Psk(..)")
    }
}

/// The result of a handshake for one direction: the secret of epoch 0. Never printed.
#[derive(Clone)]
pub struct Secret(Box<[u8; 32]>);

impl Secret {
    /// Creates a secret from these bytes.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(Box::new(bytes))
    }

    /// Returns the secret's bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    fn prk(&self) -> Prk {
        Prk::new_less_safe(HKDF_SHA256, &*self.0)
    }

    /// Returns the secret of the next epoch; the previous one cannot be derived from it.
    fn next(&self) -> Self {
        Self::new(expand(&self.prk(), &[b"downpour epoch"]))
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// The packet keys of one direction: those of the current epoch and of its two neighbours. Derived once per 2^22
/// packets and shared.
pub struct PacketKeys {
    cipher: Cipher,
    epoch: u64,
    previous: Option<EpochKey>,
    current: EpochKey,
    next: EpochKey,
    /// The secret of the epoch after `next`. Earlier ones are erased.
    after_next: Secret,
}

impl PacketKeys {
    /// Derives the keys of epoch 0 and 1.
    pub fn new(secret: &Secret, cipher: Cipher) -> Arc<Self> {
        with_clean_stack(|| {
            let next = secret.next();
            Arc::new(Self {
                cipher,
                epoch: 0,
                previous: None,
                current: EpochKey::new(secret, cipher),
                next: EpochKey::new(&next, cipher),
                after_next: next.next(),
            })
        })
    }

    /// Returns the current epoch.
    pub const fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Returns the cipher.
    pub(crate) const fn cipher(&self) -> Cipher {
        self.cipher
    }

    /// Returns the keys with `epoch` as the current one, if it is the next: a sender advances with its packet numbers,
    /// a receiver when a packet of the next epoch has opened. The keys before `epoch - 1` can no longer be derived.
    pub fn advanced_to(&self, epoch: u64) -> Option<Arc<Self>> {
        let is_next = Some(epoch) == self.epoch.checked_add(1);
        let advanced = || {
            Arc::new(Self {
                cipher: self.cipher,
                epoch,
                previous: Some(self.current.clone()),
                current: self.next.clone(),
                next: EpochKey::new(&self.after_next, self.cipher),
                after_next: self.after_next.next(),
            })
        };
        is_next.then(|| with_clean_stack(advanced))
    }

    /// Returns the same keys under the number of another epoch, since deriving the keys of a high epoch takes that many
    /// steps.
    #[cfg(test)]
    pub(crate) fn relabelled(&self, epoch: u64) -> Arc<Self> {
        let Self { cipher, previous, current, next, after_next, .. } = self;
        let (previous, current, next) = (previous.clone(), current.clone(), next.clone());
        Arc::new(Self { cipher: *cipher, epoch, previous, current, next, after_next: after_next.clone() })
    }

    /// Returns the key of an epoch, if it is the current one or next to it.
    pub(super) fn key_of(&self, epoch: u64) -> Option<&EpochKey> {
        if epoch == self.epoch {
            Some(&self.current)
        } else if Some(epoch) == self.epoch.checked_add(1) {
            Some(&self.next)
        } else if epoch.checked_add(1) == Some(self.epoch) {
            self.previous.as_ref()
        } else {
            None
        }
    }
}

impl fmt::Debug for PacketKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PacketKeys").field("cipher", &self.cipher).field("epoch", &self.epoch).finish_non_exhaustive()
    }
}

/// The key and the static part of the nonce of an epoch, overwritten on drop.
#[derive(Clone)]
pub(super) struct EpochKey {
    cipher: Cipher,
    pub(super) key: LessSafeKey,
    iv: [u8; NONCE_LEN],
}

impl EpochKey {
    fn new(secret: &Secret, cipher: Cipher) -> Self {
        let prk = secret.prk();
        let key = Self::key(cipher, &expand(&prk, &[b"downpour key", &[cipher.wire()]]));
        Self { cipher, key, iv: expand(&prk, &[b"downpour iv", &[cipher.wire()]]) }
    }

    fn key(cipher: Cipher, bytes: &[u8; 32]) -> LessSafeKey {
        LessSafeKey::new(UnboundKey::new(cipher.algorithm(), bytes).expect("both ciphers take 32 bytes"))
    }

    /// Returns the nonce of a packet number: never the same twice, as a number is never used twice (RFC 9001, section
    /// 5.3).
    pub(super) fn nonce(&self, number: u64) -> Nonce {
        let mut nonce = self.iv;
        for (byte, number) in nonce[NONCE_LEN - 8..].iter_mut().zip(number.to_be_bytes()) {
            *byte ^= number;
        }
        Nonce::assume_unique_for_key(nonce)
    }
}

/// Overwrites the key, since `ring` does not erase its keys.
impl Drop for EpochKey {
    fn drop(&mut self) {
        self.key = Self::key(self.cipher, &[0; 32]);
        self.iv.zeroize();
        // Keeps the compiler from removing the write.
        black_box(&mut self.key);
    }
}

struct Length<const N: usize>;

impl<const N: usize> KeyType for Length<N> {
    fn len(&self) -> usize {
        N
    }
}

/// HKDF-Expand with the parts of `info` joined.
fn expand<const N: usize>(prk: &Prk, info: &[&[u8]]) -> [u8; N] {
    let mut out = [0; N];
    prk.expand(info, Length::<N>)
        .and_then(|okm| okm.fill(&mut out))
        .expect("HKDF-SHA256 gives up to 8,160 bytes, and at most 32 are requested");
    out
}
