//! `bootstrap` to a host without the program.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::fake_ssh::FakeHost;
use crate::program::arguments;

fn is_the_program(path: &Path) -> bool {
    let mode = fs::metadata(path).expect("a file").permissions().mode();
    mode & 0o777 == 0o755
        && fs::read(path).expect("a file") == fs::read(env!("CARGO_BIN_EXE_downpour")).expect("a file")
}

#[test]
fn bootstrap_copies_program_and_reports_it() {
    let far = FakeHost::new();
    let stderr = far.run("bootstrap", ["far"]).expect(0).stderr;
    let path = far.remote(".local/bin/downpour");
    let lines: Vec<&str> = stderr.lines().collect();
    assert!(
        lines[0].starts_with("Copying downpour (") && lines[0].ends_with(") to ~/.local/bin/downpour on far"),
        "{stderr}"
    );
    assert_eq!(lines[1..], [format!("Installed {} on far", path.display())]);
    assert!(is_the_program(&path));
    // A second run replaces it and leaves nothing else.
    fs::write(&path, "older").expect("a file");
    assert_eq!(far.run("bootstrap", ["-q", "far"]).expect(0).stderr, "");
    assert!(is_the_program(&path));
    assert_eq!(fs::read_dir(far.remote(".local/bin")).expect("a directory").count(), 1);
    let odd = "a b/$(id) 'x'";
    far.run("bootstrap", ["--to", odd, "far"]).expect(0);
    assert!(is_the_program(&far.remote(odd)));
}

#[test]
fn bootstrap_unrunnable_file_not_installed() {
    let far = FakeHost::new();
    let file = far.remote("text");
    fs::write(&file, "not a program").expect("a file");
    let ended = far.run("bootstrap", ["--from", file.to_str().expect("text"), "far"]);
    ended.expect_line(1, "cannot install downpour on far: new binary does not run");
    assert_eq!(fs::read_dir(far.remote(".local/bin")).expect("a directory").count(), 0);
    far.run("bootstrap", ["--to", ".local/bin", "far"]).expect_line(1, ".local/bin is a directory: name a file in it");
    assert_eq!(fs::read_dir(far.remote(".local/bin")).expect("a directory").count(), 0);
    far.run("bootstrap", ["--to", "new/", "far"]).expect_line(1, "new/ is a directory: name a file in it");
    far.run("bootstrap", ["--to", "", "far"]).expect(2);
    far.run("bootstrap", ["--from", "/dev/zero", "far"]).expect_line(1, "/dev/zero: not a regular file");
    far.run("bootstrap", ["--from", "/bin/true", "far"])
        .expect_line(1, "digest mismatch: not downpour, or copied incompletely");
    assert_eq!(fs::read_dir(far.remote(".local/bin")).expect("a directory").count(), 0);
    far.run("bootstrap", ["--to", "text/downpour", "far"]).expect_line(1, "cannot install downpour on far");
    far.run("bootstrap", ["--from", "/nonexistent", "far"]).expect_line(1, "/nonexistent: No such file");
}

#[test]
fn bootstrap_forced_command_login_refused() {
    let program = env!("CARGO_BIN_EXE_downpour");
    for line in [format!("exec {program} remote"), format!("echo Hello; exec {program} remote --only .")] {
        let far = FakeHost::with_login(&line);
        far.run("bootstrap", ["far"]).expect_line(7, "the login to far runs only downpour");
        assert!(!far.remote(".local").exists());
    }
}

/// Commands that log in, with arguments for the host `far`.
const LOGINS: [&[&str]; 8] = [
    &["bootstrap", "far"],
    &["cp", "far:file", "."],
    &["sync", "far:file", "."],
    &["verify", "far:file", "Cargo.toml"],
    &["doctor", "far"],
    &["pipe", "far", "true"],
    &["tunnel", "-L", "0:localhost:9", "far"],
    &["proxy", "far"],
];

#[test]
fn login_greeting_without_newline_works() {
    // A part of a marker, too, and the command itself, as a login may show it.
    let far = FakeHost::with_login(r#"printf '%s\nWelcome to far, DOWNPOUR-SYST' "$command"; exec sh -c "$command""#);
    far.run("bootstrap", ["far"]).expect(0);
    assert!(is_the_program(&far.remote(".local/bin/downpour")));
    let ended = far.run("bootstrap", ["--to", ".local/bin", "far"]);
    ended.expect_line(1, ".local/bin is a directory: name a file in it");
    fs::write(far.remote("file"), "bytes").expect("a file");
    let local = tempfile::tempdir().expect("a directory");
    far.run("cp", arguments!["far:file", local.path()]).expect(0);
    assert_eq!(fs::read(local.path().join("file")).expect("a copy"), b"bytes");
    assert_eq!(far.run("pipe", ["far", "cat file"]).expect(0).stdout, "bytes\n");
}

#[test]
fn login_refusal_quoted_by_every_command() {
    let far = FakeHost::with_login(r"printf 'Hello\n\033[31mThis account is currently not available.'; exit 1");
    for arguments in LOGINS {
        let ended = far.run(arguments[0], &arguments[1..]);
        let words = r"cannot log in to far: Hello / \u{1b}[31mThis account is currently not available.";
        assert!(ended.stderr.contains(words), "{arguments:?}: {}", ended.stderr);
        assert_eq!(ended.status.code(), Some(4), "{arguments:?}: {}", ended.stderr);
    }
}

#[test]
fn login_endless_output_exit_5() {
    let far = FakeHost::with_login("exec cat /dev/zero");
    for arguments in LOGINS {
        let ended = far.run(arguments[0], &arguments[1..]);
        let words = "far: endless login output without a reply of downpour";
        assert!(ended.stderr.contains(words), "{arguments:?}: {}", ended.stderr);
        assert_eq!(ended.status.code(), Some(5), "{arguments:?}: {}", ended.stderr);
    }
}

#[test]
fn scp_url_works_and_rsync_url_refused() {
    let (far, local) = (FakeHost::new(), tempfile::tempdir().expect("a directory"));
    fs::create_dir(far.remote("a b")).expect("a directory");
    fs::write(far.remote("a b/file"), "bytes").expect("a file");
    for (number, url) in ["scp://far/a%20b/file", "scp://me@far:2222/a%20b/file"].into_iter().enumerate() {
        let copy = local.path().join(number.to_string());
        far.run("cp", arguments![url, copy]).expect(0);
        assert_eq!(fs::read(copy).expect("a copy"), b"bytes");
    }
    let file = local.path().join("0");
    far.run("cp", arguments![file, "scp://far/copy"]).expect(0);
    assert_eq!(fs::read(far.remote("copy")).expect("a copy"), b"bytes");
    for (url, words) in [("rsync://far/module", "is an rsync daemon"), ("scp://far:x/y", "invalid scp URL")] {
        let refused = far.run("cp", arguments![file, url]);
        assert_eq!((refused.status.code(), refused.stderr.contains(words)), (Some(2), true), "{}", refused.stderr);
    }
    assert!(!Path::new("rsync:").exists() && !Path::new("scp:").exists());
}

#[test]
fn bootstrap_to_plain_name_is_in_home() {
    let far = FakeHost::new();
    for name in ["downpour", "-x"] {
        far.run("bootstrap", [&format!("--to={name}"), "far"]).expect(0);
        assert!(is_the_program(&far.remote(name)), "{name}");
    }
}
