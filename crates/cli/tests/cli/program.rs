//! Runs the program and waits for its output, never for a fixed time.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::Once;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::flag::register_conditional_default;

/// The longest wait before a test fails. Detecting a dead path takes 30 s.
const PATIENCE: Duration = Duration::from_secs(50);

/// A line of stdout or stderr.
#[derive(Debug)]
enum OutputLine {
    Out(String),
    Err(String),
}

/// A running `downpour`.
pub(crate) struct Program {
    child: Child,
    lines: Receiver<OutputLine>,
    command_line: String,
    transcript: Vec<OutputLine>,
}

/// The result of an ended program.
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Array of arguments from a mix of paths and text.
macro_rules! arguments {
    ($($argument:expr),* $(,)?) => { [$(std::ffi::OsStr::new(&$argument)),*] };
}
pub(crate) use arguments;

/// Starts `downpour` with these arguments and an empty stdin.
pub(crate) fn downpour<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Program {
    Program::start(command(arguments))
}

/// Returns the command of [`downpour`], not started yet.
pub(crate) fn command<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    program_with(Path::new(env!("CARGO_BIN_EXE_downpour")), arguments)
}

/// Resets signals to their default effect in started programs. A shell without job control starts background processes,
/// such as tests, with SIGINT ignored; a new program inherits an ignored signal, but not a handled one.
pub(crate) fn with_default_signals() {
    static HANDLED: Once = Once::new();
    static IS_DEFAULT: AtomicBool = AtomicBool::new(true);
    HANDLED.call_once(|| {
        for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
            register_conditional_default(signal, &IS_DEFAULT).expect("a handler");
        }
    });
}

/// Copies the program in a process of its own: children that this process starts meanwhile would inherit the file while
/// it is open for writing, and such a program does not start (`ETXTBSY`).
pub(crate) fn copy_program(to: &Path) {
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_downpour")).arg(to).status().expect("cp");
    assert!(copied.success(), "cp: {copied}");
}

/// Same as [`command`], with another copy of the program.
pub(crate) fn program_with<S: AsRef<OsStr>>(program: &Path, arguments: impl IntoIterator<Item = S>) -> Command {
    with_default_signals();
    let mut command = Command::new(program);
    command.args(arguments);
    for (variable, _) in std::env::vars_os() {
        if variable.as_encoded_bytes().starts_with(b"DOWNPOUR_") {
            command.env_remove(variable);
        }
    }
    command.env("DOWNPOUR_CONFIG", "none");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Forwards the lines from a pipe until it is closed.
fn forward_lines(pipe: impl Read + Send + 'static, kind: fn(String) -> OutputLine, sender: Sender<OutputLine>) {
    thread::spawn(move || {
        for line in BufReader::new(pipe).lines() {
            // The receiver is gone once a test has failed.
            let _ = sender.send(kind(line.expect("lines of text")));
        }
    });
}

impl Program {
    pub(crate) fn start(mut command: Command) -> Self {
        with_default_signals();
        let command_line = format!("{command:?}");
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{command_line}: {error}"));
        let (sender, lines) = channel();
        if let Some(out) = child.stdout.take() {
            forward_lines(out, OutputLine::Out, sender.clone());
        }
        if let Some(err) = child.stderr.take() {
            forward_lines(err, OutputLine::Err, sender);
        }
        Self { child, lines, command_line, transcript: Vec::new() }
    }

    /// Waits for a line on stdout that satisfies `is_it`.
    pub(crate) fn wait_for(&mut self, description: &str, matches: impl Fn(&str) -> bool) -> String {
        self.wait_for_line(description, |line| match line {
            OutputLine::Out(line) if matches(line) => Some(line.clone()),
            _ => None,
        })
    }

    /// Waits for a line on stderr that contains `words`.
    pub(crate) fn wait_for_words(&mut self, words: &str) -> String {
        self.wait_for_line(words, |line| match line {
            OutputLine::Err(line) if line.contains(words) => Some(line.clone()),
            _ => None,
        })
    }

    fn wait_for_line(&mut self, description: &str, matches: impl Fn(&OutputLine) -> Option<String>) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => {
                    let found = matches(&line);
                    self.transcript.push(line);
                    if let Some(found) = found {
                        return found;
                    }
                }
                Err(_) => panic!("{} never printed {description:?}:\n{}", self.command_line, self.transcript_text()),
            }
        }
    }

    /// Waits until the program has ended, but for no longer than `time`.
    pub(crate) fn wait_at_most(&mut self, time: Duration) {
        let deadline = Instant::now() + time;
        while let Ok(line) = self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            self.transcript.push(line);
        }
    }

    pub(crate) fn stdin(&mut self) -> ChildStdin {
        self.child.stdin.take().expect("a piped stdin")
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns whether the program has not ended.
    pub(crate) fn is_running(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(Pid::from_child(&self.child)), options).expect("a child").is_none()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("a process to signal");
    }

    /// Waits for the program to end.
    pub(crate) fn end(mut self) -> Ended {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => self.transcript.push(line),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    panic!("{} does not end:\n{}", self.command_line, self.transcript_text())
                }
            }
        }
        let status = self.child.wait().expect("a child to wait for");
        let (mut stdout, mut stderr) = (String::new(), String::new());
        for line in &self.transcript {
            let (text, line) = match line {
                OutputLine::Out(line) => (&mut stdout, line),
                OutputLine::Err(line) => (&mut stderr, line),
            };
            writeln!(text, "{line}").expect("memory");
        }
        Ended { status, stdout, stderr }
    }

    fn transcript_text(&self) -> String {
        self.transcript.iter().map(|line| format!("{line:?}\n")).collect()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // The program has ended, or the test has failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Ended {
    /// Panics unless the exit code is `code`.
    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(self.status.code(), Some(code), "{}, stdout:\n{}stderr:\n{}", self.status, self.stdout, self.stderr);
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
        self
    }

    /// Panics unless the exit code is `code` and stderr has one line of error.
    #[track_caller]
    pub(crate) fn expect_error(self, code: i32) -> Self {
        self.expect_line(code, "")
    }

    /// Panics unless the exit code is `code` and stderr has one line of error that contains `words`.
    #[track_caller]
    pub(crate) fn expect_line(self, code: i32, words: &str) -> Self {
        let ended = self.expect(code);
        let is_error = |line: &&str| line.starts_with("downpour: ") && !line.starts_with("downpour: warning: ");
        let errors: Vec<&str> = ended.stderr.lines().filter(is_error).collect();
        assert!(matches!(errors[..], [line] if line.contains(words)), "not one line with {words:?}:\n{}", ended.stderr);
        ended
    }
}

