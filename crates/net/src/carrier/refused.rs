//! Input that a carrier rejects.

/// Datagrams and messages refused before they reach the engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CarrierRefused {
    /// Empty datagrams.
    pub(crate) empty: u64,
    /// ICMP messages without useful information about a peer.
    pub(crate) icmp: u64,
}
