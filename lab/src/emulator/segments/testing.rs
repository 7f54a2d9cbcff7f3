//! Packets as kernels make them, and the corresponding packets of the wire, made independently of the code under test.

use proptest::prelude::*;

use super::vnet::{Offload, VnetHeader};

/// A packet before a device: its separate header, and its bytes.
pub(super) type Frame = ([u8; VnetHeader::BYTES], Vec<u8>);

/// The ingredients of a packet.
#[derive(Clone, Debug)]
pub(super) struct Recipe {
    pub(super) version: u8,
    pub(super) offload: Offload,
    /// IPv4 options, or extension headers of IPv6, in steps of 8 bytes.
    pub(super) options: usize,
    pub(super) tcp_options: usize,
    pub(super) tcp_flags: u8,
    pub(super) ecn: u8,
    pub(super) id: u16,
    pub(super) sequence: u32,
    pub(super) segment: u16,
    pub(super) payload: Vec<u8>,
    /// Whether the sender leaves the checksum to the device.
    pub(super) partial: bool,
}

impl Recipe {
    fn tcp(&self) -> bool {
        self.offload == Offload::Tcp
    }

    fn transport_header(&self) -> Vec<u8> {
        let ports = [0x1f, 0x90, 0xc3, 0x51];
        if !self.tcp() {
            let length = (8 + self.payload.len()) as u16;
            return [&ports[..], &length.to_be_bytes(), &[0, 0]].concat();
        }
        let options: Vec<u8> = (0..4 * self.tcp_options).map(|_| 1).collect();
        let offset = ((5 + self.tcp_options) << 4) as u8;
        let rest = [0, 0, 0, 9, offset, self.tcp_flags, 1, 0, 0, 0, 0, 0];
        [&ports[..], &self.sequence.to_be_bytes(), &rest, &options].concat()
    }

    fn ip_header(&self, length: usize) -> Vec<u8> {
        let protocol = if self.tcp() { 6 } else { 17 };
        if self.version == 4 {
            let own = 20 + 8 * self.options;
            let mut header = vec![0x40 | (own / 4) as u8, 0x28 | self.ecn];
            header.extend(((own + length) as u16).to_be_bytes());
            header.extend(self.id.to_be_bytes());
            header.extend([0x40, 0, 64, protocol, 0, 0, 10, 99, 0, 1, 10, 99, 0, 2]);
            header.resize(own, 1);
            let checksum = internet_checksum(&header);
            header[10..12].copy_from_slice(&checksum.to_be_bytes());
            return header;
        }
        let mut header = vec![0x62, 0x83 | self.ecn << 4, 0x12, 0x34];
        header[1] = 0x80 | self.ecn << 4 | 3;
        header.extend(((8 * self.options + length) as u16).to_be_bytes());
        header.extend([if self.options > 0 { 60 } else { protocol }, 64]);
        header.extend((0..32).map(|byte| 0xa0 + byte));
        for left in (0..self.options).rev() {
            header.extend([if left > 0 { 60 } else { protocol }, 0, 1, 4, 0, 0, 0, 0]);
        }
        header
    }

    /// Returns the packet and its separate header.
    pub(super) fn frame(&self) -> Frame {
        let transport = self.transport_header();
        let ip = self.ip_header(transport.len() + self.payload.len());
        let start = ip.len();
        let shared = start + transport.len();
        let offset = if self.tcp() { 16 } else { 6 };
        let mut bytes = [ip, transport, self.payload.clone()].concat();
        let pseudo = pseudo_header(&bytes, start);
        let checksum = if self.partial {
            !internet_checksum(&pseudo)
        } else {
            internet_checksum(&[&pseudo, &bytes[start..]].concat())
        };
        bytes[start + offset..start + offset + 2].copy_from_slice(&checksum.to_be_bytes());
        let splits = self.partial && self.payload.len() > usize::from(self.segment);
        let header = VnetHeader {
            checksum: self.partial.then_some((start as u16, offset as u16)),
            offload: if splits { self.offload } else { Offload::None },
            cwr: splits && self.tcp() && self.tcp_flags & 0x80 != 0,
            headers: shared as u16,
            segment: if splits { self.segment } else { 0 },
        };
        (header.write(self.version), bytes)
    }
}

/// Generates packets of every kind, up to 60 segments.
pub(super) fn recipes() -> impl Strategy<Value = Recipe> {
    let kinds = (prop_oneof![Just(4_u8), Just(6)], prop_oneof![Just(Offload::Tcp), Just(Offload::Udp)]);
    let headers = (0..4_usize, 0..11_usize, any::<u8>(), 0..4_u8, any::<u16>(), any::<u32>());
    let sizes = (1..1460_u16, 0.0..60.0_f64, any::<bool>(), any::<u8>());
    (kinds, headers, sizes).prop_map(|((version, offload), headers, (segment, segments, partial, salt))| {
        let (options, tcp_options, tcp_flags, ecn, id, sequence) = headers;
        let length = ((f64::from(segment) * segments) as usize).min(65_000);
        let payload = (0..length).map(|index| (index * 7 + index / 251) as u8 ^ salt).collect();
        Recipe { version, offload, options, tcp_options, tcp_flags, ecn, id, sequence, segment, payload, partial }
    })
}

