//! Tests with peers that hold the key and violate the protocol: each causes one clear error at both peers, and never a
//! file.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use net::{Bind, Connection, Endpoint, Event, NetError, Sink, Source};
use tempfile::{TempDir, tempdir};
use transport::ConnectOptions;

use super::config::{Task, TransferConfig};
use super::peer_progress::ProgressTimeouts;
use super::session::{Acquaintance, application};
use super::{ListenOptions, Rendezvous, Summary, Transfer, TransferEvent, TransferOptions, receive, send, start};
use crate::error::{Closing, Context, Error, ErrorKind};
use crate::files::{
    DirectoryIf, Entry, EntryKind, Extra, FilesError, Mtime, NameError, NoticeKind, ReceiveRequest, RequestedItems,
    SkipReason, Skipped, SourceId,
};
use crate::messages::{
    Chunks, Complete, Digest, HostPressure, ListChunks, ListState, MAX_OPEN_BATCHES, ManifestPart, Message,
    MessageReader, RootHasher, TransferEnd, UnverifiedFiles, WantedPart, manifest_parts,
};
use crate::ticket::{Role, Ticket};

/// The byte that all objects consist of.
const BYTE: u8 = 7;

struct Sevens;

impl Source for Sevens {
    fn read(&self, _: u64, out: &mut [u8]) -> io::Result<()> {
        out.fill(BYTE);
        Ok(())
    }
}

impl Sink for Sevens {
    fn write(&self, _: u64, _: &[u8]) -> io::Result<()> {
        Ok(())
    }
}

/// A peer without a transfer: it sends the messages of a test.
struct Puppet {
    connection: Connection,
    events: Receiver<Event>,
    reader: MessageReader,
    /// Messages that arrived with others, not yet read.
    pending: VecDeque<Message>,
    hasher: RootHasher,
    /// Bytes sent and not known to have arrived.
    unacknowledged: usize,
    _endpoint: Endpoint,
}

impl Puppet {
    fn connect(ticket: &Ticket, role: Role) -> Self {
        Self::connect_with(ticket, role, application(role, false, false))
    }

    /// Connects with these application bytes in the handshake.
    fn connect_with(ticket: &Ticket, role: Role, application: Vec<u8>) -> Self {
        let endpoint = Endpoint::bind(Bind::default()).unwrap();
        let (sender, events) = channel();
        let handler = Box::new(move |event| sender.send(event).unwrap_or_default());
        let options = ConnectOptions::new(ticket.addresses.clone()).application(application);
        let connection = endpoint.connect((ticket.key, options)).events(handler).start();
        let mut puppet = Self {
            connection,
            events,
            reader: MessageReader::new(),
            pending: VecDeque::new(),
            hasher: RootHasher::new(),
            unacknowledged: 0,
            _endpoint: endpoint,
        };
        puppet.wait(|event| matches!(event, Event::Connected { .. }).then_some(()));
        if role == Role::Sender {
            puppet.send(&Message::Begin(SourceId([1; 16])));
        }
        puppet
    }

    fn wait<T>(&self, mut wanted: impl FnMut(Event) -> Option<T>) -> T {
        loop {
            let event = self.events.recv_timeout(Duration::from_secs(30)).expect("an event");
            if let Some(found) = wanted(event) {
                return found;
            }
        }
    }

    /// Waits for a message. Earlier ones are skipped, those that arrive with it remain to be read.
    fn read_until(&mut self, is_wanted: impl Fn(&Message) -> bool) {
        loop {
            while let Some(message) = self.pending.pop_front() {
                if is_wanted(&message) {
                    return;
                }
            }
            let bytes = self.wait(|event| if let Event::Control(bytes) = event { Some(bytes) } else { None });
            let mut rest = &bytes[..];
            while let Some(message) = self.reader.next(&mut rest).unwrap() {
                self.pending.push_back(message);
            }
        }
    }

    fn send(&mut self, message: &Message) {
        let mut bytes = Vec::new();
        message.encode(&mut bytes).unwrap();
        self.hasher.add(&bytes);
        self.unacknowledged += bytes.len();
        self.connection.write_control(bytes);
    }

