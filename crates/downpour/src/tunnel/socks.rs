//! The server side of SOCKS: versions 5 (RFC 1928, without authentication), 4 and 4a, of which only CONNECT. Names are
//! resolved by the peer.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::grammar::ForwardAddress;
use super::messages::Refusal;

const CONNECT: u8 = 1;
/// RFC 1928 section 3.
const NO_AUTHENTICATION: u8 = 0;
const NO_METHOD: u8 = 0xff;
/// RFC 1928 section 5.
const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;
/// RFC 1928 section 6.
const COMMAND_NOT_SUPPORTED: u8 = 7;
const ADDRESS_NOT_SUPPORTED: u8 = 8;
/// Maximum length of the user id or name of version 4.
const LONGEST: usize = 255;

/// The version of a program's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    /// SOCKS 4 and 4a.
    Four,
    /// SOCKS 5.
    Five,
}

/// Reads a program's request. Any other request is answered, and is an error.
///
/// # Errors
/// [`io::ErrorKind::InvalidData`] for invalid or unsupported requests; that of the socket.
pub(super) async fn asked<S: AsyncRead + AsyncWrite + Unpin>(socket: &mut S) -> io::Result<(Version, ForwardAddress)> {
    match socket.read_u8().await? {
        4 => Ok((Version::Four, four(socket).await?)),
        5 => Ok((Version::Five, five(socket).await?)),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

async fn four<S: AsyncRead + AsyncWrite + Unpin>(socket: &mut S) -> io::Result<ForwardAddress> {
    let (command, port, address) = (socket.read_u8().await?, socket.read_u16().await?, socket.read_u32().await?);
    // The user id is ignored: the login has authenticated the user.
    let is_short = until_zero(socket).await?.is_some();
    let host = match address {
        _ if !is_short => None,
        // 4a: 0.0.0.x means that a name follows.
        1..=255 => until_zero(socket).await?.and_then(|name| String::from_utf8(name).ok()),
        _ => Some(Ipv4Addr::from(address).to_string()),
    };
    match host.filter(|host| command == CONNECT && port > 0 && !host.is_empty()) {
        Some(host) => Ok(ForwardAddress::Tcp { host, port }),
        None => {
            answer(socket, Version::Four, Some(Refusal::Failed)).await?;
            Err(io::ErrorKind::InvalidData.into())
        }
    }
}

/// Reads a zero-terminated text; `None` if it is too long.
async fn until_zero(socket: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    loop {
        match socket.read_u8().await? {
            0 => return Ok(Some(bytes)),
            _ if bytes.len() == LONGEST => return Ok(None),
            byte => bytes.push(byte),
        }
    }
}

async fn five<S: AsyncRead + AsyncWrite + Unpin>(socket: &mut S) -> io::Result<ForwardAddress> {
    let mut methods = vec![0; socket.read_u8().await?.into()];
    socket.read_exact(&mut methods).await?;
    if !methods.contains(&NO_AUTHENTICATION) {
        socket.write_all(&[5, NO_METHOD]).await?;
        return Err(io::ErrorKind::InvalidData.into());
    }
    socket.write_all(&[5, NO_AUTHENTICATION]).await?;
    let [version, command, _, kind] = socket.read_u32().await?.to_be_bytes();
    if version != 5 {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let host = match kind {
        IPV4 => Ipv4Addr::from(socket.read_u32().await?).to_string(),
        IPV6 => Ipv6Addr::from(socket.read_u128().await?).to_string(),
        NAME => {
            let mut name = vec![0; socket.read_u8().await?.into()];
            socket.read_exact(&mut name).await?;
            // Invalid text is no name.
            String::from_utf8(name).unwrap_or_default()
        }
        _ => return refuse_five(socket, ADDRESS_NOT_SUPPORTED).await,
    };
    let port = socket.read_u16().await?;
    if command != CONNECT {
        return refuse_five(socket, COMMAND_NOT_SUPPORTED).await;
    }
    if port == 0 || host.is_empty() {
        return refuse_five(socket, ADDRESS_NOT_SUPPORTED).await;
    }
    Ok(ForwardAddress::Tcp { host, port })
}

async fn refuse_five(socket: &mut (impl AsyncWrite + Unpin), code: u8) -> io::Result<ForwardAddress> {
    socket.write_all(&[5, code, 0, IPV4, 0, 0, 0, 0, 0, 0]).await?;
    Err(io::ErrorKind::InvalidData.into())
}

/// Replies to a program: connected, or why not. The address in the reply is 0.0.0.0, as by ssh.
///
/// # Errors
/// That of the socket.
pub(super) async fn answer(
    socket: &mut (impl AsyncWrite + Unpin),
    version: Version,
    refusal: Option<Refusal>,
) -> io::Result<()> {
    match version {
        Version::Four => {
            let code = if refusal.is_none() { 90 } else { 91 };
            socket.write_all(&[0, code, 0, 0, 0, 0, 0, 0]).await
        }
        Version::Five => {
            // RFC 1928 section 6.
            let code = match refusal {
                None => 0,
                Some(Refusal::Forbidden) => 2,
                Some(Refusal::Unreachable | Refusal::Unknown | Refusal::TimedOut | Refusal::Unnamable) => 4,
                Some(Refusal::Refused) => 5,
                Some(Refusal::Failed) => 1,
            };
            socket.write_all(&[5, code, 0, IPV4, 0, 0, 0, 0, 0, 0]).await
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tokio::io::duplex;

    /// Returns the parsed request, and the reply to the program.
    async fn of(bytes: &[u8]) -> (Option<(Version, String)>, Vec<u8>) {
        let (mut program, mut served) = duplex(4_096);
        program.write_all(bytes).await.unwrap();
        program.shutdown().await.unwrap();
        let asked = asked(&mut served).await.ok().map(|(version, place)| (version, place.to_string()));
        drop(served);
        let mut answered = Vec::new();
        program.read_to_end(&mut answered).await.unwrap();
        (asked, answered)
    }

    #[tokio::test]
    async fn programs_of_all_versions_are_understood() {
        let five = |kind: &[u8]| [&[5, 1, 0, 5, 1, 0][..], kind, &[0, 80]].concat();
        for (bytes, version, place) in [
            (five(&[1, 192, 0, 2, 1]), Version::Five, "192.0.2.1:80"),
            (five(&[3, 3, b'w', b'e', b'b']), Version::Five, "web:80"),
            (five(&[&[4][..], &[0; 15], &[1]].concat()), Version::Five, "[::1]:80"),
            (vec![5, 2, 2, 0, 5, 1, 0, 3, 1, b'a', 0, 80], Version::Five, "a:80"),
            (vec![4, 1, 0, 80, 192, 0, 2, 1, 0], Version::Four, "192.0.2.1:80"),
            (vec![4, 1, 0, 80, 192, 0, 2, 1, 0xff, 0], Version::Four, "192.0.2.1:80"),
            (b"\x04\x01\x00\x50\x00\x00\x00\x01me\x00web\x00".to_vec(), Version::Four, "web:80"),
        ] {
            let expected: &[u8] = if version == Version::Five { &[5, 0] } else { &[] };
            assert_eq!(of(&bytes).await, (Some((version, place.to_owned())), expected.to_vec()), "{bytes:?}");
        }
    }

    #[tokio::test]
    async fn socks_unsupported_requests_answered() {
        let refused = |code| [&[5, 0, 5, code, 0, 1][..], &[0; 6]].concat();
        for (bytes, answered) in [
            (vec![5, 1, 2], vec![5, 0xff]),
            (vec![5, 1, 0, 5, 2, 0, 1, 192, 0, 2, 1, 0, 80], refused(COMMAND_NOT_SUPPORTED)),
            (vec![5, 1, 0, 5, 3, 0, 1, 192, 0, 2, 1, 0, 80], refused(COMMAND_NOT_SUPPORTED)),
            (vec![5, 1, 0, 5, 1, 0, 9, 0, 0], refused(ADDRESS_NOT_SUPPORTED)),
            (vec![5, 1, 0, 5, 1, 0, 3, 0, 0, 80], refused(ADDRESS_NOT_SUPPORTED)),
            (vec![5, 1, 0, 5, 1, 0, 3, 1, 0xff, 0, 80], refused(ADDRESS_NOT_SUPPORTED)),
            (vec![4, 2, 0, 80, 192, 0, 2, 1, 0], vec![0, 91, 0, 0, 0, 0, 0, 0]),
            (vec![4, 1, 0, 80, 0, 0, 0, 1, 0, 0xff, 0], vec![0, 91, 0, 0, 0, 0, 0, 0]),
            (b"GET / HTTP/1.1\r\n\r\n".to_vec(), vec![]),
            (vec![], vec![]),
        ] {
            assert_eq!(of(&bytes).await, (None, answered), "{bytes:?}");
        }
        let endless = [&[4, 1, 0, 80, 192, 0, 2, 1][..], &[b'a'; 300]].concat();
        assert_eq!(of(&endless).await, (None, vec![0, 91, 0, 0, 0, 0, 0, 0]));
    }

    proptest! {
        #[test]
        fn any_bytes_are_understood_or_not(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            if let (Some((_, place)), _) = runtime.block_on(of(&bytes)) {
                prop_assert!(!place.ends_with(":0") && !place.starts_with(':'));
            }
        }
    }
}
