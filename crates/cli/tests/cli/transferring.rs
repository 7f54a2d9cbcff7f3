//! Successful transfers.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

use tempfile::tempdir;

use crate::program::{Program, answer, arguments, command, downpour, json, receiver, sender};
use crate::tree;

#[test]
fn recv_connects_with_ticket_file() {
    let local = tempdir().expect("a directory");
    let (source, ticket, into) =
        (tree::directory(&local.path().join("photos")), local.path().join("ticket"), local.path().join("into"));
    let sender = sender(&[&source], &ticket, &[]);
    assert_eq!(fs::metadata(&ticket).expect("a ticket").permissions().mode() & 0o777, 0o600);
    let received = receiver(&ticket, &into, &[]).end().expect(0);
    let sent = sender.end().expect(0);
    tree::assert_same(&source, &into.join("photos"));
    assert_eq!(tree::names(&into).len(), 1, "nothing but what was sent");
    for ended in [sent, received] {
        let last = ended.stderr.lines().last().unwrap_or_default();
        assert!(last.starts_with("4 files, 3.1 MB, ") && last.contains(", verified"), "{last}");
        assert_eq!(ended.stdout, "");
    }
}

#[test]
fn send_connects_with_ticket_file() {
    let local = tempdir().expect("a directory");
    let (first, second) =
        (tree::file(&local.path().join("first"), 2_000_000), tree::file(&local.path().join("second"), 5));
    let (ticket, into) = (local.path().join("ticket"), local.path().join("into"));
    let mut receiver =
        downpour(arguments!["recv", "--yes", "--listen", "127.0.0.1:0", "--ticket-file", ticket, "--into", into]);
    receiver.wait_for_words("send PATH --to --ticket-file");
    let sent =
        downpour(arguments!["send", first, second, "--to", "--rate", "100M", "--ticket-file", ticket]).end().expect(0);
    receiver.end().expect(0);
    tree::assert_same(&first, &into.join("first"));
    tree::assert_same(&second, &into.join("second"));
    assert!(sent.stderr.contains("100 Mbit/s = 12.5 MB/s"), "{}", sent.stderr);
    assert!(sent.stderr.contains("% of the fixed rate"), "{}", sent.stderr);
}

#[test]
fn ticket_from_stdin_environment_or_argument() {
    for way in ["stdin", "environment", "argument"] {
        let local = tempdir().expect("a directory");
        let source = tree::file(&local.path().join("file"), 10_000);
        let into = local.path().join("into");
        let mut sender = downpour(arguments!["send", "--listen", "127.0.0.1:0", source]);
        let ticket = sender.wait_for("a ticket", |line| line.starts_with("downpour1"));
        let mut command = command(arguments!["recv", "--into", into]);
        command.stdin(Stdio::piped());
        match way {
            "environment" => command.env("DOWNPOUR_TICKET", &ticket),
            "argument" => command.arg(&ticket),
            _ => &mut command,
        };
        let mut receiver = Program::start(command);
        answer(receiver.stdin(), &if way == "stdin" { format!("{ticket}\ny") } else { "y".to_owned() });
        let received = receiver.end().expect(0);
        sender.end().expect(0);
        tree::assert_same(&source, &into.join("file"));
        assert_eq!(received.stderr.contains("warning"), way == "argument", "{way}: {}", received.stderr);
        assert!(!received.stderr.contains(&ticket), "the ticket is a secret");
    }
}

#[test]
fn send_and_recv_json_lines() {
    let local = tempdir().expect("a directory");
    let (source, ticket, into) =
        (tree::directory(&local.path().join("photos")), local.path().join("ticket"), local.path().join("into"));
    let mut sender = downpour(arguments!["send", "--json", "--rate", "80M", "--listen", "127.0.0.1:0", source]);
    let start = sender.wait_for("start", |line| line.contains("\"start\""));
    let text = json(&start)[0]["ticket"].as_str().expect("a ticket").to_owned();
    fs::write(&ticket, text).expect("a ticket file");
    let received = receiver(&ticket, &into, &["--json"]).end().expect(0);
    let sent = sender.end().expect(0);
    tree::assert_same(&source, &into.join("photos"));

    assert_eq!(sent.stderr, "");
    assert_eq!(received.stderr, "");
    let (sent, received) = (json(&sent.stdout), json(&received.stdout));
    for lines in [&sent, &received] {
        assert_eq!(lines[0]["type"], "start");
        assert_eq!(lines[1]["type"], "path");
        let summary = &lines[lines.len() - 1];
        assert_eq!(summary["type"], "summary");
        assert_eq!(
            (&summary["files"], &summary["bytes"], &summary["verified"]),
            (&4.into(), &3_100_002.into(), &true.into())
        );
    }
    let files: Vec<_> = received.iter().filter(|line| line["type"] == "file").collect();
    assert_eq!(files.len(), 4);
    assert_eq!(files.iter().filter_map(|file| file["bytes"].as_u64()).sum::<u64>(), 3_100_002);
    assert_eq!(sent[0]["rate_bits_per_second"], 80_000_000);
    assert!(sent[sent.len() - 1]["path_share"].as_f64().is_some_and(|share| share > 0.0 && share <= 1.1), "{sent:?}");
}

