//! What the emulator has instead of a network card.

use std::io;
use std::os::fd::BorrowedFd;

use netsim::Time;

use super::Packet;
use super::clock::Clock;

/// The emulator's end of the cable to a host.
pub(super) trait Port {
    /// Takes up to `most` packets that have arrived, in their order, into `into`. Buffers come from `spare`.
    fn receive(&mut self, clock: &Clock, most: usize, spare: &mut Vec<Packet>, into: &mut dyn FnMut(Time, Packet));

    /// Hands the host a packet.
    ///
    /// # Errors
    /// A host that has no room for it.
    fn send(&mut self, packet: &[u8]) -> io::Result<()>;

    /// Becomes readable when something arrives.
    fn readable(&self) -> BorrowedFd<'_>;

    /// Packets that were lost before the model saw them.
    fn losses(&mut self) -> Losses;
}

/// Packets that never came to the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Losses {
    /// The ring was full: the emulator was too slow.
    pub(super) ring: u64,
    /// Larger than the ring takes, or not IPv4.
    pub(super) refused: u64,
    /// Arrivals without a usable stamp: their time is when they were seen.
    pub(super) unstamped: u64,
}
