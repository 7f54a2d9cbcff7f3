//! `tunnel` by ticket: between two users of whom neither has an account with the other.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::Path;

use rustix::process::Signal;

use crate::program::{Program, command, downpour};
use crate::tunnelling::{dial, echo_server, exchange, free_port};

/// Listens with this permit; returns the listening program once its ticket is in the file.
pub(crate) fn listen(ticket: &Path, arguments: &[&str]) -> Program {
    let mut command = command(["tunnel"]);
    command.args(["--listen", "127.0.0.1:0", "--ticket-file"]).arg(ticket).args(arguments);
    let mut listening = Program::start(command);
    listening.wait_for_words("Copy ticket file");
    listening
}

/// Connects with the ticket; returns the program, and the port of its first forward.
pub(crate) fn connect(ticket: &Path, forward: &str) -> (Program, u16) {
    let mut command = command(["tunnel"]);
    command.arg("--ticket-file").arg(ticket).args(["-L", forward]);
    let mut tunnel = Program::start(command);
    let line = tunnel.wait_for_words("localhost:");
    let port = line.split_once("localhost:").and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
    tunnel.wait_for_words("The tunnel to the peer is open");
    (tunnel, port.expect("a port"))
}

#[test]
fn tunnel_ticket_reaches_permitted_only() {
    let (directory, server) = (tempfile::tempdir().expect("a directory"), echo_server());
    let ticket = directory.path().join("ticket");
    let mut listening = listen(&ticket, &["--permit", &format!("localhost:{server}")]);
    let (first, port) = connect(&ticket, &format!("0:localhost:{server}"));
    let bytes: Vec<u8> = (0..1_000_000_u32).map(|at| (at % 251) as u8).collect();
    assert!(exchange(port, &bytes).expect("an answer") == bytes);
    // A second client at the same time requests the same server by another name, which is not allowed.
    let (mut second, other) = connect(&ticket, &format!("0:127.0.0.1:{server}"));
    exchange(other, b"hello").expect_err("it is reset");
    second.wait_for_words(&format!("connection failed: 127.0.0.1:{server} is not allowed"));
    listening.wait_for_words(&format!("tunnel 2: connection failed: 127.0.0.1:{server} is not allowed"));
    second.signal(Signal::INT);
    assert_eq!(second.end().status.code(), Some(130));
    listening.wait_for_words("tunnel 2 closed: interrupted");
    // The first tunnel continues until the listener ends, which resets open connections.
    let mut held = dial(port);
    held.write_all(b"some").expect("it is open");
    listening.signal(Signal::TERM);
    assert_eq!(listening.end().status.code(), Some(75));
    held.read_to_end(&mut Vec::new()).expect_err("no end");
    let ended = first.end();
    assert_eq!(ended.status.code(), Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains("error from the peer: stopped by a signal"), "{}", ended.stderr);
}

#[test]
fn tunnel_ticket_arguments_invalid_exit_codes() {
    let directory = tempfile::tempdir().expect("a directory");
    let ticket = directory.path().join("ticket");
    let refused = |arguments: &[&str], code: i32, words: &str| {
        let ended = downpour([&["tunnel"], arguments].concat()).end();
        assert_eq!(ended.status.code(), Some(code), "{arguments:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(words), "{arguments:?}: {}", ended.stderr);
    };
    let file = ticket.to_str().expect("text");
    refused(&["--listen"], 2, "--permit <PLACE>");
    refused(&["--listen", "--permit", "web"], 2, "write HOST:PORT, HOST:*");
    refused(&["--permit", "web:80", "-L", "8080:web:80"], 2, "--permit needs --listen");
    refused(&["--listen", "--permit", "any", "-L", "8080:web:80"], 2, "cannot be used with");
    refused(&["-R", "8080:web:80"], 2, "-R needs a host");
    refused(&["-O", "check"], 2, "-O needs a host");
    refused(&["--ticket-file", file, "-L", "0:web:80", "host"], 2, "cannot be used with");
    refused(&["--ticket-file", file, "-L", "0:web:80"], 2, "ticket file");
    refused(&["--listen", "--permit", "any", "-f"], 2, "cannot be used with");
    refused(&["-f", "-L", "0:web:80"], 2, "use --ticket-file");
    // A ticket of another command, and a ticket of `tunnel` for another command.
    let port = free_port();
    let made = downpour::Ticket {
        key: [7; 32],
        expires: std::time::SystemTime::now() + std::time::Duration::from_secs(60),
        addresses: vec![([127, 0, 0, 1], port).into()],
        listener: downpour::Role::Receiver,
    };
    made.save(&ticket).expect("a file");
    refused(&["--ticket-file", file, "-L", "0:web:80"], 4, "use it with `downpour send --to`");
    fs::remove_file(&ticket).expect("a ticket");
    downpour::Ticket { listener: downpour::Role::Tunnel, ..made }.save(&ticket).expect("a file");
    let mut receiving = command(["recv"]);
    receiving.arg("--ticket-file").arg(&ticket).arg("--into").arg(directory.path());
    let ended = Program::start(receiving).end();
    assert_eq!(ended.status.code(), Some(4), "{}", ended.stderr);
    assert!(ended.stderr.contains("use it with `downpour tunnel -L`"), "{}", ended.stderr);
    let expired = downpour::Ticket {
        key: [7; 32],
        expires: std::time::SystemTime::now() - std::time::Duration::from_secs(60),
        addresses: vec![([127, 0, 0, 1], port).into()],
        listener: downpour::Role::Tunnel,
    };
    let late = directory.path().join("late");
    expired.save(&late).expect("a file");
    refused(&["--ticket-file", late.to_str().expect("text"), "-L", "0:web:80"], 4, "expired");
    // The listener has ended.
    refused(&["--ticket-file", file, "--connect-timeout", "0.5", "-L", "0:web:80"], 5, "no answer from 127.0.0.1:");
}

#[test]
fn tunnel_listener_ends_after_expiry() {
    let (directory, server) = (tempfile::tempdir().expect("a directory"), echo_server());
    let ticket = directory.path().join("ticket");
    let mut listening = listen(&ticket, &["--permit", "localhost:*", "--valid", "3s"]);
    let (tunnel, port) = connect(&ticket, &format!("0:localhost:{server}"));
    listening.wait_for_words("ticket expired");
    assert_eq!(exchange(port, b"hello").expect("who has connected stays"), b"hello");
    tunnel.signal(Signal::INT);
    tunnel.end();
    assert_eq!(listening.end().status.code(), Some(0));
    fs::remove_file(&ticket).expect("a ticket");
    let unused = listen(&ticket, &["--permit", "any", "--valid", "0.001"]).end();
    assert_eq!(unused.status.code(), Some(4), "{}", unused.stderr);
}
