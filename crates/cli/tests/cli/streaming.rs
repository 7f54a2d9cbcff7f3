//! `send -` and `recv -`: a stream under a name. And tickets as people paste them.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use rustix::io::ioctl_fionread;
use rustix::process::Signal;
use tempfile::{TempDir, tempdir};

use crate::program::{Ended, Program, answer, arguments, command, downpour, sender, wait_until};
use crate::terminal::Terminal;

/// Bytes that are not text, and more than fit into pipes and initial windows.
fn bytes() -> Vec<u8> {
    (0..3_000_000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

/// A directory with a ticket, and a target.
struct Scene {
    local: TempDir,
}

impl Scene {
    fn new() -> Self {
        let local = tempdir().expect("a directory");
        fs::create_dir(local.path().join("into")).expect("a directory");
        Self { local }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.local.path().join(name)
    }

    /// Starts `send -` with this name; returns it once its ticket is in the file.
    fn send(&self, name: &str, stdin: Stdio) -> Program {
        let ticket = self.path("ticket");
        let mut command =
            command(arguments!["send", "-", "--name", name, "--listen", "127.0.0.1:0", "--ticket-file", ticket]);
        command.stdin(stdin);
        let mut program = Program::start(command);
        program.wait_for_words("Copy ticket file");
        program
    }

    /// Starts `send -` of these bytes.
    fn send_bytes(&self, name: &str, bytes: &[u8]) -> Program {
        fs::write(self.path("source"), bytes).expect("a file");
        self.send(name, File::open(self.path("source")).expect("a file").into())
    }

    /// Starts `recv` with these arguments; its stdout goes to a file.
    fn recv<S: AsRef<OsStr>>(&self, more: impl IntoIterator<Item = S>) -> Program {
        let mut command = command(arguments!["recv", "--ticket-file", self.path("ticket")]);
        command.args(more).stdout(File::create(self.path("out")).expect("a file"));
        Program::start(command)
    }

    fn arrived(&self) -> Vec<String> {
        let names = fs::read_dir(self.path("into")).expect("a directory");
        names.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
    }
}

#[test]
fn stream_from_stdin_to_stdout() {
    let (scene, bytes) = (Scene::new(), bytes());
    for bytes in [&bytes[..], b"", b"one line\n"] {
        let sending = scene.send_bytes("backup.tar", bytes);
        scene.recv(["-"]).end().expect(0);
        assert!(fs::read(scene.path("out")).expect("a file") == bytes);
        assert!(sending.end().expect(0).stderr.contains("as backup.tar, verified by the receiver."));
    }
    // --into - is the same.
    let sending = scene.send_bytes("backup.tar", &bytes);
    scene.recv(["--into", "-"]).end().expect(0);
    assert!(fs::read(scene.path("out")).expect("a file") == bytes);
    sending.end().expect(0);
    assert!(!Path::new("-").exists());
}

#[test]
fn stream_into_directory_gets_its_name() {
    let (scene, bytes) = (Scene::new(), bytes());
    let into = scene.path("into");
    let sending = scene.send_bytes("backup.tar", &bytes);
    let stderr = scene.recv(arguments!["--yes", "--into", into]).end().expect(0).stderr;
    assert!(stderr.contains("Offered: backup.tar (a stream of unknown length, not resumable)"), "{stderr}");
    assert!(fs::read(into.join("backup.tar")).expect("a file") == bytes);
    sending.end().expect(0);
    // An existing file is kept, unless `--existing replace` is set.
    let sending = scene.send_bytes("backup.tar", b"other");
    scene.recv(arguments!["--yes", "--into", into]).end().expect_line(1, "backup.tar exists and is not replaced");
    sending.end().expect_line(1, "exists and is not replaced");
    assert!(fs::read(into.join("backup.tar")).expect("a file") == bytes);
    let sending = scene.send_bytes("backup.tar", b"other");
    scene.recv(arguments!["--yes", "--existing", "replace", "--into", into]).end().expect(0);
    sending.end().expect(0);
    assert_eq!(fs::read(into.join("backup.tar")).expect("a file"), b"other");
    assert_eq!(scene.arrived(), ["backup.tar"]);
    // Without an answer nothing is accepted.
    let sending = scene.send_bytes("more", b"other");
    scene.recv(arguments!["--into", into]).end().expect_line(2, "stream declined: no answer on stdin");
    sending.end().expect_line(1, "declined");
    let sending = scene.send_bytes("more", &bytes);
    scene.recv(arguments!["--yes", "--quota", "1MB", "--into", into]).end().expect_error(7);
    sending.end().expect(7);
    assert_eq!(scene.arrived(), ["backup.tar"]);
}

#[test]
fn stream_interrupted_leaves_no_file() {
    let scene = Scene::new();
    let into = scene.path("into");
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 75), (Signal::KILL, -1)] {
        let mut sending = scene.send("backup.tar", Stdio::piped());
        let mut input = sending.stdin();
        input.write_all(&[7; 1_000]).expect("a program that reads");
        let mut receiving = scene.recv(arguments!["--yes", "--into", into]);
        receiving.wait_for_words("Offered: backup.tar");
        sending.signal(signal);
        let ended = sending.end();
        assert_eq!(ended.status.code().unwrap_or(-1), code, "{}", ended.stderr);
        drop(input);
        let ended = receiving.end();
        assert!(matches!(ended.status.code(), Some(1 | 8)), "{} {}", ended.status, ended.stderr);
        assert!(scene.arrived().is_empty(), "{signal:?}");
    }
    // The receiver is stopped.
    let mut sending = scene.send("backup.tar", Stdio::piped());
    let input = sending.stdin();
    let mut receiving = scene.recv(arguments!["--yes", "--into", into]);
    receiving.wait_for_words("Offered: backup.tar");
    receiving.signal(Signal::INT);
    receiving.end().expect(130);
    sending.end().expect_line(1, "error from the receiver: interrupted by its user");
    assert!(scene.arrived().is_empty());
    drop(input);
}

