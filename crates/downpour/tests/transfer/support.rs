//! Two sides on one runtime, trees to send, and a way to compare them.

use std::collections::BTreeMap;
use std::fs;
use std::future::Future;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use downpour::{
    Bind, Error, ListenOptions, Peer, ReceiveOptions, SendOptions, Summary, Ticket, Transfer, TransferEvent, receive,
    send,
};
use tempfile::TempDir;

/// Longer than any test takes; a test that hangs fails after it.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs a test on an executor of one thread.
pub(crate) fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(PATIENCE, test).await.expect("the test hangs") })
}

/// Listening on loopback only.
pub(crate) fn listen() -> Peer {
    Peer::Listen(listening())
}

/// The options of [`listen`].
pub(crate) fn listening() -> ListenOptions {
    ListenOptions { bind: Bind::Address("127.0.0.1:0".parse().unwrap()), ..ListenOptions::default() }
}

/// As [`listen`], for any number of transfers: the failure of each is told as its end.
pub(crate) fn listen_on() -> Peer {
    Peer::Listen(ListenOptions { keep: true, ..listening() })
}

/// The ticket of a side that listens.
pub(crate) fn ticket(transfer: &Transfer) -> Ticket {
    transfer.ticket().unwrap().clone()
}

/// Which side listens.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Listener {
    Sender,
    Receiver,
}

/// Sends `paths` to the folder `into`.
pub(crate) async fn transfer(
    paths: Vec<PathBuf>,
    into: &Path,
    listener: Listener,
) -> (Result<Summary, Error>, Result<Summary, Error>) {
    let (sender, receiver) = match listener {
        Listener::Sender => {
            let sender = send(paths, listen(), SendOptions::default()).unwrap();
            let peer = Peer::Connect(ticket(&sender));
            (sender, receive(into.to_owned(), peer, ReceiveOptions::default()).unwrap())
        }
        Listener::Receiver => {
            let receiver = receive(into.to_owned(), listen(), ReceiveOptions::default()).unwrap();
            let peer = Peer::Connect(ticket(&receiver));
            (send(paths, peer, SendOptions::default()).unwrap(), receiver)
        }
    };
    tokio::join!(sender.finish(), receiver.finish())
}

/// The next event that `wanted` takes; others are passed over.
pub(crate) async fn wait_for<T>(transfer: &mut Transfer, mut wanted: impl FnMut(TransferEvent) -> Option<T>) -> T {
    loop {
        let event = transfer.next().await.expect("the event comes before the end");
        if let Some(found) = wanted(event) {
            return found;
        }
    }
}

/// The end of a transfer.
pub(crate) fn done(event: TransferEvent) -> Option<Result<Summary, Error>> {
    match event {
        TransferEvent::Done(result) => Some(result),
        _ => None,
    }
}

/// A note to the user.
pub(crate) fn note(event: TransferEvent) -> Option<String> {
    match event {
        TransferEvent::Note(note) | TransferEvent::Attempt { message: note, .. } => Some(note),
        _ => None,
    }
}

/// A new folder, in memory where there is a file system for that: the tests are not about the speed of a disk.
pub(crate) fn folder() -> TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory).unwrap() } else { tempfile::tempdir().unwrap() }
}

/// What stands under a name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Node {
    File { bytes: Vec<u8>, mode: u32, mtime: (i64, i64) },
    Folder { mode: u32, mtime: (i64, i64) },
    Link { to: PathBuf },
}

/// Everything beneath `root`, by its path in it.
pub(crate) fn tree(root: &Path) -> BTreeMap<PathBuf, Node> {
    let mut nodes = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let metadata = path.symlink_metadata().unwrap();
            let (mode, mtime) = (metadata.permissions().mode() & 0o777, (metadata.mtime(), metadata.mtime_nsec()));
            let node = if metadata.is_symlink() {
                Node::Link { to: fs::read_link(&path).unwrap() }
            } else if metadata.is_dir() {
                folders.push(path.clone());
                Node::Folder { mode, mtime }
            } else {
                Node::File { bytes: fs::read(&path).unwrap(), mode, mtime }
            };
            nodes.insert(path.strip_prefix(root).unwrap().to_owned(), node);
        }
    }
    nodes
}

/// Bytes that no code or compression makes smaller (xorshift64).
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
