//! Neighbouring segments, delivered as one packet.

use std::sync::Arc;

use netsim::Ecn;

use super::checksum;
use super::packet::{Segment, SuperPacket};
use super::vnet::{Offload, VnetHeader};

const TCP_FIN: u8 = 0x01;
const TCP_PSH: u8 = 0x08;
const TCP_CWR: u8 = 0x80;

/// Consecutive segments of one packet, all with the same ECN field; or a single corrupt one.
#[derive(Clone, Debug)]
pub struct SegmentRun {
    packet: Arc<SuperPacket>,
    first: u32,
    count: u32,
    ecn: Ecn,
    corrupt: Option<u64>,
}

impl SegmentRun {
    /// Creates a run of one, with the ECN field on arrival, and the entropy that picks the bits to flip if it is
    /// corrupt.
    pub fn of(segment: Segment, ecn: Ecn, corrupt: Option<u64>) -> Self {
        Self { packet: segment.packet, first: segment.index, count: 1, ecn, corrupt }
    }

    /// Adds a segment at the end if it is the next of the same packet, with the same ECN field, and nothing is corrupt.
    ///
    /// # Errors
    /// The segment again.
    pub fn extend(&mut self, segment: Segment, ecn: Ecn, corrupt: Option<u64>) -> Result<(), Segment> {
        let continues = segment.index == self.first + self.count && Arc::ptr_eq(&segment.packet, &self.packet);
        if continues && ecn == self.ecn && corrupt.is_none() && self.corrupt.is_none() {
            self.count += 1;
            return Ok(());
        }
        Err(segment)
    }

    /// Returns how many packets of the wire it contains.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Returns the bytes to write: `head` is filled with the front of the packet, and the rest is returned, uncopied.
    pub fn packet(&self, head: &mut Vec<u8>) -> &[u8] {
        let packet = &*self.packet;
        let (start, end) = packet.payload_of(self.first, self.count);
        head.clear();
        head.extend_from_slice(&packet.bytes[..packet.shared]);
        self.write_headers(head, end - start);
        let Some(entropy) = self.corrupt else {
            return &packet.bytes[start..end];
        };
        // Its checksum must be right before bits are flipped, or the receiver's kernel would correct it afterwards.
        head.extend_from_slice(&packet.bytes[start..end]);
        if let Some((sum_start, offset)) = packet.vnet.checksum {
            let sum_start = usize::from(sum_start);
            checksum::complete(head, sum_start, sum_start + usize::from(offset));
        }
        // After the IP header: a packet that reached no host would be lost, not corrupt.
        netsim::corrupt(&mut head[packet.ip_header..], entropy);
        &[]
    }

    /// Returns the separate header for a receiver whose device completes checksums and splits.
    pub fn vnet(&self) -> [u8; VnetHeader::BYTES] {
        let vnet = self.packet.vnet;
        let vnet = if self.corrupt.is_some() {
            VnetHeader::default()
        } else if self.count == 1 {
            VnetHeader { checksum: vnet.checksum, ..VnetHeader::default() }
        } else {
            VnetHeader { cwr: vnet.cwr && self.first == 0, headers: self.packet.shared as u16, ..vnet }
        };
        vnet.write(self.packet.version)
    }

    /// Turns the headers of the whole packet into those of the run, which has `payload` bytes.
    fn write_headers(&self, headers: &mut [u8], payload: usize) {
        let packet = &*self.packet;
        let marked = self.ecn != packet.ecn();
        let split = packet.segments() > 1;
        if marked {
            set_ecn(headers, packet.version, self.ecn);
        }
        // Lengths of IP packets fit 16 bits, since that of the whole did.
        let length = packet.shared + payload;
        if packet.version == 4 {
            if split {
                headers[2..4].copy_from_slice(&(length as u16).to_be_bytes());
                add_to(&mut headers[4..6], self.first);
            }
            if split || marked {
                checksum::write_ipv4(&mut headers[..packet.ip_header]);
            }
        } else if split {
            headers[4..6].copy_from_slice(&((length - packet.ip_header) as u16).to_be_bytes());
        }
        if split && let Some((start, _)) = packet.vnet.checksum {
            let start = usize::from(start);
            self.write_transport(&mut headers[start..], packet.bytes.len() - start, length - start);
        }
    }

    /// Turns the TCP or UDP header into that of the run: from `start` on the packet has `whole` bytes, the run
    /// `length`.
    fn write_transport(&self, header: &mut [u8], whole: usize, length: usize) {
        let packet = &*self.packet;
        match packet.vnet.offload {
            Offload::Tcp => {
                let sequence = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
                let sequence = sequence.wrapping_add(self.first * packet.payload as u32);
                header[4..8].copy_from_slice(&sequence.to_be_bytes());
                if self.first + self.count < packet.segments() {
                    header[13] &= !(TCP_FIN | TCP_PSH);
                }
                if self.first > 0 {
                    header[13] &= !TCP_CWR;
                }
            }
            Offload::None | Offload::Udp => header[4..6].copy_from_slice(&(length as u16).to_be_bytes()),
        }
        let field = match packet.vnet.offload {
            Offload::Tcp => &mut header[16..18],
            Offload::None | Offload::Udp => &mut header[6..8],
        };
        // The sum of the pseudo header changes only by its length, whatever the positions of the addresses.
        let pseudo = u64::from(u16::from_be_bytes([field[0], field[1]]));
        let pseudo = checksum::fold(pseudo + u64::from(!(whole as u16)) + length as u64);
        field.copy_from_slice(&pseudo.to_be_bytes());
    }
}

/// Adds to a big-endian number of 16 bits, modulo 2^16.
fn add_to(field: &mut [u8], number: u32) {
    let sum = u16::from_be_bytes([field[0], field[1]]).wrapping_add(number as u16);
    field.copy_from_slice(&sum.to_be_bytes());
}

/// Writes the ECN field of an IP header.
fn set_ecn(header: &mut [u8], version: u8, ecn: Ecn) {
    let bits = match ecn {
        Ecn::NotEct => 0,
        Ecn::Ect1 => 1,
        Ecn::Ect0 => 2,
        Ecn::Ce => 3,
    };
    header[1] = match version {
        4 => header[1] & !3 | bits,
        _ => header[1] & !0x30 | bits << 4,
    };
}
