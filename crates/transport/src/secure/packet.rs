//! Sealing and opening of packets in place.

use std::sync::Arc;

use ring::aead::Aad;
use thiserror::Error;

use super::keys::{PacketKeys, epoch_of};
use crate::wire::{HEADER, PacketHeader, PacketKind, RejectReason, TAG};

/// Seals the packets of one direction. Pure; a copy costs a reference count.
#[derive(Clone, Debug)]
pub struct Sealer {
    keys: Arc<PacketKeys>,
}

/// A packet that cannot be sealed: an error of the caller, not of the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SealError {
    /// The bytes do not begin with a packet header or have no room for the tag.
    #[error("not a packet with room for its tag")]
    NotAPacket,
    /// The packet number is in an epoch without an available key.
    #[error("packet number {0} is in an epoch without a key")]
    Epoch(u64),
}

impl Sealer {
    /// Creates a sealer with these keys.
    pub const fn new(keys: Arc<PacketKeys>) -> Self {
        Self { keys }
    }

    /// Returns the keys in use.
    pub const fn keys(&self) -> &Arc<PacketKeys> {
        &self.keys
    }

    /// Seals a packet in place: header, plaintext, and [`TAG`] bytes of room. Its number must be in the keys' epoch or
    /// next to it, and must never have been sealed before.
    ///
    /// # Errors
    ///
    /// When the bytes are no packet, or its epoch has no key; they are unchanged then.
    pub fn seal(&self, packet: &mut [u8]) -> Result<(), SealError> {
        let number = PacketHeader::decode(packet).map_err(|_| SealError::NotAPacket)?.number;
        let (header, sealed) = packet.split_at_mut(HEADER);
        let (plaintext, room) = sealed.split_last_chunk_mut::<TAG>().ok_or(SealError::NotAPacket)?;
        let epoch = self.keys.key_of(epoch_of(number)).ok_or(SealError::Epoch(number))?;
        let tag = epoch
            .key
            .seal_in_place_separate_tag(epoch.nonce(number), Aad::from(header), plaintext)
            .map_err(|_| SealError::NotAPacket)?;
        room.copy_from_slice(tag.as_ref());
        Ok(())
    }
}

/// Opens the packets of one direction. Pure; a copy costs a reference count.
#[derive(Clone, Debug)]
pub struct Opener {
    keys: Arc<PacketKeys>,
}

/// An authentic packet; only a [`ReplayWindow`](super::ReplayWindow) shows whether it is new.
#[derive(Debug, PartialEq, Eq)]
pub struct OpenedPacket<'a> {
    /// Its kind.
    pub kind: PacketKind,
    /// Its number.
    pub number: u64,
    /// The decrypted content.
    pub plaintext: &'a mut [u8],
}

impl Opener {
    /// Creates an opener with these keys.
    pub const fn new(keys: Arc<PacketKeys>) -> Self {
        Self { keys }
    }

    /// Returns the keys in use. Once a packet of the [`epoch_of`] after [`PacketKeys::epoch`] has opened, they should
    /// be advanced to it.
    pub const fn keys(&self) -> &Arc<PacketKeys> {
        &self.keys
    }

    /// Opens a packet in place. A refused datagram must not be used any more: its bytes may have changed.
    ///
    /// # Errors
    ///
    /// [`RejectReason::TooShort`], [`RejectReason::UnknownType`], [`RejectReason::Malformed`], [`RejectReason::WrongEpoch`] or
    /// [`RejectReason::AuthenticationFailed`].
    pub fn open<'a>(&self, datagram: &'a mut [u8]) -> Result<OpenedPacket<'a>, RejectReason> {
        if datagram.len() < HEADER + TAG {
            return Err(RejectReason::TooShort);
        }
        if PacketKind::from_wire(datagram[0]).is_none() {
            return Err(RejectReason::UnknownType);
        }
        let PacketHeader { kind, number, .. } = PacketHeader::decode(datagram)?;
        let epoch = self.keys.key_of(epoch_of(number)).ok_or(RejectReason::WrongEpoch)?;
        let (header, sealed) = datagram.split_at_mut(HEADER);
        let plaintext = epoch
            .key
            .open_in_place(epoch.nonce(number), Aad::from(header), sealed)
            .map_err(|_| RejectReason::AuthenticationFailed)?;
        Ok(OpenedPacket { kind, number, plaintext })
    }
}
