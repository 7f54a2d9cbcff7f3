//! Ctrl-C and SIGTERM end every command at every stage, within a second: nothing that blocks swallows them. Before
//! anything has begun they have their default effect, which a shell shows as 130 and 143; what has begun says a word
//! and ends with 130 and 75.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};
use rustix::io::ioctl_fionread;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::{TempDir, tempdir};

use crate::far::Far;
use crate::program::{Program, arguments, command, downpour, receiver, sender};
use crate::tree;

/// A second, and one more for a busy machine.
const SOON: Duration = Duration::from_secs(2);
/// How long a command may take to a stage, on such a machine.
const PATIENCE: Duration = Duration::from_secs(30);
const STEP: Duration = Duration::from_millis(2);

/// How a command that is stopped ends, as a shell shows it: by SIGINT and by SIGTERM.
type Codes = [i32; 2];
const BY_DEFAULT: Codes = [130, 143];
const IN_WORDS: Codes = [130, 75];

/// What a pipe holds.
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

    /// Waits until it has come to a stage.
    #[track_caller]
    fn wait_until<T>(&mut self, mut is_there: impl FnMut() -> Option<T>) -> T {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(there) = is_there() {
                return there;
            }
            let ended = self.child.try_wait().expect("a child");
            assert!(ended.is_none(), "{} has ended: {ended:?}", self.line);
            assert!(Instant::now() < deadline, "{} does not come so far", self.line);
            sleep(STEP);
        }
    }

    /// Waits until it sleeps: it waits for what does not come.
    #[track_caller]
    fn sleeps(&mut self) {
        let status = format!("/proc/{}/stat", self.child.id());
        self.wait_until(|| {
            let text = fs::read_to_string(&status).unwrap_or_default();
            text.rsplit(')').next().is_some_and(|rest| rest.starts_with(" S")).then_some(())
        });
    }

    #[track_caller]
    fn stop(mut self, signal: Signal, codes: Codes) {
        kill_process(Pid::from_child(&self.child), signal).expect("a process");
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                break status;
            }
            if begun.elapsed() > SOON {
                let _ = (self.child.kill(), self.child.wait());
                panic!("{} goes on after {signal:?}", self.line);
            }
            sleep(STEP);
        };
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

/// The command lines of `words`, where `PIPE` is a pipe, `FILE` a file and `NEW` no file yet.
fn line(words: &str, here: &Path) -> Vec<OsString> {
    let path = |name: &str| here.join(name).into_os_string();
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

fn place() -> TempDir {
    let here = tempdir().expect("a directory");
    tree::file(&here.path().join("file"), 1000);
    fs::create_dir(here.path().join("tree")).expect("a directory");
    pipe_in(here.path());
    here
}

/// Everything that a command reads before it begins comes from a pipe into which nothing is written.
#[test]
fn an_input_that_does_not_come_keeps_no_command() {
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
            let here = place();
            let mut command = command(line(&words, here.path()));
            command.env("DOWNPOUR_CONFIG", if words.contains("--config") { "" } else { "none" });
            let mut staged = Staged::start(command);
            // Opens once there is a reader.
            let mut options = File::options();
            options.write(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed());
            let pipe = here.path().join("pipe");
            let _writer = staged.wait_until(|| options.open(&pipe).ok());
            staged.sleeps();
            staged.stop(signal, BY_DEFAULT);
        }
    }
}

#[test]
fn a_list_on_stdin_without_an_end_keeps_no_command() {
    for words in ["cp -r", "sync", "verify", "send"] {
        for signal in [Signal::INT, Signal::TERM] {
            let here = place();
            let rest = if words == "send" { "TREE" } else { "TREE FILE" };
            let mut command = command(line(&format!("{words} --files-from - {rest}"), here.path()));
            command.stdin(Stdio::piped());
            let mut staged = Staged::start(command);
            // More than the pipe takes before it is read.
            let mut stdin = staged.child.stdin.take().expect("a pipe");
            stdin.write_all(&vec![b'\n'; 2 * PIPE]).expect("a command that reads");
            staged.stop(signal, BY_DEFAULT);
        }
    }
}

#[test]
fn a_trace_that_nobody_reads_keeps_no_command() {
    for words in ["cp FILE NEW", "sync FILE NEW", "verify FILE FILE", "send FILE", "recv --listen 127.0.0.1:0"] {
        for signal in [Signal::INT, Signal::TERM] {
            let here = place();
            let mut staged = Staged::start(command(line(&format!("{words} --qlog PIPE"), here.path())));
            staged.sleeps();
            staged.stop(signal, BY_DEFAULT);
        }
    }
    for signal in [Signal::INT, Signal::TERM] {
        let here = place();
        File::create(here.path().join("file")).and_then(|file| file.set_len(100_000_000)).expect("a file");
        let mut staged = Staged::start(command(line("cp FILE NEW --qlog PIPE", here.path())));
        let reader = File::options().read(true).open(here.path().join("pipe")).expect("a pipe");
        staged.wait_until(|| ioctl_fionread(&reader).is_ok_and(|held| held > 60_000).then_some(()));
        staged.stop(signal, IN_WORDS);
    }
}

