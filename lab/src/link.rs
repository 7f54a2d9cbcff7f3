//! `link`: commands over an emulated link.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::args::LinkArgs;
use crate::control;
use crate::emulated::{EmulatedNetwork, EmulationError};
use crate::exit::{Code, Failure};
use crate::layout::{Layout, read_topology};
use crate::output::warn;
use crate::summary::RunSummary;
use crate::testbed::{CableKind, Host, RunDirectory, TestbedError, acquire, peer_of};
use crate::verdict::RunValidity;

/// The environment variables with the addresses of the peer and of the host itself.
const PEER_VARIABLE: &str = "LAB_PEER";
const SELF_VARIABLE: &str = "LAB_SELF";
/// How long the first command waits for the peer's to listen, which may never happen.
const LISTENING_WITHIN: Duration = Duration::from_secs(2);
const CHECK_EVERY: Duration = Duration::from_millis(5);
/// The time for the peer's command to exit by itself after the first, and after SIGTERM.
const FINISHES_WITHIN: Duration = Duration::from_millis(300);
const GRACE: Duration = Duration::from_secs(2);

/// An event while the commands run.
enum CommandEvent {
    Ended(io::Result<ExitStatus>),
    Signalled(i32),
}

/// Runs the commands; returns the exit code of the first.
///
/// # Errors
/// An invalid link, a machine without namespaces, a command that cannot be started.
pub fn run(args: &LinkArgs) -> Result<u8, Failure> {
    let (mut layout, name) = layout(args)?;
    if args.fast {
        layout.cables = CableKind::Tun;
    }
    let tasks = Tasks::new(args, &layout)?;
    if let Some(path) = &args.json {
        // Opened before the commands run, to report errors early.
        let file = fs::OpenOptions::new().create(true).append(true).open(path);
        file.map_err(|error| lab_failed(format_args!("cannot write {}: {error}", path.display())))?;
    }
    acquire().map_err(|error| Failure::new(Code::Lacking, error))?;
    // From now on signals are events: the link's statistics are printed after an interrupt too.
    let (events, happened) = channel();
    forward_signals(events.clone()).map_err(lab_failed)?;
    let keeper = std::env::current_exe().map_err(lab_failed)?;
    let network = EmulatedNetwork::start(layout, &keeper).map_err(|error| match error {
        EmulationError::Space(TestbedError::Tun(error)) => Failure::new(Code::Lacking, error),
        error => lab_failed(error),
    })?;
    let directory = RunDirectory::new().map_err(lab_failed)?;
    let control = control::listen(directory.path(), network.control()).map_err(lab_failed)?;
    network.control().set_impaired(!args.unimpaired);
    let status = tasks.run(network.hosts(), &control, events, &happened)?;
    let observation = network.stop();
    let verdict = RunValidity::of(&observation);
    let summary = RunSummary::new(&name, &observation, &verdict);
    if !args.quiet || !verdict.is_valid() {
        warn(summary.to_string().trim_end());
    }
    if let Some(path) = &args.json {
        let text = serde_json::to_string_pretty(&summary).map_err(lab_failed)? + "\n";
        fs::write(path, text).map_err(|error| lab_failed(format_args!("cannot write {}: {error}", path.display())))?;
    }
    Ok(exit_code(status))
}

/// Returns the network to emulate, and its description.
fn layout(args: &LinkArgs) -> Result<(Layout, String), Failure> {
    let usage = |error: &dyn std::fmt::Display| Failure::new(Code::Usage, error);
    match &args.topology {
        None => {
            let link = args.link.duplex().map_err(|error| usage(&error))?;
            Ok((Layout::pair(&link).map_err(|error| usage(&error))?, link.to_string()))
        }
        Some(file) => {
            args.link.check_beside_topology()?;
            let topology = read_topology(file).map_err(|error| usage(&error))?;
            let layout = Layout::of_topology(topology, file).map_err(|error| usage(&error))?;
            Ok((layout, file.display().to_string()))
        }
    }
}

/// The commands to run, and their hosts.
struct Tasks<'a> {
    /// The pairs of hosts that communicate, as indices of the hosts.
    pairs: Vec<(usize, usize)>,
    /// Shell commands, and the indices of their hosts.
    others: Vec<(usize, &'a str)>,
    /// The main command, on the first host of the first pair.
    command: &'a [OsString],
}

impl<'a> Tasks<'a> {
    fn new(args: &'a LinkArgs, layout: &Layout) -> Result<Self, Failure> {
        let mut others: Vec<(usize, &str)> = args.peer.iter().map(|peer| (layout.pairs[0].1, peer.as_str())).collect();
        for at in &args.at {
            let (host, command) = at.split_once('=').ok_or_else(|| {
                Failure::new(Code::Usage, format_args!("--at {at}: write HOST=COMMAND, such as --at 'b2=iperf3 -s'"))
            })?;
            let place = layout.hosts.iter().position(|name| name == host).ok_or_else(|| {
                let hosts = layout.hosts.join(", ");
                Failure::new(Code::Usage, format_args!("--at {at}: unknown host {host}: one of {hosts}"))
            })?;
            others.push((place, command));
        }
        Ok(Self { pairs: layout.pairs.clone(), others, command: &args.command })
    }

