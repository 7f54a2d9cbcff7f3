//! A packet as read from the device, and the packets of the wire in it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use netsim::Ecn;

use super::vnet::{Offload, VnetHeader};

const LEAST_IP_HEADER: usize = 20;
const IPV6_HEADER: usize = 40;
const UDP_HEADER: usize = 8;
const TCP: u8 = 6;
const UDP: u8 = 17;
const LEAST_TCP_HEADER: usize = 20;

/// The reason for rejecting a packet. None of these comes from a working kernel; each is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum PacketError {
    /// It is shorter than its headers, or these are shorter than possible.
    #[error("shorter than its headers")]
    Short,
    /// It is neither IPv4 nor IPv6.
    #[error("neither IPv4 nor IPv6")]
    Version,
    /// It must be split in an unknown way, or in one that does not fit its headers.
    #[error("unknown kind of split")]
    Offload,
    /// Its length differs from the one in its header.
    #[error("length differs from the one in its header")]
    Length,
    /// The checksum left to the device lies outside the packet, or not at the position of its protocol.
    #[error("checksum at the wrong position")]
    Checksum,
}

/// IP bytes that arrived in one frame: one packet of the wire, or many that share their headers.
#[derive(Debug)]
pub struct SuperPacket {
    pub(super) bytes: Box<[u8]>,
    pub(super) vnet: VnetHeader,
    pub(super) version: u8,
    /// Bytes of the IP header, options included; for IPv6 without extension headers.
    pub(super) ip_header: usize,
    /// Bytes at the front that every segment has: up to the end of the transport header, or of the IP header if nothing
    /// is split.
    pub(super) shared: usize,
    /// Payload of every segment except the last.
    pub(super) payload: usize,
    segments: u32,
}

/// One packet of the wire.
#[derive(Clone, Debug)]
pub struct Segment {
    /// The packet that contains it.
    pub packet: Arc<SuperPacket>,
    /// Its number in the packet, from 0.
    pub index: u32,
}

impl SuperPacket {
    /// Creates a single packet of the wire, with all its checksums; padding after it is removed.
    ///
    /// # Errors
    /// Bytes that are not an IP packet, or truncated.
    pub fn plain(bytes: &[u8]) -> Result<Self, PacketError> {
        Self::new(VnetHeader::default(), bytes)
    }

    /// Parses the output of a device with offloads: the separate header, and the packet.
    ///
    /// # Errors
    /// An invalid packet, whatever its content.
    pub fn parse(vnet: &[u8; VnetHeader::BYTES], bytes: &[u8]) -> Result<Self, PacketError> {
        Self::new(VnetHeader::read(vnet).ok_or(PacketError::Offload)?, bytes)
    }

    fn new(vnet: VnetHeader, bytes: &[u8]) -> Result<Self, PacketError> {
        let (version, ip_header, length) = lengths(bytes)?;
        if length < ip_header || length > bytes.len() {
            return Err(PacketError::Length);
        }
        let bytes = &bytes[..length];
        if let Some((start, offset)) = vnet.checksum
            && usize::from(start) + usize::from(offset) + 2 > length
        {
            return Err(PacketError::Checksum);
        }
        let (shared, payload) = match vnet.offload {
            Offload::None => (ip_header, bytes.len() - ip_header),
            Offload::Tcp | Offload::Udp => {
                (splitting_headers(&vnet, version, ip_header, bytes)?, usize::from(vnet.segment))
            }
        };
        let segments = match (bytes.len() - shared, payload) {
            (0, _) => 1,
            (_, 0) => return Err(PacketError::Offload),
            (whole, payload) => whole.div_ceil(payload),
        };
        let segments = u32::try_from(segments).map_err(|_| PacketError::Length)?;
        Ok(Self { bytes: bytes.into(), vnet, version, ip_header, shared, payload, segments })
    }

    /// Returns how many packets of the wire it contains.
    pub fn segments(&self) -> u32 {
        self.segments
    }

    /// Returns the IP bytes of segment `index`, headers and payload.
    pub fn ip_bytes(&self, index: u32) -> u32 {
        let (start, end) = self.payload_of(index, 1);
        // Lengths of IP packets: below 2^17.
        (self.shared + end - start) as u32
    }