#[test]
fn a_login_that_says_nothing_keeps_no_command() {
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
            let far = Far::with_login("touch begun; exec sleep 1000");
            let here = place();
            let (name, rest) = words.split_once(' ').expect("a command");
            let mut staged = Staged::start(far.command(name, line(rest, here.path())));
            staged.wait_until(|| far.there("begun").exists().then_some(()));
            staged.stop(signal, IN_WORDS);
            far.assert_empty(words);
        }
    }
}

#[test]
fn an_output_that_nobody_reads_keeps_no_command() {
    for words in ["sync -n TREE NEW", "cp -rn TREE NEW", "cp -r --json TREE NEW", "verify TREE NEW"] {
        for signal in [Signal::INT, Signal::TERM] {
            let here = place();
            let names = (0..500).map(|number| here.path().join("tree").join(format!("{number:0200}")));
            names.for_each(|path| drop(tree::file(&path, 1)));
            fs::create_dir(here.path().join("new")).expect("a directory");
            let mut command = command(line(words, here.path()));
            command.stdout(Stdio::piped());
            let mut staged = Staged::start(command);
            let output = staged.child.stdout.take().expect("a pipe");
            staged.wait_until(|| ioctl_fionread(&output).is_ok_and(|held| held > 40_000).then_some(()));
            staged.sleeps();
            staged.stop(signal, IN_WORDS);
        }
    }
}

#[test]
fn a_peer_that_does_not_answer_keeps_no_command() {
    for signal in [Signal::INT, Signal::TERM] {
        for is_sender_stopped in [true, false] {
            let here = place();
            let (source, ticket, into) =
                (here.path().join("file"), here.path().join("ticket"), here.path().join("into"));
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
fn a_listener_and_a_question_end_at_once() {
    for signal in [Signal::INT, Signal::TERM] {
        let code = IN_WORDS[usize::from(signal == Signal::TERM)];
        let here = place();
        let (file, ticket) = (here.path().join("file"), here.path().join("ticket"));
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
        let mut asking = command(arguments!["recv", "--ticket-file", ticket, "--into", here.path().join("into")]);
        asking.stdin(Stdio::piped());
        let mut asking = Program::start(asking);
        asking.wait_for_words("Into:");
        asking.signal(signal);
        asking.end().expect(code);
        drop(sending);
    }
}

#[test]
fn a_demo_that_is_stopped_leaves_nothing() {
    for (arguments, stage) in [("demo --size 1GB", "sample"), ("demo --size 1MB --link rate=100k", "downpour")] {
        for signal in [Signal::INT, Signal::TERM] {
            let here = tempdir().expect("a directory");
            let mut command = command(line(arguments, here.path()));
            // Small files go to memory, where other demos may have theirs.
            command.env("TMPDIR", here.path()).args((stage == "downpour").then_some("--json"));
            command.stdout(Stdio::piped());
            let mut staged = Staged::start(command);
            let output = staged.child.stdout.take().expect("a pipe");
            staged.wait_until(|| match stage {
                "sample" => {
                    let directories = fs::read_dir(here.path()).expect("a directory").flatten();
                    directories.into_iter().any(|directory| directory.path().join(stage).exists()).then_some(())
                }
                _ => ioctl_fionread(&output).is_ok_and(|held| held > 500).then_some(()),
            });
            staged.stop(signal, IN_WORDS);
            assert_eq!(fs::read_dir(here.path()).expect("a directory").count(), 0, "{arguments} leaves files");
        }
    }
}

/// A shell without job control has SIGINT ignored by what it runs in the background; ssh and rsync leave it so.
#[test]
fn a_signal_that_is_ignored_at_the_start_remains_so() {
    let here = place();
    let program = env!("CARGO_BIN_EXE_downpour");
    let ignoring = |signals: &str, words: &str| {
        let mut shell =
            crate::program::program_with(Path::new("sh"), ["-c", &format!(r#"trap "" {signals}; exec "$@""#)]);
        shell.args(["sh", program]).args(line(words, here.path())).stdin(Stdio::piped());
        Staged::start(shell)
    };
    // Where it reads, and where a loop attends to signals.
    let mut reading = ignoring("INT", "cp --files-from - TREE NEW");
    let mut stdin = reading.child.stdin.take().expect("a pipe");
    stdin.write_all(&vec![b'\n'; 2 * PIPE]).expect("a command that reads");
    kill_process(Pid::from_child(&reading.child), Signal::INT).expect("a process");
    drop(stdin);
    assert_eq!(reading.child.wait().expect("a child").code(), Some(0));
    for (signals, ignored, signal) in [("INT", Signal::INT, Signal::TERM), ("TERM", Signal::TERM, Signal::INT)] {
        let mut waiting = ignoring(signals, "send FILE --listen 127.0.0.1:0 --ticket-file TICKET");
        let ticket = here.path().join("new/ticket");
        fs::create_dir_all(here.path().join("new")).expect("a directory");
        waiting.wait_until(|| ticket.exists().then_some(()));
        waiting.sleeps();
        kill_process(Pid::from_child(&waiting.child), ignored).expect("a process");
        receiver(&ticket, &here.path().join("into"), &["--existing", "skip"]).end().expect(0);
        assert_eq!(waiting.child.wait().expect("a child").code(), Some(0), "{signal:?}");
        fs::remove_file(&ticket).expect("a ticket");
    }
}