#[test]
fn stream_stdout_full_fails_on_both_sides() {
    if !Path::new("/dev/full").exists() {
        eprintln!("NOT RUN: there is no /dev/full");
        return;
    }
    let scene = Scene::new();
    let sending = scene.send_bytes("backup.tar", b"some");
    let mut command = command(arguments!["recv", "-", "--ticket-file", scene.path("ticket")]);
    command.stdout(File::options().write(true).open("/dev/full").expect("a device"));
    Program::start(command).end().expect_error(7);
    sending.end().expect(1);
}

#[test]
fn recv_file_to_stdout() {
    let (scene, bytes) = (Scene::new(), bytes());
    let file = scene.path("file");
    fs::write(&file, &bytes).expect("a file");
    let sending = sender(&[&file], &scene.path("ticket"), &[]);
    scene.recv(["-"]).end().expect(0);
    assert!(fs::read(scene.path("out")).expect("a file") == bytes);
    sending.end().expect(0);
}

/// The file has arrived, and a pager does not read it to the end.
#[test]
fn recv_to_stdout_signal_removes_file() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 75)] {
        let (scene, bytes) = (Scene::new(), bytes());
        let file = scene.path("file");
        fs::write(&file, &bytes).expect("a file");
        fs::create_dir(scene.path("tmp")).expect("a directory");
        let sending = sender(&[&file], &scene.path("ticket"), &[]);
        let mut command = command(arguments!["recv", "-", "--ticket-file", scene.path("ticket")]);
        let (reader, writer) = std::io::pipe().expect("a pipe");
        let program = Program::start({
            command.env("TMPDIR", scene.path("tmp")).stdout(writer);
            command
        });
        sending.end().expect(0);
        wait_until("output in the pipe", || {
            assert!(program.is_running(), "the program has ended");
            ioctl_fionread(&reader).is_ok_and(|held| held > 0)
        });
        program.signal(signal);
        program.end().expect(code);
        assert_eq!(fs::read_dir(scene.path("tmp")).expect("a directory").count(), 0, "{signal:?}");
        drop(reader);
    }
}

#[test]
fn stream_status_shows_received_bytes() {
    let scene = Scene::new();
    let runtime = scene.path("run");
    fs::create_dir(&runtime).expect("a directory");
    let mut sending = scene.send("backup.tar", Stdio::piped());
    let mut stdin = sending.stdin();
    stdin.write_all(b"seven b").expect("a pipe");
    // The directory does not exist, as that of files need not.
    let into = scene.path("new/into");
    let mut receive = command(arguments!["recv", "--yes", "--into", into, "--ticket-file", scene.path("ticket")]);
    receive.env("XDG_RUNTIME_DIR", &runtime);
    let mut receiving = Program::start(receive);
    receiving.wait_for_words("Offered: backup.tar");
    wait_until("the bytes in the status", || {
        assert!(receiving.is_running(), "the program has ended");
        let mut status = command(["status"]);
        status.env("XDG_RUNTIME_DIR", &runtime);
        Program::start(status).end().expect(0).stdout.contains("7 B received")
    });
    drop(stdin);
    sending.end().expect(0);
    receiving.end().expect(0);
    assert_eq!(fs::read(into.join("backup.tar")).expect("a file"), b"seven b");
}

