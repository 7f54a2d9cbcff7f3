//! What the emulator has instead of a network card.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use netsim::Time;

use super::clock::Clock;
use super::segments::{SegmentRun, SuperPacket};

/// The emulator's end of the cable to a host.
pub(super) trait Port {
    /// Takes up to `most` pieces that have arrived, in their order.
    fn receive(&mut self, clock: &Clock, most: usize, into: &mut dyn FnMut(Arrived));

    /// Hands the host a run of packets.
    ///
    /// # Errors
    /// A host that has no room for it.
    fn send(&mut self, run: &SegmentRun) -> io::Result<()>;

    /// How long a packet may wait until it is handed over together with others.
    fn moderation(&self) -> Duration;

    /// Whether the kernel says when a packet arrived. Else that is when it is read, and the port is to be told of sleeps.
    fn stamps_arrivals(&self) -> bool;

    /// The thread slept until `time`, and would have been woken if something had arrived.
    fn slept_until(&mut self, time: Time);

    /// Becomes readable when something arrives.
    fn readable(&self) -> BorrowedFd<'_>;

    /// Packets that were lost before the model saw them.
    fn losses(&mut self) -> Losses;
}

/// A piece that has arrived.
#[derive(Debug)]
pub(super) struct Arrived {
    /// When.
    pub(super) at: Time,
    /// How long before that it may have been there, at most.
    pub(super) waited: Duration,
    /// The packets in it.
    pub(super) packet: SuperPacket,
}

/// Packets that never came to the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Losses {
    /// The ring was full: the emulator was too slow.
    pub(super) ring: u64,
    /// Larger than the ring takes, or no IP.
    pub(super) refused: u64,
    /// Arrivals without a usable stamp: their time is when they were seen.
    pub(super) unstamped: u64,
}
