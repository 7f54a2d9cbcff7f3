//! The packets that a host sends: batches of the engine, packet by packet, answers to unvalidated peers, and copies by
//! a third party.

use super::{Host, engine_time, node};
use netsim::{Ecn, Packet};
use std::net::SocketAddr;
use transport::ConnectionHandle;
use transport::recovery::EcnCodepoint;

/// Bytes that IP and UDP add to a payload.
const OVERHEAD: u32 = 28;

/// Returns a reused buffer with these bytes.
fn filled(buffers: &mut Vec<Vec<u8>>, bytes: &[u8]) -> Vec<u8> {
    let mut buffer = buffers.pop().unwrap_or_default();
    buffer.clear();
    buffer.extend_from_slice(bytes);
    buffer
}

impl Host {
    fn packet(&self, destination: SocketAddr, ecn: Ecn, payload: Vec<u8>) -> Packet {
        Packet { source: self.address, destination: node(destination), ecn, overhead: OVERHEAD, payload }
    }

    fn next_of_batch(&mut self) -> Option<Packet> {
        let start = self.handed;
        let end = (start + self.batch.segment_size()).min(self.batch.bytes().len());
        if start >= end {
            return None;
        }
        self.handed = end;
        let ecn = if self.batch.ecn() == EcnCodepoint::Ect0 { Ecn::Ect0 } else { Ecn::NotEct };
        let payload = filled(&mut self.buffers, &self.batch.bytes()[start..end]);
        Some(self.packet(self.batch.destination(), ecn, payload))
    }

    /// Puts a copy from another address ahead of a packet, if a third party makes one.
    pub(super) fn with_copy(&mut self, packet: Packet) -> Packet {
        match self.copied_by {
            Some((by, every)) if self.random.u64(..every) == 0 => {
                self.copied_bytes += u64::from(packet.ip_bytes());
                let copy = Packet { source: by, ..packet.clone() };
                self.original = Some(packet);
                copy
            }
            _ => packet,
        }
    }

    pub(super) fn next_packet(&mut self, now: netsim::Time) -> Option<Packet> {
        if let Some(packet) = self.next_of_batch() {
            return Some(packet);
        }
        if let Some(answer) = self.endpoint.poll_answer() {
            let payload = filled(&mut self.buffers, &answer.bytes);
            return Some(self.packet(answer.destination, Ecn::NotEct, payload));
        }
        let mut found = None;
        self.for_each(|host, handle| {
            found = host.packet_of(now, handle);
            found.is_none()
        });
        found
    }

    fn packet_of(&mut self, now: netsim::Time, handle: ConnectionHandle) -> Option<Packet> {
        loop {
            let connection = self.endpoint.connection(handle)?;
            if connection.poll_transmit(engine_time(now), &mut self.batch) {
                self.batch.seal();
                self.handed = 0;
                self.first_sent.get_or_insert(now);
                return self.next_of_batch();
            }
            // The schedule may have requested work instead: work completed at once may give it something to send.
            let request = connection.poll_request()?;
            self.dispatch(engine_time(now), handle, request);
        }
    }
}
