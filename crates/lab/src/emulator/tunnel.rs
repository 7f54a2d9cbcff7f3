//! The fast port: a TUN device, through which packets pass in the large pieces that the hosts' kernels make of them.
//!
//! Such a device has no stamps: a packet arrives in the model when it is read. A stall of the thread would then look like packets that all
//! came at once, and fill queues that were never full. So each piece is told how long it may have waited at most, which is since the
//! device was last known to be empty. It was when a read found nothing; and while the thread slept, for then the piece would have woken
//! it. Of such a sleep does not count what the thread, awake, waited for a processor, which the kernel tells (`schedstat`), nor
//! what came after the end of its timer, as when the process or the whole machine was stopped. The verdict holds these times to the
//! limits of lateness.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use netsim::Time;

use super::clock::Clock;
use super::port::{Arrived, Losses, Port};
use super::segments::{SegmentRun, SuperPacket, VnetHeader};
use crate::sys::tun::Tun;

/// What is due within this time is handed over at once, so that a packet may come this late. At 1 Gbit/s these are 8 packets in one piece.
const MODERATION: Duration = Duration::from_micros(100);
/// The largest IP packet.
const LARGEST: usize = 65_535;

/// A device, many packets at a time.
pub(super) struct Tunnel {
    device: Arc<Tun>,
    /// What is being read.
    buffer: Vec<u8>,
    /// The front of the packet that is being sent.
    head: Vec<u8>,
    /// When nothing was waiting in the device.
    empty_at: Time,
    refused: u64,
}

impl Tunnel {
    pub(super) fn new(device: Arc<Tun>) -> Self {
        Self { device, buffer: vec![0; LARGEST], head: Vec::new(), empty_at: Time::ZERO, refused: 0 }
    }
}

impl Port for Tunnel {
    fn receive(&mut self, clock: &Clock, most: usize, into: &mut dyn FnMut(Arrived)) {
        let mut header = [0; VnetHeader::BYTES];
        for _ in 0..most {
            let before = clock.now();
            // A device that is gone has nothing either.
            let Ok(Some(length)) = self.device.read(&mut header, &mut self.buffer) else {
                self.empty_at = before;
                break;
            };
            // After the read, before which it may not have been there.
            let at = clock.now();
            match SuperPacket::parse(&header, &self.buffer[..length]) {
                Ok(packet) => into(Arrived { at, waited: at - self.empty_at, packet }),
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
        // What the device had no room for is in the counts of the host's interface.
        Losses { refused: self.refused, ..Losses::default() }
    }
}