    /// Sends one batch with one file, and its object.
    fn send_file(&mut self, path: &str, size: u64, length: u64) {
        self.send(&Message::Manifest(part(&[(path, size)])));
        self.connection.send_object(0, length, Arc::new(Sevens));
    }

    fn skip(&mut self, path: &str, reason: SkipReason) {
        self.send(&Message::Skipped(Skipped { path: path.into(), reason }));
    }

    /// Ends a transfer of the given numbers of batches, entries and skipped names, all without bytes.
    fn end(&mut self, (batches, entries, skipped): (u32, u64, u64)) {
        let root = self.hasher.root();
        self.send(&Message::End(TransferEnd { batches, entries, bytes: 0, skipped, root }));
        self.wait(|event| matches!(event, Event::Control(bytes) if bytes.contains(&67)).then_some(()));
        Closing::done().close(&self.connection);
    }

    /// Waits for the peer to close the connection; returns kind and text of the reason.
    fn closed(&self) -> (ErrorKind, String) {
        self.wait(|event| match event {
            Event::Closed(NetError::ClosedByPeer { code, reason }) => {
                let error = Closing { code, reason }.read();
                Some((error.kind(), error.to_string()))
            }
            Event::Closed(error) => panic!("closed: {error}"),
            _ => None,
        })
    }
}

fn part(files: &[(&str, u64)]) -> ManifestPart {
    let entry = |(path, size): &(&str, u64)| Entry {
        path: path.as_bytes().to_vec(),
        kind: EntryKind::File { size: *size, version: 0, hash: None },
        mode: 0o644,
        mtime: Mtime::default(),
        extra: Extra::default(),
    };
    let length = files.iter().map(|(_, size)| size).sum();
    ManifestPart {
        batch: 0,
        last: true,
        whole: false,
        again: false,
        length,
        entries: files.iter().map(entry).collect(),
    }
}

fn listening() -> Rendezvous {
    let bind = Bind::Address("127.0.0.1:0".parse().unwrap());
    Rendezvous::Listen(ListenOptions { bind, keep: true, ..ListenOptions::default() })
}

fn receiver() -> (TempDir, Transfer) {
    let to = tempdir().unwrap();
    let receiver = receive(to.path().join("into"), listening(), TransferOptions::default()).unwrap();
    (to, receiver)
}

/// Returns the error of a transfer, and the files reported as verified before.
fn files_and_end_of(mut transfer: Transfer) -> (Vec<Vec<u8>>, Error) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut files = Vec::new();
    runtime.block_on(async {
        loop {
            match transfer.next().await.unwrap() {
                TransferEvent::Done(result) => return (files, result.unwrap_err()),
                TransferEvent::Files(more) => files.extend(more.into_iter().map(|(path, _)| path)),
                _ => {}
            }
        }
    })
}

/// Returns the result of a transfer, and the number of names reported as skipped on purpose.
fn result_and_skipped_of(mut transfer: Transfer) -> (Result<Summary, Error>, u64) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut left_out = 0;
    runtime.block_on(async {
        loop {
            match transfer.next().await.unwrap() {
                TransferEvent::Done(result) => return (result, left_out),
                TransferEvent::Skipped(_) => left_out += 1,
                _ => {}
            }
        }
    })
}

/// Returns the result of a transfer.
fn result_of(transfer: Transfer) -> Result<Summary, Error> {
    result_and_skipped_of(transfer).0
}

/// Returns the summary of a transfer that succeeds.
fn summary_of(transfer: Transfer) -> Summary {
    result_of(transfer).unwrap()
}

/// Returns the error of a transfer in which no file was verified.
fn end_of(transfer: Transfer) -> Error {
    let (files, error) = files_and_end_of(transfer);
    assert!(files.is_empty(), "{files:?} are reported as verified: {error}");
    error
}

