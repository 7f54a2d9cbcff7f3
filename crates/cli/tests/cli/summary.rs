//! The result as reported by `--json` and the last line. Scripts and people rely on it before they delete the source.

use std::ffi::OsStr;
use std::fs::{self, FileTimes};
use std::net::UdpSocket;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use data_encoding::BASE64;
use downpour::Ticket;
use rustix::process::Signal;
use serde_json::Value;
use tempfile::tempdir;

use crate::far::Far;
use crate::program::{Ended, Program, arguments, downpour, json, receiver};
use crate::tree;

#[track_caller]
fn summary(ended: &Ended) -> Value {
    let last = json(&ended.stdout).pop().expect("a line");
    assert_eq!(last["type"], "summary", "{last}");
    last
}

/// Returns the fields `files`, `unchanged`, `verified` and `dry_run` of the summary.
#[track_caller]
fn result(ended: &Ended) -> (u64, u64, bool, bool) {
    let said = summary(ended);
    let number = |key: &str| said[key].as_u64().unwrap_or_else(|| panic!("{key} of {said}"));
    let truth = |key: &str| said[key].as_bool().unwrap_or_else(|| panic!("{key} of {said}"));
    (number("files"), number("unchanged"), truth("verified"), truth("dry_run"))
}

/// Changes the content of a file, but not its size and modification time.
fn alter(file: &Path) {
    let time = fs::metadata(file).and_then(|metadata| metadata.modified()).expect("a time");
    let mut bytes = fs::read(file).expect("a file");
    bytes[0] ^= 1;
    fs::write(file, bytes).expect("a file");
    set_time(file, time);
}

fn set_time(file: &Path, time: SystemTime) {
    let file = fs::File::options().write(true).open(file).expect("a file");
    file.set_times(FileTimes::new().set_modified(time)).expect("a time");
}

#[test]
fn only_content_that_was_transferred_or_compared_is_verified() {
    let here = tempdir().expect("a directory");
    let (source, copy) = (tree::directory(&here.path().join("photos")), here.path().join("copy"));
    let contents = source.join("");
    let sync = |options: &[&str]| {
        let options = options.iter().map(OsStr::new);
        downpour(options.chain(arguments![contents, copy]).collect::<Vec<_>>()).end()
    };
    assert_eq!(result(&sync(&["sync", "-n", "--json"]).expect(0)), (4, 0, false, true));
    assert_eq!(result(&sync(&["sync", "--json"]).expect(0)), (4, 0, true, false));
    alter(&copy.join("one"));
    assert_eq!(result(&sync(&["sync", "--json"]).expect(0)), (4, 4, false, false));
    let words = sync(&["sync"]).expect(0).stderr;
    assert!(words.contains("unchanged (content not read)") && !words.contains("verified"), "{words}");
    set_time(&source.join("in/some"), SystemTime::now() - Duration::from_secs(1000));
    let words = sync(&["sync"]).expect(0).stderr;
    assert!(words.contains(", 1 verified, 3 unchanged (content not read)"), "{words}");
    assert_eq!(result(&sync(&["verify", "--json"]).expect(1)), (4, 0, false, false));
    assert_eq!(result(&sync(&["sync", "--checksum", "--json"]).expect(0)), (4, 0, true, false));
    tree::assert_same(&source, &copy);
    assert_eq!(result(&sync(&["verify", "--json"]).expect(0)), (4, 0, true, false));
}

#[test]
fn what_is_kept_or_failed_is_not_verified() {
    let here = tempdir().expect("a directory");
    let source = tree::file(&here.path().join("file"), 1000);
    let target = here.path().join("target");
    fs::write(&target, "mine").expect("a file");
    let kept = downpour(arguments!["cp", "--json", "--existing", "skip", source, target]).end().expect(0);
    assert_eq!((result(&kept), &summary(&kept)["kept"]), ((0, 0, false, false), &1.into()));
    let kept = downpour(arguments!["cp", "--existing", "skip", source, target]).end().expect(0).stderr;
    assert!(kept.contains("1 left as at the target") && !kept.contains("verified"), "{kept}");
    fs::write(here.path().join("list"), "one\nabsent\n").expect("a list");
    let (list, directory) = (here.path().join("list"), tree::directory(&here.path().join("directory")));
    let into = here.path().join("into");
    let failed = downpour(arguments!["cp", "--json", "--files-from", list, directory, into]).end().expect(23);
    assert_eq!(result(&failed), (1, 0, false, false));
}