    /// Returns the ECN field, which all segments share.
    pub fn ecn(&self) -> Ecn {
        let bits = match self.version {
            4 => self.bytes[1],
            _ => self.bytes[1] >> 4,
        };
        match bits & 3 {
            0 => Ecn::NotEct,
            1 => Ecn::Ect1,
            2 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }

    /// Returns an identifier of its flow among those between the same addresses: protocol and ports, or the protocol
    /// alone without ports, as in tunnels, fragments and behind extension headers of IPv6.
    pub fn flow(&self) -> u64 {
        let (protocol, is_fragment) = match self.version {
            4 => (self.bytes[9], u16::from_be_bytes([self.bytes[6], self.bytes[7]]) & 0x3fff != 0),
            _ => (self.bytes[6], false),
        };
        let has_ports = matches!(protocol, TCP | UDP) && !is_fragment;
        let ports = self.bytes[self.ip_header..].first_chunk().filter(|_| has_ports);
        u64::from(protocol) << 32 | ports.map_or(0, |&ports| u64::from(u32::from_be_bytes(ports)))
    }

    /// Returns the destination address.
    pub fn destination(&self) -> IpAddr {
        let checked = "the header was checked";
        match self.version {
            4 => Ipv4Addr::from_octets(*self.bytes[16..].first_chunk().expect(checked)).into(),
            _ => Ipv6Addr::from_octets(*self.bytes[24..].first_chunk().expect(checked)).into(),
        }
    }

    /// Iterates over its segments, in order.
    pub fn split(self) -> impl Iterator<Item = Segment> {
        let packet = Arc::new(self);
        (0..packet.segments).map(move |index| Segment { packet: Arc::clone(&packet), index })
    }

    /// Returns where the payload of `count` segments from `first` on starts and ends.
    pub(super) fn payload_of(&self, first: u32, count: u32) -> (usize, usize) {
        let at = |index: u32| (self.shared + index as usize * self.payload).min(self.bytes.len());
        (at(first), at(first + count))
    }
}

/// Returns the version of IP, the bytes of its header (for IPv6 without extension headers), and those of the whole
/// packet.
fn lengths(bytes: &[u8]) -> Result<(u8, usize, usize), PacketError> {
    let version = bytes.first().ok_or(PacketError::Short)? >> 4;
    let header = match version {
        4 => usize::from(bytes[0] & 0xf) * 4,
        6 => IPV6_HEADER,
        _ => return Err(PacketError::Version),
    };
    if header < LEAST_IP_HEADER || bytes.len() < header {
        return Err(PacketError::Short);
    }
    let length = match version {
        4 => usize::from(u16::from_be_bytes([bytes[2], bytes[3]])),
        _ => IPV6_HEADER + usize::from(u16::from_be_bytes([bytes[4], bytes[5]])),
    };
    Ok((version, header, length))
}

/// Returns the bytes of headers of a packet that must be split, if all of them are valid.
fn splitting_headers(vnet: &VnetHeader, version: u8, ip_header: usize, bytes: &[u8]) -> Result<usize, PacketError> {
    let (start, offset) = vnet.checksum.ok_or(PacketError::Checksum)?;
    let (start, offset) = (usize::from(start), usize::from(offset));
    let (protocol, field, least) = match vnet.offload {
        Offload::Tcp => (TCP, 16, LEAST_TCP_HEADER),
        Offload::None | Offload::Udp => (UDP, 6, UDP_HEADER),
    };
    // After extension headers of IPv6, only the kernel's value is available.
    let misplaced = if version == 4 { start != ip_header } else { start < ip_header };
    if misplaced || offset != field {
        return Err(PacketError::Checksum);
    }
    let is_fragment = u16::from_be_bytes([bytes[6], bytes[7]]) & 0x3fff != 0;
    if version == 4 && (bytes[9] != protocol || is_fragment) {
        return Err(PacketError::Offload);
    }
    // The checksum field is inside the packet, and so are all bytes read below.
    let transport = &bytes[start..];
    let header = match vnet.offload {
        Offload::Tcp => usize::from(transport[12] >> 4) * 4,
        Offload::None | Offload::Udp => UDP_HEADER,
    };
    if header < least || transport.len() < header {
        return Err(PacketError::Short);
    }
    let udp_length = usize::from(u16::from_be_bytes([transport[4], transport[5]]));
    if vnet.offload == Offload::Udp && udp_length != transport.len() {
        return Err(PacketError::Length);
    }
    Ok(start + header)
}