/// Runs a hostile sender; returns the receiver's error, and the kind and text with which it closes.
fn attack(act: impl FnOnce(&mut Puppet)) -> (Error, (ErrorKind, String)) {
    let (to, receiver) = receiver();
    let mut puppet = Puppet::connect(receiver.ticket().unwrap(), Role::Sender);
    act(&mut puppet);
    let reason = puppet.closed();
    let error = end_of(receiver);
    assert!(fs::read_dir(to.path()).unwrap().count() <= 1, "nothing beside the directory: {error}");
    if let Ok(entries) = fs::read_dir(to.path().join("into")) {
        for entry in entries {
            let name = entry.unwrap().file_name();
            assert!(name.to_string_lossy().starts_with('.'), "{name:?} has its final name: {error}");
        }
    }
    (error, reason)
}

/// Returns the error without its context of kept data.
fn cause(error: Error) -> Error {
    match error {
        Error::Within { context: Context::Kept { .. }, source } => *source,
        other => other,
    }
}

#[test]
fn hostile_name_outside_refused() {
    for path in ["../../etc/passwd", "/etc/passwd", "a/../../b", "a//b", ".", "..", "file/"] {
        let (error, (code, reason)) = attack(|puppet| puppet.send_file(path, 10, 10));
        let error = cause(error);
        assert!(matches!(error, Error::Files(FilesError::BadName { .. })), "{path}: {error}");
        assert_eq!((code, error.kind()), (ErrorKind::Protocol, ErrorKind::Protocol), "{path}: {reason}");
        assert_eq!(reason, error.to_string());
    }
}

#[test]
fn hostile_file_beneath_link_refused() {
    for (top, path) in [("link", "link/passwd"), ("other", "nowhere/passwd"), ("photo", ".ssh/authorized_keys")] {
        let (error, (code, reason)) = attack(|puppet| {
            let mut part = part(&[(top, 0), (path, 10)]);
            part.entries[0].kind = EntryKind::Symlink { target: b"../outside".to_vec() };
            puppet.send(&Message::Manifest(part));
        });
        let error = cause(error);
        assert!(matches!(&error, Error::Files(FilesError::BadName { reason: NameError::Orphan, .. })), "{error}");
        assert_eq!((code, reason), (ErrorKind::Protocol, error.to_string()));
    }
}

/// The receiver's user was shown everything, and agreed to that.
#[test]
fn hostile_entries_after_list_refused() {
    let complete = |puppet: &mut Puppet| {
        puppet.send(&Message::Scanned);
        puppet.send(&Message::Manifest(part(&[("photo", 1)])));
    };
    let (_to, mut receiver) = receiver();
    let mut puppet = Puppet::connect(receiver.ticket().unwrap(), Role::Sender);
    complete(&mut puppet);
    let offer = loop {
        if let Some(TransferEvent::Offer(offer)) = receiver.next_blocking() {
            break offer;
        }
    };
    assert!(offer.is_all && offer.names == [b"photo"], "{offer:?}");
    let more = ManifestPart { batch: 1, ..part(&[(".profile", 1)]) };
    let (error, (code, _)) = attack(|puppet| {
        complete(puppet);
        puppet.send(&Message::Manifest(more));
    });
    let error = cause(error);
    assert!(matches!(&error, Error::ProtocolViolation(what) if what.contains("end of its list")), "{error}");
    assert_eq!(code, ErrorKind::Protocol);
    // A list of two parts is complete with the second.
    let (_to, mut receiver) = self::receiver();
    let mut puppet = Puppet::connect(receiver.ticket().unwrap(), Role::Sender);
    puppet.send(&Message::Scanned);
    let half = ManifestPart { last: false, length: 2, ..part(&[("a", 1)]) };
    puppet.send(&Message::Manifest(half));
    puppet.send(&Message::Manifest(ManifestPart { length: 2, ..part(&[("b", 1)]) }));
    let offer = loop {
        if let Some(TransferEvent::Offer(offer)) = receiver.next_blocking() {
            break offer;
        }
    };
    assert!(offer.is_all && offer.names == [b"a", b"b"], "{offer:?}");
}

