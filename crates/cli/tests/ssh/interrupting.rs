//! Random interruptions of copies over ssh and by ticket, with random edits of source, target and staging directory
//! between the runs, and of the source during them.
//!
//! The oracle: a file that a run has published or called verified is a version that its source had during that run;
//! files that were not requested do not change; and a last undisturbed run makes the target equal to the source. A seed
//! decides everything but the progress of an interrupted transfer: it may take several attempts to repeat a failure.

use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use fastrand::Rng;
use rustix::process::{Signal, kill_process};
use tempfile::TempDir;

use crate::edits::Edits;
use crate::hosts::{Hosts, at};
use crate::oracle::{self, Run};
use crate::program::{Ended, Program, arguments, command, poll_within};
use crate::random::{self, Tree, snapshot};
use crate::sshd::at_home;

/// Cases of `cargo xtask test-ssh`; [`MINUTES`] runs cases for this time, from [`SEED`] on if it is set.
const QUICK: u64 = 6;
const MINUTES: &str = "DOWNPOUR_INTERRUPTING_MINUTES";
const SEED: &str = "DOWNPOUR_INTERRUPTING_SEED";

/// A tree of a few megabytes takes a second.
const LIMIT: &str = "32M";
/// A run is interrupted within this time, about that of a login and transfer.
const MOMENTS: Duration = Duration::from_millis(2_000);
/// The remaining processes of a run end within this time after its ssh was killed: 2 s for a dead connection, and more
/// for a busy host.
const GONE: Duration = Duration::from_secs(30);

/// The direction and kind of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Up,
    Down,
    Local,
    SenderListens,
    ReceiverListens,
}

const WAYS: [Way; 7] = [Way::Up, Way::Up, Way::Down, Way::Down, Way::Local, Way::SenderListens, Way::ReceiverListens];

/// The process that gets a signal.
#[derive(Clone, Copy, Debug)]
enum Victim {
    /// The program that was started first.
    Near,
    /// Its peer.
    Far,
    /// The local ssh.
    Session,
}

/// One transfer of a tree.
struct Case {
    hosts: Hosts,
    tickets: TempDir,
    way: Way,
    via: &'static str,
    /// Files are compared by content, and edits may keep size and time.
    by_content: bool,
    syncs: bool,
    deletes: bool,
}

impl Case {
    fn new(rng: &mut Rng) -> Self {
        let way = WAYS[rng.usize(..WAYS.len())];
        let by_ticket = matches!(way, Way::SenderListens | Way::ReceiverListens);
        let syncs = !by_ticket && rng.bool();
        let case = Self {
            hosts: Hosts::start(),
            tickets: tempfile::tempdir().expect("a directory"),
            way,
            via: ["udp", "ssh"][rng.usize(..2)],
            by_content: !by_ticket && rng.bool(),
            syncs,
            deletes: syncs && rng.bool(),
        };
        for directory in [case.source(), case.target()] {
            random::grow(rng, &directory.join("canary"), 12, 5_000);
        }
        random::grow(rng, &case.source().join("tree"), 30, 2_000_000);
        // An empty source would delete nothing.
        fs::write(case.source().join("tree/always"), vec![rng.u8(..); rng.usize(1_000_000..6_000_000)])
            .expect("a file");
        random::grow(rng, &case.target().join("tree/of the target"), 6, 5_000);
        case
    }

    fn source(&self) -> PathBuf {
        if self.way == Way::Down { self.hosts.remote("from") } else { self.hosts.local("from") }
    }

    fn target(&self) -> PathBuf {
        if self.way == Way::Up { self.hosts.remote("to") } else { self.hosts.local("to") }
    }

