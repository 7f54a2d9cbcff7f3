//! Interoperability with the second implementation of the protocol, `interop/peer.py`, written from the document only.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::tempdir;

use crate::program::{Program, arguments, downpour, receiver, sender};
use crate::tree;

/// Starts the second implementation with these arguments. Fails without Python, so that a missing test is noticed.
fn peer<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Program {
    let version = Command::new("python3").arg("--version").output();
    assert!(version.is_ok(), "these tests need python3, 3.9 or later, in the PATH: {version:?}");
    let mut command = Command::new("python3");
    command.arg("-B").arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../interop/peer.py")).args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Program::start(command)
}

/// Returns the argument that makes the second implementation read a ticket file.
fn at(ticket: &Path) -> String {
    format!("@{}", ticket.display())
}

/// Creates a directory with files of zero to several blocks, and many small files.
fn samples(path: &Path) -> PathBuf {
    fs::create_dir_all(path.join("many")).expect("directories");
    for (name, bytes) in [("empty", 0), ("one", 1), ("large", 3_000_000)] {
        tree::file(&path.join(name), bytes);
    }
    for bytes in 100..140 {
        tree::file(&path.join(format!("many/{bytes}")), bytes);
    }
    path.to_owned()
}

/// Reports of the second implementation about these files.
const SENT: &str = "files 43, bytes 3004781, present 0, failed 0\n";
const RECEIVED: &str = "45 entries, 3004781 bytes, verified\n";

/// Starts a listening receiver and waits until its ticket is in `file`.
pub(crate) fn listening_receiver(file: &Path, into: &Path) -> Program {
    let arguments = arguments!["recv", "--yes", "--listen", "127.0.0.1:0", "--ticket-file", file, "--into", into];
    let mut receiver = downpour(arguments);
    receiver.wait_for_words("send PATH --to --ticket-file");
    receiver
}

/// Starts a listening second implementation and waits until its ticket is in `file`.
fn listening_peer(command: &str, path: &Path, file: &Path) -> Program {
    let mut peer = peer(arguments![command, "--listen", path]);
    let ticket = peer.wait_for("a ticket", |line| line.starts_with("downpour1"));
    fs::write(file, ticket).expect("a ticket file");
    peer
}

#[test]
fn interop_python_sends_to_recv() {
    let local = tempdir().expect("a directory");
    let (source, ticket, into) =
        (samples(&local.path().join("from")), local.path().join("ticket"), local.path().join("into"));
    let receiver = listening_receiver(&ticket, &into);
    let sent = peer(arguments!["send", at(&ticket), source]).end().expect(0);
    receiver.end().expect(0);
    assert_eq!(sent.stdout, SENT);
    tree::assert_same(&source, &into.join("from"));
}

#[test]
fn interop_python_receives_from_send() {
    let local = tempdir().expect("a directory");
    let (source, ticket) = (samples(&local.path().join("from")), local.path().join("ticket"));
    let into = tempdir().expect("a directory");
    let sender = sender(&[&source], &ticket, &[]);
    let received = peer(arguments!["recv", at(&ticket), into.path()]).end().expect(0);
    sender.end().expect(0);
    assert_eq!(received.stdout, RECEIVED);
    tree::assert_same(&source, &into.path().join("from"));
}

#[test]
fn interop_python_listens_and_sends() {
    let local = tempdir().expect("a directory");
    let (source, ticket, into) =
        (samples(&local.path().join("from")), local.path().join("ticket"), local.path().join("into"));
    let peer = listening_peer("send", &source, &ticket);
    receiver(&ticket, &into, &[]).end().expect(0);
    assert!(peer.end().expect(0).stdout.ends_with(SENT));
    tree::assert_same(&source, &into.join("from"));
}

#[test]
fn interop_python_listens_and_receives() {
    let local = tempdir().expect("a directory");
    let (source, ticket) = (samples(&local.path().join("from")), local.path().join("ticket"));
    let into = tempdir().expect("a directory");
    let peer = listening_peer("recv", into.path(), &ticket);
    downpour(arguments!["send", source, "--to", "--ticket-file", ticket]).end().expect(0);
    assert!(peer.end().expect(0).stdout.ends_with(RECEIVED));
    tree::assert_same(&source, &into.path().join("from"));
}

