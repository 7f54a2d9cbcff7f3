//! Errors of the kernel for datagrams without a receiver, over its loopback interface.

use std::net::{SocketAddr, UdpSocket};
use std::sync::mpsc::channel;
use std::task::{Context, Waker};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use transport::ConnectOptions;
use transport::recovery::EcnCodepoint;

use super::{End, KEY, handler};
use crate::carrier::{Outgoing, Sent, Socket};
use crate::{Bind, Endpoint, Event, NetError};

fn bound(address: &str) -> Socket {
    Socket::new(Bind::from(Some(address.parse().unwrap())).open().unwrap()).unwrap()
}

/// Returns an address on which no socket is listening any more.
fn deserted(address: &str) -> SocketAddr {
    UdpSocket::bind(address).unwrap().local_addr().unwrap()
}

fn has_ipv6() -> bool {
    UdpSocket::bind("[::1]:0").is_ok()
}

fn send(from: &mut Socket, to: SocketAddr, segment_size: usize, bytes: &[u8]) {
    let out = Outgoing { destination: to, source: None, ecn: EcnCodepoint::NotEct, segment_size, bytes };
    let mut sent = 0;
    assert_eq!((from.send(out, &mut sent), sent), (Sent::All, bytes.len()));
}

/// Whether the kernel reports an error within `seconds`.
fn is_in_error(socket: &Socket, seconds: i64) -> bool {
    let mut wait = [PollFd::new(socket.descriptor(), PollFlags::empty())];
    poll(&mut wait, Some(&Timespec { tv_sec: seconds, tv_nsec: 0 })).unwrap() == 1
        && wait[0].revents().contains(PollFlags::ERR)
}

/// Returns all unreachable addresses that the kernel reports.
fn reported(socket: &mut Socket, of_use: bool) -> Vec<SocketAddr> {
    let mut all = Vec::new();
    socket.note_error();
    while socket.unreachable(|address| {
        all.push(address);
        of_use
    }) {}
    all
}

#[test]
fn a_closed_port_is_reported_by_its_address() {
    for (from, remote) in [("127.0.0.1:0", "127.0.0.1:0"), ("[::]:0", "127.0.0.1:0"), ("[::]:0", "[::1]:0")] {
        if remote == "[::1]:0" && !has_ipv6() {
            continue;
        }
        let (mut socket, closed) = (bound(from), deserted(remote));
        send(&mut socket, closed, 100, &[1; 100]);
        assert!(is_in_error(&socket, 10), "{from} gets the report of {remote}");
        assert_eq!(reported(&mut socket, true), [closed], "from {from}");
        assert_eq!(socket.refused().icmp, 0);
        assert!(!is_in_error(&socket, 0), "no event is left that would wake a reader");
        send(&mut socket, closed, 100, &[1; 100]);
        assert!(is_in_error(&socket, 10));
        assert_eq!(reported(&mut socket, false), [closed]);
        assert_eq!(socket.refused().icmp, 1, "useless reports are counted");
    }
}

/// An error of an earlier datagram is returned by the next call, which then has done nothing.
#[test]
fn datagrams_after_an_error_are_not_lost() {
    for local in ["127.0.0.1:0", "[::]:0"] {
        let (mut socket, mut other) = (bound(local), bound("127.0.0.1:0"));
        let port = socket.local_address().unwrap().port();
        let bytes: Vec<u8> = (0..10_500).map(|i| (i / 1000) as u8).collect();
        for round in 0..100 {
            send(&mut socket, deserted("127.0.0.1:0"), 100, &[1; 100]);
            assert!(is_in_error(&socket, 10));
            if round % 2 == 0 {
                send(&mut socket, other.local_address().unwrap(), 1_000, &bytes);
                let mut came = Vec::new();
                while came.len() < bytes.len() {
                    let mut wait = [PollFd::new(other.descriptor(), PollFlags::IN)];
                    assert_eq!(poll(&mut wait, Some(&Timespec { tv_sec: 10, tv_nsec: 0 })).unwrap(), 1, "lost");
                    other.receive(|received| came.extend_from_slice(received.bytes)).unwrap();
                }
                assert_eq!(came, bytes);
            } else {
                send(&mut other, ([127, 0, 0, 1], port).into(), 1_000, b"hello");
                let mut came = 0;
                for _ in 0..2 {
                    socket.receive(|received| came += received.bytes.len()).unwrap();
                }
                assert_eq!(came, 5);
            }
            assert!(socket.take_send_error().is_none(), "no peer caused it");
        }
        assert_eq!(reported(&mut socket, true).len(), 100);
        assert!(!is_in_error(&socket, 0));
    }
}

/// Without that, the timeout would be ten minutes.
#[test]
fn a_peer_that_should_be_listening_and_is_not_is_given_up_at_once() {
    let local: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let endpoint = Endpoint::bind(local).unwrap();
    let (sender, events) = channel();
    let mut options = ConnectOptions::new(vec![deserted("127.0.0.1:0")]);
    (options.handshake_timeout, options.peer_listens) = (Duration::from_secs(600), true);
    let end = End { connection: endpoint.connect((KEY, options)).events(handler(sender)).start(), events };
    assert!(matches!(end.closed().0, NetError::HandshakeTimedOut { .. }));
}

/// A program that no longer waits for a peer does not go on asking for it.
#[test]
fn a_connect_that_is_dropped_closes_its_connection() {
    let loopback: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let silent = UdpSocket::bind(loopback).unwrap();
    let endpoint = Endpoint::bind(loopback).unwrap();
    let (sender, events) = channel();
    let options = ConnectOptions::new(vec![silent.local_addr().unwrap()]).handshake_timeout(Duration::from_secs(5));
    let mut connecting = Box::pin(endpoint.connect((KEY, options)).events(handler(sender)).into_future());
    assert!(connecting.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    drop(connecting);
    let closed = events.iter().find_map(|event| if let Event::Closed(error) = event { Some(error) } else { None });
    assert!(matches!(closed, Some(NetError::ClosedLocally)), "{closed:?}");
}

/// Anyone can cause such errors, as often as they like.
#[test]
fn no_number_of_errors_breaks_a_socket() {
    let mut socket = bound("127.0.0.1:0");
    for _ in 0..200 {
        send(&mut socket, deserted("127.0.0.1:0"), 100, &[1; 100]);
        assert_eq!(socket.receive(|_| ()).unwrap(), 0);
    }
    assert_eq!(reported(&mut socket, true).len(), 200);
}

/// The kernel also queues its own refusals of datagrams that the interface cannot carry: 65,536 bytes of IP on
/// loopback.
#[test]
fn a_too_large_datagram_reports_no_peer() {
    for (local, remote, length) in [("0.0.0.0:0", "127.0.0.1:9", 70_000), ("[::]:0", "[::1]:9", 65_500)] {
        if remote == "[::1]:9" && !has_ipv6() {
            continue;
        }
        let mut socket = bound(local);
        send(&mut socket, remote.parse().unwrap(), length, &vec![0; length]);
        assert!(socket.take_send_error().is_none());
        assert_eq!(reported(&mut socket, true), []);
        assert_eq!(socket.refused().icmp, 0);
        assert!(!is_in_error(&socket, 0));
    }
}
