//! `status`, and the signal by which a user asks a process how far it is.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::Signal;
use serde_json::Value;
use tempfile::{TempDir, tempdir};

use crate::fake_ssh::FakeHost;
use crate::program::{Ended, Program, arguments, command, json, program_with, wait_until};
use crate::tree;

/// A user whose processes find each other in a directory of their own.
struct User {
    directory: TempDir,
}

impl User {
    fn new() -> Self {
        let user = Self { directory: tempdir().expect("a directory") };
        fs::create_dir(user.runtime()).expect("a directory");
        user
    }

    fn runtime(&self) -> PathBuf {
        self.directory.path().join("run")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The sockets of those that run, or were killed.
    fn sockets(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.runtime().join("downpour")).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    }

    fn command<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Command {
        let mut command = command(arguments);
        command.env("XDG_RUNTIME_DIR", self.runtime());
        command
    }

    fn status(&self, arguments: &[&str]) -> Ended {
        Program::start(self.command(["status"].iter().chain(arguments))).end()
    }

    /// Starts a copy that takes a minute, and waits until some of it has arrived.
    fn slow_copy(&self, to: &str) -> Program {
        // Each copy has its own source: copies of one source to one directory exclude each other.
        let source = self.path(&format!("file-for-{to}"));
        fs::File::create(&source).and_then(|file| file.set_len(120_000_000)).expect("a sparse file");
        let mut copy = Program::start(self.command(arguments!["cp", "--json", "--rate", "16M", source, self.path(to)]));
        copy.wait_for("bytes that arrived", |line| line.contains("\"progress\"") && !line.contains("\"bytes\":0,"));
        copy
    }
}

/// The object of a process.
#[track_caller]
fn of(lines: &[Value], pid: u32) -> &Value {
    lines.iter().find(|line| line["pid"] == pid).unwrap_or_else(|| panic!("no {pid} in {lines:?}"))
}

#[test]
fn status_shows_running_transfers() {
    let user = User::new();
    let copy = user.slow_copy("copy");
    let (file, ticket, into) = (user.path("file-for-copy"), user.path("ticket"), user.path("into"));
    let waits = arguments!["send", "--listen", "127.0.0.1:0", "--ticket-file", ticket, file];
    let mut sender = Program::start(user.command(waits));
    sender.wait_for_words("Copy ticket file");
    let lines = json(&user.status(&["--json"]).expect(0).stdout);
    let (copied, waiting) = (of(&lines, copy.id()), of(&lines, sender.id()));
    assert_eq!(
        (&copied["type"], &copied["command"], &copied["answers"]),
        (&"running".into(), &"cp".into(), &true.into())
    );
    assert_eq!(copied["from"][0], *user.path("file-for-copy").to_string_lossy());
    assert_eq!(copied["to"], *user.path("copy").to_string_lossy());
    assert_eq!(
        (&copied["progress"]["known_bytes"], &copied["progress"]["known_files"]),
        (&120_000_000.into(), &1.into())
    );
    assert!(copied["progress"]["bytes"].as_u64().is_some_and(|bytes| bytes > 0), "{copied}");
    assert_eq!((&waiting["state"], &waiting["progress"]), (&"waiting".into(), &Value::Null));
    let words = user.status(&[]).expect(0).stdout;
    let line = |pid: u32| words.lines().find(|line| line.starts_with(&format!("{pid}  "))).map(str::to_owned);
    assert!(line(copy.id()).is_some_and(|line| line.contains("cp /") && line.contains(", for ")), "{words}");
    assert!(words.contains(" of 120 MB  ") && words.contains("\n    waiting for the peer\n"), "{words}");
    // With a receiver, both processes are shown; an argument selects one.
    let takes = arguments!["recv", "--yes", "--ticket-file", ticket, "--into", into, "--json"];
    let mut receiver = Program::start(user.command(takes));
    receiver.wait_for("bytes that arrived", |line| line.contains("\"progress\""));
    let alone = json(&user.status(&["--json", &receiver.id().to_string()]).expect(0).stdout);
    assert_eq!((alone.len(), &of(&alone, receiver.id())["command"]), (1, &"recv".into()));
    // A second Ctrl-C ends a process at once, and the end of any takes its socket away.
    let pids = [receiver.id(), sender.id(), copy.id()];
    for (program, pid) in [receiver, sender, copy].into_iter().zip(pids) {
        program.signal(Signal::INT);
        program.signal(Signal::INT);
        program.end();
        user.status(&[&pid.to_string()]).expect_line(1, "is not a running transfer of this user");
    }
    assert_eq!(user.sockets(), [] as [PathBuf; 0]);
    // Transfers outside of this test, which have no directory of their own, are shown too.
    let left = json(&user.status(&["--json"]).expect(0).stdout);
    assert!(pids.iter().all(|pid| left.iter().all(|line| line["pid"] != *pid)), "{left:?}");
    let words = user.status(&[]).expect(0);
    assert_eq!(words.stdout.is_empty(), words.stderr.contains("No transfers are running."), "{}", words.stderr);
}