#[test]
fn attack_refused_keeps_ticket_valid() {
    let local = tempdir().expect("a directory");
    let (source, ticket, into) =
        (tree::file(&local.path().join("file"), 5), local.path().join("ticket"), local.path().join("in/to"));
    fs::create_dir(local.path().join("in")).expect("a directory");
    let receiver = listening_receiver(&ticket, &into);
    for attack in [
        "path-parent",
        "path-parent-inside",
        "path-absolute",
        "path-empty-component",
        "path-dot",
        "path-slash-at-end",
        "path-nul",
        "path-empty",
        "path-long-name",
        "path-too-long",
        "wrong-length",
    ] {
        let ended = peer(arguments!["attack", attack, at(&ticket)]).end().expect(0);
        assert!(
            ended.stdout.starts_with(&format!("{attack}: refused: the peer closed with code 1: ")),
            "{}",
            ended.stdout
        );
        tree::assert_untouched(&into);
    }
    peer(arguments!["send", at(&ticket), source]).end().expect(0);
    receiver.end().expect(0);
    assert_eq!(tree::names(&into), [PathBuf::from("file")]);
    assert_eq!(tree::names(&local.path().join("in")), [PathBuf::from("to")]);
}

#[test]
fn attack_unannounced_names_not_written() {
    let local = tempdir().expect("a directory");
    let (ticket, into) = (local.path().join("ticket"), local.path().join("to"));
    fs::create_dir_all(into.join(".ssh")).expect("a directory");
    fs::write(into.join(".ssh/authorized_keys"), "mine").expect("a file");
    let receiver = listening_receiver(&ticket, &into);
    for attack in ["unannounced-parent", "after-complete-offer", "wrong-totals"] {
        let ended = peer(arguments!["attack", attack, at(&ticket)]).end().expect(0);
        assert!(ended.stdout.starts_with(&format!("{attack}: refused")), "{}", ended.stdout);
        assert_eq!(fs::read(into.join(".ssh/authorized_keys")).expect("the file"), b"mine", "{attack}");
        assert!(!into.join(".bash_profile").exists(), "{attack}");
        // It was announced, and may have arrived before the rest was refused.
        let _ = fs::remove_file(into.join("photo.jpg"));
    }
    // An existing file ends the receiver, since it would also be in the way of the next sender.
    let ended = peer(arguments!["attack", "announced-parent", at(&ticket)]).end().expect(0);
    assert!(ended.stdout.starts_with("announced-parent: refused"), "{}", ended.stdout);
    receiver.end().expect_line(1, "already exists at the destination: ");
    assert_eq!(fs::read(into.join(".ssh/authorized_keys")).expect("the file"), b"mine");
}

/// A peer without progress is only excused while the local disk is read. One that reports no block as complete would
/// otherwise stay connected for ever.
#[test]
fn attack_silent_receiver_limits_sender() {
    let local = tempdir().expect("a directory");
    // More than the 6,000 symbols that may be open.
    let (source, ticket) = (tree::file(&local.path().join("file"), 12_000_000), local.path().join("ticket"));
    // A controller that waits for a receiver in Python would take a minute.
    let choice = "congestion=cubic";
    let send =
        arguments!["send", "--json", "--set", choice, "--listen", "127.0.0.1:0", "--ticket-file", ticket, source];
    let mut sender = downpour(send);
    sender.wait_for("its ticket", |line| line.contains(r#""type":"start""#));
    let attack = peer(arguments!["attack", "silent-receiver", at(&ticket)]);
    sender.wait_for("what limits it", |line| line.contains(r#""limited_by":"writing there""#));
    drop(attack);
}

/// Attacks like CVE-2019-6111: the host of a `cp` sends other names than requested.
#[test]
fn attack_unrequested_name_refused() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../interop/peer.py");
    let ssh = format!("python3 -B {} remote unrequested-name", script.display());
    let copy = |source: &str, more: &[&str]| {
        let into = tempdir().expect("a directory");
        let base = ["cp", "--ssh", &ssh, source].map(std::ffi::OsString::from);
        let end = [into.path().as_os_str().to_owned()];
        let ended = downpour(base.into_iter().chain(end).chain(more.iter().map(Into::into))).end();
        (into, ended)
    };
    for (source, more) in
        [("host:report.pdf", &[][..]), ("host:*.pdf", &[]), ("host:~", &["-r"]), ("host:.", &["-r", "--exclude", ".*"])]
    {
        let (into, ended) = copy(source, more);
        let ended = ended.expect(6);
        assert!(ended.stderr.contains("sender offered "), "{source}: {}", ended.stderr);
        assert!(!into.path().join(".bashrc").exists(), "{source}");
    }
    let (into, ended) = copy("host:report.pdf", &["--trust-sender"]);
    ended.expect(0);
    assert!(into.path().join(".bashrc").exists(), "its user trusts it");
}
