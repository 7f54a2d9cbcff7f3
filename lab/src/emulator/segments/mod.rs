//! The large packets of an offloading sender, treated as the packets that a wire would carry.
//!
//! A host whose network device splits for it (TSO, USO) sends up to 64 KiB as one IP packet, with a header that
//! describes the split. A [`SuperPacket`] has the packets of the wire in it as [`Segment`]s: the emulated links queue,
//! lose, mark and count each. Those that pass are gathered ([`Gather`]) into [`SegmentRun`]s of neighbours that are
//! delivered at the same moment, and each run is again one packet with the headers that a device would have given those
//! segments, which the receiver's kernel accepts in one frame.
//!
//! This module touches no device: bytes in, bytes out.

mod checksum;
mod gather;
mod packet;
mod run;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod vnet;

pub use gather::Gather;
pub use packet::{PacketError, Segment, SuperPacket};
pub use run::SegmentRun;
pub use vnet::{Offload, VnetHeader};