#[test]
fn both_ends_say_the_same() {
    let (here, far) = (tempdir().expect("a directory"), Far::new());
    let source = tree::directory(&here.path().join("photos"));
    let json_cp = |from: &OsStr, to: &OsStr| far.run("cp", arguments!["-r", "--json", "--via=ssh", from, to]).expect(0);
    for unchanged in [0, 4] {
        let up = json_cp(source.join("").as_os_str(), OsStr::new("far:up"));
        assert_eq!(result(&up), (4, unchanged, unchanged == 0, false));
        let down = json_cp(OsStr::new("far:up/"), here.path().join("down").as_os_str());
        assert_eq!(result(&down), (4, unchanged, unchanged == 0, false));
    }
    let (ticket, into) = (here.path().join("ticket"), here.path().join("into"));
    for (option, unchanged) in [
        (&["--existing", "replace"][..], 0),
        (&["--existing", "replace"], 4),
        (&["--existing", "replace", "--checksum"], 0),
    ] {
        let listen = ["send", "--json", "--listen", "127.0.0.1:0", "--ticket-file"].map(OsStr::new);
        let sums = here.path().join("sums");
        let mut sender = downpour(listen.into_iter().chain(arguments![ticket, "--checksums", sums, source]));
        sender.wait_for("that it listens", |line| line.contains("start"));
        let received = receiver(&ticket, &into, &[option, &["--json"]].concat()).end().expect(0);
        let sent = sender.end().expect(0);
        for ended in [&received, &sent] {
            assert_eq!(result(ended), (4, unchanged, unchanged == 0, false), "{option:?}");
        }
    }
}

