//! A run of datagrams to one destination, of equal size except for the last, for one send with segmentation offload.

use crate::recovery::EcnCodepoint;
use crate::secure::Sealer;
use crate::wire::{PacketHeader, TAG};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Largest payload of one offloaded send: the most that an IPv4 datagram can carry.
const MAX_BYTES: usize = 65_507;

/// Most segments that kernels accept in one offloaded send (Linux: UDP_MAX_SEGMENTS).
const MAX_SEGMENTS: usize = 64;

/// Datagrams to send. Packet numbers are fixed when a batch is filled; sealing is pure and may run on another thread.
#[derive(Debug)]
pub struct Batch {
    bytes: Vec<u8>,
    segment_size: usize,
    segments: usize,
    destination: SocketAddr,
    source: Option<IpAddr>,
    ecn: EcnCodepoint,
    sealer: Option<Sealer>,
}

impl Default for Batch {
    fn default() -> Self {
        Self::new()
    }
}

impl Batch {
    /// Creates an empty batch; reuse it to keep its memory.
    pub fn new() -> Self {
        Self {
            bytes: Vec::new(),
            segment_size: 0,
            segments: 0,
            destination: SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
            source: None,
            ecn: EcnCodepoint::NotEct,
            sealer: None,
        }
    }

    /// Returns the address to send to.
    pub const fn destination(&self) -> SocketAddr {
        self.destination
    }

    /// Returns the local address to send from, if the peer's packets are known to arrive at one.
    pub const fn source(&self) -> Option<IpAddr> {
        self.source
    }

    /// Returns the ECN codepoint of every datagram.
    pub const fn ecn(&self) -> EcnCodepoint {
        self.ecn
    }

    /// Returns the bytes of every datagram but the last, which may be shorter.
    pub const fn segment_size(&self) -> usize {
        self.segment_size
    }

    /// Returns the datagrams, one after the other.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the number of datagrams.
    pub const fn segments(&self) -> usize {
        self.segments
    }

    /// Seals every packet in place. Handshake messages, which are not sealed, stay as they are.
    pub fn seal(&mut self) {
        let Some(sealer) = self.sealer.take() else {
            return;
        };
        for packet in self.bytes.chunks_mut(self.segment_size) {
            // Cannot fail: the connection wrote the header, left room, and moved the keys to this number's epoch.
            if let Err(error) = sealer.seal(packet) {
                debug_assert!(false, "{error}");
                packet.fill(0);
            }
        }
    }

    /// Empties the batch for packets that `sealer` will seal.
    pub(crate) fn begin(
        &mut self,
        destination: SocketAddr,
        source: Option<IpAddr>,
        ecn: EcnCodepoint,
        sealer: Option<Sealer>,
    ) {
        self.bytes.clear();
        self.segments = 0;
        self.segment_size = 0;
        self.destination = destination;
        self.source = source;
        self.ecn = ecn;
        self.sealer = sealer;
    }

    /// Returns whether one more datagram of `size` bytes fits.
    pub(crate) const fn has_room(&self, size: usize) -> bool {
        self.segments == 0
            || (self.segments < MAX_SEGMENTS && size == self.segment_size && self.bytes.len() + size <= MAX_BYTES)
    }

    /// Appends a packet with the plaintext `parts`, and leaves room for the tag.
    pub(crate) fn push_packet(&mut self, header: PacketHeader, parts: [&[u8]; 2]) {
        self.fill_packet(header, |out| parts.iter().for_each(|part| out.extend_from_slice(part)));
    }

    /// Appends a packet whose plaintext `write` appends; returns its size.
    pub(crate) fn fill_packet(&mut self, header: PacketHeader, write: impl FnOnce(&mut Vec<u8>)) -> usize {
        self.push_datagram(|out| {
            out.extend_from_slice(&header.encode());
            write(out);
            out.extend_from_slice(&[0; TAG]);
        })
    }

    /// Appends a datagram that `write` appends; returns its size.
    pub(crate) fn push_datagram(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> usize {
        let start = self.bytes.len();
        write(&mut self.bytes);
        let size = self.bytes.len() - start;
        if self.segments == 0 {
            self.segment_size = size;
        }
        self.segments += 1;
        size
    }
}
