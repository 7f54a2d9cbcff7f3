//! Handshake, keys and epochs, sealing and opening, the replay window. `docs/PROTOCOL.md` shows every derivation.
//!
//! A handshake ([`Initiator`], [`respond`]) turns a [`Psk`] into two [`Secret`]s, one per direction. Each becomes
//! [`PacketKeys`], behind which a [`Sealer`] or an [`Opener`] works; both are pure and can be used from any thread.

mod cipher;
mod erase;
mod erased;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod generator;
mod handshake;
mod keys;
mod packet;
mod replay;
#[cfg(test)]
mod tests;

pub use cipher::{Cipher, UnknownCipher};
pub use erase::with_clean_stack;
pub use generator::SecretRng;
pub use handshake::{Established, HandshakeError, Initiator, Prologue, Secrets, respond};
pub use keys::{EPOCH_BITS, PacketKeys, Psk, Secret, epoch_of};
pub use packet::{OpenedPacket, Opener, SealError, Sealer};
pub use replay::ReplayWindow;