#[test]
fn every_special_file_that_is_left_out_has_a_notice() {
    let (here, far) = (tempdir().expect("a directory"), Far::new());
    let source = here.path().join("run");
    fs::create_dir(&source).expect("a directory");
    tree::file(&source.join("file"), 10);
    for name in ["a pipe", "b pipe"] {
        rustix::fs::mknodat(rustix::fs::CWD, source.join(name), rustix::fs::FileType::Fifo, 0o600.into(), 0)
            .expect("a pipe");
    }
    let _socket = std::os::unix::net::UnixListener::bind(source.join("socket")).expect("a socket");
    let left_out = |ended: &Ended| -> Vec<String> {
        let notices = json(&ended.stdout).into_iter().filter(|line| line["type"] == "notice");
        notices.map(|line| format!("{} {} {}", line["what"], line["path"], line["reason"])).collect()
    };
    let wanted =
        ["a pipe", "b pipe", "socket"].map(|name| format!(r#""left_out" "run/{name}" "is a socket, pipe or device""#));
    let local = downpour(arguments!["cp", "-r", "--json", source, here.path().join("copy")]).end().expect(0);
    assert_eq!(left_out(&local), wanted);
    let up = far.run("cp", arguments!["-r", "--json", "--via=ssh", source, "far:"]).expect(0);
    assert_eq!(left_out(&up), wanted);
    let absolute = format!("far:{}", source.display());
    let down = far.run("cp", arguments!["-r", "--json", "--via=ssh", absolute, here.path().join("down")]).expect(0);
    assert_eq!(left_out(&down), wanted);
    let words = downpour(arguments!["cp", "-r", source, here.path().join("words")]).end().expect(0).stderr;
    for name in ["a pipe", "b pipe", "socket"] {
        let line = format!("skipped: run/{name} is a socket, pipe or device");
        assert!(words.lines().any(|said| said == line), "no {line:?} in {words}");
    }
}

#[test]
fn paths_in_json_are_all_bytes() {
    let here = tempdir().expect("a directory");
    let source = here.path().join("source");
    fs::create_dir(&source).expect("a directory");
    let names: [&[u8]; 3] = [b"\xff odd \xfe", b"back\\slash\x1b", "Gr\u{fc}\u{df}e".as_bytes()];
    for name in names {
        tree::file(&source.join(OsStr::from_bytes(name)), name.len());
    }
    let ended = downpour(arguments!["cp", "-rn", "--json", source.join(""), here.path().join("copy")]).end().expect(0);
    let notices = json(&ended.stdout).into_iter().filter(|line| line["type"] == "notice");
    let bytes_of = |line: Value| match line["path_bytes"].as_str() {
        Some(bytes) => BASE64.decode(bytes.as_bytes()).expect("base64"),
        None => line["path"].as_str().expect("text").as_bytes().to_vec(),
    };
    let mut told: Vec<Vec<u8>> = notices.map(bytes_of).collect();
    told.sort();
    let mut wanted = names.map(<[u8]>::to_vec).to_vec();
    wanted.sort();
    assert_eq!(told, wanted);
    assert!(ended.stdout.contains("\u{fffd} odd \u{fffd}") && !ended.stdout.contains('\x1b'), "{}", ended.stdout);
}

/// While it is stopped, more arrives than its socket's buffer holds.
#[test]
fn a_receiver_whose_socket_overflows_is_named_on_both_sides() {
    const BURST: u64 = 30_000;
    let here = tempdir().expect("a directory");
    let source = tree::file(&here.path().join("file"), 6_000_000);
    let (ticket, into) = (here.path().join("ticket"), here.path().join("into"));
    let listens =
        arguments!["recv", "--yes", "--listen", "127.0.0.1:0", "--ticket-file", ticket, "--into", into, "--json"];
    let mut receiver = downpour(listens);
    receiver.wait_for("start", |line| line.contains("\"start\""));
    let sender = downpour(arguments!["send", "--to", "--ticket-file", ticket, "--rate", "16M", "-v", source]);
    receiver.wait_for("bytes that arrived", |line| line.contains("\"progress\"") && !line.contains("\"bytes\":0,"));
    let text = fs::read_to_string(&ticket).expect("a ticket");
    let to = Ticket::parse(text.trim()).expect("a ticket").addresses[0];
    receiver.signal(Signal::STOP);
    let stranger = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    (0..BURST).for_each(|_| _ = stranger.send_to(&[0; 1_400], to).expect("the loopback carries it"));
    receiver.signal(Signal::CONT);
    let received = receiver.end().expect(0);
    let dropped = summary(&received)["overflowed_datagrams"].as_u64().expect("a number");
    assert!((BURST / 10..BURST + 10_000).contains(&dropped), "{dropped}: {}", received.stdout);
    let named = json(&received.stdout).iter().any(|line| line["limited_by"] == "socket overflows here");
    assert!(named, "{}", received.stdout);
    let sent = sender.end().expect(0).stderr;
    assert!(sent.contains(" datagrams dropped by the receiver's full socket buffer"), "{sent}");
}

/// Of what was there before nothing crossed.
#[test]
fn the_goodput_of_a_resumed_copy_is_that_of_what_crossed() {
    let here = tempdir().expect("a directory");
    let (source, target) = (tree::file(&here.path().join("file"), 20_000_000), here.path().join("copy"));
    let mut first = downpour(arguments!["cp", "--json", "--rate", "40M", source, target]);
    first.wait_for("bytes that arrived", |line| line.contains("\"progress\"") && !line.contains("\"bytes\":0,"));
    first.signal(Signal::TERM);
    first.end().expect(75);
    let said = summary(&downpour(arguments!["cp", "--json", source, target]).end().expect(0));
    let number = |key: &str| said[key].as_f64().expect(key);
    let crossed = number("bytes") - number("bytes_present");
    assert!(number("bytes_present") > 0.0 && crossed > 0.0, "{said}");
    assert_eq!(number("transferred_bytes"), crossed);
    let by_goodput = number("goodput_bytes_per_second") * number("seconds");
    assert!((by_goodput - crossed).abs() < 1.0, "{by_goodput} of {crossed}");
    let again = summary(&downpour(arguments!["cp", "--json", source, target]).end().expect(0));
    assert_eq!((&again["transferred_bytes"], &again["goodput_bytes_per_second"]), (&0.into(), &0.0.into()));
}

/// A share of three symbols, and copies of a handshake, say nothing.
#[test]
fn a_good_copy_of_two_bytes_counts_nothing_that_means_nothing() {
    let (here, far) = (tempdir().expect("a directory"), Far::new());
    let source = tree::file(&here.path().join("file"), 2);
    for via in ["--via=udp", "--via=ssh"] {
        for (from, to) in [(source.as_os_str(), OsStr::new("far:up")), (OsStr::new("far:up"), OsStr::new("down"))] {
            let mut command = far.command("cp", arguments!["-v", via, from, to]);
            let words = Program::start({
                command.current_dir(here.path());
                command
            })
            .end()
            .expect(0)
            .stderr;
            assert!(words.contains(" in IP packets"), "{words}");
            for nothing in ["repair", "loss", "refused", "% of"] {
                assert!(!words.contains(nothing), "{nothing:?} in {words}");
            }
        }
    }
}

#[test]
fn a_datagram_that_is_refused_names_why() {
    let here = tempdir().expect("a directory");
    let source = tree::file(&here.path().join("file"), 3_000_000);
    let (ticket, into) = (here.path().join("ticket"), here.path().join("into"));
    let listens = arguments!["recv", "--yes", "--listen", "127.0.0.1:0", "--ticket-file", ticket, "--into", into, "-v"];
    let mut receiver = downpour(listens);
    receiver.wait_for_words("Copy ticket file");
    let sender = downpour(arguments!["send", "--to", "--ticket-file", ticket, "--rate", "16M", source]);
    receiver.wait_for_words("Connected to");
    let text = fs::read_to_string(&ticket).expect("a ticket");
    let to = Ticket::parse(text.trim()).expect("a ticket").addresses[0];
    let stranger = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    for _ in 0..3 {
        stranger.send_to(b"GET / HTTP/1.1\r\n\r\n", to).expect("the loopback carries it");
    }
    let words = receiver.end().expect(0).stderr;
    assert!(words.contains(", 3 datagrams rejected (3 of another protocol)."), "{words}");
    sender.end().expect(0);
}

#[test]
fn a_dry_run_names_what_would_cross_and_counts_nothing_as_done() {
    let here = tempdir().expect("a directory");
    let (source, target) = (here.path().join("source"), here.path().join("target"));
    fs::create_dir(&source).expect("a directory");
    tree::file(&source.join("one"), 1_200_000);
    tree::file(&source.join("two"), 300_000);
    let run = |options: &[&str]| {
        let all = ["sync"].iter().chain(options).map(OsStr::new);
        downpour(all.chain(arguments![source.join(""), target]).collect::<Vec<_>>()).end().expect(0)
    };
    let said = run(&["-n", "-v"]).stderr;
    assert!(said.contains("2 names to change, at most 1.5 MB to transfer; nothing was changed."), "{said}");
    assert!(!said.contains("in IP packets"), "{said}");
    let said = summary(&run(&["-n", "--json"]));
    assert_eq!((&said["transferred_bytes"], &said["goodput_bytes_per_second"]), (&1_500_000.into(), &0.0.into()));
    run(&[]);
    fs::remove_file(target.join("two")).expect("a file");
    let said = run(&["-n"]).stderr;
    assert!(said.contains("at most 300 kB to transfer"), "{said}");
    fs::rename(source.join("two"), here.path().join("two")).expect("a file");
    tree::file(&target.join("two"), 10);
    let said = run(&["-n", "--delete"]).stderr;
    assert!(said.contains(" to change, no bytes to transfer; nothing was changed."), "{said}");
}

/// One function decides: what the bar and `--json` say is what the trace has, from which the lab's page is drawn.
#[test]
fn what_limits_a_transfer_is_the_same_in_json_and_in_the_trace() {
    let here = tempdir().expect("a directory");
    let source = tree::file(&here.path().join("file"), 2_000_000);
    let (trace, target) = (here.path().join("trace"), here.path().join("copy"));
    let copied = downpour(arguments!["cp", "--json", "--limit", "8M", "--qlog", trace, source, target]).end().expect(0);
    let told = json(&copied.stdout);
    assert!(told.iter().any(|line| line["limited_by"] == "rate limit"), "{}", copied.stdout);
    let trace = fs::read_to_string(trace).expect("a trace");
    let records: Vec<Value> = trace
        .split('\u{1e}')
        .filter(|text| !text.is_empty())
        .map(|text| serde_json::from_str(text).expect(text))
        .collect();
    assert!(records[0]["file_schema"].is_string(), "a trace begins with its header");
    let limits = |name: &str| -> Vec<&Value> {
        records.iter().filter(|record| record["name"] == name).map(|record| &record["data"]["limited_by"]).collect()
    };
    let (by_program, by_engine) = (limits("downpour:progress"), limits("recovery:metrics_updated"));
    assert!(by_program.iter().any(|limit| **limit == "rate limit"), "{by_program:?}");
    assert!(by_engine.iter().any(|limit| **limit == "rate-limit"), "{by_engine:?}");
    for limit in by_program.iter().chain(&by_engine) {
        assert!(**limit != "path" && **limit != "window" && **limit != "pacing", "{limit}: the path carries more");
    }
}

/// Files done of files, the current one, and bytes that rise within a block at a rate at which one takes seconds.
#[test]
fn progress_tells_what_is_left_and_does_not_jump_by_blocks() {
    let (here, far) = (tempdir().expect("a directory"), Far::new());
    let source = here.path().join("source");
    fs::create_dir(&source).expect("a directory");
    for (name, length) in [("a", 150_000), ("b", 150_000), ("c", 0), ("d", 10_000)] {
        tree::file(&source.join(name), length);
    }
    let ended = far.run("cp", arguments!["-r", "--json", "--rate", "800k", source, "far:copy"]).expect(0);
    let told: Vec<Value> = json(&ended.stdout).into_iter().filter(|line| line["type"] == "progress").collect();
    let number = |line: &Value, key: &str| line[key].as_u64().unwrap_or_else(|| panic!("{key} of {line}"));
    let within = |line: &Value| number(line, "bytes_underway") > 0;
    assert!(told.iter().any(within), "{told:?}");
    let arrived: Vec<u64> = told.iter().map(|line| number(line, "bytes") + number(line, "bytes_underway")).collect();
    let seconds = |line: &Value| line["seconds"].as_f64().unwrap_or_else(|| panic!("seconds of {line}"));
    let times: Vec<f64> = told.iter().map(seconds).collect();
    let mut steps = arrived.windows(2).zip(times.windows(2));
    // What may arrive within a step of 100 kB a second, and half as much again where a process comes late.
    let fits =
        |(bytes, times): (&[u64], &[f64])| (bytes[1] - bytes[0]) as f64 <= 50_000.0 + 150_000.0 * (times[1] - times[0]);
    assert!(arrived.is_sorted() && steps.all(fits), "{arrived:?} at {times:?}");
    assert!(told.iter().all(|line| number(line, "files") <= number(line, "known_files")), "{told:?}");
    assert_eq!(told.last().map(|line| number(line, "known_files")), Some(4), "{told:?}");
    let current: Vec<&str> = told.iter().filter_map(|line| line["current"]["path"].as_str()).collect();
    assert!(current.iter().any(|path| path.starts_with("source/") || path.len() == 1), "{told:?}");
    assert!(arrived.last().is_some_and(|last| *last <= 310_000), "no padding: {arrived:?}");
    assert_eq!(summary(&ended)["transferred_bytes"], 310_000);
}

#[test]
fn a_trace_that_cannot_be_written_is_told_and_costs_nothing_but_the_code() {
    let here = tempdir().expect("a directory");
    for size in [10, 3_000_000] {
        let source = tree::file(&here.path().join(format!("file-{size}")), size);
        let copy = here.path().join(format!("copy-{size}"));
        let ended = downpour(arguments!["cp", "--qlog", "/dev/full", source, copy]).end();
        ended.expect_line(7, "cannot write the trace /dev/full: No space left on device");
        tree::assert_same(&source, &copy);
    }
    // Before anything begins.
    let copy = here.path().join("copy");
    let source = here.path().join("file-10");
    downpour(arguments!["cp", "--qlog", here.path(), source, copy]).end().expect_line(7, "cannot write the trace");
    assert!(!copy.exists());
}