    /// Starts the other commands, one after another, and runs the first until it ends.
    fn run(
        &self,
        hosts: &[Host],
        control: &Path,
        events: Sender<CommandEvent>,
        happened: &Receiver<CommandEvent>,
    ) -> Result<ExitStatus, Failure> {
        let mut running = Vec::new();
        for &(place, command) in &self.others {
            let mut shell = Command::new("/bin/sh");
            shell.args(["-c", command]);
            let host = &hosts[place];
            let before = host.listening().len();
            let child = host
                .spawn(self.settled(shell, place, hosts, control))
                .map_err(|error| not_started("/bin/sh", &error))?;
            let mut child = Background { child, place: host.name().to_owned() };
            wait_until_listening(host, before, &mut child.child, happened)?;
            running.push(child);
        }
        let program = &self.command[0];
        let mut command = Command::new(program);
        command.args(&self.command[1..]);
        let first = self.pairs[0].0;
        let child = hosts[first]
            .spawn_in_front(self.settled(command, first, hosts, control))
            .map_err(|error| not_started(&program.to_string_lossy(), &error))?;
        let status = wait(child, events, happened).map_err(lab_failed)?;
        drop(running);
        Ok(status)
    }

    /// Returns a command with information about the lab in its environment.
    fn settled(&self, mut command: Command, place: usize, hosts: &[Host], control: &Path) -> Command {
        command.env(SELF_VARIABLE, hosts[place].address().to_string()).env(control::VARIABLE, control);
        if let Some(peer) = peer_of(place, &self.pairs) {
            command.env(PEER_VARIABLE, hosts[peer].address().to_string());
        }
        command
    }
}

fn lab_failed(error: impl std::fmt::Display) -> Failure {
    Failure::new(Code::LabFailed, error)
}

fn not_started(program: &str, error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::NotFound => Failure::new(Code::NotFound, format_args!("{program}: command not found")),
        _ => Failure::new(Code::NotStartable, format_args!("{program}: {error}")),
    }
}

/// Turns signals into events.
fn forward_signals(events: Sender<CommandEvent>) -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for signal in signals.forever() {
            if events.send(CommandEvent::Signalled(signal)).is_err() {
                break;
            }
        }
    })?;
    Ok(())
}

/// Waits until the command has opened a port, ended, or timed out. A signal ends everything: the first command has not
/// started.
fn wait_until_listening(
    host: &Host,
    before: usize,
    child: &mut Child,
    happened: &Receiver<CommandEvent>,
) -> Result<(), Failure> {
    let start = Instant::now();
    while start.elapsed() < LISTENING_WITHIN
        && host.listening().len() <= before
        && child.try_wait().is_ok_and(|status| status.is_none())
    {
        if let Ok(CommandEvent::Signalled(signal)) = happened.recv_timeout(CHECK_EVERY) {
            let code = u8::try_from(128 + signal).unwrap_or(Code::Other as u8);
            return Err(Failure { code, message: "interrupted before the command started".to_owned() });
        }
    }
    Ok(())
}

/// Waits for the command. The first signal is passed to it, unless it has already received it from the terminal; the
/// second ends it.
fn wait(mut child: Child, events: Sender<CommandEvent>, happened: &Receiver<CommandEvent>) -> io::Result<ExitStatus> {
    let pid = pid_of(&child);
    thread::Builder::new().name("command".to_owned()).spawn(move || {
        // The receiver is gone when the program ends.
        let _ = events.send(CommandEvent::Ended(child.wait()));
    })?;
    let mut signals = 0;
    loop {
        match happened.recv() {
            Ok(CommandEvent::Ended(status)) => return status,
            Ok(CommandEvent::Signalled(signal)) => {
                signals += 1;
                let has_it = signal == SIGINT && rustix::termios::isatty(io::stdin());
                let signal = if signals > 1 { Some(Signal::KILL) } else { Signal::from_named_raw(signal) };
                if let (Some(pid), Some(signal)) = (pid, signal.filter(|_| signals > 1 || !has_it)) {
                    // It may have ended meanwhile.
                    let _ = kill_process(pid, signal);
                }
            }
            Err(_) => return Err(io::ErrorKind::BrokenPipe.into()),
        }
    }
}

/// A command beside the first. When this is dropped, the command may exit by itself, then gets SIGTERM, then SIGKILL.
/// It is waited for, since a host ends only when all of its processes are reaped.
struct Background {
    child: Child,
    /// Name of its host.
    place: String,
}

impl Drop for Background {
    fn drop(&mut self) {
        let Self { child, place } = self;
        let pid = pid_of(child);
        if has_ended_within(child, FINISHES_WITHIN) {
            if let Ok(status) = child.wait()
                && !status.success()
            {
                warn(&format!("downpour-lab: command on {place} failed: {status}"));
            }
            return;
        }
        for signal in [Signal::TERM, Signal::KILL] {
            if let Some(pid) = pid {
                let _ = kill_process_group(pid, signal);
            }
            if has_ended_within(child, GRACE) {
                return;
            }
        }
        let _ = child.wait();
    }
}

fn has_ended_within(child: &mut Child, time: Duration) -> bool {
    let start = Instant::now();
    loop {
        // A process that cannot be waited for has ended.
        let ended = child.try_wait().map_or(true, |status| status.is_some());
        if ended || start.elapsed() > time {
            return ended;
        }
        thread::sleep(CHECK_EVERY);
    }
}

fn pid_of(child: &Child) -> Option<Pid> {
    Pid::from_raw(child.id().cast_signed())
}

/// Returns the exit code as shells do: a command ended by a signal has 128 plus its number.
fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default());
    u8::try_from(code).unwrap_or(Code::Other as u8)
}
