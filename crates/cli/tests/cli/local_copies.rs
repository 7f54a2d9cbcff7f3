//! Copies within one host, which do not use the engine.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _};
use std::process::Command;

use serde_json::Value;
use tempfile::tempdir;

use crate::program::{arguments, command, downpour, json};
use crate::tree;

fn summary(stdout: &str) -> Value {
    json(stdout).pop().expect("a summary")
}

#[test]
fn local_copy_sends_no_packets() {
    let local = tempdir().expect("a directory");
    let source = tree::directory(&local.path().join("tree"));
    let ended = downpour(arguments!["cp", "-rp", "--json", source, local.path().join("copy")]).end().expect(0);
    assert_eq!(summary(&ended.stdout)["wire_bytes"], 0, "{}", ended.stdout);
    tree::assert_same(&source, &local.path().join("copy"));
    let ended = downpour(arguments!["cp", "-rpv", source, local.path().join("other")]).end().expect(0);
    assert!(!ended.stderr.contains("packets") && !ended.stderr.contains("UDP"), "{}", ended.stderr);
    // The refusal is a local error, with its advice.
    let (one, other) = (local.path().join("copy/one"), local.path().join("other/one"));
    let ended = downpour(arguments!["cp", "--existing", "refuse", one, other]).end();
    let line = ended.expect_line(1, "already exists at the destination: ").stderr;
    assert!(line.starts_with("downpour: already") && line.contains("--existing replace"), "{line}");
}

#[test]
fn local_copy_keeps_holes() {
    let local = tempdir().expect("a directory");
    let (source, copy) = (local.path().join("sparse"), local.path().join("copy"));
    let file = File::create(&source).expect("a file");
    file.set_len(3 << 30).expect("a hole");
    for at in [0, 1 << 30, (3 << 30) - 3] {
        file.write_all_at(b"abc", at).expect("bytes");
    }
    downpour(arguments!["cp", source, copy]).end().expect(0);
    let (copied, mut bytes) = (File::open(&copy).expect("a copy"), [0; 3]);
    for (at, wanted) in [(0, b"abc"), (1 << 30, b"abc"), ((3 << 30) - 3, b"abc"), (2 << 30, b"\0\0\0")] {
        copied.read_exact_at(&mut bytes, at).expect("bytes");
        assert_eq!(&bytes, wanted, "{at}");
    }
    let found = copied.metadata().expect("a copy");
    assert_eq!(found.len(), 3 << 30);
    assert!(found.blocks() * 512 < 1 << 20, "{} blocks", found.blocks());
}

#[test]
fn local_copy_disk_full_leaves_nothing() {
    let local = tempdir().expect("a directory");
    let (source, full) = (tree::file(&local.path().join("file"), 8_000_000), local.path().join("full"));
    fs::create_dir(&full).expect("a directory");
    let program = command(arguments!["cp", source, full.join("")]);
    let script =
        "mount -t tmpfs -o size=2m downpour \"$0\" && { \"$@\"; echo \"code $?\"; echo left $(ls -A \"$0\"); }";
    let mut unshare = Command::new("unshare");
    unshare.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]).arg(&full);
    let output = unshare.arg(program.get_program()).args(program.get_args()).output().expect("unshare");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert_eq!(stdout, "code 7\nleft\n", "this test needs user and mount namespaces: {output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("disk full while writing "), "{output:?}");
}

