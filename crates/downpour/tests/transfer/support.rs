//! Runs both sides on one runtime, creates trees to send, and compares them.

use std::collections::BTreeMap;
use std::fs;
use std::future::Future;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use downpour::{
    Bind, Context, EngineOptions, Error, ErrorKind, ListenOptions, Profile, Rendezvous, Summary, Ticket, Transfer,
    TransferEvent, TransferOptions, receive, send,
};
use tempfile::TempDir;

/// Time limit of a test, longer than any test takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs a test on an executor of one thread.
pub(crate) fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(PATIENCE, test).await.expect("the test hangs") })
}

/// Returns the kind of failure for which the peer has closed the connection.
pub(crate) fn said_kind(error: &Error) -> Option<ErrorKind> {
    match error {
        Error::Within { context: Context::Peer { .. }, source } => Some(source.kind()),
        _ => None,
    }
}

/// Returns a peer that listens on loopback.
pub(crate) fn listen() -> Rendezvous {
    Rendezvous::Listen(listening())
}

/// Returns the options of [`listen`].
pub(crate) fn listening() -> ListenOptions {
    ListenOptions::default().bind(Bind::Address("127.0.0.1:0".parse().unwrap()))
}

/// Same as [`listen`], for any number of transfers: the failure of each is reported as its end.
pub(crate) fn listen_on() -> Rendezvous {
    Rendezvous::Listen(listening().keep(true))
}

/// Returns the ticket of a listener.
pub(crate) fn ticket(transfer: &Transfer) -> Ticket {
    transfer.ticket().unwrap().clone()
}

/// Returns options that choose a profile.
pub(crate) fn sending_by(profile: Profile) -> TransferOptions {
    let engine = EngineOptions::default().profile(profile);
    TransferOptions::default().engine(engine)
}

/// The listening peer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Listener {
    Sender,
    Receiver,
}

/// Sends `paths` to the directory `into`.
pub(crate) async fn transfer(
    paths: Vec<PathBuf>,
    into: &Path,
    listener: Listener,
) -> (Result<Summary, Error>, Result<Summary, Error>) {
    let (sender, receiver) = match listener {
        Listener::Sender => {
            let sender = send(paths, listen(), TransferOptions::default()).unwrap();
            let peer = Rendezvous::Connect(ticket(&sender));
            (sender, receive(into.to_owned(), peer, TransferOptions::default()).unwrap())
        }
        Listener::Receiver => {
            let receiver = receive(into.to_owned(), listen(), TransferOptions::default()).unwrap();
            let peer = Rendezvous::Connect(ticket(&receiver));
            (send(paths, peer, TransferOptions::default()).unwrap(), receiver)
        }
    };
    tokio::join!(sender.finish(), receiver.finish())
}

/// Returns the next event for which `wanted` returns a value, and discards others.
pub(crate) async fn wait_for<T>(transfer: &mut Transfer, mut wanted: impl FnMut(TransferEvent) -> Option<T>) -> T {
    loop {
        let event = transfer.next().await.expect("an event before the end");
        if let Some(found) = wanted(event) {
            return found;
        }
    }
}

/// Returns the result if the transfer has ended.
pub(crate) fn done(event: TransferEvent) -> Option<Result<Summary, Error>> {
    match event {
        TransferEvent::Done(result) => Some(result),
        _ => None,
    }
}

/// Returns the text if the event is a note to the user.
pub(crate) fn note(event: TransferEvent) -> Option<String> {
    match event {
        TransferEvent::UserNote(note) | TransferEvent::AttemptFailed { message: note, .. } => Some(note),
        _ => None,
    }
}

/// Creates a directory, in memory if possible, since the tests do not depend on the speed of a disk.
pub(crate) fn directory() -> TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory).unwrap() } else { tempfile::tempdir().unwrap() }
}

/// An object in a tree.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Node {
    File { bytes: Vec<u8>, mode: u32, mtime: (i64, i64) },
    Directory { mode: u32, mtime: (i64, i64) },
    Link { to: PathBuf },
}

/// Returns everything beneath `root` by its relative path.
pub(crate) fn tree(root: &Path) -> BTreeMap<PathBuf, Node> {
    let mut nodes = BTreeMap::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let metadata = path.symlink_metadata().unwrap();
            let (mode, mtime) = (metadata.permissions().mode() & 0o777, (metadata.mtime(), metadata.mtime_nsec()));
            let node = if metadata.is_symlink() {
                Node::Link { to: fs::read_link(&path).unwrap() }
            } else if metadata.is_dir() {
                directories.push(path.clone());
                Node::Directory { mode, mtime }
            } else {
                Node::File { bytes: fs::read(&path).unwrap(), mode, mtime }
            };
            nodes.insert(path.strip_prefix(root).unwrap().to_owned(), node);
        }
    }
    nodes
}

/// Returns incompressible bytes (xorshift64).
pub(crate) fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend(state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}