#[test]
fn status_skips_stopped_and_killed_processes() {
    let user = User::new();
    let (copy, other) = (user.slow_copy("copy"), user.slow_copy("other"));
    copy.signal(Signal::STOP);
    let lines = json(&user.status(&["--json"]).expect(0).stdout);
    assert_eq!(of(&lines, copy.id())["answers"], false);
    assert_eq!(of(&lines, other.id())["answers"], true, "{lines:?}");
    let pid = copy.id().to_string();
    let words = user.status(&[&pid]).expect_error(8).stdout;
    assert!(words.contains("does not answer"), "{words}");
    copy.signal(Signal::KILL);
    copy.end();
    assert_eq!(user.sockets().len(), 2, "it had no time to remove its own");
    user.status(&[&pid]).expect_line(1, "is not a running transfer of this user");
    assert_eq!(user.sockets().len(), 1);
}

#[test]
fn status_refuses_other_users() {
    let user = User::new();
    // The least careful user, whose files are accessible to all.
    let (with_mask, program) = ("umask 0; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_downpour"));
    let (source, ticket) = (tree::file(&user.path("file"), 10), user.path("ticket"));
    let arguments =
        arguments!["-c", with_mask, program, "send", "--listen", "127.0.0.1:0", "--ticket-file", ticket, source];
    let mut command = program_with(Path::new("sh"), arguments);
    command.env("XDG_RUNTIME_DIR", user.runtime());
    let mut sender = Program::start(command);
    sender.wait_for_words("Copy ticket file");
    let [socket] = &user.sockets()[..] else { panic!("{:?}", user.sockets()) };
    let mode = |path: &Path| fs::metadata(path).expect("a path").permissions().mode() & 0o777;
    assert_eq!((mode(socket), mode(socket.parent().expect("a directory"))), (0o600, 0o700));
    if !rustix::process::geteuid().is_root() {
        eprintln!("NOT RUN: only root can become another user");
        return;
    }
    for path in [user.directory.path(), &user.runtime(), &user.runtime().join("downpour")] {
        fs::set_permissions(path, Permissions::from_mode(0o755)).expect("a mode");
    }
    let read = "import socket,sys; s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); print(s.recv(9))";
    let attempt = || {
        let mut python = Command::new("python3");
        python.args(["-c", read]).arg(socket).uid(65_534).gid(65_534).current_dir("/");
        let ended = python.output().expect("python3");
        String::from_utf8_lossy(&[ended.stdout, ended.stderr].concat()).into_owned()
    };
    assert!(attempt().contains("PermissionError"), "{}", attempt());
    // A socket with open modes still gives no answer to other users.
    fs::set_permissions(socket, Permissions::from_mode(0o666)).expect("a mode");
    assert_eq!(attempt(), "b''\n");
    assert!(user.status(&[]).expect(0).stdout.contains("send /"));
}

#[test]
fn status_socket_unavailable_copy_works() {
    let user = User::new();
    let source = tree::file(&user.path("file"), 10);
    for place in [PathBuf::from("/dev/null"), user.path("absent")] {
        let mut copy = command(arguments!["cp", source, user.path("copy")]);
        copy.env("XDG_RUNTIME_DIR", &place).env("XDG_CACHE_HOME", "/dev/null").env("HOME", "/dev/null");
        Program::start(copy).end().expect(0);
    }
}

