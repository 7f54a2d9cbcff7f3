//! `pipe` to a command on the local host.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::fake_ssh::FakeHost;
use crate::program::{assert_stays, end_within, wait_until};
use crate::terminal::Terminal;

/// A closed output ends both programs within a second, or later if the host is busy.
const SOON: Duration = Duration::from_secs(3);

/// Waits for a program, which must end soon. Returns its exit status and its error output.
#[track_caller]
fn ended(mut child: Child) -> (ExitStatus, String) {
    let status = end_within(SOON, "the pipe", &mut child);
    let mut words = String::new();
    child.stderr.take().expect("a pipe").read_to_string(&mut words).expect("words");
    (status, words)
}

#[test]
fn pipe_stdout_closed_ends_command() {
    // Commands that the next write kills, that ignore the failed write, or that write nothing more.
    for (command, rest) in [
        ("yes", ""),
        ("trap '' PIPE; yes || exec sleep 1000", ""),
        ("yes", "; exec sleep 1000"),
        ("echo y", "; exec sleep 1000"),
    ] {
        for via in ["udp", "ssh"] {
            let far = FakeHost::new();
            let line = format!("echo $$ >pid; {command}{rest}");
            let mut pipe = far.command("pipe", ["--via", via, "far", &line]);
            // An input that stays open.
            let mut child = pipe.stdin(Stdio::piped()).spawn().expect("downpour");
            let stdin = child.stdin.take();
            let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
            let mut first = String::new();
            output.read_line(&mut first).expect("a line");
            assert_eq!(first, "y\n");
            drop(output);
            let (status, words) = ended(child);
            assert_eq!(status.code(), Some(141), "{line} via {via}: {words}");
            assert!(!words.contains("downpour:"), "{line} via {via}: {words}");
            let pid = std::fs::read_to_string(far.remote("pid")).expect("a file");
            far.assert_gone(&pid);
            drop(stdin);
        }
    }
}

#[test]
fn pipe_stdout_full_ends_command_exit_7() {
    for via in ["udp", "ssh"] {
        let far = FakeHost::new();
        let mut pipe = far.command("pipe", ["--via", via, "far", "echo $$ >pid; yes"]);
        let full = File::options().write(true).open("/dev/full").expect("a device that is full");
        let child = pipe.stdin(Stdio::piped()).stdout(full).spawn().expect("downpour");
        let (status, words) = ended(child);
        assert_eq!(status.code(), Some(7), "{words}");
        assert!(words.contains("cannot write to stdout: No space left on device"), "{words}");
        far.assert_gone(&std::fs::read_to_string(far.remote("pid")).expect("a file"));
    }
}

/// A command that creates `whole` if its input ends normally.
const WHOLE_ONLY: &str = "cat >part && mv part whole";

/// Bytes written before an input ends or breaks.
const SOME: usize = 100_000;

/// `downpour pipe far COMMAND` whose input comes from a process of the same group, which has written [`SOME`] bytes and
/// keeps running.
struct FedPipe {
    far: FakeHost,
    feeder: Child,
    pipe: Child,
}

impl FedPipe {
    #[track_caller]
    fn start(via: &str, command: &str) -> Self {
        let far = FakeHost::new();
        let mut feeder = Command::new("sh");
        let line = format!("head -c {SOME} /dev/zero; exec sleep 1000");
        let mut feeder = feeder.args(["-c", &line]).process_group(0).stdout(Stdio::piped()).spawn().expect("a feeder");
        let mut pipe = far.command("pipe", ["--via", via, "far", command]);
        pipe.stdin(feeder.stdout.take().expect("a pipe")).stdout(Stdio::null());
        let pipe = pipe.process_group(feeder.id().cast_signed()).spawn().expect("downpour");
        let fed = Self { far, feeder, pipe };
        wait_until("all bytes at the command", || {
            std::fs::metadata(fed.far.remote("part")).is_ok_and(|part| part.len() == SOME as u64)
        });
        fed
    }

    fn group(&self) -> Pid {
        Pid::from_child(&self.feeder)
    }

    /// Returns the child of the pipe that ends with any signal to the group.
    #[track_caller]
    fn signal_probe(&self) -> Pid {
        let id = self.pipe.id();
        let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).expect("children");
        let is_cat = |child: &&str| {
            std::fs::read_to_string(format!("/proc/{child}/comm")).is_ok_and(|name| name.trim() == "cat")
        };
        let signal_probe = children.split(' ').find(is_cat).expect("a witness");
        Pid::from_raw(signal_probe.parse().expect("a number")).expect("a process")
    }

    /// Panics unless the pipe ends with this code and these words, and the command's input did not end normally.
    #[track_caller]
    fn assert_broken(mut self, code: i32, expected: &str) {
        let _ = self.feeder.wait();
        let (status, words) = ended(self.pipe);
        assert_eq!(status.code(), Some(code), "{words}");
        assert!(words.contains(expected), "{words}");
        assert!(!self.far.remote("whole").exists());
    }
}

