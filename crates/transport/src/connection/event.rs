//! The events of a connection.

use crate::wire::FlowId;

/// An event for the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The handshake is complete: the peer has proved that it has the key.
    Connected,
    /// The control stream has bytes to read.
    ControlReadable,
    /// The peer opens an object; its blocks are buffered until [`accept_flow`](super::Connection::accept_flow).
    ObjectAnnounced {
        /// The flow.
        flow: FlowId,
        /// Length of the object in bytes, as claimed.
        length: u64,
        /// The peer's tag.
        tag: u64,
    },
    /// Every byte of an accepted flow has been written, and every digest computed.
    ObjectReceived {
        /// The flow.
        flow: FlowId,
    },
    /// The receiver has every block of a flow. It may still be writing them.
    ObjectDelivered {
        /// The flow.
        flow: FlowId,
    },
    /// The peer opens a stream, which the program must read or stop.
    StreamAnnounced {
        /// The flow.
        flow: FlowId,
        /// The peer's tag.
        tag: u64,
    },
    /// A stream has bytes to read. Repeated only after a read has left none.
    StreamReadable {
        /// The flow.
        flow: FlowId,
    },
    /// Every byte of a stream of the peer has been read: its last event.
    StreamFinished {
        /// The flow.
        flow: FlowId,
    },
    /// The peer has reset a stream: unread bytes are lost. Its last event.
    StreamReset {
        /// The flow.
        flow: FlowId,
        /// The peer's code.
        code: u32,
    },
    /// A local stream has room again, after a partial write.
    StreamWritable {
        /// The flow.
        flow: FlowId,
    },
    /// Every byte of a finished local stream has arrived; the peer's program may not have read it yet. Its last event.
    StreamDelivered {
        /// The flow.
        flow: FlowId,
    },
    /// The peer has stopped a local stream, which is then over: its last event.
    StreamStopped {
        /// The flow.
        flow: FlowId,
        /// The peer's code.
        code: u32,
    },
    /// The connection is over. The last event.
    Closed(ConnectionError),
}

/// The reason why a connection is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectionError {
    /// This side closed it.
    LocallyClosed,
    /// The peer closed it.
    ClosedByPeer {
        /// 0: a normal end.
        code: u32,
        /// The peer's reason, as text.
        reason: String,
    },
    /// No answer arrived: the peer is unreachable, UDP is blocked, or the keys differ.
    HandshakeTimeout,
    /// The only answer was a list of other versions.
    VersionMismatch {
        /// The peer's versions.
        offered: Vec<u32>,
    },
    /// No authentic packet arrived for too long, or no symbol did although packets without symbols arrived.
    TimedOut,
    /// The peer violated the protocol.
    Violation(&'static str),
    /// A block cannot be decoded, and its sender's profile sends nothing more of it: its bytes are lost.
    Undecodable,
    /// The named sequence number is exhausted, or the keys have reached a usage limit. A new connection can continue.
    Exhausted(&'static str),
}

/// Close codes of the engine; programs use 0 and codes from 0x100 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum CloseCode {
    /// A normal end.
    Done = 0,
    /// The peer violated the protocol.
    Violation = 1,
    /// A block cannot be decoded, and nothing more of it is sent.
    Undecodable = 2,
    /// A sequence number is exhausted, or the keys have reached a usage limit.
    Exhausted = 3,
}
