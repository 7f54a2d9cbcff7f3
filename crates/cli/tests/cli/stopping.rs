//! Ctrl-C and SIGTERM end every command at every stage within a second, even if it blocks. Before a command has begun
//! its work they have their default effect, which a shell shows as 130 and 143; afterwards it prints an error and exits
//! with 130 or 75.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};
use rustix::io::ioctl_fionread;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::{TempDir, tempdir};

use crate::fake_ssh::FakeHost;
use crate::program::{Program, arguments, command, downpour, end_within, poll_within, receiver, sender};
use crate::tree;

/// A second, and one more for a busy host.
const SOON: Duration = Duration::from_secs(2);
/// The longest time until a command reaches a stage, on such a host.
const PATIENCE: Duration = Duration::from_secs(30);

/// Exit codes of a stopped command, as a shell shows them: after SIGINT and after SIGTERM.
type Codes = [i32; 2];
const BY_DEFAULT: Codes = [130, 143];
const IN_WORDS: Codes = [130, 75];

/// Capacity of a pipe.
const PIPE: usize = 65_536;

/// A command at one of its stages.
struct Staged {
    child: Child,
    line: String,
}

impl Staged {
    fn start(mut command: Command) -> Self {
        let line = format!("{command:?}");
        Self { child: command.stderr(Stdio::null()).spawn().expect("downpour"), line }
    }

    /// Waits until the command has reached a stage.
    #[track_caller]
    fn wait_until<T>(&mut self, mut reached: impl FnMut() -> Option<T>) -> T {
        poll_within(PATIENCE, &self.line, || {
            let reached = reached();
            let ended = self.child.try_wait().expect("a child");
            assert!(reached.is_some() || ended.is_none(), "{} has ended: {ended:?}", self.line);
            reached
        })
    }

    /// Waits until the command blocks, which shows as sleeping.
    #[track_caller]
    fn wait_until_blocked(&mut self) {
        let status = format!("/proc/{}/stat", self.child.id());
        self.wait_until(|| {
            let text = fs::read_to_string(&status).unwrap_or_default();
            text.rsplit(')').next().is_some_and(|rest| rest.starts_with(" S")).then_some(())
        });
    }

    #[track_caller]
    fn stop(mut self, signal: Signal, codes: Codes) {
        kill_process(Pid::from_child(&self.child), signal).expect("a process");
        let status = end_within(SOON, &format!("after {signal:?}, {}", self.line), &mut self.child);
        let shown = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
        let wanted = codes[usize::from(signal == Signal::TERM)];
        assert_eq!(shown, Some(wanted), "{} after {signal:?}", self.line);
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        let _ = (self.child.kill(), self.child.wait());
    }
}