#[test]
fn send_trailing_slash_sends_contents() {
    let local = tempdir().expect("a directory");
    let (source, ticket) = (tree::directory(&local.path().join("photos")), local.path().join("ticket"));
    let into = local.path().join("into");
    let mut with_slash = source.clone().into_os_string();
    with_slash.push("/");
    let sender = sender(&[Path::new(&with_slash)], &ticket, &[]);
    receiver(&ticket, &into, &[]).end().expect(0);
    sender.end().expect(0);
    tree::assert_same(&source, &into);
}

#[test]
fn send_keep_serves_two_receivers() {
    let local = tempdir().expect("a directory");
    let (source, ticket) = (tree::file(&local.path().join("file"), 300_000), local.path().join("ticket"));
    let mut sender = sender(&[&source], &ticket, &["--keep"]);
    for number in 0..2 {
        let into = local.path().join(number.to_string());
        receiver(&ticket, &into, &[]).end().expect(0);
        tree::assert_same(&source, &into.join("file"));
        sender.wait_for_words("1 file, 300");
    }
    sender.signal(rustix::process::Signal::INT);
    sender.end().expect(130);
}

#[test]
fn quiet_and_verbose_output() {
    let local = tempdir().expect("a directory");
    let source = tree::file(&local.path().join("file"), 10_000);
    let trace = local.path().join("trace.sqlog");
    let into = local.path().join("into");
    let mut sender = downpour(arguments!["send", "-q", "--listen", "127.0.0.1:0", "--qlog", trace, source]);
    let ticket = sender.wait_for("a ticket", |line| line.starts_with("downpour1"));
    let mut command = command(arguments!["recv", "-y", "-v", "--into", into]);
    command.env("DOWNPOUR_TICKET", &ticket);
    let received = Program::start(command).end().expect(0);
    assert_eq!(sender.end().expect(0).stderr, "");
    for words in ["Connected to 127.0.0.1:", "Offered: file", "Into:    /", "file (10 kB)"] {
        assert!(received.stderr.contains(words), "no {words:?} in {}", received.stderr);
    }
    assert!(fs::metadata(&trace).expect("a trace").len() > 0);
}

#[test]
fn recv_stdout_closed_exit_0() {
    let local = tempdir().expect("a directory");
    let (source, ticket, into) =
        (tree::file(&local.path().join("file"), 100_000), local.path().join("ticket"), local.path().join("into"));
    let sender = sender(&[&source], &ticket, &[]);
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = command(arguments!["recv", "-y", "--json", "--ticket-file", ticket, "--into", into]);
    command.stdout(writer);
    Program::start(command).end().expect(0);
    sender.end().expect(0);
    tree::assert_same(&source, &into.join("file"));
}

#[test]
fn ticket_file_keeps_other_file() {
    let local = tempdir().expect("a directory");
    let (source, notes) = (tree::file(&local.path().join("source"), 10), local.path().join("notes"));
    std::fs::write(&notes, "precious").expect("a file");
    for arguments in [
        arguments!["send", "--listen", "127.0.0.1:0", "--ticket-file", notes, source].to_vec(),
        arguments!["recv", "--listen", "127.0.0.1:0", "--ticket-file", notes, "--into", local.path()].to_vec(),
    ] {
        downpour(arguments).end().expect_line(2, "notes exists and is not a ticket");
        assert_eq!(std::fs::read(&notes).expect("a file"), b"precious");
    }
}