/// Complete files stay, and the same command copies the rest, although `--existing refuse` is set.
#[test]
fn local_copy_disk_full_resumes() {
    let local = tempdir().expect("a directory");
    let (small, large) = (tree::file(&local.path().join("a"), 700_000), tree::file(&local.path().join("b"), 8_000_000));
    let disk = local.path().join("disk");
    fs::create_dir(&disk).expect("a directory");
    let program = command(arguments!["cp", "--existing", "refuse", small, large, disk.join("")]);
    let script = "mount -t tmpfs -o size=2m downpour \"$0\" || exit; \"$@\"; echo \"code $?\"; ls \"$0\"; \
                  mount -o remount,size=20m \"$0\"; \"$@\"; echo \"code $?\"; ls -A \"$0\"; cmp \"$0/b\" \"$6\"; \
                  stat -c %s \"$0/a\" \"$0/b\"";
    let mut unshare = Command::new("unshare");
    unshare.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]).arg(&disk);
    let output = unshare.arg(program.get_program()).args(program.get_args()).output().expect("unshare");
    let stdout = String::from_utf8_lossy(&output.stdout);
    let wanted = "code 7\na\ncode 0\na\nb\n700000\n8000000\n";
    assert_eq!(
        stdout,
        wanted,
        "this test needs user and mount namespaces: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// A directory that an interrupted run has made is its target, not a directory to copy into.
#[test]
fn local_copy_interrupted_resumes_at_new_name() {
    let local = tempdir().expect("a directory");
    let source = local.path().join("tree");
    fs::create_dir(&source).expect("a directory");
    for name in ["a", "b", "c"] {
        tree::file(&source.join(name), 2_000_000);
    }
    let target = local.path().join("copy");
    let mut first = downpour(arguments!["cp", "-r", "--json", "--limit", "8M", source, target]);
    first.wait_for("bytes that arrived", |line| line.contains("\"progress\"") && !line.contains("\"bytes\":0,"));
    first.signal(rustix::process::Signal::TERM);
    first.end().expect_error(75);
    let sums = local.path().join("sums");
    downpour(arguments!["cp", "-r", "--checksums", sums, source, target]).end().expect(0);
    let listed = fs::read_to_string(sums).expect("a list");
    assert!(listed.lines().count() == 3 && listed.lines().all(|line| line.contains("  copy/")), "{listed}");
    assert_eq!(tree::names(&target), ["a", "b", "c"].map(std::path::PathBuf::from));
    tree::assert_same(&source.join("c"), &target.join("c"));
}

/// If a writer changes the file during the copy, the copy has its content at one time and exists.
#[test]
fn local_copy_of_changing_file_arrives() {
    let local = tempdir().expect("a directory");
    let source = tree::file(&local.path().join("log"), 6_000_000);
    let before = fs::read(&source).expect("a file");
    for (more, options) in [("more", &["--limit", "16M"][..]), ("", &["--limit", "16M", "--checksums", "sums"])] {
        let copy = local.path().join(format!("copy {more}"));
        let mut command = command(arguments!["cp", "--json"]);
        command.args(options).args([&source, &copy]).current_dir(local.path());
        let mut copying = crate::program::Program::start(command);
        copying.wait_for("progress", |line| line.contains("\"progress\""));
        if more.is_empty() {
            fs::set_permissions(&source, fs::Permissions::from_mode(0o600)).expect("a mode");
        } else {
            let mut log = File::options().append(true).open(&source).expect("a file");
            std::io::Write::write_all(&mut log, more.as_bytes()).expect("bytes");
        }
        copying.end().expect(0);
        let copied = fs::read(&copy).expect("a copy");
        assert!(copied.starts_with(&before) && copied.len() <= before.len() + 4, "{} bytes", copied.len());
    }
}

#[test]
fn local_copy_large_file_keeps_mode_and_time() {
    let local = tempdir().expect("a directory");
    let (source, copy) = (tree::file(&local.path().join("file"), 70_000_001), local.path().join("copy"));
    fs::set_permissions(&source, fs::Permissions::from_mode(0o640)).expect("a mode");
    let ended =
        downpour(arguments!["cp", "-p", "--json", "--checksums", local.path().join("sums"), source, copy]).end();
    let values = summary(&ended.expect(0).stdout);
    assert_eq!((&values["bytes"], &values["verified"]), (&70_000_001.into(), &true.into()), "{values}");
    tree::assert_same(&source, &copy);
    let listed = fs::read_to_string(local.path().join("sums")).expect("a list");
    assert!(listed.len() == 64 + "  copy\n".len() && listed.ends_with("  copy\n"), "{listed}");
}
