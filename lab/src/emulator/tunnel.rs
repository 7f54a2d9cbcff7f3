//! The fast port: a TUN device, through which packets pass in the large frames of the hosts' kernels.
//!
//! Such a device has no stamps: a packet arrives in the model when it is read. A stall of the thread would then look
//! like packets that all arrived at once, and fill queues that were never full. So each frame has an upper bound of its
//! wait: the time since the device was last known to be empty. It was empty when a read found no frame, and while the
//! thread slept, since an arrival would have woken it. From such a sleep, the time that the awake thread waited for a
//! processor, as reported by the kernel (`schedstat`), is excluded, and so is any time after the end of its timer, such
//! as when the process or the whole machine was stopped. The verdict applies the limits of lateness to these times.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use netsim::Time;

use super::clock::Clock;
use super::port::{ArrivedFrame, Losses, Port};
use super::segments::{SegmentRun, SuperPacket, VnetHeader};
use crate::sys::tun::Tun;

/// Packets due within this time are delivered at once, so a packet may be late by that much. At 1 Gbit/s these are 8
/// packets in one frame.
const MODERATION: Duration = Duration::from_micros(100);
/// The largest IP packet.
const LARGEST: usize = 65_535;

/// A device that carries many packets at a time.
pub(super) struct Tunnel {
    device: Arc<Tun>,
    /// The buffer for reading.
    buffer: Vec<u8>,
    /// The front of the packet being sent.
    head: Vec<u8>,
    /// When the device was last known to be empty.
    empty_at: Time,
    refused: u64,
}

impl Tunnel {
    pub(super) fn new(device: Arc<Tun>) -> Self {
        Self { device, buffer: vec![0; LARGEST], head: Vec::new(), empty_at: Time::ZERO, refused: 0 }
    }
}

impl Port for Tunnel {
    fn receive(&mut self, clock: &Clock, most: usize, into: &mut dyn FnMut(ArrivedFrame)) {
        let mut header = [0; VnetHeader::BYTES];
        for _ in 0..most {
            let before = clock.now();
            // A removed device has no frames either.
            let Ok(Some(length)) = self.device.read(&mut header, &mut self.buffer) else {
                self.empty_at = before;
                break;
            };
            // Taken after the read, since the packet may have arrived just before.
            let at = clock.now();
            match SuperPacket::parse(&header, &self.buffer[..length]) {
                Ok(packet) => into(ArrivedFrame { at, waited: at - self.empty_at, packet }),
                Err(_) => self.refused += 1,
            }
        }
    }

    fn send(&mut self, run: &SegmentRun) -> io::Result<()> {
        let rest = run.packet(&mut self.head);
        self.device.write(&[run.vnet().as_slice(), &self.head, rest].map(IoSlice::new))
    }

    fn moderation(&self) -> Duration {
        MODERATION
    }

    fn stamps_arrivals(&self) -> bool {
        false
    }

    fn slept_until(&mut self, time: Time) {
        self.empty_at = self.empty_at.max(time);
    }

    fn readable(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }

    fn losses(&mut self) -> Losses {
        // Packets for which the device had no room are in the counts of the host's interface.
        Losses { refused: self.refused, ..Losses::default() }
    }
}
