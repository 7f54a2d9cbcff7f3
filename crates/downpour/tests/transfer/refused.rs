//! Transfers that are refused before they begin, and the errors of both peers.

use std::fs;
use std::net::UdpSocket;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use downpour::{Error, ErrorKind, Rendezvous, Role, TransferEvent, TransferOptions, receive, send};

use crate::support::{
    directory, done, listen, listen_on, listening, noise, note, run, said_kind, ticket, tree, wait_for,
};

/// Short enough for a test, long enough for a busy host.
const SOON: Duration = Duration::from_millis(500);

#[test]
fn absent_source_refused_at_once() {
    let error = send(vec![PathBuf::from("/nowhere/at/all")], listen(), TransferOptions::default()).unwrap_err();
    assert_eq!(error.kind(), downpour::ErrorKind::NotFound, "{error}");
    assert_eq!(error.to_string(), "/nowhere/at/all does not exist");
}

#[test]
fn expired_ticket_refused_at_once() {
    let (from, to) = (directory(), directory());
    let sender = send(vec![from.path().to_owned()], listen(), TransferOptions::default()).unwrap();
    let mut ticket = ticket(&sender);
    ticket.expires = SystemTime::now() - Duration::from_secs(300);
    let error = receive(to.path().to_owned(), Rendezvous::Connect(ticket), TransferOptions::default()).unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string().as_str()),
        (downpour::ErrorKind::Authentication, "ticket expired 5 minutes ago")
    );
}

#[test]
fn wrong_key_ignored_listener_continues() {
    let (from, to) = (directory(), directory());
    fs::write(from.path().join("file"), noise(1000, 1)).unwrap();
    run(async {
        let sender = send(vec![from.path().join("file")], listen(), TransferOptions::default()).unwrap();
        let mut wrong = ticket(&sender);
        wrong.key[0] ^= 1;
        let options = TransferOptions::default().handshake_timeout(SOON);
        let receiver = receive(to.path().to_owned(), Rendezvous::Connect(wrong), options.clone()).unwrap();
        let error = receiver.finish().await.unwrap_err();
        assert!(matches!(error, Error::Unreachable { after: SOON, .. }), "{error}");
        assert_eq!(error.kind(), downpour::ErrorKind::Unreachable);
        assert!(tree(to.path()).is_empty());
        let peer = Rendezvous::Connect(ticket(&sender));
        let (sent, received) =
            tokio::join!(sender.finish(), receive(to.path().to_owned(), peer, options).unwrap().finish());
        assert_eq!((sent.unwrap().names.files, received.unwrap().names.files), (1, 1));
    });
}

#[test]
fn silent_address_is_unreachable() {
    let to = directory();
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let sender = send(vec![to.path().to_owned()], listen(), TransferOptions::default()).unwrap();
    let mut ticket = ticket(&sender);
    ticket.addresses = vec![silent.local_addr().unwrap()];
    let options = TransferOptions::default().handshake_timeout(SOON);
    let receiver = receive(to.path().to_owned(), Rendezvous::Connect(ticket), options).unwrap();
    let error = run(receiver.finish()).unwrap_err();
    assert_eq!(error.kind(), downpour::ErrorKind::Unreachable);
    assert!(error.to_string().starts_with(&format!("no answer from {}", silent.local_addr().unwrap())), "{error}");
}

#[test]
fn ticket_no_peer_expires() {
    let from = directory();
    let options = listening().valid_for(Duration::from_millis(50));
    let sender = send(vec![from.path().to_owned()], Rendezvous::Listen(options), TransferOptions::default()).unwrap();
    let error = run(sender.finish()).unwrap_err();
    assert!(matches!(error, Error::TicketExpired(_)), "{error}");
    assert_eq!(error.kind(), downpour::ErrorKind::Authentication);
}

#[test]
fn two_senders_get_wrong_role() {
    let (from, to) = (directory(), directory());
    fs::write(from.path().join("file"), noise(1000, 1)).unwrap();
    run(async {
        let paths = vec![from.path().join("file")];
        let mut listener = send(paths.clone(), listen(), TransferOptions::default()).unwrap();
        let error =
            send(paths.clone(), Rendezvous::Connect(ticket(&listener)), TransferOptions::default()).unwrap_err();
        assert!(matches!(error, Error::WrongRole { both: Role::Sender }), "known from the ticket: {error}");
        let mut forged = ticket(&listener);
        forged.listener = Role::Receiver;
        let mut second = send(paths, Rendezvous::Connect(forged), TransferOptions::default()).unwrap();
        let error = wait_for(&mut second, done).await.unwrap_err();
        let is_reported = matches!(error, Error::WrongRole { .. }) || said_kind(&error) == Some(ErrorKind::WrongRole);
        assert!(is_reported && error.kind() == ErrorKind::WrongRole, "{error}");
        let note = wait_for(&mut listener, note).await;
        assert!(note.starts_with("connection attempt failed"), "{note}");
        let peer = Rendezvous::Connect(ticket(&listener));
        let receiver = receive(to.path().to_owned(), peer, TransferOptions::default()).unwrap();
        let (sent, received) = tokio::join!(listener.finish(), receiver.finish());
        assert_eq!((sent.unwrap().names.files, received.unwrap().names.files), (1, 1), "the ticket is still valid");
    });
}

#[test]
fn existing_file_not_replaced_by_default() {
    let (from, to) = (directory(), directory());
    fs::write(from.path().join("file"), noise(1000, 1)).unwrap();
    fs::write(to.path().join("file"), b"mine").unwrap();
    let before = tree(to.path());
    run(async {
        for confirm in [false, true] {
            let mut sender = send(vec![from.path().join("file")], listen_on(), TransferOptions::default()).unwrap();
            let options = TransferOptions::default().confirm(confirm);
            let receiver = receive(to.path().to_owned(), Rendezvous::Connect(ticket(&sender)), options).unwrap();
            let (sent, received) = tokio::join!(wait_for(&mut sender, done), receiver.finish());
            let (sent, received) = (sent.unwrap_err(), received.unwrap_err());
            assert!(received.to_string().starts_with("already exists at the destination: "), "{received}");
            assert!(sent.to_string().starts_with("error from the receiver: already exists"), "{sent}");
            assert_eq!((sent.kind(), received.kind()), (ErrorKind::Other, ErrorKind::Exists));
            assert_eq!(tree(to.path()), before);
        }
    });
}

#[test]
fn an_offer_is_refused() {
    let (from, to) = (directory(), directory());
    fs::write(from.path().join("file"), noise(1_000_000, 1)).unwrap();
    run(async {
        let mut sender = send(vec![from.path().join("file")], listen_on(), TransferOptions::default()).unwrap();
        let options = TransferOptions::default().confirm(true);
        let mut receiver = receive(to.path().to_owned(), Rendezvous::Connect(ticket(&sender)), options).unwrap();
        wait_for(&mut receiver, |event| matches!(event, TransferEvent::Offer(_)).then_some(())).await;
        receiver.refuse();
        let (sent, received) = tokio::join!(wait_for(&mut sender, done), wait_for(&mut receiver, done));
        assert!(matches!(received, Err(Error::Declined)), "{received:?}");
        let sent = sent.unwrap_err();
        assert_eq!(said_kind(&sent), Some(ErrorKind::Declined));
    });
    assert!(tree(to.path()).is_empty());
}
