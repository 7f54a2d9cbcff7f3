//! The ciphers that protect packets.

use std::fmt;
use std::str::FromStr;

use ring::aead;
use thiserror::Error;

/// An authenticated cipher with a key of 32 bytes, a nonce of 12 and a tag of 16.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Cipher {
    /// AES-256-GCM: the faster one where the processor has AES and carry-less multiplication.
    Aes256Gcm = 1,
    /// ChaCha20-Poly1305 (RFC 8439): the faster one everywhere else.
    ChaCha20Poly1305 = 2,
}

/// A text that names no cipher.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown cipher {0:?}: use aes-256-gcm or chacha20-poly1305")]
pub struct UnknownCipher(String);

impl Cipher {
    /// Every cipher, in the order of its number.
    pub const ALL: [Self; 2] = [Self::Aes256Gcm, Self::ChaCha20Poly1305];

    /// Returns the number of this cipher on the wire.
    pub const fn wire(self) -> u8 {
        self as u8
    }

    /// Returns the cipher with this number; `None` if it is unknown.
    pub fn from_wire(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|cipher| cipher.wire() == number)
    }

    /// Returns the name that `Display` prints and `FromStr` reads.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Aes256Gcm => "aes-256-gcm",
            Self::ChaCha20Poly1305 => "chacha20-poly1305",
        }
    }

    /// Returns the faster cipher on this processor.
    pub fn preferred() -> Self {
        if has_aes() { Self::Aes256Gcm } else { Self::ChaCha20Poly1305 }
    }

    /// Returns the offer of an initiator with this faster cipher: all ciphers, this one first.
    pub fn offer(self) -> Vec<u8> {
        let others = Self::ALL.into_iter().filter(|&cipher| cipher != self);
        [self].into_iter().chain(others).map(Self::wire).collect()
    }

    /// Returns the cipher that a responder faster with `preferred` chooses from an offer; `None` if it knows none of
    /// the offered ones.
    ///
    /// It is ChaCha20-Poly1305 if either side puts that first: a processor without AES instructions loses far more with
    /// AES than one with them loses with ChaCha20.
    pub fn choose(offered: &[u8], preferred: Self) -> Option<Self> {
        let first = offered.iter().find_map(|&number| Self::from_wire(number))?;
        let chosen = first.max(preferred);
        Some(if offered.contains(&chosen.wire()) { chosen } else { first })
    }

    /// Returns how many packets one key may seal (RFC 9001 section 6.6, for packets of up to 2^16 bytes).
    pub(super) const fn confidentiality_limit(self) -> u64 {
        match self {
            Self::Aes256Gcm => 1 << 23,
            // More than all packet numbers.
            Self::ChaCha20Poly1305 => u64::MAX,
        }
    }

    /// Returns how many packets of a connection may fail authentication under all of its keys (RFC 9001 section 6.6).
    /// Beyond that, a successful forgery becomes too likely.
    pub(crate) const fn integrity_limit(self) -> u64 {
        match self {
            Self::Aes256Gcm => 1 << 52,
            Self::ChaCha20Poly1305 => 1 << 36,
        }
    }

    pub(super) fn algorithm(self) -> &'static aead::Algorithm {
        match self {
            Self::Aes256Gcm => &aead::AES_256_GCM,
            Self::ChaCha20Poly1305 => &aead::CHACHA20_POLY1305,
        }
    }
}

impl fmt::Display for Cipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Cipher {
    type Err = UnknownCipher;

    fn from_str(text: &str) -> Result<Self, UnknownCipher> {
        Self::ALL.into_iter().find(|cipher| cipher.name() == text).ok_or_else(|| UnknownCipher(text.to_owned()))
    }
}

#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
fn has_aes() -> bool {
    std::is_x86_feature_detected!("aes") && std::is_x86_feature_detected!("pclmulqdq")
}

#[cfg(target_arch = "aarch64")]
fn has_aes() -> bool {
    std::arch::is_aarch64_feature_detected!("aes") && std::arch::is_aarch64_feature_detected!("pmull")
}

#[cfg(not(any(target_arch = "x86", target_arch = "x86_64", target_arch = "aarch64")))]
fn has_aes() -> bool {
    false
}