/// Parses the lines of `--json`.
pub(crate) fn json(text: &str) -> Vec<serde_json::Value> {
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line:?}: {error}")));
    let values: Vec<serde_json::Value> = lines.collect();
    assert!(values.iter().all(|value| value["v"] == 1 && value["type"].is_string()), "{text}");
    values
}

/// Starts a sender that listens on the loopback interface, and waits until its ticket is in `file`.
pub(crate) fn sender(paths: &[&Path], file: &Path, more: &[&str]) -> Program {
    let mut arguments = arguments!["send", "--listen", "127.0.0.1:0", "--ticket-file", file].to_vec();
    arguments.extend(more.iter().map(OsStr::new));
    arguments.extend(paths.iter().map(OsStr::new));
    let mut sender = downpour(arguments);
    sender.wait_for_words("Copy ticket file");
    sender
}

/// Starts a receiver that connects with the ticket in `file` and accepts everything.
pub(crate) fn receiver(file: &Path, into: &Path, more: &[&str]) -> Program {
    let mut arguments = arguments!["recv", "--yes", "--ticket-file", file, "--into", into].to_vec();
    arguments.extend(more.iter().map(OsStr::new));
    downpour(arguments)
}

/// Writes lines to a program's stdin and closes it.
pub(crate) fn answer(mut stdin: ChildStdin, lines: &str) {
    writeln!(stdin, "{lines}").expect("a program that reads");
}

/// Polls until this returns a value. Panics after `time`.
#[track_caller]
pub(crate) fn poll_within<T>(time: Duration, description: &str, mut value: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + time;
    loop {
        if let Some(value) = value() {
            return value;
        }
        assert!(Instant::now() < deadline, "not within {time:?}: {description}");
        // The only sleep of these tests.
        thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until this holds.
#[track_caller]
pub(crate) fn wait_until(description: &str, holds: impl Fn() -> bool) {
    poll_within(PATIENCE, description, || holds().then_some(()));
}

/// Panics unless this holds for all of `time`.
#[track_caller]
pub(crate) fn assert_stays(time: Duration, description: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + time;
    poll_within(PATIENCE, description, || {
        assert!(holds(), "no longer: {description}");
        (Instant::now() >= end).then_some(())
    });
}

/// Waits for the end of a process, which must come within `time`; otherwise kills it.
#[track_caller]
pub(crate) fn end_within(time: Duration, description: &str, child: &mut Child) -> ExitStatus {
    let begun = Instant::now();
    poll_within(2 * time, description, || {
        let status = child.try_wait().expect("a child");
        if status.is_none() && begun.elapsed() >= time {
            let _ = (child.kill(), child.wait());
            panic!("{description} does not end within {time:?}");
        }
        status
    })
}
