//! The reasons for which a datagram is dropped, and a counter for each (ARCHITECTURE, law 10).

use thiserror::Error;

use super::error::WireError;

macro_rules! refused {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal,)+) => {
        /// The reason for dropping a datagram. Nothing in the datagram has had any effect.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Error)]
        pub enum RejectReason {
            $($(#[doc = $doc])+ #[error($name)] $variant,)+
        }

        impl RejectReason {
            /// Every reason, in the order in which statistics show them.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// Returns the reason's name in statistics and traces.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }
    };
}

refused! {
    /// Shorter than its header, or a first message below 1200 bytes.
    TooShort = "too_short",
    /// The first byte is no known type of datagram.
    UnknownType = "unknown_type",
    /// No connection has this id.
    UnknownConnection = "unknown_connection",
    /// No key has this id: an unknown peer, which gets no answer.
    UnknownKey = "unknown_key",
    /// A first message of an unsupported version.
    BadVersion = "bad_version",
    /// The Noise message is not authentic.
    HandshakeFailed = "handshake_failed",
    /// A handshake message where none is expected: the connection exists already.
    HandshakeLate = "handshake_late",
    /// An answered first message, too old to be answered again.
    HandshakeReplayed = "handshake_replayed",
    /// A packet number seen before, or too old to know.
    Replayed = "replayed",
    /// A packet number of a key epoch neither current nor next to it.
    WrongEpoch = "wrong_epoch",
    /// The packet is not authentic.
    AuthenticationFailed = "authentication_failed",
    /// Authentic, or not sealed at all, but in violation of the layout.
    Malformed = "malformed",
    /// Well formed, but beyond this side's limits on flows, symbols or credit.
    Unacceptable = "unacceptable",
    /// An answer would exceed three times the bytes from an unvalidated address.
    Amplification = "amplification",
    /// No room for another connection.
    Busy = "busy",
}

impl From<WireError> for RejectReason {
    fn from(_: WireError) -> Self {
        Self::Malformed
    }
}

/// Numbers of datagrams dropped, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RejectCounts([u64; RejectReason::ALL.len()]);

impl RejectCounts {
    /// Counts one datagram.
    pub const fn add(&mut self, reason: RejectReason) {
        self.0[reason as usize] += 1;
    }

    /// Returns how many datagrams were dropped for this reason.
    pub const fn get(&self, reason: RejectReason) -> u64 {
        self.0[reason as usize]
    }

    /// Iterates over every reason with its count, including zeros.
    pub fn iter(&self) -> impl Iterator<Item = (RejectReason, u64)> + '_ {
        RejectReason::ALL.into_iter().zip(self.0)
    }

    /// Returns how many datagrams were dropped for any reason.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Adds the counts of another, such as those of a connection that has ended.
    pub fn merge(&mut self, other: &Self) {
        for (count, more) in self.0.iter_mut().zip(other.0) {
            *count += more;
        }
    }
}
