//! Copies between two remote hosts, which are both the same directory of this machine. `cargo xtask test-ssh` has those
//! that go from one host to the other without this one.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use rustix::process::{Signal, geteuid};
use tempfile::tempdir;

use crate::far::Far;
use crate::program::{Program, arguments, json};
use crate::tree;

#[test]
fn what_goes_through_here_is_whole_and_has_the_names_that_were_asked_for() {
    let far = Far::new();
    let source = tree::directory(&far.there("tree"));
    let file = tree::file(&far.there("a 'file' $(x)\n"), 300_000);
    far.run("cp", arguments!["-3", "a:a 'file' $(x)\n", "b: - copy"]).expect(0);
    tree::assert_same(&file, &far.there(" - copy"));
    far.run("cp", arguments!["-3rp", "a:tree", "b:named"]).expect(0);
    far.run("cp", arguments!["-3rp", "a:tree/", "b:contents"]).expect(0);
    tree::assert_same(&source, &far.there("named"));
    tree::assert_same(&source, &far.there("contents"));
    far.run("cp", arguments!["-3rp", "a:tree", "a:contents/one", "b:both"]).expect(0);
    tree::assert_same(&source, &far.there("both/tree"));
    assert_eq!(fs::read_dir(far.there("both")).expect("a directory").count(), 2);
    let planned = far.run("cp", arguments!["-3rn", "a:tree", "b:not"]).expect(0);
    assert!(planned.stdout.lines().any(|line| line == "create not/in/some"), "{}", planned.stdout);
    assert!(!far.there("not").exists());
}

#[test]
fn sync_between_two_hosts_deletes_and_skips_and_verify_sees_both() {
    let far = Far::new();
    let source = tree::directory(&far.there("tree"));
    for _ in 0..2 {
        far.run("sync", arguments!["-3", "--delete", "a:tree/", "b:copy"]).expect(0);
        tree::assert_same(&source, &far.there("copy"));
        tree::file(&far.there("copy/stray"), 10);
    }
    let told = far.run("verify", arguments!["a:tree", "b:copy"]).expect(1);
    assert_eq!(told.stdout, "only in B: stray\n");
    let told = far.run("sync", arguments!["-3", "--json", "a:tree/", "b:copy"]).expect(0);
    let last = json(&told.stdout).pop().expect("a line");
    assert_eq!((&last["type"], &last["unchanged"]), (&"summary".into(), &last["files"]), "{last}");
}

#[test]
fn an_ssh_that_does_not_get_there_is_told_and_the_data_goes_through_here() {
    let far = Far::new();
    let source = tree::file(&far.there("file"), 300_000);
    let told = far.run("cp", arguments!["a:file", "no-such-host.invalid:copy"]).expect(0).stderr;
    let line = told.lines().find(|line| line.contains("the data goes through this machine")).expect("a line");
    let beginning = "a cannot copy to no-such-host.invalid by itself (ssh: Could not resolve hostname";
    assert!(line.starts_with(beginning), "{told}");
    tree::assert_same(&source, &far.there("copy"));
    let refused = far.run("cp", arguments!["--via", "udp", "a:file", "no-such-host.invalid:other"]);
    refused.expect_line(5, "omit --via udp");
    // localhost is another machine there.
    let told = far.run("cp", arguments!["a:file", "localhost:again"]).expect(0).stderr;
    assert!(told.contains("localhost stands for this machine: the data goes through this machine"), "{told}");
    tree::assert_same(&source, &far.there("again"));
}

#[test]
fn failures_of_both_ends_have_their_codes() {
    let far = Far::new();
    let source = tree::directory(&far.there("tree"));
    far.run("cp", arguments!["-3", "a:missing", "b:copy"]).expect_line(3, "on a: missing");
    far.run("cp", arguments!["-3", "a:tree/one", "b:no/such/directory"])
        .expect_line(1, "on b: no does not exist; create it first; cp and sync do so with --mkpath");
    fs::write(far.there("file"), "a file").expect("a file");
    far.run("cp", arguments!["-3r", "a:tree/", "b:file"]).expect_line(1, "on b: file");
    assert_eq!(fs::read(far.there("file")).expect("a file"), b"a file");
    far.run("cp", arguments!["a:x", "c:y", "b:z"]).expect_line(2, "all sources must be on one machine");
    far.run("cp", arguments!["a:x", "y", "b:z"]).expect_line(2, "all sources must be on one machine");
    far.run("cp", arguments!["--qlog", "q", "a:tree/one", "b:z"]).expect_line(2, "the trace cannot be written here");
    if !geteuid().is_root() {
        fs::set_permissions(source.join("one"), fs::Permissions::from_mode(0o0)).expect("a mode");
        far.run("cp", arguments!["-3r", "a:tree", "b:partial"]).expect(23);
        assert!(far.there("partial/in/some").exists() && !far.there("partial/one").exists());
    }
}

