//! Fuzz target of the inputs of a tunnel: the user's forwards, and the bytes of programs and of the peer.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::grammar::{Forward, ForwardAddress, ForwardTarget};
use super::messages::{ConnectReply, ConnectRequest, Refusal};
use super::{http, socks};
use crate::block_on::block_on;

/// Reads all but the first byte of `data`, which is the size of the pieces, as each of the inputs of a tunnel.
///
/// # Panics
/// If an input is read differently from its written form, or from a second reading of SOCKS.
pub fn fuzz_tunnel(data: &[u8]) {
    let Some((&piece, input)) = data.split_first() else { return };
    let piece = usize::from(piece).max(1);
    if let Ok(text) = str::from_utf8(input) {
        check_forwards(text);
    }
    check_socks(input, piece);
    check_connect_request(input, piece);
    check_answer(input, piece);
    check_http_request(input);
}

/// Checks that an accepted text is read as the same after it is written.
fn check_forwards(text: &str) {
    let forwards: [fn(&str) -> _; 3] =
        [|text| Forward::read(text, false), |text| Forward::read(text, true), Forward::read_proxy];
    for read in forwards {
        let Ok(forward) = read(text) else { continue };
        assert_eq!(read(&forward.to_string()).as_ref(), Ok(&forward), "{forward}");
        if let ForwardTarget::Place(ForwardAddress::Tcp { host, port }) = forward.to {
            assert!(port > 0 && !host.is_empty(), "{text}");
        }
    }
}

/// A program that sends its bytes in pieces, and keeps the replies.
struct Program<'a> {
    input: &'a [u8],
    piece: usize,
    answered: Vec<u8>,
}

impl<'a> Program<'a> {
    const fn new(input: &'a [u8], piece: usize) -> Self {
        Self { input, piece, answered: Vec::new() }
    }
}

impl AsyncRead for Program<'_> {
    fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let (now, later) = self.input.split_at(self.piece.min(self.input.len()).min(buffer.remaining()));
        buffer.put_slice(now);
        self.input = later;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Program<'_> {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let count = self.piece.min(bytes.len());
        self.answered.extend_from_slice(&bytes[..count]);
        Poll::Ready(Ok(count))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// The result of a SOCKS conversation.
#[derive(Debug, Default, PartialEq, Eq)]
struct Socks {
    /// The requested address.
    place: Option<(String, u16)>,
    answered: Vec<u8>,
    /// Unread bytes, which are for the other program.
    left: usize,
}

/// Checks that an accepted conversation is accepted by [`second_reading`], and can be requested.
fn check_socks(input: &[u8], piece: usize) {
    let mut program = Program::new(input, piece);
    let asked = block_on(socks::asked(&mut program)).ok();
    let place = asked.and_then(|(_, place)| match place {
        ForwardAddress::Tcp { host, port } => Some((host, port)),
        ForwardAddress::Unix(_) => None,
    });
    let found = Socks { place, left: program.input.len(), answered: program.answered };
    assert_eq!(found, second_reading(input));
    if let Some((host, port)) = found.place {
        assert!(port > 0 && !host.is_empty(), "{host}:{port}");
        let request = ConnectRequest::Place(ForwardAddress::Tcp { host, port }).encode().expect("a short name");
        check_connect_request(&request, piece);
    }
    // SOCKS 4a with the longest user and name.
    let read = input.len() - found.left;
    assert!(read <= 9 + 2 * 256, "{read}");
}

/// Reads a complete conversation: another formulation of [`socks`].
fn second_reading(input: &[u8]) -> Socks {
    let mut answered = Vec::new();
    // A truncated or invalid conversation is not answered any more.
    let (place, left) = match input {
        [4, rest @ ..] => second_reading_of_four(rest, &mut answered),
        [5, rest @ ..] => second_reading_of_five(rest, &mut answered),
        rest => (None, rest.len().saturating_sub(1)),
    };
    Socks { place, answered, left }
}

type Reading = (Option<(String, u16)>, usize);