#[test]
fn stream_arguments_invalid_exit_2() {
    for (arguments, words) in [
        (&["-", "file"][..], "stdin cannot be sent with other paths"),
        (&["file", "--name", "x"], "stdin cannot be sent with other paths"),
        (&["-", "--name", "a/b"], "write a name of at most 255 bytes without a slash"),
        (&["-", "--name", ".."], "write a name of at most 255 bytes without a slash"),
        (&["-", "--to"], "omit --to"),
        (&["-", "--keep"], "omit --keep"),
        (&["-", "--files-from", "-"], "needs a directory, not stdin"),
        (&["-", "--qlog", "trace"], "--qlog does not support streams"),
        (&["-", "--json"], "--json does not support streams"),
    ] {
        downpour([&["send"], arguments].concat()).end().expect_line(2, words);
    }
    downpour(["recv", "-", "--json"]).end().expect_line(2, "omit --listen and --json");
    let (_terminal, stdin, stdout) = Terminal::open();
    let mut command = command(["recv", "-"]);
    command.stdin(stdin).stdout(Stdio::from(stdout));
    Program::start(command).end().expect_line(2, "redirect stdout, or use --into DIR");
}

/// Runs `recv` with this on stdin, in the environment, or as arguments.
fn recv_with(stdin: &str, variable: Option<&str>, words: &[&str], into: &Path) -> Ended {
    let mut command = command(arguments!["recv", "--yes", "--into", into]);
    command.args(words).stdin(Stdio::piped());
    if let Some(ticket) = variable {
        command.env("DOWNPOUR_TICKET", ticket);
    }
    let mut program = Program::start(command);
    answer(program.stdin(), stdin);
    program.end()
}

#[test]
fn ticket_accepted_as_pasted() {
    let scene = Scene::new();
    let file = scene.path("file");
    fs::write(&file, "bytes").expect("a file");
    let mut number = 0;
    let mut pastes = |run: &dyn Fn(&str, &Path) -> Ended| {
        number += 1;
        let (into, file_of_ticket) = (scene.path(&number.to_string()), scene.path(&format!("ticket{number}")));
        fs::create_dir(&into).expect("a directory");
        let sending = sender(&[&file], &file_of_ticket, &[]);
        let text = fs::read_to_string(&file_of_ticket).expect("a ticket");
        run(text.trim(), &into).expect(0);
        assert_eq!(fs::read(into.join("file")).expect("a copy"), b"bytes");
        sending.end().expect(0);
    };
    pastes(&|text, into| recv_with(&format!("{}\n{}", &text[..40], &text[40..]), None, &[], into));
    pastes(&|text, into| {
        recv_with(&format!("> {}\n> {}\n> {}", &text[..20], &text[20..50], &text[50..]), None, &[], into)
    });
    pastes(&|text, into| recv_with(&format!("Ticket: `{text}`"), None, &[], into));
    pastes(&|text, into| recv_with(&format!("\u{feff}\"{text}\""), None, &[], into));
    pastes(&|text, into| recv_with("", Some(&format!("'{text}'\n")), &[], into));
    pastes(&|text, into| recv_with("", None, &[&text[..40], &text[40..]], into));
    pastes(&|text, into| {
        let file = into.with_extension("pasted");
        fs::write(&file, format!("```\r\ndownpour recv \u{a0}{text}\r\n```\r\n")).expect("a file");
        recv_with("", None, &["--ticket-file", file.to_str().expect("text")], into)
    });
}

#[test]
fn ticket_never_in_errors() {
    let scene = Scene::new();
    let key = data_encoding::BASE32_NOPAD.encode(&[0x5a; 60]).to_ascii_lowercase();
    let damaged = format!("downpour1{key}");
    let (first, second) = damaged.split_at(50);
    for (stdin, variable, words) in [
        (&damaged[..], None, &[][..]),
        ("", Some(&damaged[..]), &[]),
        ("", None, &[&damaged[..]]),
        ("", None, &[first, second]),
        ("", None, &["--", first, second]),
    ] {
        let ended = recv_with(stdin, variable, words, &scene.path("into"));
        assert_eq!(ended.status.code(), Some(4), "{}", ended.stderr);
        let output = ended.stdout + &ended.stderr;
        assert!(
            output.contains("ticket damaged") && !output.contains(&second[..10]) && !output.contains(&first[20..]),
            "{output}"
        );
    }
}
