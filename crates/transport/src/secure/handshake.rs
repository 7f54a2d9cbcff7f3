//! The handshake: Noise NNpsk0, through `snow`, with randomness from a seed.
//!
//! `snow` is used for the two messages only. Its two final keys become the [`Secret`]s of the packet key schedule.

use std::fmt;
use std::hint::black_box;

use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use snow::HandshakeState;
use snow::params::{CipherChoice, DHChoice, HashChoice};
use snow::resolvers::{CryptoResolver, DefaultResolver};
use snow::types::{Cipher, Dh, Hash, Random};
use thiserror::Error;
use zeroize::Zeroize;

use super::erase::with_clean_stack;
use super::erased::{ErasedCipher, ErasedDh, ErasedHash};
use super::generator;
use super::keys::{Psk, Secret};
use crate::wire::limits::{MAX_HANDSHAKE_PAYLOAD, NOISE_OVERHEAD};
use crate::wire::{ConnectionId, KeyId, RejectReason, VERSION};

const PATTERN: &str = "Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s";

/// The unencrypted fields of the first message that must be authentic. The copy number and the padding are excluded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prologue {
    /// Identifies the pre-shared key.
    pub key: KeyId,
    /// The initiator's connection id.
    pub connection: ConnectionId,
}

impl Prologue {
    /// Returns the text "downpour", the version, the key id, the connection id.
    fn to_bytes(self) -> Vec<u8> {
        [b"downpour".as_slice(), &VERSION.to_be_bytes(), &self.key.0, &self.connection.0].concat()
    }
}

/// A handshake that has been completed.
#[derive(Debug)]
pub struct Established {
    /// The peer's payload.
    pub payload: Vec<u8>,
    /// The secrets of both directions.
    pub secrets: Secrets,
}

/// The secrets of a connection, from one side's view.
#[derive(Clone, Debug)]
pub struct Secrets {
    /// For the packets this side sends.
    pub send: Secret,
    /// For the packets it receives.
    pub receive: Secret,
}

/// The reason why a handshake message could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum HandshakeError {
    /// The peer's message was refused, by the handshake or by the check of its payload.
    #[error("refused: {0}")]
    Refused(#[from] RejectReason),
    /// The local payload exceeds [`MAX_HANDSHAKE_PAYLOAD`].
    #[error("a handshake payload has at most {MAX_HANDSHAKE_PAYLOAD} bytes, not {0}")]
    PayloadTooLong(usize),
}

/// The side that has sent the first message and waits for the second.
pub struct Initiator {
    noise: Noise,
}

impl Initiator {
    /// Starts a handshake; returns the Noise message to send, in as many copies as needed. `seed` is random and never
    /// used again.
    ///
    /// # Errors
    ///
    /// When the payload is too long.
    pub fn new(
        psk: &Psk,
        prologue: Prologue,
        payload: &[u8],
        seed: [u8; 32],
    ) -> Result<(Self, Vec<u8>), HandshakeError> {
        with_clean_stack(|| {
            let mut noise = Noise::new(psk, prologue, seed, true);
            let message = noise.write(payload)?;
            Ok((Self { noise }, message))
        })
    }

    /// Completes the handshake with the second message. A refused message changes nothing: the true one can still
    /// arrive. Once one has been accepted, every other is refused.
    ///
    /// # Errors
    ///
    /// [`RejectReason::HandshakeFailed`] if the message is not authentic, [`RejectReason::HandshakeLate`] after an
    /// authentic one.
    pub fn finish(&mut self, message2: &[u8]) -> Result<Established, RejectReason> {
        if self.noise.0.is_handshake_finished() {
            return Err(RejectReason::HandshakeLate);
        }
        with_clean_stack(|| {
            let payload = self.noise.read(message2)?;
            let (send, receive) = self.noise.split();
            Ok(Established { payload, secrets: Secrets { send, receive } })
        })
    }
}

impl fmt::Debug for Initiator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Initiator").finish_non_exhaustive()
    }
}

