//! Every reason for which a datagram is dropped, and a counter for each (ARCHITECTURE, law 10).

use thiserror::Error;

use super::error::WireError;

macro_rules! refused {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal,)+) => {
        /// Why a datagram was dropped. Nothing the datagram said has had any effect.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Error)]
        pub enum Refused {
            $($(#[doc = $doc])+ #[error($name)] $variant,)+
        }

        impl Refused {
            /// Every reason, in the order in which statistics show them.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// The reason's name in statistics and traces.
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
    /// The first byte names no kind of datagram.
    UnknownType = "unknown_type",
    /// No connection has this id.
    UnknownConnection = "unknown_connection",
    /// No key has this id: a stranger, who gets no answer.
    UnknownKey = "unknown_key",
    /// A first message of a version that is not spoken here.
    BadVersion = "bad_version",
    /// The Noise message is not authentic.
    HandshakeFailed = "handshake_failed",
    /// A handshake message where none is expected: the connection exists already.
    HandshakeLate = "handshake_late",
    /// A first message that was answered before and is too old to be answered again.
    HandshakeReplayed = "handshake_replayed",
    /// A packet number that came before, or too old to tell.
    Replayed = "replayed",
    /// A packet number whose key epoch is neither the current one nor next to it.
    WrongEpoch = "wrong_epoch",
    /// The packet is not authentic.
    AuthenticationFailed = "authentication_failed",
    /// Authentic, or not sealed at all, but against the layout.
    Malformed = "malformed",
    /// Well formed, but beyond what this side allows: a limit on flows, symbols or credit.
    Unacceptable = "unacceptable",
    /// An answer would exceed three times what an unvalidated address has sent.
    Amplification = "amplification",
    /// No room for another connection.
    Busy = "busy",
}

impl From<WireError> for Refused {
    fn from(_: WireError) -> Self {
        Self::Malformed
    }
}

/// How many datagrams were dropped, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RefusedCounts([u64; Refused::ALL.len()]);

impl RefusedCounts {
    /// Counts one datagram.
    pub const fn add(&mut self, reason: Refused) {
        self.0[reason as usize] += 1;
    }

    /// Datagrams dropped for this reason.
    pub const fn get(&self, reason: Refused) -> u64 {
        self.0[reason as usize]
    }

    /// Every reason with its count, those at zero included.
    pub fn iter(&self) -> impl Iterator<Item = (Refused, u64)> + '_ {
        Refused::ALL.into_iter().zip(self.0)
    }

    /// Datagrams dropped for any reason.
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