#[test]
fn hostile_early_end_refused() {
    let (error, (code, _)) = attack(|puppet| {
        puppet.send(&Message::Manifest(part(&[("file", 10)])));
        let root = puppet.hasher.root();
        puppet.send(&Message::End(TransferEnd { batches: 2, entries: 1, bytes: 10, skipped: 0, root }));
    });
    assert!(matches!(cause(error), Error::Files(FilesError::Protocol { .. })));
    assert_eq!(code, ErrorKind::Protocol);
}

#[test]
fn hostile_object_length_mismatch_refused() {
    for claimed in [0, 9, 11, 1 << 50] {
        let (error, (code, _)) = attack(|puppet| puppet.send_file("file", 10, claimed));
        let error = cause(error);
        assert!(matches!(&error, Error::ProtocolViolation(_)), "{claimed}: {error}");
        assert_eq!(code, ErrorKind::Protocol);
    }
}

#[test]
fn announced_petabyte_reserves_nothing() {
    let (_to, receiver) = receiver();
    let mut puppet = Puppet::connect(receiver.ticket().unwrap(), Role::Sender);
    puppet.send_file("file", 1 << 50, 1 << 50);
    // Its first blocks are written, so it was accepted like any other file.
    let digest = puppet.wait(|event| if let Event::Digest(digest) = event { Some(digest) } else { None });
    assert_eq!(
        digest.digest,
        *blake3::hash(&vec![BYTE; usize::try_from(digest.range.end - digest.range.start).unwrap()]).as_bytes()
    );
    Closing::as_text(ErrorKind::Cancelled, "enough").close(&puppet.connection);
    let error = end_of(receiver);
    assert!(error.to_string().starts_with("error from the sender: enough"), "{error}");
}

#[test]
fn hostile_digest_mismatch_no_file() {
    let (error, (code, reason)) = attack(|puppet| {
        puppet.send_file("file", 1000, 1000);
        puppet.send(&Message::Digest(Digest { batch: 0, block: 0, digest: [1; 32] }));
    });
    let error = cause(error);
    assert!(matches!(error, Error::Files(FilesError::Integrity { .. })), "{error}");
    assert_eq!((code, error.kind()), (ErrorKind::Integrity, ErrorKind::Integrity), "{reason}");
}

#[test]
fn hostile_root_mismatch_fails() {
    for flip in [0, 1] {
        let (to, receiver) = receiver();
        let mut puppet = Puppet::connect(receiver.ticket().unwrap(), Role::Sender);
        puppet.send_file("file", 1000, 1000);
        let digest = *blake3::hash(&[BYTE; 1000]).as_bytes();
        puppet.send(&Message::Digest(Digest { batch: 0, block: 0, digest }));
        let mut root = puppet.hasher.root();
        root.0[31] ^= flip;
        puppet.send(&Message::End(TransferEnd { batches: 1, entries: 1, bytes: 1000, skipped: 0, root }));
        if flip == 0 {
            // Without the change it is a valid transfer, so the test fails for no other reason.
            puppet.wait(|event| matches!(event, Event::Control(bytes) if bytes.contains(&67)).then_some(()));
            Closing::done().close(&puppet.connection);
            assert_eq!(fs::read(to.path().join("into/file")).unwrap(), [BYTE; 1000]);
        } else {
            assert_eq!(puppet.closed().0, ErrorKind::Integrity);
            let (files, error) = files_and_end_of(receiver);
            assert!(files.is_empty() || files == [b"file"], "its block matches, the whole does not");
            assert!(matches!(cause(error), Error::Files(FilesError::Root)));
        }
    }
}

