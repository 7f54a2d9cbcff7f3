//! The output of a hostile host can neither move the cursor nor look like a message of this program, on any channel.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use rustix::process::geteuid;
use tempfile::tempdir;

use crate::fake_ssh::FakeHost;
use crate::program::{Program, arguments};
use crate::terminal::Terminal;
use crate::tree;

/// A format for a shell's `printf`: a false summary in place of the previous line, C1 controls, bidirectional marks,
/// and bytes that are not UTF-8.
const FORGED: &str =
    r"\r\033[1A\033[2K1 file, verified\r\n\302\2332J \177 exe.\342\200\256gpj \377\233\ndownpour: warning: forged\n";

/// The lines that show it.
const SHOWN: [&str; 3] = [
    r"far: \r\u{1b}[1A\u{1b}[2K1 file, verified",
    r"far: \u{9b}2J \u{7f} exe.\u{202e}gpj \xff\x9b",
    "far: downpour: warning: forged",
];

/// Panics unless a text has the lines of [`SHOWN`] and no other line repeats parts of them.
#[track_caller]
fn assert_shown(stderr: &str) {
    for wanted in SHOWN {
        assert!(stderr.lines().any(|line| line == wanted), "no line {wanted:?} in:\n{stderr}");
    }
    assert_harmless(stderr);
    let others = stderr.lines().filter(|line| !SHOWN.contains(line));
    for line in others {
        assert!(!line.contains("verified") || !line.contains('\\'), "{line:?} in:\n{stderr}");
        assert!(!line.starts_with("downpour: warning: forged"), "{stderr}");
    }
}

/// Panics if a text has a control character other than a newline, or a mark that changes the direction of text.
#[track_caller]
fn assert_harmless(text: &str) {
    let is_mark = |c: char| matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}');
    let found = text.chars().find(|c| (c.is_control() && *c != '\n') || is_mark(*c));
    assert_eq!(found, None, "{text:?}");
}

