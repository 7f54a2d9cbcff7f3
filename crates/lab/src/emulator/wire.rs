//! The port that works everywhere: a cable of two Ethernet interfaces, and a packet socket on the near one.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd as _, BorrowedFd};

use netsim::Time;

use super::Packet;
use super::clock::Clock;
use super::port::{Losses, Port};
use crate::space::MAC;
use crate::sys::packet::PacketSocket;

const ETHERNET_BYTES: usize = 14;

/// A cable, one packet at a time.
pub(super) struct Wire {
    socket: PacketSocket,
    header: [u8; ETHERNET_BYTES],
    losses: Losses,
}

impl Wire {
    pub(super) fn new(socket: PacketSocket) -> Self {
        let mut header = [0; ETHERNET_BYTES];
        header[..6].copy_from_slice(&MAC);
        header[6..12].copy_from_slice(&MAC);
        // IPv4, as IEEE 802 numbers it.
        header[12..].copy_from_slice(&[0x08, 0x00]);
        Self { socket, header, losses: Losses::default() }
    }
}

impl Port for Wire {
    fn receive(&mut self, clock: &Clock, most: usize, spare: &mut Vec<Packet>, into: &mut dyn FnMut(Time, Packet)) {
        let stamps = clock.stamps();
        let losses = &mut self.losses;
        for _ in 0..most {
            let more = self.socket.receive(|arrived| {
                let Some(bytes) = arrived.frame.get(ETHERNET_BYTES..).filter(|_| arrived.is_whole) else {
                    losses.refused += 1;
                    return;
                };
                let mut packet = spare.pop().unwrap_or_default();
                packet.clear();
                packet.extend_from_slice(bytes);
                let arrival = stamps.arrival(arrived.stamp);
                losses.unstamped += u64::from(arrival.is_none());
                into(arrival.unwrap_or(stamps.now()), packet);
            });
            if !more {
                break;
            }
        }
    }

    fn send(&mut self, packet: &[u8]) -> io::Result<()> {
        rustix::io::writev(&self.socket, &[IoSlice::new(&self.header), IoSlice::new(packet)])?;
        Ok(())
    }

    fn readable(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn losses(&mut self) -> Losses {
        // The count is the kernel's, and asking for it does not fail on a socket that is open.
        Losses { ring: self.socket.dropped().unwrap_or_default(), ..self.losses }
    }
}
