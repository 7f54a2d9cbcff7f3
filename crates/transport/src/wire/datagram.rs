//! Datagrams outside a sealed connection: the two handshake messages and the version answer.

use super::bytes::{Put, Reader, length_u16};
use super::error::WireError;
use super::ids::{ConnectionId, KeyId};
use super::limits::{MAX_DATAGRAM, MAX_HANDSHAKE_PAYLOAD, MAX_VERSIONS, MIN_MESSAGE1, NOISE_OVERHEAD};
use super::packet::{HEADER, PacketHeader, PacketKind, TAG};
use super::refused::RejectReason;

/// The version that this implementation supports.
pub const VERSION: u32 = 1;

/// Bytes of a first message before its Noise message: type 1, version 4, key id 8, connection id 8, copy 1, length 2.
pub(super) const MESSAGE1_HEADER: usize = 24;

const TYPE_MESSAGE1: u8 = 0x01;
const TYPE_MESSAGE2: u8 = 0x02;
const TYPE_VERSIONS: u8 = 0x03;

/// Any datagram, as far as it can be read without a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Datagram<'a> {
    /// Opens a connection.
    Message1(Message1<'a>),
    /// A first message of another version: only the fields common to all versions are known. Answered with a
    /// [`VersionAnswer`], if the key is known.
    OtherVersion {
        /// The requested version.
        version: u32,
        /// The key of the connection.
        key: KeyId,
        /// The initiator's connection id.
        connection: ConnectionId,
    },
    /// Answers a first message.
    Message2(Message2<'a>),
    /// Lists the versions that the responder supports.
    Versions(VersionAnswer<'a>),
    /// A sealed packet.
    Packet(PacketHeader),
}

/// The first message of a handshake. Every copy of it carries the same Noise message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message1<'a> {
    /// The id of the key.
    pub key: KeyId,
    /// The id under which the initiator will receive.
    pub connection: ConnectionId,
    /// Which copy this is, from 0. Not authenticated.
    pub copy: u8,
    /// The Noise message.
    pub noise: &'a [u8],
}

/// The second message of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message2<'a> {
    /// The initiator's id.
    pub destination: ConnectionId,
    /// The copy of the first message that this one answers. Not authenticated.
    pub copy: u8,
    /// The Noise message.
    pub noise: &'a [u8],
}

/// The answer to a first message of a version that the responder does not support. Nothing in it is authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VersionAnswer<'a> {
    /// The initiator's id.
    pub destination: ConnectionId,
    versions: &'a [[u8; 4]],
}

impl<'a> Datagram<'a> {
    /// Reads the unencrypted part of a datagram.
    ///
    /// # Errors
    ///
    /// [`RejectReason::TooShort`], [`RejectReason::UnknownType`] or [`RejectReason::Malformed`].
    pub fn classify(datagram: &'a [u8]) -> Result<Self, RejectReason> {
        let mut reader = Reader::new(datagram);
        match reader.u8().map_err(|_| RejectReason::TooShort)? {
            TYPE_MESSAGE1 if datagram.len() < MIN_MESSAGE1 => Err(RejectReason::TooShort),
            TYPE_MESSAGE1 => Ok(message1(&mut reader)?),
            TYPE_MESSAGE2 => Ok(Self::Message2(message2(&mut reader)?)),
            TYPE_VERSIONS => Ok(Self::Versions(version_answer(&mut reader)?)),
            kind if PacketKind::from_wire(kind).is_none() => Err(RejectReason::UnknownType),
            _ if datagram.len() < HEADER + TAG => Err(RejectReason::TooShort),
            _ => Ok(Self::Packet(PacketHeader::decode(datagram)?)),
        }
    }
}

