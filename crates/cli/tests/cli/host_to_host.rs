//! Copies between two remote hosts, which are both the same local directory. `cargo xtask test-ssh` tests the direct
//! copies that bypass the local host.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use rustix::process::{Signal, geteuid};
use tempfile::tempdir;

use crate::fake_ssh::FakeHost;
use crate::program::{Program, arguments, json};
use crate::tree;

#[test]
fn relay_copies_content_and_names() {
    let far = FakeHost::new();
    let source = tree::directory(&far.remote("tree"));
    let file = tree::file(&far.remote("a 'file' $(x)\n"), 300_000);
    far.run("cp", arguments!["-3", "a:a 'file' $(x)\n", "b: - copy"]).expect(0);
    tree::assert_same(&file, &far.remote(" - copy"));
    far.run("cp", arguments!["-3rp", "a:tree", "b:named"]).expect(0);
    far.run("cp", arguments!["-3rp", "a:tree/", "b:contents"]).expect(0);
    tree::assert_same(&source, &far.remote("named"));
    tree::assert_same(&source, &far.remote("contents"));
    far.run("cp", arguments!["-3rp", "a:tree", "a:contents/one", "b:both"]).expect(0);
    tree::assert_same(&source, &far.remote("both/tree"));
    assert_eq!(fs::read_dir(far.remote("both")).expect("a directory").count(), 2);
    let planned = far.run("cp", arguments!["-3rn", "a:tree", "b:not"]).expect(0);
    assert!(planned.stdout.lines().any(|line| line == "create not/in/some"), "{}", planned.stdout);
    assert!(!far.remote("not").exists());
}

#[test]
fn relay_sync_deletes_and_verify_compares() {
    let far = FakeHost::new();
    let source = tree::directory(&far.remote("tree"));
    for _ in 0..2 {
        far.run("sync", arguments!["-3", "--delete", "a:tree/", "b:copy"]).expect(0);
        tree::assert_same(&source, &far.remote("copy"));
        tree::file(&far.remote("copy/stray"), 10);
    }
    let ended = far.run("verify", arguments!["a:tree", "b:copy"]).expect(1);
    assert_eq!(ended.stdout, "only in B: stray\n");
    let ended = far.run("sync", arguments!["-3", "--json", "a:tree/", "b:copy"]).expect(0);
    let last = json(&ended.stdout).pop().expect("a line");
    assert_eq!((&last["type"], &last["unchanged"]), (&"summary".into(), &last["files"]), "{last}");
}

#[test]
fn direct_login_failure_relays_data() {
    let far = FakeHost::new();
    let source = tree::file(&far.remote("file"), 300_000);
    let stderr = far.run("cp", arguments!["a:file", "no-such-host.invalid:copy"]).expect(0).stderr;
    let line = stderr.lines().find(|line| line.contains("relaying through this host")).expect("a line");
    let beginning = "a cannot copy to no-such-host.invalid directly (ssh: Could not resolve hostname";
    assert!(line.starts_with(beginning), "{stderr}");
    tree::assert_same(&source, &far.remote("copy"));
    let refused = far.run("cp", arguments!["--via", "udp", "a:file", "no-such-host.invalid:other"]);
    refused.expect_error(5);
    // On the remote host, localhost is another host.
    let stderr = far.run("cp", arguments!["a:file", "localhost:again"]).expect(0).stderr;
    assert!(stderr.contains("localhost is the local host: relaying through this host"), "{stderr}");
    tree::assert_same(&source, &far.remote("again"));
}

#[test]
fn relay_failures_keep_exit_codes() {
    let far = FakeHost::new();
    let source = tree::directory(&far.remote("tree"));
    far.run("cp", arguments!["-3", "a:missing", "b:copy"]).expect_line(3, "a: missing");
    far.run("cp", arguments!["-3", "a:tree/one", "b:no/such/directory"])
        .expect_line(1, "b: no does not exist; create it first; cp and sync do so with --mkpath");
    fs::write(far.remote("file"), "a file").expect("a file");
    far.run("cp", arguments!["-3r", "a:tree/", "b:file"]).expect_line(1, "b: file");
    assert_eq!(fs::read(far.remote("file")).expect("a file"), b"a file");
    far.run("cp", arguments!["a:x", "c:y", "b:z"]).expect_line(2, "all sources must be on one host");
    far.run("cp", arguments!["a:x", "y", "b:z"]).expect_line(2, "all sources must be on one host");
    far.run("cp", arguments!["--qlog", "q", "a:tree/one", "b:z"]).expect_line(2, "between two remote hosts");
    if !geteuid().is_root() {
        fs::set_permissions(source.join("one"), fs::Permissions::from_mode(0o0)).expect("a mode");
        far.run("cp", arguments!["-3r", "a:tree", "b:partial"]).expect(23);
        assert!(far.remote("partial/in/some").exists() && !far.remote("partial/one").exists());
    }
}