/// Not hostile: a sender cannot know how many batches the receiver's disk keeps open.
#[test]
fn extra_batch_waits_for_verification() {
    const BATCHES: u32 = MAX_OPEN_BATCHES as u32 + 1;
    let (to, receiver) = receiver();
    let mut puppet = Puppet::connect(receiver.ticket().unwrap(), Role::Sender);
    let digest = *blake3::hash(&[BYTE; 1000]).as_bytes();
    for batch in 0..BATCHES {
        let manifest = part(&[(&format!("file-{batch}"), 1000)]);
        puppet.send(&Message::Manifest(ManifestPart { batch, ..manifest }));
        puppet.send(&Message::Digest(Digest { batch, block: 0, digest }));
        // Each arrives by itself, so that no other one announces it.
        let mut left = puppet.unacknowledged;
        puppet.wait(|event| {
            let Event::ControlAcknowledged(bytes) = event else { return None };
            left -= bytes;
            (left == 0).then_some(())
        });
        puppet.unacknowledged = 0;
    }
    (0..BATCHES).for_each(|batch| puppet.connection.send_object(batch.into(), 1000, Arc::new(Sevens)));
    let root = puppet.hasher.root();
    let bytes = u64::from(BATCHES) * 1000;
    puppet.send(&Message::End(TransferEnd { batches: BATCHES, entries: u64::from(BATCHES), bytes, skipped: 0, root }));
    puppet.wait(|event| match event {
        Event::Control(bytes) => bytes.contains(&67).then_some(()),
        Event::Closed(error) => panic!("closed: {error}"),
        _ => None,
    });
    Closing::done().close(&puppet.connection);
    drop(receiver);
    assert_eq!(fs::read_dir(to.path().join("into")).unwrap().count(), BATCHES as usize);
}

/// Notices about names are buffered only up to a bound for a sender that does not read them.
#[test]
fn refused_names_bounded_by_unread_notices() {
    const NAMES: usize = 36_000;
    let (_to, receiver) = receiver();
    let mut puppet = Puppet::connect(receiver.ticket().unwrap(), Role::Sender);
    let names: Vec<String> = (0..NAMES).map(|at| format!(".downpour-abcdefgh/{at:0>200}")).collect();
    let entries: Vec<(&str, u64)> = names.iter().map(|name| (name.as_str(), 0)).collect();
    let mut reserved = part(&[(".downpour-abcdefgh", 0)]).entries;
    reserved[0].kind = EntryKind::Directory;
    reserved.extend(part(&entries).entries);
    manifest_parts(0, 0, &reserved).for_each(|part| puppet.send(&Message::Manifest(part)));
    let mut untaken = 0;
    // Silence follows once each waits for the other; messages that arrived too early were processed before.
    while let Ok(event) = puppet.events.recv_timeout(Duration::from_secs(2)) {
        match event {
            Event::ControlAcknowledged(bytes) => puppet.unacknowledged -= bytes,
            Event::Control(bytes) => untaken += bytes.len(),
            Event::Closed(error) => panic!("closed: {error}"),
            _ => {}
        }
    }
    assert!(puppet.unacknowledged > 1_000_000, "{} bytes are not processed", puppet.unacknowledged);
    puppet.connection.release_control(untaken);
    while puppet.unacknowledged > 0 {
        match puppet.events.recv_timeout(Duration::from_secs(30)).expect("it continues") {
            Event::ControlAcknowledged(bytes) => puppet.unacknowledged -= bytes,
            Event::Control(bytes) => puppet.connection.release_control(bytes.len()),
            Event::Closed(error) => panic!("closed: {error}"),
            _ => {}
        }
    }
    Closing::as_text(ErrorKind::Cancelled, "enough").close(&puppet.connection);
    end_of(receiver);
}

/// Not hostile: names skipped before must not hide it.
#[test]
fn failures_counted_beyond_listed() {
    const MANY: u64 = 1100;
    for (reason, vanished) in [(SkipReason::Unreadable, 0), (SkipReason::Vanished, MANY)] {
        let (_to, receiver) = receiver();
        let mut puppet = Puppet::connect(receiver.ticket().unwrap(), Role::Sender);
        (0..MANY).for_each(|number| puppet.skip(&format!("pipe-{number}"), SkipReason::SpecialFile));
        (0..MANY).for_each(|number| puppet.skip(&format!("file-{number}"), reason));
        // The receiver waits while its program does not take events.
        let (result, left_out) = thread::scope(|scope| {
            let reader = scope.spawn(|| result_and_skipped_of(receiver));
            puppet.end((0, 0, 2 * MANY));
            reader.join().unwrap()
        });
        let summary = result.unwrap();
        assert_eq!(left_out, MANY);
        assert_eq!(
            (summary.failures.count, summary.failures.listed.len(), summary.failures.vanished),
            (MANY, 1000, vanished)
        );
    }
}

