//! The result reported by `--json` and the last line. Scripts and users rely on it before they delete the source.

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

use crate::fake_ssh::FakeHost;
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
    let values = summary(ended);
    let number = |key: &str| values[key].as_u64().unwrap_or_else(|| panic!("{key} of {values}"));
    let truth = |key: &str| values[key].as_bool().unwrap_or_else(|| panic!("{key} of {values}"));
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
fn summary_verified_only_if_transferred_or_compared() {
    let local = tempdir().expect("a directory");
    let (source, copy) = (tree::directory(&local.path().join("photos")), local.path().join("copy"));
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
fn summary_kept_or_failed_not_verified() {
    let local = tempdir().expect("a directory");
    let source = tree::file(&local.path().join("file"), 1000);
    let target = local.path().join("target");
    fs::write(&target, "mine").expect("a file");
    let kept = downpour(arguments!["cp", "--json", "--existing", "skip", source, target]).end().expect(0);
    assert_eq!((result(&kept), &summary(&kept)["kept"]), ((0, 0, false, false), &1.into()));
    let kept = downpour(arguments!["cp", "--existing", "skip", source, target]).end().expect(0).stderr;
    assert!(kept.contains("1 kept") && !kept.contains("verified"), "{kept}");
    fs::write(local.path().join("list"), "one\nabsent\n").expect("a list");
    let (list, directory) = (local.path().join("list"), tree::directory(&local.path().join("directory")));
    let into = local.path().join("into");
    let failed = downpour(arguments!["cp", "--json", "--files-from", list, directory, into]).end().expect(23);
    assert_eq!(result(&failed), (1, 0, false, false));
}

#[test]
fn summary_equal_at_both_ends() {
    let (local, far) = (tempdir().expect("a directory"), FakeHost::new());
    let source = tree::directory(&local.path().join("photos"));
    let json_cp = |from: &OsStr, to: &OsStr| far.run("cp", arguments!["-r", "--json", "--via=ssh", from, to]).expect(0);
    for unchanged in [0, 4] {
        let up = json_cp(source.join("").as_os_str(), OsStr::new("far:up"));
        assert_eq!(result(&up), (4, unchanged, unchanged == 0, false));
        let down = json_cp(OsStr::new("far:up/"), local.path().join("down").as_os_str());
        assert_eq!(result(&down), (4, unchanged, unchanged == 0, false));
    }
    let (ticket, into) = (local.path().join("ticket"), local.path().join("into"));
    for (option, unchanged) in [
        (&["--existing", "replace"][..], 0),
        (&["--existing", "replace"], 4),
        (&["--existing", "replace", "--checksum"], 0),
    ] {
        let listen = ["send", "--json", "--listen", "127.0.0.1:0", "--ticket-file"].map(OsStr::new);
        let sums = local.path().join("sums");
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
fn notice_for_every_skipped_special_file() {
    let (local, far) = (tempdir().expect("a directory"), FakeHost::new());
    let source = local.path().join("run");
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
        ["a pipe", "b pipe", "socket"].map(|name| format!(r#""left_out" "run/{name}" "is a socket, FIFO or device""#));
    let within = downpour(arguments!["cp", "-r", "--json", source, local.path().join("copy")]).end().expect(0);
    assert_eq!(left_out(&within), wanted);
    let up = far.run("cp", arguments!["-r", "--json", "--via=ssh", source, "far:"]).expect(0);
    assert_eq!(left_out(&up), wanted);
    let absolute = format!("far:{}", source.display());
    let down = far.run("cp", arguments!["-r", "--json", "--via=ssh", absolute, local.path().join("down")]).expect(0);
    assert_eq!(left_out(&down), wanted);
    let words = downpour(arguments!["cp", "-r", source, local.path().join("words")]).end().expect(0).stderr;
    for name in ["a pipe", "b pipe", "socket"] {
        let line = format!("skipped: run/{name} is a socket, FIFO or device");
        assert!(words.lines().any(|found| found == line), "no {line:?} in {words}");
    }
}

#[test]
fn json_paths_keep_all_bytes() {
    let local = tempdir().expect("a directory");
    let source = local.path().join("source");
    fs::create_dir(&source).expect("a directory");
    let names: [&[u8]; 3] = [b"\xff odd \xfe", b"back\\slash\x1b", "Gr\u{fc}\u{df}e".as_bytes()];
    for name in names {
        tree::file(&source.join(OsStr::from_bytes(name)), name.len());
    }
    let ended = downpour(arguments!["cp", "-rn", "--json", source.join(""), local.path().join("copy")]).end().expect(0);
    let notices = json(&ended.stdout).into_iter().filter(|line| line["type"] == "notice");
    let bytes_of = |line: Value| match line["path_bytes"].as_str() {
        Some(bytes) => BASE64.decode(bytes.as_bytes()).expect("base64"),
        None => line["path"].as_str().expect("text").as_bytes().to_vec(),
    };
    let mut paths: Vec<Vec<u8>> = notices.map(bytes_of).collect();
    paths.sort();
    let mut wanted = names.map(<[u8]>::to_vec).to_vec();
    wanted.sort();
    assert_eq!(paths, wanted);
    assert!(ended.stdout.contains("\u{fffd} odd \u{fffd}") && !ended.stdout.contains('\x1b'), "{}", ended.stdout);
}

/// While the receiver is stopped, more datagrams arrive than its socket buffers.
#[test]
fn summary_socket_overflow_named_on_both_sides() {
    const BURST: u64 = 30_000;
    let local = tempdir().expect("a directory");
    let source = tree::file(&local.path().join("file"), 6_000_000);
    let (ticket, into) = (local.path().join("ticket"), local.path().join("into"));
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

/// Data that was present before is not counted.
#[test]
fn summary_goodput_of_resumed_copy() {
    let local = tempdir().expect("a directory");
    let (source, target) = (tree::file(&local.path().join("file"), 20_000_000), local.path().join("copy"));
    let mut first = downpour(arguments!["cp", "--json", "--rate", "40M", source, target]);
    first.wait_for("bytes that arrived", |line| line.contains("\"progress\"") && !line.contains("\"bytes\":0,"));
    first.signal(Signal::TERM);
    first.end().expect(75);
    let values = summary(&downpour(arguments!["cp", "--json", source, target]).end().expect(0));
    let number = |key: &str| values[key].as_f64().expect(key);
    let crossed = number("bytes") - number("bytes_present");
    assert!(number("bytes_present") > 0.0 && crossed > 0.0, "{values}");
    assert_eq!(number("transferred_bytes"), crossed);
    let by_goodput = number("goodput_bytes_per_second") * number("seconds");
    assert!((by_goodput - crossed).abs() < 1.0, "{by_goodput} of {crossed}");
    let again = summary(&downpour(arguments!["cp", "--json", source, target]).end().expect(0));
    assert_eq!((&again["transferred_bytes"], &again["goodput_bytes_per_second"]), (&0.into(), &0.0.into()));
}

/// Shares of three symbols, and retransmitted handshakes, mean nothing.
#[test]
fn summary_tiny_copy_omits_repair_and_loss() {
    let (local, far) = (tempdir().expect("a directory"), FakeHost::new());
    let source = tree::file(&local.path().join("file"), 2);
    for via in ["--via=udp", "--via=ssh"] {
        for (from, to) in [(source.as_os_str(), OsStr::new("far:up")), (OsStr::new("far:up"), OsStr::new("down"))] {
            let mut command = far.command("cp", arguments!["-v", via, from, to]);
            let words = Program::start({
                command.current_dir(local.path());
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
fn summary_rejected_datagrams_by_reason() {
    let local = tempdir().expect("a directory");
    let source = tree::file(&local.path().join("file"), 3_000_000);
    let (ticket, into) = (local.path().join("ticket"), local.path().join("into"));
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
fn summary_dry_run_counts_planned_bytes() {
    let local = tempdir().expect("a directory");
    let (source, target) = (local.path().join("source"), local.path().join("target"));
    fs::create_dir(&source).expect("a directory");
    tree::file(&source.join("one"), 1_200_000);
    tree::file(&source.join("two"), 300_000);
    let run = |options: &[&str]| {
        let all = ["sync"].iter().chain(options).map(OsStr::new);
        downpour(all.chain(arguments![source.join(""), target]).collect::<Vec<_>>()).end().expect(0)
    };
    let output = run(&["-n", "-v"]).stderr;
    assert!(output.contains("2 names to change, at most 1.5 MB to transfer; nothing was changed."), "{output}");
    assert!(!output.contains("in IP packets"), "{output}");
    let output = summary(&run(&["-n", "--json"]));
    assert_eq!((&output["transferred_bytes"], &output["goodput_bytes_per_second"]), (&1_500_000.into(), &0.0.into()));
    run(&[]);
    fs::remove_file(target.join("two")).expect("a file");
    let output = run(&["-n"]).stderr;
    assert!(output.contains("at most 300 kB to transfer"), "{output}");
    fs::rename(source.join("two"), local.path().join("two")).expect("a file");
    tree::file(&target.join("two"), 10);
    let output = run(&["-n", "--delete"]).stderr;
    assert!(output.contains(" to change, no bytes to transfer; nothing was changed."), "{output}");
}

/// The progress bar, `--json` and the trace, which the lab draws, use the same function.
#[test]
fn limited_by_equal_in_json_and_trace() {
    let local = tempdir().expect("a directory");
    let source = tree::file(&local.path().join("file"), 2_000_000);
    let (trace, target) = (local.path().join("trace"), local.path().join("copy"));
    let copied = downpour(arguments!["cp", "--json", "--limit", "8M", "--qlog", trace, source, target]).end().expect(0);
    let lines = json(&copied.stdout);
    assert!(lines.iter().any(|line| line["limited_by"] == "rate limit"), "{}", copied.stdout);
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

/// At a rate at which a block takes seconds, the bytes rise within a block.
#[test]
fn progress_rises_within_blocks() {
    let (local, far) = (tempdir().expect("a directory"), FakeHost::new());
    let source = local.path().join("source");
    fs::create_dir(&source).expect("a directory");
    for (name, length) in [("a", 150_000), ("b", 150_000), ("c", 0), ("d", 10_000)] {
        tree::file(&source.join(name), length);
    }
    let ended = far.run("cp", arguments!["-r", "--json", "--rate", "800k", source, "far:copy"]).expect(0);
    let lines: Vec<Value> = json(&ended.stdout).into_iter().filter(|line| line["type"] == "progress").collect();
    let number = |line: &Value, key: &str| line[key].as_u64().unwrap_or_else(|| panic!("{key} of {line}"));
    let within = |line: &Value| number(line, "bytes_underway") > 0;
    assert!(lines.iter().any(within), "{lines:?}");
    let arrived: Vec<u64> = lines.iter().map(|line| number(line, "bytes") + number(line, "bytes_underway")).collect();
    let seconds = |line: &Value| line["seconds"].as_f64().unwrap_or_else(|| panic!("seconds of {line}"));
    let times: Vec<f64> = lines.iter().map(seconds).collect();
    let mut steps = arrived.windows(2).zip(times.windows(2));
    // The bytes of one step at 100 kB/s, and half as many again if a process is late.
    let fits =
        |(bytes, times): (&[u64], &[f64])| (bytes[1] - bytes[0]) as f64 <= 50_000.0 + 150_000.0 * (times[1] - times[0]);
    assert!(arrived.is_sorted() && steps.all(fits), "{arrived:?} at {times:?}");
    assert!(lines.iter().all(|line| number(line, "files") <= number(line, "known_files")), "{lines:?}");
    assert_eq!(lines.last().map(|line| number(line, "known_files")), Some(4), "{lines:?}");
    let current: Vec<&str> = lines.iter().filter_map(|line| line["current"]["path"].as_str()).collect();
    assert!(current.iter().any(|path| path.starts_with("source/") || path.len() == 1), "{lines:?}");
    assert!(arrived.last().is_some_and(|last| *last <= 310_000), "no padding: {arrived:?}");
    assert_eq!(summary(&ended)["transferred_bytes"], 310_000);
}

#[test]
fn qlog_full_disk_keeps_copy_exit_7() {
    let local = tempdir().expect("a directory");
    for size in [10, 3_000_000] {
        let source = tree::file(&local.path().join(format!("file-{size}")), size);
        let copy = local.path().join(format!("copy-{size}"));
        let ended = downpour(arguments!["cp", "--qlog", "/dev/full", source, copy]).end().expect(7);
        assert!(ended.stderr.contains("warning: cannot write the trace /dev/full: "), "{}", ended.stderr);
        tree::assert_same(&source, &copy);
    }
    // Before anything begins.
    let copy = local.path().join("copy");
    let source = local.path().join("file-10");
    downpour(arguments!["cp", "--qlog", local.path(), source, copy]).end().expect_error(7);
    assert!(!copy.exists());
}
