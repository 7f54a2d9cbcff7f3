//! The protocol bytes that two downpour programs exchange outside of messages, in one table so that no byte has two
//! meanings.

/// The first bytes of the application data in the handshake, which name the protocol of each peer.
///
/// | first | then | |
/// |---|---|---|
/// | [`TRANSFER`](handshake::TRANSFER) | role, flags | a transfer of files |
/// | [`PIPE`](handshake::PIPE) | 1 | a pipe |
/// | [`TUNNEL`](handshake::TUNNEL) | 1 | a tunnel |
/// | [`STREAM`](handshake::STREAM) | 1 | a named stream |
/// | [`PROBE`](handshake::PROBE) | `P`, direction | a doctor's probe |
pub(crate) mod handshake {
    /// Version of the file transfer protocol.
    pub(crate) const TRANSFER: u8 = 2;

    /// A pipe, and the version of its protocol.
    pub(crate) const PIPE: [u8; 2] = [b'P', 1];

    /// A tunnel, and the version of its protocol.
    pub(crate) const TUNNEL: [u8; 2] = [b'T', 1];

    /// A named stream, and the version of its protocol.
    pub(crate) const STREAM: [u8; 2] = [b'S', 1];

    /// A probe: version and marker. A direction follows where needed.
    pub(crate) const PROBE: [u8; 2] = [1, b'P'];
}

/// The bytes that the remote program reads from its standard input after the request.
pub(crate) mod ssh {
    /// UDP is blocked: everything that follows belongs to the connection.
    pub(crate) const FALL_BACK: u8 = b'S';

    /// The network has been examined; the host follows.
    pub(crate) const MEASURE: u8 = b'M';
}