impl Message1<'_> {
    /// Appends the message, padded with zeros to `size` bytes.
    ///
    /// # Errors
    ///
    /// When `size` is below [`MIN_MESSAGE1`] or above [`MAX_DATAGRAM`], or the message does not fit.
    pub fn encode(&self, size: usize, out: &mut Vec<u8>) -> Result<(), WireError> {
        if size < MIN_MESSAGE1 {
            return Err(WireError::Malformed("size of a first message"));
        }
        check_size(MESSAGE1_HEADER, self.noise, size)?;
        let end = out.len() + size;
        out.put_u8(TYPE_MESSAGE1);
        out.put_u32(VERSION);
        out.put(&self.key.0);
        out.put(&self.connection.0);
        out.put_u8(self.copy);
        put_noise(self.noise, end, out);
        Ok(())
    }
}

impl Message2<'_> {
    /// Bytes before the Noise message: type 1, destination 8, copy 1, length 2.
    pub const HEADER: usize = 12;

    /// Appends the message, padded with zeros to `size` bytes: the size of the copy it answers.
    ///
    /// # Errors
    ///
    /// When `size` is above [`MAX_DATAGRAM`], or the message does not fit.
    pub fn encode(&self, size: usize, out: &mut Vec<u8>) -> Result<(), WireError> {
        check_size(Self::HEADER, self.noise, size)?;
        let end = out.len() + size;
        out.put_u8(TYPE_MESSAGE2);
        out.put(&self.destination.0);
        out.put_u8(self.copy);
        put_noise(self.noise, end, out);
        Ok(())
    }
}

impl VersionAnswer<'_> {
    /// Appends an answer that lists [`VERSION`] and, so that no reader relies on the list being short, one reserved
    /// version made from `grease`.
    pub fn encode(destination: ConnectionId, grease: u32, out: &mut Vec<u8>) {
        out.put_u8(TYPE_VERSIONS);
        out.put(&destination.0);
        out.put_u8(2);
        out.put_u32(grease_version(grease));
        out.put_u32(VERSION);
    }

    /// Returns the versions listed; reserved and unknown ones are among them and should be ignored.
    pub fn versions(&self) -> impl Iterator<Item = u32> + '_ {
        self.versions.iter().copied().map(u32::from_be_bytes)
    }
}

/// Returns a version that will never be used: every byte of it ends in 0xa (the pattern of RFC 9000, section 15).
pub const fn grease_version(random: u32) -> u32 {
    (random & 0xf0f0_f0f0) | 0x0a0a_0a0a
}

fn check_size(header: usize, noise: &[u8], size: usize) -> Result<(), WireError> {
    if size > MAX_DATAGRAM || header + noise.len() > size { Err(WireError::Limit("handshake message")) } else { Ok(()) }
}

fn put_noise(noise: &[u8], end: usize, out: &mut Vec<u8>) {
    out.put_u16(length_u16(noise.len()));
    out.put(noise);
    out.resize(end, 0);
}

fn noise<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], WireError> {
    let length = usize::from(reader.u16()?);
    if length > MAX_HANDSHAKE_PAYLOAD + NOISE_OVERHEAD {
        return Err(WireError::Limit("handshake payload"));
    }
    reader.bytes(length)
}

fn message1<'a>(reader: &mut Reader<'a>) -> Result<Datagram<'a>, WireError> {
    let version = reader.u32()?;
    let (key, connection) = (KeyId(reader.array()?), ConnectionId(reader.array()?));
    if version != VERSION {
        return Ok(Datagram::OtherVersion { version, key, connection });
    }
    Ok(Datagram::Message1(Message1 { key, connection, copy: reader.u8()?, noise: noise(reader)? }))
}

fn message2<'a>(reader: &mut Reader<'a>) -> Result<Message2<'a>, WireError> {
    Ok(Message2 { destination: ConnectionId(reader.array()?), copy: reader.u8()?, noise: noise(reader)? })
}

fn version_answer<'a>(reader: &mut Reader<'a>) -> Result<VersionAnswer<'a>, WireError> {
    let destination = ConnectionId(reader.array()?);
    let count = usize::from(reader.u8()?);
    if count > MAX_VERSIONS {
        return Err(WireError::Limit("versions"));
    }
    let (versions, _) = reader.bytes(4 * count)?.as_chunks();
    Ok(VersionAnswer { destination, versions })
}
