//! Interruptions at random moments under load: partial data never gets the final name. `cargo xtask interrupt` makes
//! more of them.

use std::collections::BTreeMap;
use std::fs;
use std::os::fd::OwnedFd;
use std::panic::catch_unwind;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use fastrand::Rng;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::fake_ssh::FakeHost;
use crate::program::{Program, arguments, command, receiver, sender};
use crate::terminal::Terminal;
use crate::tree;

/// Interruptions in the test suite.
const FEW: u64 = 20;

/// Concurrent interruptions, more than there are processors, and threads that only calculate.
const AT_ONCE: usize = 4;
const LOAD: usize = 2;

/// A file that takes a second at this limit, and longer under load.
const BYTES: usize = 2_000_000;
const LIMIT: [&str; 2] = ["--limit", "16M"];
/// Copies as many bytes in the same time.
const SLOWLY: &str =
    "for part in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19; do head -c 100000; sleep 0.05; done";
const MOMENTS: Duration = Duration::from_millis(1500);

/// The interrupted command.
#[derive(Clone, Copy, Debug)]
enum Work {
    Pipe(&'static str),
    CopyToRemote(&'static str),
    CopyFromRemote(&'static str),
    Send,
    Receive,
}

const WORKS: [Work; 8] = [
    Work::Pipe("udp"),
    Work::Pipe("ssh"),
    Work::CopyToRemote("udp"),
    Work::CopyToRemote("ssh"),
    Work::CopyFromRemote("udp"),
    Work::CopyFromRemote("ssh"),
    Work::Send,
    Work::Receive,
];

/// The kind of interruption.
#[derive(Clone, Copy, Debug)]
enum Interruption {
    /// A signal to the foreground, as from a terminal or a supervisor.
    Group(Signal),
    /// A signal to the local program only.
    This(Signal),
    /// A signal to the program on the other host.
    Other(Signal),
    /// The terminal is closed.
    Terminal,
}

const INTERRUPTIONS: [Interruption; 12] = [
    Interruption::Group(Signal::INT),
    Interruption::Group(Signal::TERM),
    Interruption::Group(Signal::HUP),
    Interruption::Group(Signal::QUIT),
    Interruption::Group(Signal::KILL),
    Interruption::This(Signal::INT),
    Interruption::This(Signal::TERM),
    Interruption::This(Signal::HUP),
    Interruption::This(Signal::KILL),
    Interruption::Other(Signal::TERM),
    Interruption::Other(Signal::KILL),
    Interruption::Terminal,
];

#[test]
fn random_interruption_never_publishes_partial() {
    let number = |name, or: u64| std::env::var(name).map_or(or, |text| text.parse().expect("a number"));
    let count = number("INTERRUPTIONS", FEW);
    let first = number("INTERRUPTION_SEED", fastrand::u64(..1 << 48));
    println!("seeds from {first} on");
    let (next, is_over) = (AtomicU64::new(first), AtomicBool::new(false));
    let (failed, seen) = (Mutex::new(Vec::new()), Mutex::new(BTreeMap::<String, u64>::new()));
    let work = || {
        while let Some(seed) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|seed| *seed < first + count) {
            match catch_unwind(|| interrupt(&mut Rng::with_seed(seed))) {
                Ok(result) => *seen.lock().expect("a lock").entry(result).or_default() += 1,
                Err(_) => failed.lock().expect("a lock").push(seed),
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..LOAD {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop()
                }
            });
        }
        let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(work)).collect();
        let ended: Vec<_> = workers.into_iter().map(thread::ScopedJoinHandle::join).collect();
        is_over.store(true, Ordering::Relaxed);
        assert!(ended.iter().all(Result::is_ok));
    });
    for (result, count) in seen.into_inner().expect("a lock") {
        println!("{count:5}  {result}");
    }
    let failed = failed.into_inner().expect("a lock");
    assert!(failed.is_empty(), "{count} interruptions, of which these fail: {failed:?}");
    println!("{count} interruptions, and no part was taken for the whole");
}

/// Interrupts a random command at a random moment; describes the result.
fn interrupt(random: &mut Rng) -> String {
    let (work, interruption) = (WORKS[random.usize(..WORKS.len())], INTERRUPTIONS[random.usize(..INTERRUPTIONS.len())]);
    let moment = MOMENTS.mul_f64(random.f64());
    let is_whole = match work {
        Work::Pipe(via) => pipe(via, interruption, moment),
        Work::CopyToRemote(via) => copy(via, ["file", "far:copy"], interruption, moment),
        Work::CopyFromRemote(via) => copy(via, ["far:file", "copy"], interruption, moment),
        Work::Send => send(true, interruption, moment),
        Work::Receive => send(false, interruption, moment),
    };
    let result = if is_whole { "whole" } else { "interrupted" };
    format!("{result} {}", format!("{work:?}").replace('"', ""))
}

/// Whether `copy` exists. Panics if it is not complete.
#[track_caller]
fn is_whole(source: &Path, copy: &Path) -> bool {
    fs::exists(copy).expect("a directory") && {
        let (source, copy) = (fs::read(source).expect("the source"), fs::read(copy).expect("the copy"));
        assert!(source == copy, "{} of {} bytes have the name of the whole", copy.len(), source.len());
        true
    }
}

