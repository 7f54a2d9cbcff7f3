//! What a user of other programs writes first, and what fails outside of this one: each is told in one line that says what
//! happened and what to write instead.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Stdio;
use std::time::SystemTime;

use downpour::{Role, Ticket};
use tempfile::tempdir;

use crate::far::Far;
use crate::program::{Program, answer, arguments, command, downpour, program_with};
use crate::tree;

#[test]
fn a_place_of_another_kind_is_no_directory() {
    for place in ["far::module", "s3://bucket/x", "sftp://far/x", "http://far/x"] {
        let far = Far::new();
        tree::file(&far.there("file"), 10);
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
fn a_refused_login_has_a_code() {
    for (words, wanted) in [
        ("me@far: Permission denied (publickey,password).", "cannot log in to far: me@far: Permission denied"),
        ("Host key verification failed.", "cannot log in to far: Host key verification failed"),
        ("Received disconnect from 192.0.2.1 port 22:2: Too many authentication failures", "Too many"),
    ] {
        let far = Far::with_login(&format!("echo '{words}' >&2; exit 255"));
        for (name, rest) in [("cp", &["far:x", "new"][..]), ("doctor", &["far"]), ("tunnel", &["-D", "0", "far"])] {
            let mut line = far.command(name, rest);
            line.current_dir(far.home());
            Program::start(line).end().expect_line(4, wanted);
        }
    }
    let far = Far::with_login("echo 'ssh: connect to host far port 22: Connection refused' >&2; exit 255");
    far.run("doctor", ["far"]).expect_line(5, "ssh could not reach far or log in");
}

#[test]
fn a_program_that_is_none_is_named() {
    let far = Far::new();
    let run = |program: &str| far.run("cp", ["--remote-bin", program, "far:x", "/nonexistent/new"]);
    run("/bin/true")
        .expect_line(5, "what ran at far is no downpour, since it ended without a word; check --remote-bin");
    let absent = run("/nonexistent/downpour").expect_line(3, "far has no program /nonexistent/downpour");
    assert_eq!(absent.stderr.lines().count(), 1, "the shell there says nothing: {}", absent.stderr);
}

#[test]
fn a_setting_of_ssh_that_starts_nothing_is_named() {
    for (setting, option) in [
        ("sessiontype none", "SessionType=default"),
        ("stdinnull yes", "StdinNull=no"),
        ("forkafterauthentication yes", "ForkAfterAuthentication=no"),
    ] {
        let far = Far::new();
        let ssh = far.there("ssh");
        // A busy machine takes longer to say so than the lookup of a name may take.
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
fn a_ticket_or_port_in_the_wrong_place_is_no_file() {
    let here = tempdir().expect("a directory");
    let file = tree::file(&here.path().join("file"), 10);
    let addresses = vec!["192.0.2.1:7".parse().expect("an address")];
    let ticket = Ticket { key: [7; 32], expires: SystemTime::now(), addresses, listener: Role::Receiver };
    let ticket = ticket.to_text().expect("a text");
    downpour(arguments!["send", file, "--to", ticket]).end().expect_line(2, "write --to=TICKET");
    let damaged = &ticket[..ticket.len() / 2];
    for (word, code, said) in
        [(damaged, 2, "write --to=TICKET"), ("garbage", 3, "garbage does not exist (if it is a ticket")]
    {
        downpour(arguments!["send", file, "--to", word]).end().expect_line(code, said);
    }
    let new = here.path().join("new");
    downpour(arguments!["cp", "-p", "2222", file, new])
        .end()
        .expect_line(2, "use -P PORT for the port of the ssh server");
    for command in ["doctor", "bootstrap"] {
        downpour([command, "-p", "2222", "far"]).end().expect_line(2, "-p: use -P PORT for the port of the ssh server");
    }
    assert!(!new.exists());
}

#[test]
fn rules_come_from_stdin_as_names_do() {
    let here = tempdir().expect("a directory");
    let (source, target) = (here.path().join("source"), here.path().join("target"));
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
fn a_file_beyond_the_limit_of_its_size_is_told() {
    let here = tempdir().expect("a directory");
    let (file, copy) = (tree::file(&here.path().join("file"), 200_000), here.path().join("copy"));
    let limited = ["-c", r#"ulimit -f 8; exec "$@""#, "sh", env!("CARGO_BIN_EXE_downpour"), "cp"];
    let mut line = program_with(Path::new("sh"), limited);
    line.arg(file).arg(&copy);
    let ended = Program::start(line).end();
    ended.expect_line(7, "is beyond what this process may write (ulimit -f)");
    assert!(!copy.exists());
}
