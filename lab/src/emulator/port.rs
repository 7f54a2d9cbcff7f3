//! The emulator's equivalent of a network card.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use netsim::Time;

use super::clock::Clock;
use super::segments::{SegmentRun, SuperPacket};

/// The emulator's end of the cable to a host.
pub(super) trait Port {
    /// Takes up to `most` arrived frames, in order.
    fn receive(&mut self, clock: &Clock, most: usize, into: &mut dyn FnMut(ArrivedFrame));

    /// Delivers a run of packets to the host.
    ///
    /// # Errors
    /// A host without room for it.
    fn send(&mut self, run: &SegmentRun) -> io::Result<()>;

    /// Returns how long a packet may wait to be delivered together with others.
    fn moderation(&self) -> Duration;

    /// Returns whether the kernel stamps arrivals. If not, the time of reading is used, and the port must be notified
    /// of sleeps.
    fn stamps_arrivals(&self) -> bool;

    /// Notes that the thread slept until `time`, and would have been woken by an arrival.
    fn slept_until(&mut self, time: Time);

    /// Returns a descriptor that becomes readable when something arrives.
    fn readable(&self) -> BorrowedFd<'_>;

    /// Returns the packets lost before the model saw them.
    fn losses(&mut self) -> Losses;
}

/// An arrived frame.
#[derive(Debug)]
pub(super) struct ArrivedFrame {
    /// When it arrived.
    pub(super) at: Time,
    /// Upper bound of its wait before that.
    pub(super) waited: Duration,
    /// The packets in it.
    pub(super) packet: SuperPacket,
}

/// Packets that never reached the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Losses {
    /// The ring was full: the emulator was too slow.
    pub(super) ring: u64,
    /// Larger than the ring accepts, or not IP.
    pub(super) refused: u64,
    /// Arrivals without a usable stamp, for which the time of reading is used.
    pub(super) unstamped: u64,
}