fn pipe_in(directory: &Path) -> PathBuf {
    let pipe = directory.join("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::from_raw_mode(0o600), 0).expect("a pipe");
    pipe
}

/// Returns the arguments in `words`, where `PIPE` is a FIFO, `FILE` a file and `NEW` does not exist.
fn line(words: &str, local: &Path) -> Vec<OsString> {
    let path = |name: &str| local.join(name).into_os_string();
    let word = |word: &str| match word {
        "PIPE" => path("pipe"),
        "FILE" => path("file"),
        "TREE" => path("tree"),
        "NEW" => path("new"),
        "TICKET" => path("new/ticket"),
        word => OsString::from(word),
    };
    words.split(' ').map(word).collect()
}

fn directory_with_pipe() -> TempDir {
    let local = tempdir().expect("a directory");
    tree::file(&local.path().join("file"), 1000);
    fs::create_dir(local.path().join("tree")).expect("a directory");
    pipe_in(local.path());
    local
}

/// Every file that a command reads before it begins is a FIFO into which nothing is written.
#[test]
fn signal_while_reading_option_file() {
    let copies = ["cp -r", "sync", "verify", "send"].into_iter().flat_map(|command| {
        let paths = if command == "send" { "TREE" } else { "TREE NEW" };
        let paths = if command == "verify" { "TREE FILE" } else { paths };
        ["--files-from", "--exclude-from", "--include-from", "--profile", "--config"]
            .map(|option| format!("{command} {option} PIPE {paths}"))
    });
    let others = [
        "send --to --ticket-file PIPE TREE",
        "recv --ticket-file PIPE",
        "recv --config PIPE",
        "doctor --profile PIPE far",
        "pipe --profile PIPE far true",
        "tunnel --profile PIPE -D 0 far",
        "tunnel --ticket-file PIPE -D 0",
        "tunnel --listen 127.0.0.1:0 --permit any --profile PIPE",
        "proxy --profile PIPE far",
        "profile show PIPE",
        "bootstrap --config PIPE far",
        "clean --config PIPE",
        "demo --config PIPE",
    ];
    for words in copies.chain(others.map(str::to_owned)) {
        for signal in [Signal::INT, Signal::TERM] {
            let local = directory_with_pipe();
            let mut command = command(line(&words, local.path()));
            command.env("DOWNPOUR_CONFIG", if words.contains("--config") { "" } else { "none" });
            let mut staged = Staged::start(command);
            // Opens once there is a reader.
            let mut options = File::options();
            options.write(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed());
            let pipe = local.path().join("pipe");
            let _writer = staged.wait_until(|| options.open(&pipe).ok());
            staged.wait_until_blocked();
            staged.stop(signal, BY_DEFAULT);
        }
    }
}

#[test]
fn signal_while_reading_list_from_stdin() {
    for words in ["cp -r", "sync", "verify", "send"] {
        for signal in [Signal::INT, Signal::TERM] {
            let local = directory_with_pipe();
            let rest = if words == "send" { "TREE" } else { "TREE FILE" };
            let mut command = command(line(&format!("{words} --files-from - {rest}"), local.path()));
            command.stdin(Stdio::piped());
            let mut staged = Staged::start(command);
            // More than the capacity of the pipe.
            let mut stdin = staged.child.stdin.take().expect("a pipe");
            stdin.write_all(&vec![b'\n'; 2 * PIPE]).expect("a command that reads");
            staged.stop(signal, BY_DEFAULT);
        }
    }
}

#[test]
fn signal_while_writing_trace() {
    for words in ["cp FILE NEW", "sync FILE NEW", "verify FILE FILE", "send FILE", "recv --listen 127.0.0.1:0"] {
        for signal in [Signal::INT, Signal::TERM] {
            let local = directory_with_pipe();
            let mut staged = Staged::start(command(line(&format!("{words} --qlog PIPE"), local.path())));
            staged.wait_until_blocked();
            staged.stop(signal, BY_DEFAULT);
        }
    }
    for signal in [Signal::INT, Signal::TERM] {
        let local = directory_with_pipe();
        File::create(local.path().join("file")).and_then(|file| file.set_len(100_000_000)).expect("a file");
        let mut staged = Staged::start(command(line("cp FILE NEW --qlog PIPE", local.path())));
        let reader = File::options().read(true).open(local.path().join("pipe")).expect("a pipe");
        staged.wait_until(|| ioctl_fionread(&reader).is_ok_and(|held| held > 60_000).then_some(()));
        staged.stop(signal, IN_WORDS);
    }
}

#[test]
fn signal_while_login_silent() {
    for words in [
        "cp FILE far:new",
        "cp far:file NEW",
        "sync TREE far:new",
        "verify FILE far:file",
        "pipe far cat",
        "tunnel -D 0 far",
        "proxy far",
        "doctor far",
        "bootstrap far",
    ] {
        for signal in [Signal::INT, Signal::TERM] {
            let far = FakeHost::with_login("touch begun; exec sleep 1000");
            let local = directory_with_pipe();
            let (name, rest) = words.split_once(' ').expect("a command");
            let mut staged = Staged::start(far.command(name, line(rest, local.path())));
            staged.wait_until(|| far.remote("begun").exists().then_some(()));
            staged.stop(signal, IN_WORDS);
            far.assert_empty(words);
        }
    }
}

#[test]
fn signal_while_stdout_blocked() {
    for words in ["sync -n TREE NEW", "cp -rn TREE NEW", "cp -r --json TREE NEW", "verify TREE NEW"] {
        for signal in [Signal::INT, Signal::TERM] {
            let local = directory_with_pipe();
            let names = (0..500).map(|number| local.path().join("tree").join(format!("{number:0200}")));
            names.for_each(|path| drop(tree::file(&path, 1)));
            fs::create_dir(local.path().join("new")).expect("a directory");
            let mut command = command(line(words, local.path()));
            command.stdout(Stdio::piped());
            let mut staged = Staged::start(command);
            let output = staged.child.stdout.take().expect("a pipe");
            staged.wait_until(|| ioctl_fionread(&output).is_ok_and(|held| held > 40_000).then_some(()));
            staged.wait_until_blocked();
            staged.stop(signal, IN_WORDS);
        }
    }
}

#[test]
fn signal_while_peer_silent() {
    for signal in [Signal::INT, Signal::TERM] {
        for is_sender_stopped in [true, false] {
            let local = directory_with_pipe();
            let (source, ticket, into) =
                (local.path().join("file"), local.path().join("ticket"), local.path().join("into"));
            File::create(&source).and_then(|file| file.set_len(100_000_000)).expect("a file");
            let sender = sender(&[&source], &ticket, &["--limit", "16M"]);
            let mut receiver = receiver(&ticket, &into, &["--json"]);
            receiver.wait_for("progress", |line| line.contains("\"progress\""));
            let (stopped, silent) = if is_sender_stopped { (receiver, sender) } else { (sender, receiver) };
            silent.signal(Signal::STOP);
            let begun = Instant::now();
            stopped.signal(signal);
            stopped.end().expect(IN_WORDS[usize::from(signal == Signal::TERM)]);
            assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
        }
    }
}

#[test]
fn signal_while_listening_or_prompting() {
    for signal in [Signal::INT, Signal::TERM] {
        let code = IN_WORDS[usize::from(signal == Signal::TERM)];
        let local = directory_with_pipe();
        let (file, ticket) = (local.path().join("file"), local.path().join("ticket"));
        for mut listening in [
            downpour(arguments!["send", "--listen", "127.0.0.1:0", "--ticket-file", ticket, file]),
            downpour(arguments!["recv", "--listen", "127.0.0.1:0", "--ticket-file", ticket]),
            downpour(arguments!["tunnel", "--listen", "127.0.0.1:0", "--permit", "any", "--ticket-file", ticket]),
        ] {
            listening.wait_for_words("Copy ticket file");
            listening.signal(signal);
            listening.end().expect(code);
            let _ = fs::remove_file(&ticket);
        }
        let sending = sender(&[&file], &ticket, &[]);
        let mut asking = command(arguments!["recv", "--ticket-file", ticket, "--into", local.path().join("into")]);
        asking.stdin(Stdio::piped());
        let mut asking = Program::start(asking);
        asking.wait_for_words("Into:");
        asking.signal(signal);
        asking.end().expect(code);
        drop(sending);
    }
}

#[test]
fn signal_to_demo_removes_files() {
    for (arguments, stage) in [("demo --size 1GB", "sample"), ("demo --size 1MB --link rate=100k", "downpour")] {
        for signal in [Signal::INT, Signal::TERM] {
            let local = tempdir().expect("a directory");
            let mut command = command(line(arguments, local.path()));
            // Small files go to a tmpfs, where other demos may have files too.
            command.env("TMPDIR", local.path()).args((stage == "downpour").then_some("--json"));
            command.stdout(Stdio::piped());
            let mut staged = Staged::start(command);
            let output = staged.child.stdout.take().expect("a pipe");
            staged.wait_until(|| match stage {
                "sample" => {
                    let directories = fs::read_dir(local.path()).expect("a directory").flatten();
                    directories.into_iter().any(|directory| directory.path().join(stage).exists()).then_some(())
                }
                _ => ioctl_fionread(&output).is_ok_and(|held| held > 500).then_some(()),
            });
            staged.stop(signal, IN_WORDS);
            assert_eq!(fs::read_dir(local.path()).expect("a directory").count(), 0, "{arguments} leaves files");
        }
    }
}

/// A shell without job control starts background processes with SIGINT ignored; ssh and rsync keep that too.
#[test]
fn ignored_signal_stays_ignored() {
    let local = directory_with_pipe();
    let program = env!("CARGO_BIN_EXE_downpour");
    let ignoring = |signals: &str, words: &str| {
        let mut shell =
            crate::program::program_with(Path::new("sh"), ["-c", &format!(r#"trap "" {signals}; exec "$@""#)]);
        shell.args(["sh", program]).args(line(words, local.path())).stdin(Stdio::piped());
        Staged::start(shell)
    };
    // While it reads, and while a loop handles signals.
    let mut reading = ignoring("INT", "cp --files-from - TREE NEW");
    let mut stdin = reading.child.stdin.take().expect("a pipe");
    stdin.write_all(&vec![b'\n'; 2 * PIPE]).expect("a command that reads");
    kill_process(Pid::from_child(&reading.child), Signal::INT).expect("a process");
    drop(stdin);
    assert_eq!(reading.child.wait().expect("a child").code(), Some(0));
    for (signals, ignored, signal) in [("INT", Signal::INT, Signal::TERM), ("TERM", Signal::TERM, Signal::INT)] {
        let mut waiting = ignoring(signals, "send FILE --listen 127.0.0.1:0 --ticket-file TICKET");
        let ticket = local.path().join("new/ticket");
        fs::create_dir_all(local.path().join("new")).expect("a directory");
        waiting.wait_until(|| ticket.exists().then_some(()));
        waiting.wait_until_blocked();
        kill_process(Pid::from_child(&waiting.child), ignored).expect("a process");
        receiver(&ticket, &local.path().join("into"), &["--existing", "skip"]).end().expect(0);
        assert_eq!(waiting.child.wait().expect("a child").code(), Some(0), "{signal:?}");
        fs::remove_file(&ticket).expect("a ticket");
    }
}