fn second_reading_of_four(input: &[u8], answered: &mut Vec<u8>) -> Reading {
    let [command, high, low, a, b, c, d, rest @ ..] = input else { return (None, 0) };
    let is_named = matches!((a, b, c, d), (0, 0, 0, 1..));
    // The user, and perhaps the name; one that is too long is read to its 256th byte.
    let (mut texts, mut rest, mut is_long) = (Vec::new(), rest, false);
    for _ in 0..1 + usize::from(is_named) {
        let longest = &rest[..rest.len().min(256)];
        match longest.iter().position(|byte| *byte == 0) {
            Some(end) => texts.push(&rest[..end]),
            None if longest.len() == 256 => is_long = true,
            None => return (None, 0),
        }
        rest = &rest[texts.last().map_or(256, |text| if is_long { 256 } else { text.len() + 1 })..];
        if is_long {
            break;
        }
    }
    let port = u16::from_be_bytes([*high, *low]);
    let host = match texts.get(1) {
        _ if is_long => None,
        Some(name) => String::from_utf8(name.to_vec()).ok().filter(|name| !name.is_empty()),
        None => Some(format!("{a}.{b}.{c}.{d}")),
    };
    let place = host.filter(|_| *command == 1 && port != 0).map(|host| (host, port));
    if place.is_none() {
        answered.extend([0, 91, 0, 0, 0, 0, 0, 0]);
    }
    (place, rest.len())
}

fn second_reading_of_five(input: &[u8], answered: &mut Vec<u8>) -> Reading {
    let Some((methods, rest)) = input.split_first().and_then(|(count, rest)| rest.split_at_checked((*count).into()))
    else {
        return (None, 0);
    };
    if !methods.contains(&0) {
        answered.extend([5, 0xff]);
        return (None, rest.len());
    }
    answered.extend([5, 0]);
    let [version, command, _, kind, rest @ ..] = rest else { return (None, 0) };
    if *version != 5 {
        return (None, rest.len());
    }
    let refuse = |code| [5, code, 0, 1, 0, 0, 0, 0, 0, 0];
    let length = match (kind, rest) {
        (1, _) => 4,
        (4, _) => 16,
        (3, [length, ..]) => 1 + usize::from(*length),
        (3, []) => return (None, 0),
        _ => {
            answered.extend(refuse(8));
            return (None, rest.len());
        }
    };
    let Some((address, [high, low, rest @ ..])) = rest.split_at_checked(length) else { return (None, 0) };
    let host = match (kind, address) {
        (1, [a, b, c, d]) => Some(format!("{a}.{b}.{c}.{d}")),
        (3, [_, name @ ..]) => str::from_utf8(name).ok().map(str::to_owned),
        _ => <[u8; 16]>::try_from(address).ok().map(|address| std::net::Ipv6Addr::from(address).to_string()),
    };
    let port = u16::from_be_bytes([*high, *low]);
    let place = host.filter(|host| !host.is_empty() && port != 0 && *command == 1).map(|host| (host, port));
    if place.is_none() {
        answered.extend(refuse(if *command == 1 { 8 } else { 7 }));
    }
    (place, rest.len())
}

/// Checks that an accepted request is encoded as its bytes.
fn check_connect_request(input: &[u8], piece: usize) {
    let mut other = Program::new(input, piece);
    let Ok(request) = block_on(ConnectRequest::read(&mut other)) else { return };
    let written = request.encode().expect("it was short enough to be read");
    assert_eq!([&written, other.input].concat(), input);
}

/// Checks that an accepted reply is the same when it is written and read again, except for invalid text.
fn check_answer(input: &[u8], piece: usize) {
    let mut other = Program::new(input, piece);
    let Ok(answer) = block_on(ConnectReply::read(&mut other)) else { return };
    let written = answer.encode();
    let again = block_on(ConnectReply::read(&mut &*written)).expect("what was written");
    match (&answer, &again) {
        (ConnectReply::Refused(refusal, words), ConnectReply::Refused(same, less)) if words.contains('\u{fffd}') => {
            assert_eq!(refusal, same);
            assert!(less.chars().count() <= words.chars().count());
        }
        _ => assert_eq!(answer, again),
    }
    // Numbers of later releases are failures.
    assert!(written[0] == input[0] || matches!(answer, ConnectReply::Refused(Refusal::Failed, _)));
    let read = input.len() - other.input.len();
    assert!(read <= 3 + 1_024, "{read}");
}

/// Checks that a request has a response with a correct content length.
fn check_http_request(input: &[u8]) {
    let response = http::judge(input, &http::Hosts::Any).response("metrics\n");
    let (head, content) = response.split_once("\r\n\r\n").expect("an empty line");
    assert!(head.starts_with("HTTP/1.1 ") && head.contains("\r\nContent-Length: 8\r\n"), "{head}");
    assert!(content == "metrics\n" || content.is_empty() && input.starts_with(b"HEAD "), "{content}");
}