/// They continue after the signal.
#[test]
fn status_shows_pipes_and_tunnels() {
    let far = FakeHost::new();
    let mut command = far.command("pipe", ["--via=ssh", "far", "cat"]);
    command.stdin(Stdio::piped());
    let mut pipe = Program::start(command);
    let mut stdin = pipe.stdin();
    stdin.write_all(b"hello\n").expect("it reads");
    pipe.wait_for("its answer", |line| line == "hello");
    pipe.signal(Signal::USR1);
    pipe.wait_for_words("6 B of stdin read");
    let mut tunnel = Program::start(far.command("tunnel", ["--via=ssh", "-L", "0:localhost:9", "far"]));
    tunnel.wait_for_words("The tunnel to far is open");
    tunnel.signal(Signal::USR1);
    tunnel.wait_for_words("0 connections open, 0 in total");
    let mut status = crate::program::command(["status", "--json"]);
    let lines = json(
        &Program::start({
            status.env("XDG_RUNTIME_DIR", far.runtime());
            status
        })
        .end()
        .expect(0)
        .stdout,
    );
    let (piping, tunnelling) = (of(&lines, pipe.id()), of(&lines, tunnel.id()));
    assert_eq!((&piping["command"], &piping["to"], &piping["piped_bytes"]), (&"pipe".into(), &"far".into(), &6.into()));
    assert!(!piping.to_string().contains("cat"), "its command may have secrets: {piping}");
    assert_eq!((&tunnelling["command"], &tunnelling["connections_open"]), (&"tunnel".into(), &0.into()));
    drop(stdin);
    pipe.end().expect(0);
    tunnel.signal(Signal::INT);
    tunnel.end().expect(130);
}

/// Processes started through ssh run as this user too. A restricted key makes no socket outside of its directory.
#[test]
fn status_on_remote_host_shows_copy() {
    for (limit, shown) in [("", 1), ("--only . --read-only", 0)] {
        let program = env!("CARGO_BIN_EXE_downpour");
        let far =
            FakeHost::with_login(&format!("export XDG_RUNTIME_DIR=\"$FAR_HOME/run\"; exec {program} remote {limit}"));
        fs::create_dir(far.remote("run")).expect("a directory");
        fs::File::create(far.remote("file")).and_then(|file| file.set_len(120_000_000)).expect("a sparse file");
        let into = tempdir().expect("a directory");
        let target = into.path().join("copy");
        let mut copy = Program::start(far.command("cp", arguments!["--json", "--rate", "16M", "far:file", target]));
        copy.wait_for("bytes that arrived", |line| line.contains("\"progress\"") && !line.contains("\"bytes\":0,"));
        let mut status = crate::program::command(["status", "--json"]);
        status.env("XDG_RUNTIME_DIR", far.remote("run"));
        let lines = json(&Program::start(status).end().expect(0).stdout);
        let remotes: Vec<_> =
            far.processes("remote").iter().map(|pid| pid.as_raw_nonzero().get().unsigned_abs()).collect();
        let found = lines
            .iter()
            .filter(|line| line["pid"].as_u64().is_some_and(|pid| remotes.iter().any(|one| u64::from(*one) == pid)));
        let found: Vec<_> = found.collect();
        let is_file = |from: &Value| from.as_str().is_some_and(|from| from.ends_with("file"));
        assert_eq!(found.len(), shown, "{lines:?} of {remotes:?}");
        assert!(found.iter().all(|line| line["command"] == "remote" && is_file(&line["from"][0])), "{found:?}");
        copy.signal(Signal::INT);
        copy.end().expect(130);
    }
}

/// A command may take any time to read its arguments from stdin.
#[test]
fn sigusr1_while_reading_arguments_ignored() {
    let user = User::new();
    let (source, copy) = (tree::file(&user.path("file"), 10), user.path("copy"));
    let mut command = user.command(arguments!["cp", "--exclude-from", "-", source, copy]);
    command.stdin(Stdio::piped());
    let mut reads = Program::start(command);
    let stdin = reads.stdin();
    wait_until("the signal has a handler", || {
        assert!(reads.is_running(), "the program has ended");
        catches(reads.id(), Signal::USR1)
    });
    reads.signal(Signal::USR1);
    drop(stdin);
    reads.end().expect(0);
    assert_eq!(fs::read(copy).expect("a copy"), fs::read(source).expect("a file"));
}

/// Whether a process has a handler for a signal.
fn catches(pid: u32, signal: Signal) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap_or_default();
    u64::from_str_radix(caught.trim(), 16).is_ok_and(|caught| caught >> (signal.as_raw() - 1) & 1 == 1)
}
