//! Demonstrations over emulated links: the engine over UDP sockets of the kernel, and the kernel's TCP, between hosts
//! as in measurements.
//!
//! A process of its own plays one, since only a process with one thread gets the right to create hosts. It is this
//! program with a hidden command. It reads the request as a line of JSON, the picture, and then a line for each change
//! of the links; it writes a line for each frame, and at last one with the reason of the end. It exits at the end of
//! its stdin.

mod engine;
mod tcp;

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel, sync_channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use netsim::{Duplex, LinkId, LinkStats};
use serde_json::{Value, json};

use super::play::{Audience, PlaybackState, play};
use super::run::DemoRun;
use super::setup::{Conditions, LARGEST_PICTURE, Setup, SetupRequest};
use super::transfer::Transfer;
use crate::emulated::EmulatedNetwork;
use crate::emulator::{EmulatorCounters, EmulatorHandle};
use crate::exit::{Code, Failure};
use crate::layout::Layout;
use crate::testbed::{self, Host};
use crate::verdict::RunValidity;
use crate::web::lock;
use engine::Engine;
use tcp::Tcp;

/// The longest line in either direction: a frame can contain four pictures in Base64.
const LONGEST_LINE: u64 = 16 * LARGEST_PICTURE as u64;
/// The most bytes shown of its error message.
const MAX_ERROR_BYTES: u64 = 2_000;
/// Interval at which the watching side checks for a stop.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The longest time without a line: it writes one for each frame, once it has created its hosts.
const SILENCE: Duration = Duration::from_secs(20);
/// The time limit for its exit.
const PATIENCE: Duration = Duration::from_secs(2);
/// The time from the last preparation to the start, which every thread of a transfer awaits.
const START_AFTER: Duration = Duration::from_millis(20);

/// Plays a demonstration in a process of its own. Returns the reason of its end.
///
/// # Errors
/// A process that cannot be started, or its error message, for example that this machine cannot emulate links.
pub(super) fn relay(run: &DemoRun) -> Result<String, String> {
    let mut player = Player::start(run).map_err(|error| format!("cannot start another process of the lab: {error}"))?;
    let mut conditions = run.setup().conditions;
    let mut heard = Instant::now();
    loop {
        match player.lines.recv_timeout(LOOK_EVERY) {
            Ok(line) => {
                heard = Instant::now();
                let event: Value = serde_json::from_slice(&line)
                    .map_err(|error| format!("unreadable output of the player: {error}"))?;
                if let Some(why) = event["over"].as_str() {
                    return Ok(why.to_owned());
                }
                if !run.publish(&event) {
                    return Ok("the recording is full".to_owned());
                }
            }
            Err(RecvTimeoutError::Timeout) if heard.elapsed() < SILENCE => {}
            Err(RecvTimeoutError::Timeout) => {
                return Err(format!("no output of the player for {} s", SILENCE.as_secs()));
            }
            Err(RecvTimeoutError::Disconnected) => return Err(player.last_error_line()),
        }
        if run.is_stopped() {
            // It still reports the validity of the emulation.
            player.stop();
        } else if run.conditions() != conditions {
            conditions = run.conditions();
            player.write(format!("{}\n", json!(conditions)).into_bytes());
        }
    }
}

/// The process that plays a demonstration. It is stopped when this is dropped.
struct Player {
    process: Child,
    /// The writer to its stdin, which is closed with this.
    stdin: Option<Sender<Vec<u8>>>,
    /// Lines from its stdout.
    lines: Receiver<Vec<u8>>,
}

