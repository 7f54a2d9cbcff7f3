//! The ways in which a ticket ends: one complete transfer, expiry, or cancellation by its creator.

use std::fs;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

use downpour::{
    Context, Error, ErrorKind, Profile, Rate, Rendezvous, StopReason, Ticket, Transfer, TransferEvent, TransferOptions,
    receive, send,
};
use tempfile::TempDir;

use crate::support::{
    directory, done, listen, listen_on, listening, noise, note, run, said_kind, sending_by, ticket, tree, wait_for,
};

/// Creates a file of `length` bytes and starts a sender of it.
fn sender(length: usize, peer: Rendezvous, options: TransferOptions) -> (TempDir, Transfer) {
    let from = directory();
    fs::write(from.path().join("file"), noise(length, 1)).unwrap();
    let sender = send(vec![from.path().join("file")], peer, options).unwrap();
    (from, sender)
}

fn receiver(ticket: &Ticket, to: &TempDir) -> Transfer {
    receive(to.path().to_owned(), Rendezvous::Connect(ticket.clone()), TransferOptions::default()).unwrap()
}

/// Runs a receiver that fails because the name is taken.
async fn fail_at(ticket: &Ticket) {
    let taken = directory();
    fs::write(taken.path().join("file"), b"mine").unwrap();
    let error = receiver(ticket, &taken).finish().await.unwrap_err();
    assert!(error.to_string().starts_with("already exists"), "{error}");
    assert_eq!(fs::read(taken.path().join("file")).unwrap(), b"mine");
}

#[test]
fn ticket_survives_failures_ends_with_success() {
    run(async {
        let (from, mut sender) = sender(100_000, listen(), TransferOptions::default());
        let ticket = ticket(&sender);
        for _ in 0..2 {
            fail_at(&ticket).await;
            let note = wait_for(&mut sender, note).await;
            assert!(note.starts_with("transfer failed: error from the receiver: already exists"), "{note}");
            assert!(note.ends_with("; ticket still valid"), "{note}");
        }
        let to = directory();
        let (sent, received) = tokio::join!(wait_for(&mut sender, done), receiver(&ticket, &to).finish());
        assert_eq!((sent.unwrap().bytes.total, received.unwrap().bytes.total), (100_000, 100_000));
        assert_eq!(tree(from.path()), tree(to.path()));
        assert!(sender.next().await.is_none(), "one complete transfer is the end");
    });
}

#[test]
fn ticket_keep_survives_transfers() {
    run(async {
        let (from, mut sender) = sender(100_000, listen_on(), TransferOptions::default());
        let ticket = ticket(&sender);
        for _ in 0..2 {
            let to = directory();
            receiver(&ticket, &to).finish().await.unwrap();
            assert_eq!(tree(from.path()), tree(to.path()));
            assert_eq!(wait_for(&mut sender, done).await.unwrap().names.files, 1);
            fail_at(&ticket).await;
            let error = wait_for(&mut sender, done).await.unwrap_err();
            assert_eq!(said_kind(&error), Some(ErrorKind::Exists));
        }
    });
}

#[test]
fn expired_ticket_reports_last_failure() {
    run(async {
        let options = listening().valid_for(Duration::from_millis(1500));
        let (_from, mut sender) = sender(1000, Rendezvous::Listen(options), TransferOptions::default());
        fail_at(&ticket(&sender)).await;
        let error = wait_for(&mut sender, done).await.unwrap_err();
        assert!(matches!(error, Error::Within { context: Context::NoneComplete { .. }, .. }), "{error}");
        assert!(
            error.to_string().contains("without a complete transfer; last error: error from the receiver"),
            "{error}"
        );
        assert_eq!(error.kind(), downpour::ErrorKind::Other, "that of the last failure");
    });
}

#[test]
fn waiting_listener_can_be_cancelled() {
    run(async {
        let (_from, mut sender) = sender(1000, listen(), TransferOptions::default());
        fail_at(&ticket(&sender)).await;
        wait_for(&mut sender, note).await;
        sender.stop(StopReason::Cancelled);
        assert!(matches!(wait_for(&mut sender, done).await, Err(Error::Cancelled)));
    });
}

#[test]
fn declined_offer_ends_listener() {
    run(async {
        let to = directory();
        let options = TransferOptions::default().confirm(true);
        let mut receiver = receive(to.path().to_owned(), listen(), options).unwrap();
        let (_from, sender) = sender(1000, Rendezvous::Connect(ticket(&receiver)), TransferOptions::default());
        let refused = async {
            wait_for(&mut receiver, |event| matches!(event, TransferEvent::Offer(_)).then_some(())).await;
            receiver.refuse();
            wait_for(&mut receiver, done).await
        };
        let (sent, received) = tokio::join!(sender.finish(), refused);
        assert!(matches!(received, Err(Error::Declined)), "{received:?}");
        assert_eq!(said_kind(&sent.unwrap_err()), Some(ErrorKind::Declined));
    });
}

#[test]
fn second_peer_gets_busy() {
    run(async {
        // 20 Mbit/s: slow enough for a second receiver to connect meanwhile.
        let profile = Profile::auto().with_fixed_rate(Rate::from_bits_per_second(20_000_000));
        let (from, mut sender) = sender(3_000_000, listen(), sending_by(profile));
        let (ticket, to, second) = (ticket(&sender), directory(), directory());
        let mut first = receiver(&ticket, &to);
        wait_for(&mut first, |event| matches!(event, TransferEvent::Offer(_)).then_some(())).await;
        let error = receiver(&ticket, &second).finish().await.unwrap_err();
        assert_eq!(said_kind(&error), Some(ErrorKind::Busy));
        let (sent, received) = tokio::join!(wait_for(&mut sender, done), wait_for(&mut first, done));
        assert_eq!((sent.unwrap().bytes.total, received.unwrap().bytes.total), (3_000_000, 3_000_000));
        assert_eq!(tree(from.path()), tree(to.path()));
    });
}

/// A peer starts the handshake with the right key, but the replies to it are lost.
#[test]
fn half_handshake_blocks_no_peer() {
    run(async {
        let (from, mut sender) = sender(100_000, listen(), TransferOptions::default());
        let real = ticket(&sender);
        // The ticket leads to a relay that only forwards datagrams from the connecting side.
        let relay = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut astray = real.clone();
        astray.addresses = vec![relay.local_addr().unwrap()];
        let lost = directory();
        let options = TransferOptions::default().handshake_timeout(Duration::from_secs(30));
        let half = receive(lost.path().to_owned(), Rendezvous::Connect(astray), options).unwrap();
        let (mut bytes, mut answered) = ([0; 2048], false);
        let out = UdpSocket::bind("127.0.0.1:0").unwrap();
        out.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        while !answered {
            let length = relay.recv(&mut bytes).unwrap();
            out.send_to(&bytes[..length], real.addresses[0]).unwrap();
            answered = out.recv(&mut bytes).is_ok();
        }
        let (to, since) = (directory(), Instant::now());
        let (sent, received) = tokio::join!(wait_for(&mut sender, done), receiver(&real, &to).finish());
        assert_eq!((sent.unwrap().bytes.total, received.unwrap().bytes.total), (100_000, 100_000));
        assert_eq!(tree(from.path()), tree(to.path()));
        assert!(since.elapsed() < Duration::from_secs(8), "{:?}", since.elapsed());
        drop(half);
    });
}