/// Returns the summary of a sender of one file, whose receiver has this application data, wants none of it, and sends
/// these messages before it is done.
fn summary_for_one_that_wants_nothing(application: Vec<u8>, reports: &[Message]) -> Summary {
    let from = tempdir().unwrap();
    fs::write(from.path().join("file"), "x").unwrap();
    let sender = send(vec![from.path().join("file")], listening(), TransferOptions::default()).unwrap();
    let mut puppet = Puppet::connect_with(sender.ticket().unwrap(), Role::Receiver, application);
    puppet.read_until(|message| matches!(message, Message::Manifest(_)));
    puppet.send(&Message::Accepted);
    puppet.send(&Message::Wants(WantedPart { batch: 0, last: true, ranges: Vec::new() }));
    puppet.read_until(|message| matches!(message, Message::End(_)));
    reports.iter().for_each(|message| puppet.send(message));
    puppet.send(&Message::Complete(Complete { files: 1, bytes: 1, present: 1, failed: 0, unchecked: 0 }));
    summary_of(sender)
}

/// Not a hostile case: an older release does not report which files it kept unchanged, so the sender must assume that
/// it compared nothing.
#[test]
fn unreported_files_unchanged_not_verified() {
    for (reports, unchanged) in [(None, 1), (Some(UnverifiedFiles { unchanged: 0, kept: 0 }), 0)] {
        let reports: Vec<Message> = reports.map(Message::Untouched).into_iter().collect();
        let summary = summary_for_one_that_wants_nothing(application(Role::Receiver, true, false), &reports);
        assert_eq!(
            (summary.names.files, summary.names.unchanged, summary.is_verified()),
            (1, unchanged, unchanged == 0)
        );
    }
}

/// Not a hostile case either: the sender's user learns of all datagrams that the receiver's kernel has dropped.
#[test]
fn sender_learns_receiver_socket_drops() {
    let recent = application(Role::Receiver, true, false);
    let older = [&recent[..2], &[1]].concat();
    let reports = [5, 77].map(|overflowed| Message::Strain(HostPressure { memory: false, overflowed }));
    assert_eq!(summary_for_one_that_wants_nothing(recent, &reports).connection.overflowed, Some(77));
    assert_eq!(summary_for_one_that_wants_nothing(older, &[]).connection.overflowed, None);
}

/// Not a hostile case: an older release ends a transfer at a kind of notice that it does not know.
#[test]
fn unsafe_link_notice_known_to_older_sender() {
    let recent = application(Role::Sender, false, false);
    let older = [&recent[..2], &[0]].concat();
    for (application, wanted) in [(recent, NoticeKind::UnsafeLink), (older, NoticeKind::Other)] {
        let to = tempdir().unwrap();
        let task =
            Task::receive(ReceiveRequest { safe_links: true, ..ReceiveRequest::into_directory(to.path()) }, false);
        let config = TransferConfig::by_ticket(task, TransferOptions::default());
        let receiver = start(listening(), config).unwrap();
        let mut puppet = Puppet::connect_with(receiver.ticket().unwrap(), Role::Sender, application);
        let mut link = part(&[("link", 0)]);
        link.entries[0].kind = EntryKind::Symlink { target: b"/etc/passwd".to_vec() };
        puppet.send(&Message::Manifest(link));
        let heard = |message: &Message| matches!(message, Message::Notice(notice) if notice.kind == wanted);
        puppet.read_until(heard);
        puppet.end((1, 1, 0));
        let summary = summary_of(receiver);
        assert_eq!((summary.failures.count, summary.names.links_skipped), (0, 1), "the report to its own user");
    }
}

