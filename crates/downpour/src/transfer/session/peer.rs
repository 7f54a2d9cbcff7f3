//! The peer of a session, as its handshake describes it.

use std::net::SocketAddr;

use net::PIPE_PEER;

use crate::error::Error;
use crate::messages::NoticeKind;
use crate::protocol::handshake::TRANSFER;
use crate::ticket::Role;

/// A receiver's flag: it may have some of the bytes, and lists the wanted ranges of each batch.
const MAY_HOLD_SOME: u8 = 1;

/// Flag of a sender that understands [`Message::Untouched`](crate::messages::Message::Untouched).
const HEARS_UNTOUCHED: u8 = 2;

/// Flag of a side that understands [`Message::Strain`](crate::messages::Message::Strain).
const HEARS_STRAIN: u8 = 4;

/// Flag of a sender that lists the chunks of files:
/// [`Message::ListChunks`](crate::messages::Message::ListChunks).
const LISTS_CHUNKS: u8 = 8;

/// A receiver's flag: it takes all of a batch though it may have some.
const TAKES_WHOLE: u8 = 16;

/// A receiver's flag: files that have changed while they were read may be resent.
const TAKES_AGAIN: u8 = 32;

/// Flag of a side that understands the reasons and kinds of notices that older releases do not
/// ([`SkipReason::is_known_to_all`](crate::files::SkipReason::is_known_to_all),
/// [`NoticeKind::known_to_all`]).
const KNOWS_REASONS: u8 = 64;

/// Flag of a side that reads the reason of a close frame as a cause with values.
const READS_CAUSES: u8 = 128;

/// Returns the application bytes that a side sends in the handshake.
pub(in crate::transfer) fn application(role: Role, may_hold_some: bool, takes_again: bool) -> Vec<u8> {
    let again = if takes_again { TAKES_AGAIN } else { 0 };
    let flags = match role {
        Role::Sender => HEARS_UNTOUCHED | LISTS_CHUNKS,
        Role::Receiver if may_hold_some => MAY_HOLD_SOME | TAKES_WHOLE | again,
        Role::Receiver | Role::Tunnel | Role::Streams => again,
    };
    vec![TRANSFER, role as u8, flags | HEARS_STRAIN | KNOWS_REASONS | READS_CAUSES]
}

/// The peer. Before its handshake, it has no capability.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::transfer) struct Peer {
    address: Option<SocketAddr>,
    /// The flags from its handshake.
    flags: u8,
}

impl Peer {
    /// Returns the authenticated peer of a side with this role, which has sent these application bytes.
    ///
    /// # Errors
    /// [`Error::WrongRole`], [`Error::VersionMismatch`].
    pub(super) fn new(address: SocketAddr, application: &[u8], role: Role) -> Result<Self, Error> {
        // Later releases may append more.
        match *application {
            [TRANSFER, theirs, _, ..] if theirs == role as u8 => Err(Error::WrongRole { both: role }),
            [TRANSFER, theirs, flags, ..] if theirs == role.other() as u8 => Ok(Self { address: Some(address), flags }),
            _ => Err(Error::VersionMismatch),
        }
    }

    /// Returns its address, once it is authenticated and its application data is valid.
    pub(in crate::transfer) const fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Returns whether the receiver lists the wanted ranges of each batch.
    pub(in crate::transfer) const fn may_hold_some(&self) -> bool {
        self.flags & MAY_HOLD_SOME != 0
    }

    /// Returns whether the receiver takes all of a batch without listing the wanted ranges.
    pub(in crate::transfer) const fn takes_whole(&self) -> bool {
        self.flags & TAKES_WHOLE != 0
    }

    /// Returns whether the receiver accepts resent files that have changed while they were read.
    pub(in crate::transfer) const fn takes_again(&self) -> bool {
        self.flags & TAKES_AGAIN != 0
    }

    /// Returns whether the peer understands every reason and kind of notice.
    pub(in crate::transfer) const fn knows_reasons(&self) -> bool {
        self.flags & KNOWS_REASONS != 0
    }

    /// Returns whether the peer reads kinds with values in the reason of a close frame.
    pub(in crate::transfer) const fn reads_causes(&self) -> bool {
        self.flags & READS_CAUSES != 0
    }

    /// Returns the kind of notice that is sent to the sender; `None` if it would not understand it.
    pub(in crate::transfer) const fn kind_for(&self, kind: NoticeKind) -> Option<NoticeKind> {
        match self.hears_untouched() {
            true if self.knows_reasons() => Some(kind),
            true => Some(kind.known_to_all()),
            false => kind.for_older_sender(),
        }
    }

    /// Returns whether the sender understands [`Message::Untouched`](crate::messages::Message::Untouched).
    pub(in crate::transfer) const fn hears_untouched(&self) -> bool {
        self.flags & HEARS_UNTOUCHED != 0
    }

    /// Returns whether the sender lists the chunks of files on request.
    pub(in crate::transfer) const fn lists_chunks(&self) -> bool {
        self.flags & LISTS_CHUNKS != 0
    }

    /// Returns whether the peer understands [`Message::Strain`](crate::messages::Message::Strain).
    pub(super) const fn hears_strain(&self) -> bool {
        self.flags & HEARS_STRAIN != 0
    }

    /// Returns whether the peer reports how many datagrams its kernel drops. Over pipes neither side has a socket.
    pub(super) fn counts_overflow(&self) -> bool {
        self.hears_strain() && self.address != Some(PIPE_PEER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peer_capabilities_from_handshake() {
        let none = Peer::default();
        assert!(none.address().is_none() && !none.hears_strain() && !none.may_hold_some());
        let receiver = Peer::new(PIPE_PEER, &application(Role::Receiver, true, false), Role::Sender).unwrap();
        assert!(receiver.may_hold_some() && receiver.takes_whole() && receiver.knows_reasons());
        assert!(!receiver.takes_again() && !receiver.hears_untouched() && !receiver.lists_chunks());
        assert!(receiver.hears_strain() && !receiver.counts_overflow(), "over pipes");
        let address = "192.0.2.1:1".parse().unwrap();
        let sender = Peer::new(address, &application(Role::Sender, false, false), Role::Receiver).unwrap();
        assert!(sender.hears_untouched() && sender.lists_chunks() && sender.counts_overflow());
        let later = [application(Role::Sender, false, false), vec![0xff; 9]].concat();
        assert!(Peer::new(address, &later, Role::Receiver).unwrap().reads_causes());
        assert!(Peer::new(address, &later[..2], Role::Receiver).is_err());
        assert!(!sender.may_hold_some() && sender.address() == Some(address));
    }

    #[test]
    fn older_sender_gets_known_notices() {
        let kind_for = |flags| Peer { address: None, flags }.kind_for(NoticeKind::NameTooLong);
        assert_eq!(kind_for(HEARS_UNTOUCHED | KNOWS_REASONS), Some(NoticeKind::NameTooLong));
        assert_eq!(kind_for(HEARS_UNTOUCHED), Some(NoticeKind::BadName));
        assert_eq!(Peer::default().kind_for(NoticeKind::LowSpace), None);
    }

    #[test]
    fn peer_same_role_or_version_refused() {
        let of = |application: &[u8]| Peer::new(PIPE_PEER, application, Role::Sender);
        let same = application(Role::Sender, false, false);
        assert!(matches!(of(&same), Err(Error::WrongRole { both: Role::Sender })));
        for other in [&[][..], &[TRANSFER], &[TRANSFER, Role::Receiver as u8], &[1, Role::Receiver as u8, 0]] {
            assert!(matches!(of(other), Err(Error::VersionMismatch)));
        }
    }
}
