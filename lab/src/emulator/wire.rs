//! The portable port: a cable of two Ethernet interfaces, and a packet socket on the emulator's one.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::Duration;

use netsim::Time;

use super::clock::Clock;
use super::port::{ArrivedFrame, Losses, Port};
use super::segments::{SegmentRun, SuperPacket};
use crate::sys::packet::PacketSocket;
use crate::testbed::MAC;

const ETHERNET_BYTES: usize = 14;

/// A cable that carries one packet at a time.
pub(super) struct Wire {
    socket: PacketSocket,
    header: [u8; ETHERNET_BYTES],
    /// The front of the packet being sent.
    head: Vec<u8>,
    losses: Losses,
}

impl Wire {
    pub(super) fn new(socket: PacketSocket) -> Self {
        let mut header = [0; ETHERNET_BYTES];
        header[..6].copy_from_slice(&MAC);
        header[6..12].copy_from_slice(&MAC);
        // The number of IPv4 in IEEE 802.
        header[12..].copy_from_slice(&[0x08, 0x00]);
        Self { socket, header, head: Vec::new(), losses: Losses::default() }
    }
}

impl Port for Wire {
    fn receive(&mut self, clock: &Clock, most: usize, into: &mut dyn FnMut(ArrivedFrame)) {
        let stamps = clock.stamps();
        let losses = &mut self.losses;
        for _ in 0..most {
            let more = self.socket.receive(|arrived| {
                let bytes = arrived.frame.get(ETHERNET_BYTES..).filter(|_| arrived.is_whole);
                let Some(packet) = bytes.and_then(|bytes| SuperPacket::plain(bytes).ok()) else {
                    losses.refused += 1;
                    return;
                };
                let arrival = stamps.arrival(arrived.stamp);
                losses.unstamped += u64::from(arrival.is_none());
                into(ArrivedFrame { at: arrival.unwrap_or(stamps.now()), waited: Duration::ZERO, packet });
            });
            if !more {
                break;
            }
        }
    }

    fn send(&mut self, run: &SegmentRun) -> io::Result<()> {
        let rest = run.packet(&mut self.head);
        rustix::io::writev(&self.socket, &[self.header.as_slice(), &self.head, rest].map(IoSlice::new))?;
        Ok(())
    }

    fn moderation(&self) -> Duration {
        Duration::ZERO
    }

    fn stamps_arrivals(&self) -> bool {
        true
    }

    fn slept_until(&mut self, _time: Time) {}

    fn readable(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn losses(&mut self) -> Losses {
        // The kernel keeps the count, and reading it does not fail on an open socket.
        Losses { ring: self.socket.dropped().unwrap_or_default(), ..self.losses }
    }
}