/// Not a hostile case: all entries of the first batch may be unreadable.
#[test]
fn empty_batch_does_not_decide_target() {
    let to = tempdir().unwrap();
    let directory_if = Some(DirectoryIf { is_directory: true, name_is_none_of: None });
    let requested = RequestedItems { directory_if, ..RequestedItems::default() };
    let task = Task::receive(ReceiveRequest { requested, ..ReceiveRequest::to_target(to.path().join("name")) }, false);
    let config = TransferConfig::by_ticket(task, TransferOptions::default());
    let receiver = start(listening(), config).unwrap();
    let mut puppet = Puppet::connect(receiver.ticket().unwrap(), Role::Sender);
    puppet.skip("closed", SkipReason::Unreadable);
    puppet.send(&Message::Manifest(part(&[])));
    let mut part = ManifestPart { batch: 1, ..part(&[("item", 0)]) };
    part.entries[0].kind = EntryKind::Directory;
    part.entries[0].mode = 0o755;
    puppet.send(&Message::Manifest(part));
    puppet.end((2, 1, 1));
    assert_eq!(summary_of(receiver).names.directories, 1);
    assert!(to.path().join("name/item").is_dir());
}

#[test]
fn messages_beyond_the_limits_end_the_transfer() {
    let huge_name = {
        let mut bytes = (10_000_100u32).to_be_bytes().to_vec();
        bytes.resize(10_000_104, b'a');
        bytes
    };
    for bytes in [vec![0xff; 64], vec![0, 0, 0, 0, 0], huge_name, vec![0, 0, 0, 1, 200]] {
        let (error, (code, _)) = attack(|puppet| puppet.connection.write_control(bytes.clone()));
        assert!(matches!(cause(error), Error::Files(FilesError::Message(_))));
        assert_eq!(code, ErrorKind::Protocol);
    }
}

#[test]
fn hostile_receiver_messages_refused() {
    let lies = [
        Message::Complete(Complete { files: 1, bytes: 1, present: 0, failed: 0, unchecked: 0 }),
        Message::Manifest(part(&[("file", 1)])),
        Message::Digest(Digest { batch: 0, block: 0, digest: [0; 32] }),
    ];
    for lie in lies {
        let from = tempdir().unwrap();
        // Longer than the read-ahead, so that the sender cannot be at its end.
        fs::File::create(from.path().join("file")).unwrap().set_len(100_000_000).unwrap();
        let sender = send(vec![from.path().join("file")], listening(), TransferOptions::default()).unwrap();
        let mut puppet = Puppet::connect(sender.ticket().unwrap(), Role::Receiver);
        puppet.send(&lie);
        assert_eq!(puppet.closed().0, ErrorKind::Protocol, "{lie:?}");
        assert!(matches!(end_of(sender), Error::ProtocolViolation(_)), "{lie:?}");
    }
}

#[test]
fn hostile_chunk_requests_refused() {
    let list = |batch, entries: &[u32]| Message::ListChunks(ListChunks { batch, entries: entries.to_vec() });
    let wants = |last| Message::Wants(WantedPart { batch: 0, last, ranges: vec![0..1, 2..3] });
    let cases: [(&str, &[Message]); 6] = [
        ("of an unknown batch", &[list(1, &[0])]),
        ("of an absent entry", &[list(0, &[1, 2])]),
        ("of a directory", &[list(0, &[0, 1])]),
        ("twice", &[list(0, &[1]), list(0, &[1])]),
        ("after its first wants", &[wants(false), list(0, &[1])]),
        ("and wants something before it has them", &[list(0, &[1]), wants(true)]),
    ];
    for (name, lies) in cases {
        let from = tempdir().unwrap();
        fs::create_dir(from.path().join("dir")).unwrap();
        // So long that its list is not complete at once.
        fs::File::create(from.path().join("dir/file")).unwrap().set_len(1 << 30).unwrap();
        let sender = send(vec![from.path().join("dir")], listening(), TransferOptions::default()).unwrap();
        let application = application(Role::Receiver, true, false);
        let mut puppet = Puppet::connect_with(sender.ticket().unwrap(), Role::Receiver, application);
        puppet.read_until(|message| matches!(message, Message::Manifest(_)));
        lies.iter().for_each(|lie| puppet.send(lie));
        assert_eq!(puppet.closed().0, ErrorKind::Protocol, "{name}");
        assert!(matches!(end_of(sender), Error::ProtocolViolation(_)), "{name}");
    }
}

