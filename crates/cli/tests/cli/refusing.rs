//! Commands that fail before they begin: one line of output and the documented exit code for each.

use std::fs;
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use downpour::{Role, Ticket};
use tempfile::tempdir;

use crate::program::{Program, arguments, downpour, json, receiver, sender};
use crate::tree;

/// Returns a made-up ticket.
fn ticket(address: &str, listener: Role, expires: SystemTime) -> Ticket {
    Ticket { key: [7; 32], expires, addresses: vec![address.parse().expect("an address")], listener }
}

fn in_an_hour() -> SystemTime {
    SystemTime::now() + Duration::from_secs(3600)
}

/// Checks the error of a receiver with this text as its ticket.
#[track_caller]
fn refused(text: &str, code: i32, words: &str) {
    let local = tempdir().expect("a directory");
    let file = local.path().join("ticket");
    fs::write(&file, text).expect("a ticket file");
    receiver(&file, &local.path().join("into"), &["--connect-timeout", "0.5"]).end().expect_line(code, words);
}

#[test]
fn send_missing_source_exit_3() {
    downpour(["send", "/no/such/file"]).end().expect_line(3, "/no/such/file");
}

#[test]
fn ticket_damaged_exit_4() {
    let text = ticket("127.0.0.1:9", Role::Sender, in_an_hour()).to_text().expect("a text");
    refused(&text.replace(&text[20..24], "zzzz"), 4, "damaged");
    refused(&text[..text.len() - 5], 4, "damaged");
    refused("hello", 4, "not a ticket");
    refused("", 4, "not a ticket");
}

#[test]
fn ticket_expired_exit_4() {
    let an_hour_ago = SystemTime::now() - Duration::from_secs(3600);
    refused(&ticket("127.0.0.1:9", Role::Sender, an_hour_ago).to_text().expect("a text"), 4, "expired");
}

#[test]
fn ticket_for_sender_refused_by_recv() {
    refused(&ticket("127.0.0.1:9", Role::Receiver, in_an_hour()).to_text().expect("a text"), 4, "both peers receive");
}

#[test]
fn connect_no_answer_unreachable() {
    // A socket that is never read: packets get no answer, as behind a firewall.
    let silent = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let address = silent.local_addr().expect("an address").to_string();
    refused(&ticket(&address, Role::Sender, in_an_hour()).to_text().expect("a text"), 5, &address);
}

#[test]
fn ticket_stale_key_exit_5() {
    let local = tempdir().expect("a directory");
    let (source, file) = (tree::file(&local.path().join("file"), 10), local.path().join("ticket"));
    let _sender = sender(&[&source], &file, &[]);
    let mut ticket = Ticket::load(&file).expect("a ticket");
    ticket.key = [1; 32];
    refused(&ticket.to_text().expect("a text"), 5, "the ticket is current");
}

#[test]
fn recv_without_ticket_exit_2() {
    downpour(["recv"]).end().expect_line(2, "no ticket");
    downpour(["recv", "--ticket-file", "/no/such/ticket"]).end().expect_line(2, "/no/such/ticket");
}

#[test]
fn errors_in_json_have_exit_code() {
    let ended = downpour(["send", "/no/such/file", "--json"]).end().expect_line(3, "/no/such/file");
    let lines = json(&ended.stdout);
    assert_eq!((lines.len(), &lines[0]["type"], &lines[0]["exit_code"]), (1, &"error".into(), &3.into()));
    for (arguments, message) in [
        (&["cp", "a", "b", "--json", "--bogus"][..], "unexpected argument '--bogus' found"),
        (&["send", "--json"], "the following required arguments were not provided: <PATH>..."),
        (&["cp", "a", "--json"], "no destination: write SRC... DST"),
        (&["cp", "--json", "-p", "2222", "a", "b"], "2222 does not exist"),
    ] {
        let ended = downpour(arguments).end().expect(2);
        let lines = json(&ended.stdout);
        assert_eq!((lines.len(), &lines[0]["exit_code"]), (1, &2.into()), "{arguments:?}");
        assert!(lines[0]["message"].as_str().unwrap_or_default().starts_with(message), "{lines:?}");
    }
    assert_eq!(downpour(["cp", "--json", "--help"]).end().expect(0).stdout.matches("exit_code").count(), 0);
}

