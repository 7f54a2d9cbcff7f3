//! The single bytes by which two programs of the house know what they are to each other, in one table so that none means two things.

/// What a side says of itself in the application's part of the handshake: its first bytes.
///
/// | first | then | |
/// |---|---|---|
/// | [`TRANSFER`](handshake::TRANSFER) | role, flags | a transfer of files |
/// | [`PIPE`](handshake::PIPE) | 1 | a pipe |
/// | [`PROBE`](handshake::PROBE) | `P`, direction | a doctor's probe |
pub(crate) mod handshake {
    /// Version of what the two programs of a transfer say to each other.
    pub(crate) const TRANSFER: u8 = 2;

    /// A pipe, and the version of what is said there.
    pub(crate) const PIPE: [u8; 2] = [b'P', 1];

    /// A probe: its version and its mark. The direction follows where one is meant.
    pub(crate) const PROBE: [u8; 2] = [1, b'P'];
}

/// What the program over there hears on its standard input, behind the request.
pub(crate) mod ssh {
    /// UDP is closed: what follows belongs to the carrier.
    pub(crate) const GO_ON: u8 = b'S';

    /// The network has been looked at, and the machine is next.
    pub(crate) const MEASURE: u8 = b'M';
}