#[test]
fn hostile_chunks_and_resends_refused() {
    let chunks = Chunks { batch: 0, entry: 0, state: ListState::Complete, chunks: Vec::new() };
    let again = ManifestPart { batch: 1, again: true, ..part(&[("file", 1)]) };
    for lie in [Message::Chunks(chunks), Message::Manifest(again)] {
        let (_to, receiver) = receiver();
        let mut puppet = Puppet::connect(receiver.ticket().unwrap(), Role::Sender);
        puppet.send(&Message::Manifest(part(&[("other", 0)])));
        puppet.send(&lie);
        assert_eq!(puppet.closed().0, ErrorKind::Protocol, "{lie:?}");
        let (_, error) = files_and_end_of(receiver);
        let error = cause(error);
        assert!(matches!(error, Error::Files(FilesError::Protocol { .. })), "{lie:?}: {error}");
    }
}

/// Starts a sender of a 7-byte file with this patience.
fn patient_sender(patience: ProgressTimeouts) -> (TempDir, Transfer) {
    let from = tempdir().unwrap();
    fs::write(from.path().join("file"), b"content").unwrap();
    let task = Task::Send { spec: vec![from.path().join("file")].into(), dry_run: false };
    let mut config = TransferConfig::by_ticket(task, TransferOptions::default());
    config.acquaintance = Acquaintance::Ticket(patience);
    let bind = Bind::Address("127.0.0.1:0".parse().unwrap());
    let options = ListenOptions { bind, ..ListenOptions::default() };
    (from, start(Rendezvous::Listen(options), config).unwrap())
}

/// Connects a peer that holds the ticket and then only keeps its connection alive, including by messages.
fn park(ticket: &Ticket) -> Puppet {
    let mut puppet = Puppet::connect(ticket, Role::Receiver);
    puppet.send(&Message::Accepted);
    puppet.send(&Message::Limit(None));
    puppet
}

#[test]
fn parked_peer_replaced_by_next() {
    let contested = Duration::from_millis(300);
    let (_from, sender) = patient_sender(ProgressTimeouts { contested, ..ProgressTimeouts::default() });
    let ticket = sender.ticket().unwrap().clone();
    let parked = park(&ticket);
    let to = tempdir().unwrap();
    // A receiver that connects too early is asked to retry.
    let mut errors = Vec::new();
    let received = loop {
        parked.connection.ping();
        let receiver =
            receive(to.path().to_owned(), Rendezvous::Connect(ticket.clone()), TransferOptions::default()).unwrap();
        match result_of(receiver) {
            Ok(summary) => break summary,
            Err(error) => errors.push(error.to_string()),
        }
        assert!(errors.len() < 20, "{errors:?}");
    };
    assert_eq!((received.names.files, fs::read(to.path().join("file")).unwrap()), (1, b"content".to_vec()));
    assert!(errors.iter().all(|error| error.contains("another transfer with this ticket is running")), "{errors:?}");
    let (code, reason) = parked.closed();
    assert_eq!((code, reason.as_str()), (ErrorKind::Timeout, "connection closed: no progress by the peer for 0 s"));
    assert_eq!(summary_of(sender).names.files, 1);
}

#[test]
fn parked_peer_times_out_alone() {
    let alone = Duration::from_millis(300);
    let (_from, mut sender) = patient_sender(ProgressTimeouts { alone, ..ProgressTimeouts::default() });
    let parked = park(&sender.ticket().unwrap().clone());
    assert_eq!(parked.closed().0, ErrorKind::Timeout);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let message = runtime.block_on(async {
        loop {
            if let TransferEvent::AttemptFailed { message, kind } = sender.next().await.unwrap() {
                assert_eq!(kind, ErrorKind::Timeout);
                return message;
            }
        }
    });
    assert_eq!(message, "transfer failed: connection closed: no progress by the peer for 0 s; ticket still valid");
}
