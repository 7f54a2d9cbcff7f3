//! Mistakes of users of other programs, and failures outside of this one: one line says what happened and what to write
//! instead.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Stdio;
use std::time::SystemTime;

use downpour::{Role, Ticket};
use tempfile::tempdir;

use crate::fake_ssh::FakeHost;
use crate::program::{Program, answer, arguments, command, downpour, program_with};
use crate::tree;

#[test]
fn foreign_url_refused_without_directory() {
    for place in ["far::module", "s3://bucket/x", "sftp://far/x", "http://far/x"] {
        let far = FakeHost::new();
        tree::file(&far.remote("file"), 10);
        for paths in [["file", place], [place, "new"]] {
            let mut line = far.command("cp", paths);
            line.current_dir(far.home());
            let ended = Program::start(line).end().expect(2);
            assert!(ended.stderr.contains(place) && ended.stderr.contains("host:path"), "{}", ended.stderr);
            assert_eq!(tree::names(&far.home()), [Path::new("file")], "{place}");
        }
    }
}

#[test]
fn login_refused_exit_4() {
    for (words, wanted) in [
        ("me@far: Permission denied (publickey,password).", "cannot log in to far: me@far: Permission denied"),
        ("Host key verification failed.", "cannot log in to far: Host key verification failed"),
        ("Received disconnect from 192.0.2.1 port 22:2: Too many authentication failures", "Too many"),
    ] {
        let far = FakeHost::with_login(&format!("echo '{words}' >&2; exit 255"));
        for (name, rest) in [("cp", &["far:x", "new"][..]), ("doctor", &["far"]), ("tunnel", &["-D", "0", "far"])] {
            let mut line = far.command(name, rest);
            line.current_dir(far.home());
            Program::start(line).end().expect_line(4, wanted);
        }
    }
    let far = FakeHost::with_login("echo 'ssh: connect to host far port 22: Connection refused' >&2; exit 255");
    far.run("doctor", ["far"]).expect_line(5, "ssh could not connect or log in to far");
}

#[test]
fn remote_bin_wrong_program_named() {
    let far = FakeHost::new();
    let run = |program: &str| far.run("cp", ["--remote-bin", program, "far:x", "/nonexistent/new"]);
    run("/bin/true")
        .expect_line(5, "the program on far is not downpour: it exited without a reply; check --remote-bin");
    let absent = run("/nonexistent/downpour").expect_line(3, "/nonexistent/downpour not found on far");
    assert_eq!(absent.stderr.lines().count(), 1, "the shell there says nothing: {}", absent.stderr);
}

#[test]
fn ssh_setting_without_command_named() {
    for (setting, option) in [
        ("sessiontype none", "SessionType=default"),
        ("stdinnull yes", "StdinNull=no"),
        ("forkafterauthentication yes", "ForkAfterAuthentication=no"),
    ] {
        let far = FakeHost::new();
        let ssh = far.remote("ssh");
        // A busy host takes longer to answer than a name lookup may take.
        let takes = if option == "StdinNull=no" { 3 } else { 0 };
        let says = format!("sleep {takes}; echo '{setting}'; exit");
        let script = format!("#!/bin/sh\ncase \" $* \" in *' -G '*) {says};; esac\nexec sleep 1000 >&-\n");
        fs::write(&ssh, script).expect("a script");
        fs::set_permissions(&ssh, Permissions::from_mode(0o700)).expect("a mode");
        let mut line = command(arguments!["cp", "--ssh", ssh, "far:x", "new"]);
        line.current_dir(far.home());
        Program::start(line).end().expect_line(5, &format!("use --ssh 'ssh -o {option}'"));
    }
}

#[test]
fn misplaced_ticket_or_port_explained() {
    let local = tempdir().expect("a directory");
    let file = tree::file(&local.path().join("file"), 10);
    let addresses = vec!["192.0.2.1:7".parse().expect("an address")];
    let ticket = Ticket { key: [7; 32], expires: SystemTime::now(), addresses, listener: Role::Receiver };
    let ticket = ticket.to_text().expect("a text");
    downpour(arguments!["send", file, "--to", ticket]).end().expect_line(2, "write --to=TICKET");
    let damaged = &ticket[..ticket.len() / 2];
    for (word, code, expected) in
        [(damaged, 2, "write --to=TICKET"), ("garbage", 3, "garbage does not exist (if it is a ticket")]
    {
        downpour(arguments!["send", file, "--to", word]).end().expect_line(code, expected);
    }
    let new = local.path().join("new");
    downpour(arguments!["cp", "-p", "2222", file, new])
        .end()
        .expect_line(2, "use -P PORT for the port of the ssh server");
    for command in ["doctor", "bootstrap"] {
        downpour([command, "-p", "2222", "far"]).end().expect_line(2, "-p: use -P PORT for the port of the ssh server");
    }
    assert!(!new.exists());
}

#[test]
fn exclude_from_stdin() {
    let local = tempdir().expect("a directory");
    let (source, target) = (local.path().join("source"), local.path().join("target"));
    fs::create_dir(&source).expect("a directory");
    for name in ["a", "b.tmp", "c"] {
        tree::file(&source.join(name), 10);
    }
    let run = |rest: &[&str], lines: &str| {
        let mut line = command(arguments!["sync", source.join(""), target]);
        line.args(rest).stdin(Stdio::piped());
        let mut program = Program::start(line);
        answer(program.stdin(), lines);
        program.end()
    };
    run(&["--exclude-from", "-"], "*.tmp").expect(0);
    assert_eq!(tree::names(&target), [Path::new("a"), Path::new("c")]);
    run(&["--include-from", "-", "--exclude", "*"], "b.*").expect(0);
    assert_eq!(tree::names(&target), [Path::new("a"), Path::new("b.tmp"), Path::new("c")]);
    let (twice, both) = (["--exclude-from", "-", "--include-from", "-"], ["--exclude-from", "-", "--files-from", "-"]);
    for rest in [twice, both] {
        let mut line = command(arguments!["sync", source.join(""), target]);
        line.args(rest);
        Program::start(line).end().expect_line(2, "stdin can be read only once");
    }
}

#[test]
fn ulimit_file_size_named() {
    let local = tempdir().expect("a directory");
    let (file, copy) = (tree::file(&local.path().join("file"), 200_000), local.path().join("copy"));
    let limited = ["-c", r#"ulimit -f 8; exec "$@""#, "sh", env!("CARGO_BIN_EXE_downpour"), "cp"];
    let mut line = program_with(Path::new("sh"), limited);
    line.arg(file).arg(&copy);
    let ended = Program::start(line).end();
    ended.expect_line(7, "exceeds the limit of its file system or of this process (ulimit -f)");
    assert!(!copy.exists());
}