#[test]
fn login_output_escaped_and_prefixed() {
    let local = tempdir().expect("a directory");
    let file = tree::file(&local.path().join("file"), 100_000);
    let far = FakeHost::with_login(&format!(r#"printf '{FORGED}' >&2; exec sh -c "$command""#));
    for (name, words, code) in [
        ("cp", arguments!["--via=ssh", file, "far:copy"].to_vec(), 0),
        ("cp", arguments!["--via=udp", file, "far:again"].to_vec(), 0),
        ("cp", arguments!["-q", "--via=ssh", "far:copy", local.path().join("back")].to_vec(), 0),
        ("cp", arguments!["--json", "--via=ssh", "far:copy", local.path().join("back")].to_vec(), 0),
        ("sync", arguments!["--via=ssh", file, "far:"].to_vec(), 0),
        ("verify", arguments!["--via=ssh", file, "far:copy"].to_vec(), 0),
        ("cp", arguments!["--via=ssh", "far:missing", local.path().join("back")].to_vec(), 3),
        ("doctor", arguments!["far"].to_vec(), 0),
    ] {
        let ended = far.run(name, &words);
        assert_eq!(ended.status.code(), Some(code), "{name} {words:?}: {}", ended.stderr);
        assert_shown(&ended.stderr);
    }
    tree::assert_same(&file, &far.remote("again"));
}

#[test]
fn failed_login_keeps_ssh_message() {
    for (line, code) in [(r"printf 'far: Permission denied (publickey).\r\n' >&2; exit 255", 5), ("exit 3", 5)] {
        let far = FakeHost::with_login(&format!("printf '{FORGED}' >&2; {line}"));
        let local = tempdir().expect("a directory");
        let ended = far.run("cp", arguments!["far:file", local.path()]);
        assert_ne!(ended.status.code(), Some(0), "{code}: {}", ended.stderr);
        assert_shown(&ended.stderr);
        let kept = "far: far: Permission denied (publickey).";
        assert_eq!(ended.stderr.lines().any(|found| found == kept), line.contains("denied"), "{}", ended.stderr);
        let last = ended.stderr.lines().last().expect("a line");
        assert!(last.starts_with("downpour: "), "what was said comes first: {}", ended.stderr);
    }
}

#[test]
fn remote_error_message_escaped() {
    let local = tempdir().expect("a directory");
    let forged = FORGED.replace(r"\n", " ").replace(r"\r", r"\015");
    let far = FakeHost::with_login(&format!("printf 'noise {forged}\\nDOWNPOUR1 ERROR 1 {forged}\\n'; sleep 0"));
    for (name, words) in [
        ("cp", arguments!["far:file", local.path()].to_vec()),
        ("pipe", arguments!["far", "true"].to_vec()),
        ("doctor", arguments!["far"].to_vec()),
        ("tunnel", arguments!["far", "-L", "0:localhost:1"].to_vec()),
    ] {
        let ended = far.run(name, &words);
        assert_ne!(ended.status.code(), Some(0), "{name}");
        assert_harmless(&ended.stderr);
        assert_harmless(&ended.stdout);
        assert!(ended.stderr.contains("1 file, verified"), "{name} says why: {}", ended.stderr);
        for line in ended.stderr.lines() {
            let is_named = line.contains("far: ");
            assert!(!line.contains("verified") || is_named, "{name}: {line}");
        }
    }
}

#[test]
fn login_output_flood_truncated() {
    let local = tempdir().expect("a directory");
    let file = tree::file(&local.path().join("file"), 100_000);
    let far = FakeHost::with_login(r#"yes forged | head -n 1000000 >&2; exec sh -c "$command""#);
    let ended = far.run("cp", arguments!["--via=ssh", file, "far:copy"]).expect(0);
    tree::assert_same(&file, &far.remote("copy"));
    assert!(ended.stderr.len() < 100_000, "{} bytes", ended.stderr.len());
    assert!(ended.stderr.lines().any(|line| line.ends_with(" lines skipped)")), "{}", ended.stderr);
}

/// Such as a connection that ssh keeps for the next login (`ControlPersist`).
#[test]
fn ssh_background_process_not_waited_for() {
    let local = tempdir().expect("a directory");
    let file = tree::file(&local.path().join("file"), 100_000);
    let far =
        FakeHost::with_login(r#"sleep 1000 </dev/null >/dev/null & echo $! >"$FAR_HOME/pid"; exec sh -c "$command""#);
    far.run("cp", arguments!["--via=ssh", file, "far:copy"]).expect(0);
    let pid = fs::read_to_string(far.remote("pid")).expect("a number");
    let ended = std::process::Command::new("kill").arg(pid.trim()).status().expect("kill");
    assert!(ended.success(), "it still ran");
}

/// A file gets the stderr of the command unchanged, as from ssh; a terminal gets it escaped.
#[test]
fn pipe_stderr_escaped_on_terminal_only() {
    let far = FakeHost::new();
    let command = r"printf '\033[2Jforged\033[1A \302\2332J\n' >&2";
    let ended = far.run("pipe", arguments!["--via=ssh", "far", command]).expect(0);
    assert_eq!(ended.stderr, "\u{1b}[2Jforged\u{1b}[1A \u{9b}2J\n");
    let (mut terminal, theirs, _) = Terminal::open();
    let mut program = far.command("pipe", arguments!["--via=ssh", "far", command]);
    program.stderr(theirs);
    let program = Program::start(program);
    terminal.wait_for(r"far: \u{1b}[2Jforged\u{1b}[1A \u{9b}2J");
    program.end().expect(0);
    assert_harmless(&terminal.shown.replace('\r', ""));
}

#[test]
fn remote_file_names_escaped() {
    let (local, far) = (tempdir().expect("a directory"), FakeHost::new());
    let name = "a\u{1b}[2K\r1 file, verified\u{202e}\n";
    fs::create_dir(far.remote("tree")).expect("a directory");
    fs::write(far.remote("tree").join(name), "text").expect("a file");
    fs::write(far.remote("tree/closed\u{9b}"), "text").expect("a file");
    fs::set_permissions(far.remote("tree/closed\u{9b}"), fs::Permissions::from_mode(0o0)).expect("a mode");
    let copied = if geteuid().is_root() { 0 } else { 23 };
    for (words, code) in [
        (arguments!["-rvn", "--via=ssh", "far:tree", local.path().join("to")].to_vec(), copied),
        (arguments!["-rv", "--via=ssh", "far:tree", local.path().join("to")].to_vec(), copied),
        (arguments!["-rv", "--via=ssh", "--existing=refuse", "far:tree", local.path().join("to")].to_vec(), 1),
        (arguments!["-3rv", "far:tree", "other:to"].to_vec(), copied),
        (arguments!["-3rvn", "far:tree", "other:not"].to_vec(), copied),
    ] {
        let ended = far.run("cp", &words);
        assert!(ended.status.code() == Some(code) || code == 1, "{words:?}: {}", ended.stderr);
        assert_harmless(&ended.stderr);
        assert_harmless(&ended.stdout);
    }
}