/// Answers a first message. `answer` receives the initiator's payload, which is authentic but may be a replay, and
/// returns the local payload or refuses. Returns the Noise message to send. `seed` is random and never used again.
///
/// # Errors
///
/// [`RejectReason::HandshakeFailed`] if the message is not authentic (or not with this prologue), the rejection by
/// `answer`, or a too long local payload.
pub fn respond(
    psk: &Psk,
    prologue: Prologue,
    message1: &[u8],
    seed: [u8; 32],
    answer: impl FnOnce(&[u8]) -> Result<Vec<u8>, RejectReason>,
) -> Result<(Established, Vec<u8>), HandshakeError> {
    with_clean_stack(|| {
        let mut noise = Noise::new(psk, prologue, seed, false);
        let payload = noise.read(message1)?;
        let message2 = noise.write(&answer(&payload)?)?;
        let (receive, send) = noise.split();
        Ok((Established { payload, secrets: Secrets { send, receive } }, message2))
    })
}

/// A Noise handshake. Overwrites its keys on drop, since `snow` does not erase them.
struct Noise(HandshakeState);

impl Noise {
    fn new(psk: &Psk, prologue: Prologue, seed: [u8; 32], initiator: bool) -> Self {
        Self(state(&psk.noise_key(), &prologue.to_bytes(), seed, initiator))
    }

    fn write(&mut self, payload: &[u8]) -> Result<Vec<u8>, HandshakeError> {
        let too_long = HandshakeError::PayloadTooLong(payload.len());
        if payload.len() > MAX_HANDSHAKE_PAYLOAD {
            return Err(too_long);
        }
        let mut message = vec![0; payload.len() + NOISE_OVERHEAD];
        let length = self.0.write_message(payload, &mut message).map_err(|_| too_long)?;
        message.truncate(length);
        Ok(message)
    }

    fn read(&mut self, message: &[u8]) -> Result<Vec<u8>, RejectReason> {
        // Bounded by the actual size of the message, not by a claimed one.
        let mut payload = vec![0; message.len()];
        let length = self.0.read_message(message, &mut payload).map_err(|_| RejectReason::HandshakeFailed)?;
        payload.truncate(length);
        Ok(payload)
    }

    /// Returns the secrets of packets from the initiator and from the responder.
    fn split(&mut self) -> (Secret, Secret) {
        let (initiator, responder) = self.0.dangerously_get_raw_split();
        (Secret::new(initiator), Secret::new(responder))
    }
}

impl Drop for Noise {
    fn drop(&mut self) {
        // A fresh state with a pre-shared key, so that every field is overwritten.
        self.0 = state(&[0; 32], &[], [0; 32], true);
        // Keeps the compiler from removing the write.
        black_box(&mut self.0);
    }
}

fn state(key: &[u8; 32], prologue: &[u8], seed: [u8; 32], initiator: bool) -> HandshakeState {
    let params = PATTERN.parse().expect("the pattern's name is well formed");
    snow::Builder::with_resolver(params, Box::new(Seeded(seed)))
        .psk(0, key)
        .and_then(|builder| builder.prologue(prologue))
        .and_then(|builder| if initiator { builder.build_initiator() } else { builder.build_responder() })
        .expect("NNpsk0 needs a pre-shared key and nothing else, and the resolver knows its algorithms")
}

/// Provider of snow's default algorithms, which overwrite their keys on drop. Its randomness comes from a seed instead
/// of the system.
struct Seeded([u8; 32]);

impl Drop for Seeded {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl CryptoResolver for Seeded {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        Some(Box::new(SeededRandom(ChaCha20Rng::from_seed(self.0))))
    }

    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        Some(Box::new(ErasedDh::new(DefaultResolver.resolve_dh(choice)?)))
    }

    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        Some(Box::new(ErasedHash(DefaultResolver.resolve_hash(choice)?)))
    }

    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        Some(Box::new(ErasedCipher(DefaultResolver.resolve_cipher(choice)?)))
    }
}

struct SeededRandom(ChaCha20Rng);

impl Random for SeededRandom {
    fn try_fill_bytes(&mut self, dest: &mut [u8]) -> Result<(), snow::Error> {
        self.0.fill_bytes(dest);
        Ok(())
    }
}

impl Drop for SeededRandom {
    fn drop(&mut self) {
        generator::erase(&mut self.0);
    }
}