    /// `cp` or `sync` with its options.
    fn copy(&self) -> Program {
        let mut options: Vec<OsString> = ["--json", "--limit", LIMIT].map(Into::into).into();
        let flags = [(self.by_content, "--checksum"), (self.deletes, "--delete"), (!self.syncs, "-r")];
        options.extend(flags.iter().filter(|(set, _)| *set).map(|(_, flag)| flag.into()));
        if self.way != Way::Local {
            options.extend(["--via", self.via, "--timeout", "2"].map(Into::into));
        }
        let path = |directory: &str, is_there: bool| if is_there { at(directory) } else { directory.into() };
        options.extend([path("from/tree", self.way == Way::Down), path("to", self.way == Way::Up)]);
        let mut command = self.hosts.command(if self.syncs { "sync" } else { "cp" });
        command.args(options);
        Program::start(command)
    }

    /// Starts `send` and `recv`, the listening one first.
    fn by_ticket(&self) -> [Program; 2] {
        let ticket = self.tickets.path().join("ticket");
        let (tree, into) = (self.source().join("tree"), self.target());
        let send = arguments!["send", "--json", "--limit", LIMIT, "--ticket-file", ticket, "--timeout", "2", tree];
        let recv = ["recv", "--json", "--yes", "--existing", "replace", "--timeout", "2"].map(OsString::from);
        let (mut send, mut recv) = (command(send), command(recv));
        recv.arg("--ticket-file").arg(&ticket).arg("--into").arg(into);
        // An earlier run may have left it.
        let _ = fs::remove_file(&ticket);
        let listening = match self.way {
            Way::SenderListens => send.args(["--listen", "127.0.0.1:0"]),
            _ => recv.args(["--listen", "127.0.0.1:0"]),
        };
        let mut listening = Program::start(std::mem::replace(listening, std::process::Command::new("true")));
        listening.wait_for("a ticket", |line| line.contains("\"start\""));
        let connecting = match self.way {
            Way::SenderListens => recv,
            _ => {
                send.arg("--to");
                send
            }
        };
        [listening, Program::start(connecting)]
    }

    /// Returns which of the programs reports as the receiver, if any. A local copy reports as the sender.
    fn receiver(&self) -> Option<usize> {
        match self.way {
            Way::Up | Way::Local => None,
            Way::Down | Way::ReceiverListens => Some(0),
            Way::SenderListens => Some(1),
        }
    }

    fn start(&self) -> Vec<Program> {
        match self.way {
            Way::Up | Way::Down | Way::Local => vec![self.copy()],
            Way::SenderListens | Way::ReceiverListens => self.by_ticket().into(),
        }
    }

    /// Sends a signal, unless the process has ended.
    fn strike(&self, programs: &[Program], victim: Victim, signal: Signal) {
        match (victim, programs) {
            (Victim::Near, _) => programs[0].signal(signal),
            (_, [_, connecting]) => connecting.signal(signal),
            (Victim::Far, _) => {
                for process in self.hosts.remote_processes() {
                    let _ = kill_process(process, Signal::KILL);
                }
            }
            (Victim::Session, _) => {
                for (process, words) in at_home(&self.hosts.local("")) {
                    if words.first().is_some_and(|program| program == "ssh") {
                        let _ = kill_process(process, Signal::KILL);
                    }
                }
            }
        }
    }

    /// Runs the transfer, interrupts it at a random moment, and may edit the source meanwhile.
    fn disturbed(&self, rng: &mut Rng) -> Run {
        let (before, mut versions) = (snapshot(&self.target()), vec![snapshot(&self.source())]);
        let edits = Edits { by_content: self.by_content, canary: self.source().join("canary") };
        let victim = [Victim::Near, Victim::Far, Victim::Session][rng.usize(..3)];
        let signal = [Signal::KILL, Signal::KILL, Signal::TERM, Signal::INT][rng.usize(..4)];
        let mut moments: Vec<Duration> = (0..rng.usize(1..4)).map(|_| MOMENTS.mul_f64(rng.f64())).collect();
        moments.sort_unstable();
        let strike = moments.pop();
        eprintln!("{:?} of {victim:?} after {strike:?}, edits after {moments:?}", signal);
        let begun = Instant::now();
        let mut programs = self.start();
        for moment in moments {
            programs[0].wait_at_most(moment.saturating_sub(begun.elapsed()));
            if rng.bool() {
                edits.source(rng, &self.source().join("tree"), self.tickets.path());
                versions.push(snapshot(&self.source()));
            }
        }
        programs[0].wait_at_most(strike.unwrap_or_default().saturating_sub(begun.elapsed()));
        self.strike(&programs, victim, signal);
        if let [listening, _] = &programs[..] {
            // Otherwise it would wait for the next peer.
            listening.signal(Signal::TERM);
        }
        let ended = self.end(programs);
        Run {
            before,
            after: snapshot(&self.target()),
            versions,
            ended,
            receiver: self.receiver(),
            deletes: self.deletes,
        }
    }