fn pipe(via: &str, interruption: Interruption, moment: Duration) -> bool {
    let far = FakeHost::new();
    let source = tree::file(&far.remote("file"), BYTES);
    let line = far.command("pipe", ["--via", via, "far", "cat >part && mv part whole"]);
    let shell = format!(r#"{{ {SLOWLY}; }} <'{}' | "$@""#, source.display());
    let (mut terminal, mut program) = in_terminal(&shell, &line);
    program.wait_at_most(moment);
    apply(interruption, &far, "pipe", &program, &mut terminal);
    // Its stderr is closed when all its children have ended.
    program.end();
    is_whole(&source, &far.remote("whole"))
}

fn copy(via: &str, names: [&str; 2], interruption: Interruption, moment: Duration) -> bool {
    let far = FakeHost::new();
    let path = |name: &str| far.remote(name.strip_prefix("far:").unwrap_or(name));
    let (source, target) = (tree::file(&path(names[0]), BYTES), path(names[1]));
    let again = || {
        let mut line = far.command("cp", LIMIT);
        line.args(["--via", via, "--timeout", "5"]).args(names).current_dir(far.home());
        line
    };
    let (mut terminal, mut program) = in_terminal(r#"exec "$@""#, &again());
    program.wait_at_most(moment);
    apply(interruption, &far, "cp", &program, &mut terminal);
    program.end();
    let was_whole = is_whole(&source, &target);
    Program::start(again()).end().expect(0);
    assert!(is_whole(&source, &target), "nothing after the same command");
    assert_eq!(tree::names(&far.home()).len(), 2, "something is left behind");
    was_whole
}

/// Interrupts a sender, or a receiver.
fn send(is_sender: bool, interruption: Interruption, moment: Duration) -> bool {
    let far = FakeHost::new();
    let (source, ticket, into) = (tree::file(&far.remote("file"), BYTES), far.remote("ticket"), far.remote("into"));
    let sending =
        command(arguments!["send", "--listen", "127.0.0.1:0", "--ticket-file", ticket, "--limit", "16M", source]);
    let receiving = command(arguments!["recv", "--yes", "--ticket-file", ticket, "--into", into]);
    let (mut terminal_of_sender, mut sender_process) = in_terminal(r#"exec "$@""#, &sending);
    sender_process.wait_for_words("Copy ticket file");
    let (mut terminal_of_receiver, mut receiver_process) = in_terminal(r#"exec "$@""#, &receiving);
    receiver_process.wait_at_most(moment);
    if is_sender {
        apply_to_one(interruption, &sender_process, &receiver_process, &mut terminal_of_sender);
    } else {
        apply_to_one(interruption, &receiver_process, &sender_process, &mut terminal_of_receiver);
    }
    // Both may continue, or wait for each other.
    receiver_process.wait_at_most(moment / 4);
    drop((sender_process, receiver_process));
    let was_whole = is_whole(&source, &into.join("file"));
    fs::remove_file(&ticket).expect("a ticket");
    let sender = sender(&[&source], &ticket, &[]);
    receiver(&ticket, &into, &["--existing", "skip"]).end().expect(0);
    sender.end().expect(0);
    assert!(is_whole(&source, &into.join("file")), "nothing after the same commands");
    assert_eq!(tree::names(&into).len(), 1, "something is left behind");
    was_whole
}

/// Runs `shell`, with the words of `line` as arguments, in the foreground of a new terminal.
fn in_terminal(shell: &str, line: &Command) -> (Option<Terminal>, Program) {
    let (terminal, stdin, other) = Terminal::open();
    drop::<OwnedFd>(other);
    let mut session = Command::new("setsid");
    session.args(["--ctty", "sh", "-c", shell, "sh"]).arg(line.get_program()).args(line.get_args());
    session.envs(line.get_envs().filter_map(|(name, value)| Some((name, value?))));
    session.current_dir(line.get_current_dir().unwrap_or(Path::new("/")));
    session.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
    (Some(terminal), Program::start(session))
}

/// Interrupts a program whose peer runs on the host `far`.
fn apply(interruption: Interruption, far: &FakeHost, word: &str, program: &Program, terminal: &mut Option<Terminal>) {
    let signal_all = |word: &str, signal| {
        for process in far.wait_for_processes(word, || program.is_running()) {
            // It may have ended.
            let _ = kill_process(process, signal);
        }
    };
    match interruption {
        Interruption::Group(signal) => signal_group(program, signal),
        Interruption::This(signal) => signal_all(word, signal),
        Interruption::Other(signal) => signal_all("remote", signal),
        Interruption::Terminal => *terminal = None,
    }
}

/// Interrupts a program whose peer is `other`.
fn apply_to_one(interruption: Interruption, program: &Program, other: &Program, terminal: &mut Option<Terminal>) {
    match interruption {
        Interruption::Group(signal) | Interruption::This(signal) => signal_group(program, signal),
        Interruption::Other(signal) => signal_group(other, signal),
        Interruption::Terminal => *terminal = None,
    }
}

/// The program leads a session.
fn signal_group(program: &Program, signal: Signal) {
    let group = Pid::from_raw(program.id().cast_signed()).expect("a process");
    // It may have ended.
    let _ = kill_process_group(group, signal);
}