#[test]
fn a_stopped_copy_leaves_nothing_running_and_goes_on_from_there() {
    let far = Far::new();
    let source = tree::file(&far.there("file"), 24_000_000);
    let slowly = arguments!["-3", "--json", "--limit", "64M", "a:file", "b:copy"];
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 75)] {
        let mut program = Program::start(far.command("cp", slowly));
        program.wait_for("progress", |line| line.contains(r#""type":"progress""#) && !line.contains(r#""bytes":0,"#));
        program.signal(signal);
        program.end().expect_line(code, "stopped; run the same command to resume");
        for process in far.processes("") {
            far.assert_gone(&process.as_raw_nonzero().to_string());
        }
        assert!(!far.there("copy").exists());
    }
    let again = far.run("cp", arguments!["-3", "--json", "a:file", "b:copy"]).expect(0);
    tree::assert_same(&source, &far.there("copy"));
    let last = json(&again.stdout).pop().expect("a line");
    assert!(last["bytes_present"].as_u64().expect("a number") > 0, "{last}");
    assert_eq!(tree::names(&far.home()).len(), 2);
}

#[test]
fn links_that_are_named_are_followed_and_counted() {
    let far = Far::new();
    let file = tree::file(&far.there("file"), 1000);
    symlink("file", far.there("link")).expect("a link");
    let told = far.run("cp", arguments!["-3", "a:link", "b:copy"]).expect(0).stderr;
    assert!(told.contains(", 1 link followed"), "{told}");
    tree::assert_same(&file, &far.there("copy"));
}

#[test]
fn a_copy_with_patience_begins_anew_when_a_side_is_killed() {
    let far = Far::new();
    let source = tree::file(&far.there("file"), 24_000_000);
    for which in [0, 1] {
        let slowly = arguments!["-3", "--json", "--limit", "64M", "--retry-for", "60", "a:file", "b:copy"];
        let mut program = Program::start(far.command("cp", slowly));
        program.wait_for("progress", |line| line.contains(r#""type":"progress""#) && !line.contains(r#""bytes":0,"#));
        let sides = far.running("remote", || program.is_running());
        rustix::process::kill_process(sides[which % sides.len()], Signal::KILL).expect("a process to kill");
        program.end().expect(0);
        tree::assert_same(&source, &far.there("copy"));
        fs::remove_file(far.there("copy")).expect("a file");
    }
    assert_eq!(tree::names(&far.home()).len(), 1);
}

#[test]
fn a_side_that_is_killed_ends_the_copy() {
    let far = Far::new();
    tree::file(&far.there("file"), 24_000_000);
    for _ in 0..2 {
        let mut program =
            Program::start(far.command("cp", arguments!["-3", "--json", "--limit", "64M", "a:file", "b:copy"]));
        program.wait_for("progress", |line| line.contains(r#""type":"progress""#) && !line.contains(r#""bytes":0,"#));
        let sides = far.running("remote", || program.is_running());
        let one = fastrand::usize(..sides.len());
        rustix::process::kill_process(sides[one], Signal::KILL).expect("a process to kill");
        let ended = program.end();
        assert!(matches!(ended.status.code(), Some(5 | 8)), "{one} of {}: {}", sides.len(), ended.stderr);
        for process in far.processes("") {
            far.assert_gone(&process.as_raw_nonzero().to_string());
        }
        assert!(!far.there("copy").exists());
    }
}

/// What the sender reports is what it says, and it may lie or be wrong about the other.
#[test]
fn the_receiver_is_asked_where_it_was_logged_in_to_from_here() {
    for (code, wanted) in [(0, 0), (7, 7), (1, 1), (23, 1), (255, 1)] {
        let login = format!(r#"case "$*" in *" -- b "*) sh -c "$command"; exit {code};; esac; exec sh -c "$command""#);
        let far = Far::with_login(&login);
        let source = tree::file(&far.there("file"), 100_000);
        let ended = far.run("cp", arguments!["-3", "a:file", "b:copy"]);
        if wanted == 0 {
            ended.expect(0);
            tree::assert_same(&source, &far.there("copy"));
        } else {
            ended.expect_line(wanted, "on b: it does not confirm what a reports as complete");
        }
    }
}

/// Changes what the first host is asked for, in place of a downpour there that sends something else.
const HOSTILE: &str = r#"
import subprocess, sys
request = sys.stdin.buffer.read(4)
request += sys.stdin.buffer.read(int.from_bytes(request, "big"))
asked, sent = sys.argv[2:4]
assert asked.encode() in request and len(asked) == len(sent)
process = subprocess.Popen(["sh", "-c", sys.argv[1]], stdin=subprocess.PIPE)
process.stdin.write(request.replace(asked.encode(), sent.encode()))
process.stdin.flush()
while data := sys.stdin.buffer.raw.read(65536):
    process.stdin.write(data)
    process.stdin.flush()
process.stdin.close()
sys.exit(process.wait())
"#;

#[test]
fn a_host_that_sends_something_else_is_refused_by_the_other() {
    let scripts = tempdir().expect("a directory");
    let script = scripts.path().join("hostile.py");
    fs::write(&script, HOSTILE).expect("a script");
    // `src/a` and `src/b`, as a request has them.
    let hostile = format!(r#"exec python3 -B {} "$command" c3JjL2E c3JjL2I"#, script.display());
    let far = Far::with_login(&format!(r#"case "$*" in *" -- a "*) {hostile};; esac; exec sh -c "$command""#));
    fs::create_dir(far.there("src")).expect("a directory");
    fs::create_dir(far.there("into")).expect("a directory");
    tree::file(&far.there("src/b"), 10);
    far.run("cp", arguments!["-3", "a:src/a", "b:into"]).expect_line(1, "on a: the receiver said: the sender offers b");
    assert!(!far.there("into/b").exists());
    far.run("cp", arguments!["-3", "--trust-sender", "a:src/a", "b:into"]).expect(0);
    assert!(far.there("into/b").exists(), "its user trusts it");
}
