//! Peers with a ticket that begin handshakes and never complete them.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, UdpSocket};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use downpour::Ticket;
use tempfile::tempdir;
use transport::{Batch, ConnectOptions, Endpoint, EndpointConfig, Time};

use crate::interop::listening_receiver;
use crate::program::{receiver, sender};
use crate::tickets::{connect, listen};
use crate::tree;
use crate::tunnelling::{echo_server, exchange};

/// More than the connections that a listener has at once.
const CROWD: u32 = 1_200;

/// Begins [`CROWD`] handshakes with the listener of this ticket and completes none. All are answered.
fn open_handshakes(ticket: &Path) {
    let Ticket { key, addresses, .. } = Ticket::load(ticket).expect("a ticket");
    // Another loopback address if the system has one, so that other peers have a different address.
    let socket =
        UdpSocket::bind((Ipv4Addr::new(127, 0, 0, 2), 0)).or_else(|_| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)));
    let socket = socket.expect("a socket");
    socket.set_read_timeout(Some(Duration::from_millis(500))).expect("a time");
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    let mut seed = [7; 32];
    seed[..16].copy_from_slice(&since.as_nanos().to_be_bytes());
    let mut endpoint =
        Endpoint::new(EndpointConfig { max_connections: CROWD as usize, ..EndpointConfig::default() }, seed);
    let mut batch = Batch::new();
    for nth in 0..CROWD {
        let handle = endpoint.connect(Time::ZERO, key, ConnectOptions::new(addresses.clone())).expect("there is room");
        let connection = endpoint.connection(handle).expect("it has begun");
        assert!(connection.poll_transmit(Time::ZERO, &mut batch));
        batch.seal();
        let mut tries = 0..20;
        loop {
            assert!(tries.next().is_some(), "first message {nth} gets no answer");
            socket.send_to(batch.bytes(), addresses[0]).expect("it leaves");
            match socket.recv(&mut [0; 2_000]) {
                Ok(_) => break,
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(error) => panic!("first message {nth}: {error}"),
            }
        }
    }
}

#[test]
fn half_open_handshakes_do_not_block_tunnel() {
    let (directory, server) = (tempdir().expect("a directory"), echo_server());
    let ticket = directory.path().join("ticket");
    let mut listening = listen(&ticket, &["--permit", &format!("localhost:{server}")]);
    open_handshakes(&ticket);
    let (_tunnel, port) = connect(&ticket, &format!("0:localhost:{server}"));
    assert_eq!(exchange(port, b"hello").expect("an answer"), b"hello");
    // No peer has joined before.
    listening.wait_for_words("tunnel 1");
}

#[test]
fn half_open_handshakes_do_not_block_sender() {
    let local = tempdir().expect("a directory");
    let (ticket, into) = (local.path().join("ticket"), local.path().join("into"));
    let receiver = listening_receiver(&ticket, &into);
    open_handshakes(&ticket);
    let source = tree::file(&local.path().join("file"), 5_000);
    crate::program::downpour([
        "send".as_ref(),
        source.as_os_str(),
        "--to".as_ref(),
        "--ticket-file".as_ref(),
        ticket.as_os_str(),
    ])
    .end()
    .expect(0);
    receiver.end().expect(0);
    assert_eq!(tree::names(&into), ["file"].map(std::path::PathBuf::from));
}

#[test]
fn half_open_handshakes_do_not_block_receiver() {
    let local = tempdir().expect("a directory");
    let (ticket, into) = (local.path().join("ticket"), local.path().join("into"));
    let source = tree::file(&local.path().join("file"), 5_000);
    let sender = sender(&[&source], &ticket, &[]);
    open_handshakes(&ticket);
    receiver(&ticket, &into, &[]).end().expect(0);
    sender.end().expect(0);
    assert_eq!(tree::names(&into), ["file"].map(std::path::PathBuf::from));
}
