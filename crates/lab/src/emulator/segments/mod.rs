//! What an offloading sender hands over in one piece, taken as the packets that a wire would carry.
//!
//! A host whose network device splits for it (TSO, USO) sends up to 64 KiB as one IP packet, and says in a header beside it how it is
//! to be split. A [`SuperPacket`] knows the packets of the wire in it, its [`Segment`]s: the emulated links queue, lose, mark and count
//! each. What comes through is gathered ([`Gather`]) into [`SegmentRun`]s of neighbours that are handed over at the same moment, and each run
//! is again one packet with the headers that a device would have given those segments, which the receiver's kernel takes in one piece.
//!
//! Nothing here touches a device: bytes in, bytes out.

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
pub use packet::{Refused, Segment, SuperPacket};
pub use run::SegmentRun;
pub use vnet::{Offload, VnetHeader};