#[test]
fn pipe_stdin_ended_by_signal_is_not_eof() {
    for via in ["udp", "ssh"] {
        // The signal has reached the other processes, but this program's handler is late.
        let mut fed = FedPipe::start(via, WHOLE_ONLY);
        let signal_probe = fed.signal_probe();
        kill_process(fed.group(), Signal::INT).expect("a feeder");
        kill_process(signal_probe, Signal::INT).expect("a witness");
        assert_stays(Duration::from_millis(500), "the pipe waits for its own signal", || {
            fed.pipe.try_wait().expect("a child").is_none()
        });
        kill_process(Pid::from_child(&fed.pipe), Signal::INT).expect("a pipe");
        fed.assert_broken(130, "interrupted");
        // The handler never gets the signal.
        let fed = FedPipe::start(via, WHOLE_ONLY);
        kill_process(fed.signal_probe(), Signal::INT).expect("a witness");
        kill_process(fed.group(), Signal::INT).expect("a feeder");
        fed.assert_broken(7, "it ended by a signal to this process group");
    }
}

#[test]
fn pipe_sigint_while_stopped_is_not_eof() {
    for via in ["udp", "ssh"] {
        for _ in 0..5 {
            let fed = FedPipe::start(via, WHOLE_ONLY);
            // When it continues, it finds the signal and the end of its input together.
            kill_process(Pid::from_child(&fed.pipe), Signal::STOP).expect("a pipe");
            kill_process_group(fed.group(), Signal::INT).expect("a group");
            kill_process_group(fed.group(), Signal::CONT).expect("a group");
            fed.assert_broken(130, "interrupted");
        }
    }
}

#[test]
fn pipe_terminal_hang_up_is_not_eof() {
    for via in ["udp", "ssh"] {
        let far = FakeHost::new();
        let (mut terminal, stdin, stderr) = Terminal::open();
        let mut pipe = far.command("pipe", ["--via", via, "far", WHOLE_ONLY]);
        let child = pipe.stdin(stdin).stdout(Stdio::null()).spawn().expect("downpour");
        // Otherwise this test would keep the terminal open.
        drop((pipe, stderr));
        terminal.type_line("a line");
        wait_until("the line at the command", || far.remote("part").metadata().is_ok_and(|part| part.len() > 0));
        // While it is stopped, the terminal goes away; then it reads again.
        let process = Pid::from_child(&child);
        kill_process(process, Signal::STOP).expect("a pipe");
        wait_until("it has stopped", || is_stopped(process));
        drop(terminal);
        kill_process(process, Signal::CONT).expect("a pipe");
        let (status, words) = ended(child);
        assert_eq!(status.code(), Some(7), "{words}");
        assert!(words.contains("cannot read stdin"), "{words}");
        assert!(!far.remote("whole").exists());
    }
}

#[test]
fn pipe_broken_input_never_reaches_eof() {
    type Break = fn(&FedPipe);
    let breaks: [(&str, Break); 2] = [
        ("this side is killed", |fed| kill_process(Pid::from_child(&fed.pipe), Signal::KILL).expect("a pipe")),
        ("both sides are killed", |fed| {
            for process in fed.far.wait_for_processes("remote", || true) {
                kill_process(process, Signal::KILL).expect("a process");
            }
            kill_process(Pid::from_child(&fed.pipe), Signal::KILL).expect("a pipe");
        }),
    ];
    for (description, break_it) in breaks {
        for via in ["udp", "ssh"] {
            let mut fed =
                FedPipe::start(via, "echo $$ >pid; setsid sh -c 'echo $$ >left; cat >part && mv part whole'; true");
            let process = |name: &str| {
                let number = std::fs::read_to_string(fed.far.remote(name)).expect("a file");
                Pid::from_raw(number.trim().parse().expect("a number")).expect("a process")
            };
            let (command, left) = (process("pid"), process("left"));
            break_it(&fed);
            wait_until("the command is killed", || !fed.far.processes("").contains(&command));
            kill_process(fed.group(), Signal::KILL).expect("a feeder");
            let _ = (fed.feeder.wait(), fed.pipe.wait());
            // The end of its input would end this process.
            assert_stays(
                Duration::from_millis(300),
                &format!("{description}, {via}: the process that left runs"),
                || fed.far.processes("").contains(&left),
            );
            kill_process_group(left, Signal::KILL).expect("a group");
            // The process that held its input open ends with it.
            fed.far.assert_empty(description);
            assert!(!fed.far.remote("whole").exists(), "{description}, {via}");
        }
    }
}

/// Whether all threads of a process are stopped.
fn is_stopped(process: Pid) -> bool {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", process.as_raw_nonzero())).expect("threads");
    tasks.flatten().all(|task| {
        let status = std::fs::read_to_string(task.path().join("status")).unwrap_or_default();
        status.lines().any(|line| line.starts_with("State:\tT"))
    })
}