/// Returns the checksum of RFC 1071, word by word.
pub(super) fn internet_checksum(bytes: &[u8]) -> u16 {
    let mut sum = 0_u32;
    for pair in bytes.chunks(2) {
        sum += u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |&low| u32::from(low));
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// Returns the pseudo header of a TCP or UDP packet whose transport header starts at `start`.
fn pseudo_header(packet: &[u8], start: usize) -> Vec<u8> {
    let length = (packet.len() - start) as u32;
    let (addresses, protocol) =
        if packet[0] >> 4 == 4 { (&packet[12..20], packet[9]) } else { (&packet[8..40], last_next_header(packet)) };
    [addresses, &length.to_be_bytes(), &[0, 0, 0, protocol]].concat()
}

fn last_next_header(packet: &[u8]) -> u8 {
    let (mut next, mut at) = (packet[6], 40);
    while next == 60 {
        (next, at) = (packet[at], at + 8);
    }
    next
}

fn transport_start(packet: &[u8]) -> usize {
    if packet[0] >> 4 == 4 {
        return usize::from(packet[0] & 15) * 4;
    }
    let (mut next, mut at) = (packet[6], 40);
    while next == 60 {
        (next, at) = (packet[at], at + 8);
    }
    at
}

/// Sets the length, header checksum and whole transport checksum of an IP packet.
pub(super) fn finish(packet: &mut [u8]) {
    let (start, whole) = (transport_start(packet), packet.len());
    if packet[0] >> 4 == 4 {
        packet[2..4].copy_from_slice(&(whole as u16).to_be_bytes());
        packet[10..12].fill(0);
        let checksum = internet_checksum(&packet[..start]);
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    } else {
        packet[4..6].copy_from_slice(&((whole - 40) as u16).to_be_bytes());
    }
    let pseudo = pseudo_header(packet, start);
    let field = start + if pseudo[pseudo.len() - 1] == 6 { 16 } else { 6 };
    packet[field..field + 2].fill(0);
    let checksum = match internet_checksum(&[&pseudo, &packet[start..]].concat()) {
        0 => 0xffff,
        checksum => checksum,
    };
    packet[field..field + 2].copy_from_slice(&checksum.to_be_bytes());
}

/// Returns the packets that a device would put on the wire for a frame, each with its own headers and checksums.
pub(super) fn on_the_wire((vnet, packet): &Frame) -> Vec<Vec<u8>> {
    let needs_checksum = vnet[0] == 1;
    let number = |at: usize| usize::from(u16::from_ne_bytes([vnet[at], vnet[at + 1]]));
    if vnet[1] == 0 {
        let mut packet = packet.clone();
        if needs_checksum {
            finish(&mut packet);
        }
        return vec![packet];
    }
    assert!(needs_checksum && number(4) > 0, "{vnet:?}");
    let tcp = vnet[1] & 0x7f != 5;
    assert_eq!(tcp, last_protocol(packet) == 6, "{vnet:?}");
    let start = transport_start(packet);
    assert_eq!((number(6), number(8)), (start, if tcp { 16 } else { 6 }), "{vnet:?}");
    let shared = start + if tcp { usize::from(packet[start + 12] >> 4) * 4 } else { 8 };
    assert_eq!(number(2), shared, "{vnet:?}");
    assert_eq!(vnet[1] & 0x80 != 0, tcp && packet[start + 13] & 0x80 != 0, "the header has CWR: {vnet:?}");
    let pseudo = pseudo_header(packet, start);
    let field = start + number(8);
    let partial = u16::from_be_bytes([packet[field], packet[field + 1]]);
    assert_eq!(partial % 0xffff, !internet_checksum(&pseudo) % 0xffff, "the sum of the pseudo header");
    let (headers, payload) = packet.split_at(shared);
    let packets: Vec<&[u8]> = payload.chunks(number(4)).collect();
    assert!(packets.len() > 1, "a frame that is split into one");
    let mut wire = Vec::new();
    for (index, piece) in packets.iter().enumerate() {
        let mut segment = [headers, piece].concat();
        if packet[0] >> 4 == 4 {
            let id = u16::from_be_bytes([packet[4], packet[5]]).wrapping_add(index as u16);
            segment[4..6].copy_from_slice(&id.to_be_bytes());
        }
        if tcp {
            let sequence = u32::from_be_bytes(packet[start + 4..start + 8].try_into().unwrap());
            let sequence = sequence.wrapping_add((index * number(4)) as u32);
            segment[start + 4..start + 8].copy_from_slice(&sequence.to_be_bytes());
            if index > 0 {
                segment[start + 13] &= 0x7f;
            }
            if index + 1 < packets.len() {
                segment[start + 13] &= 0xf6;
            }
        } else {
            segment[start + 4..start + 6].copy_from_slice(&((8 + piece.len()) as u16).to_be_bytes());
        }
        finish(&mut segment);
        wire.push(segment);
    }
    wire
}

fn last_protocol(packet: &[u8]) -> u8 {
    if packet[0] >> 4 == 4 { packet[9] } else { last_next_header(packet) }
}