#[test]
fn relay_stopped_copy_resumes() {
    let far = FakeHost::new();
    let source = tree::file(&far.remote("file"), 24_000_000);
    let slowly = arguments!["-3", "--json", "--limit", "64M", "a:file", "b:copy"];
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 75)] {
        let mut program = Program::start(far.command("cp", slowly));
        program.wait_for("progress", |line| line.contains(r#""type":"progress""#) && !line.contains(r#""bytes":0,"#));
        program.signal(signal);
        program.end().expect_error(code);
        for process in far.processes("") {
            far.assert_gone(&process.as_raw_nonzero().to_string());
        }
        assert!(!far.remote("copy").exists());
    }
    let again = far.run("cp", arguments!["-3", "--json", "a:file", "b:copy"]).expect(0);
    tree::assert_same(&source, &far.remote("copy"));
    let last = json(&again.stdout).pop().expect("a line");
    assert!(last["bytes_present"].as_u64().expect("a number") > 0, "{last}");
    assert_eq!(tree::names(&far.home()).len(), 2);
}

#[test]
fn relay_named_link_followed_and_counted() {
    let far = FakeHost::new();
    let file = tree::file(&far.remote("file"), 1000);
    symlink("file", far.remote("link")).expect("a link");
    let stderr = far.run("cp", arguments!["-3", "a:link", "b:copy"]).expect(0).stderr;
    assert!(stderr.contains(", 1 link followed"), "{stderr}");
    tree::assert_same(&file, &far.remote("copy"));
}

#[test]
fn relay_retry_for_restarts_after_kill() {
    let far = FakeHost::new();
    let source = tree::file(&far.remote("file"), 24_000_000);
    for which in [0, 1] {
        let slowly = arguments!["-3", "--json", "--limit", "64M", "--retry-for", "60", "a:file", "b:copy"];
        let mut program = Program::start(far.command("cp", slowly));
        program.wait_for("progress", |line| line.contains(r#""type":"progress""#) && !line.contains(r#""bytes":0,"#));
        let sides = far.wait_for_processes("remote", || program.is_running());
        rustix::process::kill_process(sides[which % sides.len()], Signal::KILL).expect("a process to kill");
        program.end().expect(0);
        tree::assert_same(&source, &far.remote("copy"));
        fs::remove_file(far.remote("copy")).expect("a file");
    }
    assert_eq!(tree::names(&far.home()).len(), 1);
}

#[test]
fn relay_killed_process_ends_copy() {
    let far = FakeHost::new();
    tree::file(&far.remote("file"), 24_000_000);
    for _ in 0..2 {
        let mut program =
            Program::start(far.command("cp", arguments!["-3", "--json", "--limit", "64M", "a:file", "b:copy"]));
        program.wait_for("progress", |line| line.contains(r#""type":"progress""#) && !line.contains(r#""bytes":0,"#));
        let sides = far.wait_for_processes("remote", || program.is_running());
        let one = fastrand::usize(..sides.len());
        rustix::process::kill_process(sides[one], Signal::KILL).expect("a process to kill");
        let ended = program.end();
        assert!(matches!(ended.status.code(), Some(5 | 8)), "{one} of {}: {}", sides.len(), ended.stderr);
        for process in far.processes("") {
            far.assert_gone(&process.as_raw_nonzero().to_string());
        }
        assert!(!far.remote("copy").exists());
    }
}

/// The sender may report a success that the receiver does not confirm.
#[test]
fn relay_receiver_exit_code_decides() {
    for (code, wanted) in [(0, 0), (7, 7), (1, 1), (23, 1), (255, 1)] {
        let login = format!(r#"case "$*" in *" -- b "*) sh -c "$command"; exit {code};; esac; exec sh -c "$command""#);
        let far = FakeHost::with_login(&login);
        let source = tree::file(&far.remote("file"), 100_000);
        let ended = far.run("cp", arguments!["-3", "a:file", "b:copy"]);
        if wanted == 0 {
            ended.expect(0);
            tree::assert_same(&source, &far.remote("copy"));
        } else {
            ended.expect_line(wanted, "b: a reports a complete transfer, which is not confirmed");
        }
    }
}

/// Replaces the requested path before the first host reads it, like a downpour that sends another file.
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
fn relay_unrequested_name_refused() {
    let scripts = tempdir().expect("a directory");
    let script = scripts.path().join("hostile.py");
    fs::write(&script, HOSTILE).expect("a script");
    // `src/a` and `src/b`, as a request has them.
    let hostile = format!(r#"exec python3 -B {} "$command" c3JjL2E c3JjL2I"#, script.display());
    let far = FakeHost::with_login(&format!(r#"case "$*" in *" -- a "*) {hostile};; esac; exec sh -c "$command""#));
    fs::create_dir(far.remote("src")).expect("a directory");
    fs::create_dir(far.remote("into")).expect("a directory");
    tree::file(&far.remote("src/b"), 10);
    far.run("cp", arguments!["-3", "a:src/a", "b:into"]).expect_line(1, "a: error from the receiver: sender offered b");
    assert!(!far.remote("into/b").exists());
    far.run("cp", arguments!["-3", "--trust-sender", "a:src/a", "b:into"]).expect(0);
    assert!(far.remote("into/b").exists(), "its user trusts it");
}