impl Player {
    fn start(run: &DemoRun) -> io::Result<Self> {
        let mut asked = serde_json::to_vec(&run.setup().asked)?;
        asked.push(b'\n');
        asked.extend_from_slice(run.picture());
        let mut command = Command::new(std::env::current_exe()?);
        command.arg0(crate::NAME).arg("demonstrate");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Ctrl-C at the terminal is for the program that started it.
        let mut process = command.process_group(0).spawn()?;
        let (Some(mut to), Some(from)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let (stdin, texts) = channel::<Vec<u8>>();
        // An exited player is noticed by its silence.
        thread::spawn(move || texts.into_iter().try_for_each(|text| to.write_all(&text)));
        // Bounded: the player waits if this side does not keep up.
        let (said, lines) = sync_channel(1);
        thread::spawn(move || {
            let mut from = BufReader::new(from);
            loop {
                let mut line = Vec::new();
                let read = (&mut from).take(LONGEST_LINE).read_until(b'\n', &mut line);
                if !read.is_ok_and(|length| length > 0) || said.send(line).is_err() {
                    return;
                }
            }
        });
        let player = Self { process, stdin: Some(stdin), lines };
        player.write(asked);
        Ok(player)
    }

    fn write(&self, text: Vec<u8>) {
        let _ = self.stdin.as_ref().map(|stdin| stdin.send(text));
    }

    /// Requests a stop.
    fn stop(&mut self) {
        self.stdin = None;
    }

    /// Returns its last line on stderr.
    fn last_error_line(&mut self) -> String {
        let mut said = Vec::new();
        if let Some(stderr) = self.process.stderr.take() {
            let _ = stderr.take(MAX_ERROR_BYTES).read_to_end(&mut said);
        }
        let said = String::from_utf8_lossy(&said);
        let last = said.lines().rfind(|line| !line.is_empty()).unwrap_or("the player exited without a message");
        last.strip_prefix("downpour-lab: ").unwrap_or(last).to_owned()
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        self.stop();
        // It removes its directory, and the hosts end with it.
        let requested = Instant::now();
        while matches!(self.process.try_wait(), Ok(None)) && requested.elapsed() < PATIENCE {
            while self.lines.try_recv().is_ok() {}
            thread::sleep(LOOK_EVERY / 10);
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// `downpour-lab demonstrate`: plays the demonstration requested on stdin, to stdout.
///
/// # Errors
/// A machine that cannot emulate links, and an invalid request.
pub fn demonstrate() -> Result<u8, Failure> {
    // First, while this process has one thread.
    testbed::acquire().map_err(|error| Failure::new(Code::Lacking, error))?;
    let mut stdin = BufReader::new(io::stdin());
    let (setup, picture) = asked(&mut stdin).map_err(|error| Failure::new(Code::Usage, error))?;
    let failed = |error: String| Failure::new(Code::Other, error);
    let network = network(&setup).map_err(failed)?;
    let mut stage = stage(&network, &setup, &picture).map_err(failed)?;
    let pipes = Pipes::listen(stdin, setup.conditions);
    let why = play(&mut stage, &pipes).map_err(failed)?;
    let full = network.hosts().iter().map(Host::full_sockets).sum::<u64>();
    let mut seen = network.stop();
    // The verdict uses the shortest round trip of the demonstration.
    seen.delays.fill([lock(&pipes.heard).least_delay; 2]);
    let verdict = RunValidity::of(&seen);
    let full = if full == 0 { String::new() } else { format!("; {full} packets were dropped by full sockets") };
    say(&json!({ "over": format!("{why}; the emulation was {verdict}{full}") }));
    Ok(Code::Done as u8)
}

/// Reads the request and the picture.
fn asked(stdin: &mut impl io::BufRead) -> Result<(Setup, Arc<[u8]>), String> {
    let mut line = Vec::new();
    let unread = |error: &dyn std::fmt::Display| format!("invalid request on stdin: {error}");
    stdin.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line).map_err(|error| unread(&error))?;
    let asked: SetupRequest = serde_json::from_slice(&line).map_err(|error| unread(&error))?;
    let mut picture = vec![0; asked.picture_bytes().ok_or("the picture is too large")?];
    stdin.read_exact(&mut picture).map_err(|error| unread(&error))?;
    Ok((asked.check(picture.len())?, picture.into()))
}

/// Creates two hosts for each system, with a link between them.
fn network(setup: &Setup) -> Result<EmulatedNetwork, String> {
    let link = setup.conditions.link().sibling(setup.seed);
    let layout = Layout::pairs(&vec![link; setup.systems.len()]).map_err(|error| error.to_string())?;
    let keeper = std::env::current_exe().map_err(|error| format!("cannot find the path of this program: {error}"))?;
    EmulatedNetwork::start(layout, &keeper).map_err(|error| error.to_string())
}

/// Starts all transfers at one time.
fn stage(network: &EmulatedNetwork, setup: &Setup, picture: &Arc<[u8]>) -> Result<PlaybackState, String> {
    let Setup { systems, conditions, seed, .. } = setup;
    let (pairs, _) = network.hosts().as_chunks::<2>();
    let begin = Arc::default();
    let mut transfers: Vec<Box<dyn Transfer>> = Vec::new();
    for (number, (system, hosts)) in (0..).zip(systems.iter().zip(pairs)) {
        let links = [0, 1].map(|direction| LinkId::from_index(2 * number + direction));
        let link = LinkHandle { control: network.control(), links, receiver: 2 * number as usize + 1 };
        transfers.push(if system.is_kernel_tcp() {
            Box::new(Tcp::start(link, hosts, picture, &begin)?)
        } else {
            let profile = system.profile(conditions.rate())?;
            Box::new(Engine::start(link, hosts, picture, &profile, *seed, &begin)?)
        });
    }
    let begin = *begin.get_or_init(|| Instant::now() + START_AFTER);
    Ok(PlaybackState::new(setup, picture.len(), transfers, Some(begin)))
}

/// The start of all transfers, once known.
type Begin = Arc<OnceLock<Instant>>;

/// Waits for the start.
fn wait_for(begin: &Begin) -> Instant {
    let begin = *begin.wait();
    thread::sleep(begin.saturating_duration_since(Instant::now()));
    begin
}

/// The link of a transfer.
struct LinkHandle {
    control: EmulatorHandle,
    /// Its directions, towards the receiver first.
    links: [LinkId; 2],
    /// The receiver's index among the hosts.
    receiver: usize,
}

/// The emulator's counts of a transfer.
struct TransferCounts {
    /// Packets towards the receiver dropped by the link.
    lost: u64,
    /// IP bytes that have arrived at the receiver.
    arrived: u64,
}

impl LinkHandle {
    /// Changes the link for packets sent from now on.
    fn set_link(&self, link: &Duplex) -> Result<(), String> {
        let [forward, backward] = self.links;
        let changed = self
            .control
            .set_link(forward, link.forward.clone())
            .and_then(|()| self.control.set_link(backward, link.backward.clone()));
        changed.map_err(|error| error.to_string())
    }

    fn counted(&self) -> TransferCounts {
        let EmulatorCounters { links, arrived } = self.control.counts();
        TransferCounts {
            lost: links.get(self.links[0].index()).map_or(0, LinkStats::dropped),
            arrived: arrived.get(self.receiver).copied().unwrap_or_default(),
        }
    }
}

/// The connection to the parent process through stdin and stdout.
struct Pipes {
    heard: Arc<Mutex<PlayerInput>>,
    stopped: Arc<AtomicBool>,
}

/// Its input so far.
struct PlayerInput {
    conditions: Conditions,
    /// The least one-way delay so far.
    least_delay: Duration,
}

impl Pipes {
    /// Reads changes of the links, and the end of stdin.
    fn listen(mut stdin: BufReader<io::Stdin>, conditions: Conditions) -> Self {
        let heard = PlayerInput { conditions, least_delay: conditions.delay() };
        let pipes = Self { heard: Arc::new(Mutex::new(heard)), stopped: Arc::default() };
        let (heard, stopped) = (Arc::clone(&pipes.heard), Arc::clone(&pipes.stopped));
        thread::spawn(move || {
            let mut line = Vec::new();
            while (&mut stdin).take(LONGEST_LINE).read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
                if let Ok(changed) = serde_json::from_slice::<Conditions>(&line)
                    && changed.check().is_ok()
                {
                    let mut heard = lock(&heard);
                    heard.conditions = changed.on(true);
                    heard.least_delay = heard.least_delay.min(changed.delay());
                }
                line.clear();
            }
            stopped.store(true, Ordering::Relaxed);
        });
        pipes
    }
}

impl Audience for Pipes {
    fn publish(&self, event: &Value) -> bool {
        say(event)
    }

    fn conditions(&self) -> Conditions {
        lock(&self.heard).conditions
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }
}

/// Writes a line to stdout; returns false if it is closed.
fn say(event: &Value) -> bool {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{event}").and_then(|()| stdout.flush()).is_ok()
}
