//! The messages at the beginning of a tunnel's streams.
//!
//! The requesting side opens a stream in both directions that begins with a [`ConnectRequest`]; the bytes of its
//! program follow at once. The other direction begins with a [`ConnectReply`].

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;

use tokio::io::{AsyncRead, AsyncReadExt as _};

use super::grammar::ForwardAddress;

/// Maximum length of the name of a host or path of a socket, and of the text of a refusal, in bytes.
const LONGEST: usize = 1_024;

/// The first bytes of requests.
const TCP: u8 = 1;
const UNIX: u8 = 2;
const LISTENER: u8 = 3;

/// The target of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ConnectRequest {
    /// This address, as seen from the peer.
    Place(ForwardAddress),
    /// The target of this one of the requested listeners.
    Listener(u16),
}

impl ConnectRequest {
    /// Returns its bytes: kind 1 | number 2 | length 2 | name. The number is the port or the listener's.
    ///
    /// # Errors
    /// [`Refusal::Unnamable`] if the name is too long.
    pub(super) fn encode(&self) -> Result<Vec<u8>, Refusal> {
        let (kind, number, name) = match self {
            Self::Place(ForwardAddress::Tcp { host, port }) => (TCP, *port, host.as_bytes()),
            Self::Place(ForwardAddress::Unix(path)) => (UNIX, 0, path.as_os_str().as_bytes()),
            Self::Listener(number) => (LISTENER, *number, &[][..]),
        };
        let length = u16::try_from(name.len()).ok().filter(|length| usize::from(*length) <= LONGEST);
        let length = length.ok_or(Refusal::Unnamable)?;
        Ok([&[kind][..], &number.to_be_bytes(), &length.to_be_bytes(), name].concat())
    }

    /// Reads a request.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`] for anything else; that of reading.
    pub(super) async fn read(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Self> {
        let invalid = || io::Error::from(io::ErrorKind::InvalidData);
        let (kind, number) = (from.read_u8().await?, from.read_u16().await?);
        let name = text(from).await?;
        match kind {
            TCP if !name.is_empty() && number > 0 => {
                let host = String::from_utf8(name).map_err(|_| invalid())?;
                Ok(Self::Place(ForwardAddress::Tcp { host, port: number }))
            }
            UNIX if !name.is_empty() && number == 0 => {
                Ok(Self::Place(ForwardAddress::Unix(OsStr::from_bytes(&name).into())))
            }
            LISTENER if name.is_empty() => Ok(Self::Listener(number)),
            _ => Err(invalid()),
        }
    }
}

/// Why there is no connection, by its number on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// Nothing listens there.
    Refused = 1,
    /// The host or network is unreachable.
    Unreachable = 2,
    /// The name of the host is unknown.
    Unknown = 3,
    /// There was no answer in time.
    TimedOut = 4,
    /// It is not allowed, or was not requested.
    Forbidden = 5,
    /// The name is too long.
    Unnamable = 6,
    /// Anything else.
    Failed = 7,
}

impl Refusal {
    /// Returns the refusal for an error of connecting.
    pub(super) fn of(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionRefused => Self::Refused,
            io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable | io::ErrorKind::AddrNotAvailable => {
                Self::Unreachable
            }
            io::ErrorKind::NotFound => Self::Unknown,
            io::ErrorKind::TimedOut => Self::TimedOut,
            io::ErrorKind::PermissionDenied => Self::Forbidden,
            _ => Self::Failed,
        }
    }

    const fn from_number(number: u8) -> Self {
        match number {
            1 => Self::Refused,
            2 => Self::Unreachable,
            3 => Self::Unknown,
            4 => Self::TimedOut,
            5 => Self::Forbidden,
            6 => Self::Unnamable,
            _ => Self::Failed,
        }
    }
}

/// The reply to a request: connected, or refused with the peer's reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ConnectReply {
    /// The bytes of the other program follow.
    Connected,
    /// There is no connection.
    Refused(Refusal, String),
}

impl ConnectReply {
    /// Returns its bytes: 0, or number 1 | length 2 | words.
    pub(super) fn encode(&self) -> Vec<u8> {
        match self {
            Self::Connected => vec![0],
            Self::Refused(refusal, words) => {
                let words = &words.as_bytes()[..words.len().min(LONGEST)];
                [&[*refusal as u8][..], &(words.len() as u16).to_be_bytes(), words].concat()
            }
        }
    }

    /// Reads a reply.
    ///
    /// # Errors
    /// That of reading.
    pub(super) async fn read(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Self> {
        let number = from.read_u8().await?;
        if number == 0 {
            return Ok(Self::Connected);
        }
        let words = String::from_utf8_lossy(&text(from).await?).into_owned();
        Ok(Self::Refused(Refusal::from_number(number), words))
    }
}

async fn text(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Vec<u8>> {
    let length = usize::from(from.read_u16().await?);
    if length > LONGEST {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut text = vec![0; length];
    from.read_exact(&mut text).await?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block_on::block_on;
    use proptest::prelude::*;

    fn request(mut bytes: &[u8]) -> io::Result<ConnectRequest> {
        block_on(ConnectRequest::read(&mut bytes))
    }

    #[test]
    fn connect_requests_round_trip() {
        for (asked, bytes) in [
            (
                ConnectRequest::Place(ForwardAddress::Tcp { host: "web".into(), port: 0x1234 }),
                &[1, 0x12, 0x34, 0, 3, b'w', b'e', b'b'][..],
            ),
            (ConnectRequest::Place(ForwardAddress::Unix("/s".into())), &[2, 0, 0, 0, 2, b'/', b's']),
            (ConnectRequest::Listener(7), &[3, 0, 7, 0, 0]),
        ] {
            assert_eq!(asked.encode().as_deref(), Ok(bytes));
            assert_eq!(request(bytes).ok(), Some(asked));
        }
        let long = ConnectRequest::Place(ForwardAddress::Tcp { host: "a".repeat(1_025), port: 1 });
        assert_eq!(long.encode(), Err(Refusal::Unnamable));
        for bytes in [
            &[1, 0, 0, 0, 1, b'a'][..],
            &[1, 0, 80, 0, 0],
            &[1, 0, 80, 0, 1, 0xff],
            &[2, 0, 0, 0, 0],
            &[2, 0, 1, 0, 1, b'/'],
            &[3, 0, 0, 0, 1, b'a'],
            &[4, 0, 0, 0, 0],
            &[1, 0, 80, 4, 1],
            &[1, 0, 80],
        ] {
            assert!(request(bytes).is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn connect_replies_round_trip() {
        for (given, bytes) in [
            (ConnectReply::Connected, &[0][..]),
            (ConnectReply::Refused(Refusal::Unknown, "no".into()), &[3, 0, 2, b'n', b'o']),
        ] {
            assert_eq!(given.encode(), bytes);
            assert_eq!(block_on(ConnectReply::read(&mut &*bytes)).ok(), Some(given));
        }
        let later = block_on(ConnectReply::read(&mut &[99, 0, 0][..]));
        assert_eq!(later.ok(), Some(ConnectReply::Refused(Refusal::Failed, String::new())), "of a later release");
    }

    proptest! {
        #[test]
        fn connect_request_any_bytes_or_error(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Ok(request) = request(&bytes) {
                let written = request.encode().expect("short enough");
                prop_assert_eq!(&bytes[..written.len()], &written[..]);
            }
        }
    }
}