#[test]
fn arguments_invalid_exit_2_with_hint() {
    for (arguments, words) in [
        (&["send"][..], "<PATH>"),
        (&["send", ".", "--rate", "12MB"], "12MB/s"),
        (&["send", ".", "--listen", "nonsense"], "192.0.2.1:4000"),
        (&["recv", "--connect-timeout", "never"], "is not a time"),
        (&["demo", "--link", "rate=100M,speed=3"], "one of rate, "),
        (&["demo", "--link", "delay=1ms"], "--rate"),
        (&["fetch"], "fetch"),
    ] {
        let ended = downpour(arguments).end().expect(2);
        assert!(ended.stderr.contains(words), "no {words:?} in {}", ended.stderr);
    }
}

#[test]
fn help_names_every_exit_code() {
    let help = downpour(["--help"]).end().expect(0).stdout;
    let table = include_str!("../../../../docs/USING.md").lines().filter(|line| line.starts_with("| "));
    let listed: Vec<&str> = table.flat_map(|line| line.split(['|', ','])).map(str::trim).collect();
    for code in [0, 1, 2, 3, 4, 5, 6, 7, 8, 23, 24, 75, 130] {
        assert!(listed.contains(&code.to_string().as_str()), "docs/USING.md lacks {code}");
        assert!(help.lines().any(|line| line.trim_start().starts_with(&format!("{code}  "))), "no {code} in {help}");
    }
    assert!(help.contains("DOWNPOUR_TICKET"));
}

#[test]
fn version_long_and_short() {
    let short = format!("downpour {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(downpour(["-V"]).end().expect(0).stdout, short);
    let long = downpour(["--version"]).end().expect(0).stdout;
    assert!(long.starts_with(&short), "{long}");
    for fact in ["commit:", "target:", "profile:", "ciphers:"] {
        let line =
            long.lines().find_map(|line| line.strip_prefix(fact)).unwrap_or_else(|| panic!("no {fact} in {long}"));
        assert!(!line.trim().is_empty(), "{long}");
    }
}

#[test]
fn listen_address_in_use_exit_1() {
    let local = tempdir().expect("a directory");
    let source = tree::file(&local.path().join("file"), 10);
    let taken = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let address = taken.local_addr().expect("an address").to_string();
    downpour(arguments!["send", source, "--listen", address]).end().expect_line(1, &address);
}

#[test]
fn recv_existing_file_not_overwritten() {
    let local = tempdir().expect("a directory");
    let (source, file, into) =
        (tree::file(&local.path().join("file"), 5000), local.path().join("ticket"), local.path().join("into"));
    fs::create_dir(&into).expect("a directory");
    fs::write(into.join("file"), "mine").expect("a file");
    let mut sender = sender(&[&source], &file, &[]);
    receiver(&file, &into, &[]).end().expect_line(1, "/file; use --existing replace or --existing skip");
    sender.wait_for_words("error from the receiver");
    assert_eq!(fs::read(into.join("file")).expect("a file"), b"mine");
    assert_eq!(tree::names(&into), [Path::new("file")]);
}

#[test]
fn qlog_unwritable_fails_before_listening() {
    let local = tempdir().expect("a directory");
    let source = tree::file(&local.path().join("file"), 10);
    for (trace, words) in [("/no/such/directory/trace", "No such file"), ("/", "directory")] {
        let ended = downpour(arguments!["send", source, "--listen", "127.0.0.1:0", "--qlog", trace]).end();
        let ended = ended.expect_error(7);
        assert!(ended.stderr.contains(words) && ended.stdout.is_empty(), "{}{}", ended.stdout, ended.stderr);
    }
}

#[test]
fn ulimit_open_files_checked_first() {
    let local = tempdir().expect("a directory");
    let source = tree::directory(&local.path().join("source"));
    let run = |files: u32| {
        let mut line = Command::new("sh");
        let script = format!("ulimit -n {files}; exec \"$@\"");
        line.args(["-c", &script, "sh", env!("CARGO_BIN_EXE_downpour"), "cp", "-r"]);
        line.args([&source, &local.path().join("new")]);
        line.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Program::start(line).end()
    };
    for files in [6, 8, 20, 63] {
        run(files).expect_line(1, &format!("only {files} open files allowed: raise the limit to 64 (ulimit -n)"));
    }
    assert!(!local.path().join("new").exists());
    run(64).expect(0);
    tree::assert_same(&source, &local.path().join("new"));
}
