//! The root of a transfer: one hash over everything that determines the contents of the target.

use std::fmt;

/// Separates this use of BLAKE3 from all others.
const CONTEXT: &str = "downpour 2026 transfer root v1";

/// A BLAKE3 hash in key derivation mode, 32 bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RootHash(pub [u8; 32]);

impl fmt::Debug for RootHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for RootHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Hashes the manifest, digest, void and skipped messages of a transfer in their order on flow 0.
///
/// Since flow 0 is in order, both peers see the same sequence and neither has to keep digests to sort them.
#[derive(Debug, Clone)]
pub struct RootHasher(blake3::Hasher);

impl Default for RootHasher {
    fn default() -> Self {
        Self::new()
    }
}

impl RootHasher {
    /// Creates a hasher before the first message.
    #[must_use]
    pub fn new() -> Self {
        Self(blake3::Hasher::new_derive_key(CONTEXT))
    }

    /// Adds one message in its encoded form, length and type included.
    pub fn add(&mut self, encoded: &[u8]) {
        self.0.update(encoded);
    }

    /// Returns the root over the messages added so far.
    #[must_use]
    pub fn root(&self) -> RootHash {
        RootHash(*self.0.finalize().as_bytes())
    }
}