    /// Runs the transfer to its own end.
    fn undisturbed(&self) -> Run {
        let (before, versions) = (snapshot(&self.target()), vec![snapshot(&self.source())]);
        let ended = self.end(self.start());
        Run {
            before,
            after: snapshot(&self.target()),
            versions,
            ended,
            receiver: self.receiver(),
            deletes: self.deletes,
        }
    }

    /// Waits until all processes of a run have ended on both hosts.
    fn end(&self, programs: Vec<Program>) -> Vec<Ended> {
        let ended = programs.into_iter().map(Program::end).collect();
        let homes = [self.hosts.local(""), self.hosts.sshd.home()];
        poll_within(GONE, &format!("{:?}: all processes have ended", self.way), || {
            homes.iter().all(|home| at_home(home).is_empty()).then_some(())
        });
        ended
    }

    /// Edits files between two runs.
    fn edit(&self, rng: &mut Rng) {
        let edits = Edits { by_content: self.by_content, canary: self.target().join("canary") };
        for _ in 0..rng.usize(0..4) {
            // Source and target get the same time if they are edited in one tick of the kernel's clock.
            wait_for_tick();
            match rng.u8(0..5) {
                0 => edits.source(rng, &self.source().join("tree"), self.tickets.path()),
                1 => edits.target(rng, &self.target().join("tree")),
                // Otherwise no file would take long enough to be interrupted.
                2 => edits.flip(rng, &self.source().join("tree/always")),
                _ => edits.staging(rng, &self.target()),
            }
        }
    }
}

/// Waits until a changed file gets another time than before.
fn wait_for_tick() {
    let mut file = tempfile::tempfile().expect("a file");
    let mut modified = || {
        file.write_all(b".").expect("a file");
        file.metadata().and_then(|metadata| metadata.modified()).expect("a time")
    };
    let before = modified();
    poll_within(Duration::from_secs(20), "another time", || (modified() > before).then_some(()));
}

/// Copies a tree with interruptions, then without. Returns the number of runs.
fn case(seed: u64) -> u32 {
    let mut rng = Rng::with_seed(seed);
    let case = Case::new(&mut rng);
    let disturbed = rng.u32(1..5);
    for _ in 0..disturbed {
        let source = |versions: &[Tree]| versions.last().cloned();
        let run = case.disturbed(&mut rng);
        assert_eq!(source(&run.versions), Some(snapshot(&case.source())), "the source was changed");
        oracle::judge(&run);
        eprintln!("between two runs");
        case.edit(&mut rng);
    }
    let run = case.undisturbed();
    oracle::judge(&run);
    oracle::judge_complete(&run, case.syncs);
    disturbed + 1
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn random_interruptions_and_edits_do_no_harm() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let first = number(SEED).unwrap_or_else(|| fastrand::u64(..1 << 48));
    let until = number(MINUTES).map(|minutes| Instant::now() + Duration::from_secs(60 * minutes));
    let (mut runs, mut cases) = (0, 0);
    while until.map_or(cases < QUICK, |until| Instant::now() < until) {
        let seed = first + cases;
        let result = std::panic::catch_unwind(|| case(seed));
        let Ok(count) = result else {
            panic!("seed {seed} after {cases} cases; again: {SEED}={seed} cargo xtask test-ssh random_interruptions")
        };
        runs += count;
        cases += 1;
    }
    println!("{cases} cases from seed {first} on, {runs} runs");
}
