use std::os::unix::net::UnixStream;
use std::path::Path;

use super::*;
use crate::files::{FilesError, ReceiveRequest};
use crate::transfer::config::Task;
use crate::transfer::{Transfer, TransferOptions};
use net::PIPE_PEER;

/// Creates a listener that receives into `into`, and gets its peers only from the test.
fn listener(into: &Path) -> (Listener, Transfer) {
    let task = Task::receive(ReceiveRequest::into_directory(into), false);
    let config = TransferConfig::by_ticket(task, TransferOptions::default());
    let (events, transfer) = Transfer::new();
    let options = ListenOptions { valid_for: Duration::from_secs(60), ..ListenOptions::default() };
    let (switch, carrier) = (Arc::clone(&transfer.switch), ListenCarrier::Udp(endpoint()));
    let (listener, _) = prepare(config, carrier, Some([1; 32]), &options, events, switch).unwrap();
    (listener, transfer)
}

/// Creates an endpoint without a peer.
fn endpoint() -> Endpoint {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let endpoint = Endpoint::builder().over_pipes(ours.try_clone().unwrap().into(), ours.into()).unwrap();
    // Kept open until the process ends: a closed pipe would end the connection.
    std::mem::forget(theirs);
    endpoint
}

/// Creates a connection that began when the listener had this store.
fn beginning(listener: &Listener) -> Beginning {
    let store = lock(&listener.store).clone();
    let (mailbox, inputs) = Mailbox::new();
    let options = transport::ConnectOptions::new(vec![PIPE_PEER])
        .application(store.application())
        .handshake_timeout(Duration::from_secs(60));
    let connection = listener.endpoint.connect(([1; 32], options)).events(mailbox.events()).start();
    Beginning { connection, inputs: (mailbox, inputs), store, started: Instant::now() }
}

fn ended(listener: &mut Listener) -> bool {
    let ended = SessionEnd::at_once(Error::ConnectionLost, true);
    listener.take(ListenerEvent::Ended(Box::new(ended)))
}

#[test]
fn listener_peer_with_old_store_refused() {
    let directory = tempfile::tempdir().unwrap();
    let (mut listener, _transfer) = listener(directory.path());
    let (first, second) = (beginning(&listener), beginning(&listener));
    let SessionStorage::Target(target) = first.store.clone() else { unreachable!() };
    // The first session runs from beginning to end while the second peer is being authenticated.
    let _settle = target.start(&first.inputs.0).unwrap();
    listener.running = 1;
    assert!(!ended(&mut listener));
    assert!(!listener.take(ListenerEvent::Peer(second)));
    assert_eq!(listener.running, 0, "it does not begin with the target of the first");
    let third = beginning(&listener);
    assert!(!listener.take(ListenerEvent::Peer(third)));
    assert_eq!(listener.running, 1);
}

#[test]
fn listener_reexamines_unusable_directory() {
    let directory = tempfile::tempdir().unwrap();
    let into = directory.path().join("into");
    let (mut listener, _transfer) = listener(&into);
    let first = beginning(&listener);
    let SessionStorage::Target(target) = first.store.clone() else { unreachable!() };
    let _settle = target.start(&first.inputs.0).unwrap();
    std::fs::write(&into, "a file").unwrap();
    listener.running = 1;
    assert!(!ended(&mut listener));
    assert!(!listener.take(ListenerEvent::Peer(beginning(&listener))));
    assert_eq!(listener.running, 0);
    std::fs::remove_file(&into).unwrap();
    // The first peer after it makes the listener examine the directory again.
    assert!(!listener.take(ListenerEvent::Peer(beginning(&listener))));
    assert!(!listener.take(ListenerEvent::Peer(beginning(&listener))));
    assert_eq!(listener.running, 1);
}

#[test]
fn listener_local_disk_error_is_final() {
    let path = || "f".into();
    for (error, ends) in [
        (FilesError::DiskFull { path: path() }, true),
        (FilesError::OutOfInodes { path: path() }, true),
        (FilesError::Quota { path: path() }, true),
        (FilesError::ReadOnly { path: path() }, true),
        (FilesError::TargetExists { names: vec![path()] }, true),
        (FilesError::Busy { path: path() }, false),
        (FilesError::Root, false),
    ] {
        let text = error.to_string();
        assert_eq!(is_final(&error.into()), ends, "{text}");
    }
}
