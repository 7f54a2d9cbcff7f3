//! What a connection tells its program.

use crate::flow::FlowKey;
use crate::wire::FlowId;

/// Something happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The peer has proved that it holds the key.
    Connected,
    /// There are bytes of the control stream to read.
    ControlReadable,
    /// The peer opens an object; its blocks wait for [`accept_flow`](super::Connection::accept_flow).
    Announced {
        /// The flow.
        flow: FlowId,
        /// Length of the object in bytes, as claimed.
        length: u64,
        /// The peer's tag.
        tag: u64,
    },
    /// A block's digest is made.
    Digest {
        /// The flow.
        key: FlowKey,
        /// The block.
        block: u32,
        /// BLAKE3.
        digest: [u8; 32],
    },
    /// Every byte of an accepted flow is written, and every digest made.
    Received {
        /// The flow.
        flow: FlowId,
    },
    /// The receiver has every block of a flow: it knows the bytes, and may still be writing them.
    Sent {
        /// The flow.
        flow: FlowId,
    },
    /// The peer opens a stream; it is the program's to read or to stop.
    StreamAnnounced {
        /// The flow.
        flow: FlowId,
        /// The peer's tag.
        tag: u64,
    },
    /// There are bytes of a stream to read; said again only after a read has left none.
    StreamReadable {
        /// The flow.
        flow: FlowId,
    },
    /// Every byte of a stream of the peer has been read: its last event.
    StreamFinished {
        /// The flow.
        flow: FlowId,
    },
    /// The peer gave a stream up: what was not read is gone. Its last event.
    StreamReset {
        /// The flow.
        flow: FlowId,
        /// The peer's code.
        code: u32,
    },
    /// There is room again in a stream of ours, after a write that was cut short.
    StreamWritable {
        /// The flow.
        flow: FlowId,
    },
    /// Every byte of a stream of ours that was finished has arrived; the peer's program may not have read it yet. Its last event.
    StreamSent {
        /// The flow.
        flow: FlowId,
    },
    /// The peer wants no more of a stream of ours, which is given up with that: its last event.
    StreamStopped {
        /// The flow.
        flow: FlowId,
        /// The peer's code.
        code: u32,
    },
    /// The connection is over; the last event.
    Closed(Closed),
}

/// Why a connection is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Closed {
    /// This side closed it.
    ByUs,
    /// The peer closed it.
    ByPeer {
        /// 0: a normal end.
        code: u32,
        /// The peer's words.
        reason: String,
    },
    /// Nobody answered: unreachable, UDP blocked, or another key.
    HandshakeTimeout,
    /// Nobody answered but somebody who speaks only these versions.
    VersionMismatch {
        /// The peer's versions.
        offered: Vec<u32>,
    },
    /// Nothing authentic was heard for too long, or no symbol arrived although packets without one did.
    Dead,
    /// The peer broke the protocol.
    Violation(String),
    /// A block cannot be decoded, and as the profile of its sender has it nothing more of it is sent: its bytes are lost.
    Undecodable,
}

/// Close codes of the engine; programs use 0 and codes from 0x100 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum CloseCode {
    /// A normal end.
    Done = 0,
    /// The peer broke the protocol.
    Violation = 1,
    /// A block cannot be decoded, and nothing more of it is sent.
    Undecodable = 2,
}
