//! `cargo xtask relayed-ssh`: an ssh command for `downpour cp --ssh` with a link of netsim as the path to the host, in
//! user space and without privileges. The host is this machine.
//!
//! The bytes that ssh carries are late by the link's delay. The ticket in the remote line (`DOWNPOUR1 TICKET`) is
//! changed to name a relay, so that UDP crosses the link as well; the program does not know of it. A line on stderr
//! reports whether this machine was quick enough to be the link.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use clap::Args;
use downpour::Ticket;
use linkrelay::Relay;
use netsim::Duplex;

use xtask::failure::Failure;

/// How the remote side's line begins.
const GREETING: &str = "DOWNPOUR1 ";
/// Longer than any ticket.
const LONGEST_LINE: u64 = 1 << 16;
/// Lines before that one: the remote side begins with an empty one, and a shell's start-up file may greet.
const MAX_NOISE: usize = 1000;
/// The beginning of the line that reports that this machine was too busy to be the link.
pub(crate) const RELAY_LATE: &str = "xtask: the relay was late";
const CHUNK: usize = 16 << 10;
/// Chunks on their way, at most: 64 MiB.
const CHUNKS: usize = 4096;

/// The options of `relayed-ssh`.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// The network in the form of `downpour demo --link`; forward is the direction from the host that runs ssh
    #[arg(long, value_name = "LINK")]
    link: Duplex,
    /// ssh and its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    command: Vec<std::ffi::OsString>,
}

/// Runs ssh to its end; its exit code is this command's.
pub(crate) fn run(options: &Options) -> Result<ExitCode, Failure> {
    let mut ssh = Command::new(&options.command[0]);
    ssh.args(&options.command[1..]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut ssh = ssh.spawn().map_err(Failure::at(options.command[0].display()))?;
    let (input, output) = (ssh.stdin.take(), ssh.stdout.take());
    if let Some(input) = input {
        // Never joined: a stdin that stays open must not hold up the end.
        delayed(io::stdin(), input, options.link.forward.delay);
    }
    let mut output = BufReader::new(output.ok_or_else(|| Failure::new("ssh without a stdout"))?);
    let (lines, relay) = first_lines(&mut output, options.link.clone())?;
    let printed = delayed(io::Cursor::new(lines).chain(output), io::stdout(), options.link.backward.delay);
    let status = ssh.wait().map_err(Failure::at("ssh"))?;
    // A panic of the thread has been printed already.
    let _ = printed.join();
    if let Some(report) = relay.map(|relay| relay.report())
        && (report.kernel_drops > 0 || !report.lateness.is_on_time())
    {
        let late = report.lateness.percentile(99);
        eprintln!("{RELAY_LATE}: 99 of 100 packets within {late:?}, {} dropped by the system", report.kernel_drops);
    }
    Ok(code(status))
}

/// The lines up to the one with the ticket, as passed to the local host, and the relay that it names.
fn first_lines(output: &mut impl BufRead, link: Duplex) -> Result<(Vec<u8>, Option<Relay>), Failure> {
    let mut lines = Vec::new();
    for _ in 0..=MAX_NOISE {
        let start = lines.len();
        output.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut lines).map_err(Failure::at("ssh"))?;
        let text = str::from_utf8(&lines[start..]).ok().and_then(|text| text.trim_end().strip_prefix(GREETING));
        let ticket = text.and_then(|text| Ticket::parse(text).ok());
        if let Some((mut ticket, port)) = ticket.and_then(|ticket| port(&ticket).map(|port| (ticket, port))) {
            let relay = Relay::start((Ipv4Addr::LOCALHOST, port).into(), link).map_err(Failure::at("the relay"))?;
            ticket.addresses = vec![relay.address()];
            let text = ticket.to_text().map_err(Failure::at("the ticket"))?;
            lines.truncate(start);
            lines.extend(format!("{GREETING}{text}\n").bytes());
            return Ok((lines, Some(relay)));
        }
        // The end, or the expected line without an address for UDP.
        if lines.len() == start || lines[start..].starts_with(GREETING.as_bytes()) {
            break;
        }
    }
    Ok((lines, None))
}

fn port(ticket: &Ticket) -> Option<u16> {
    ticket.addresses.first().map(SocketAddr::port)
}

/// Copies until the end of `from`, each byte `delay` after its arrival; then drops `to`.
fn delayed(from: impl Read + Send + 'static, to: impl Write + Send + 'static, delay: Duration) -> JoinHandle<()> {
    let (sender, receiver) = sync_channel(CHUNKS);
    thread::spawn(move || read(from, delay, &sender));
    thread::spawn(move || write(to, &receiver))
}

/// The received bytes, and when to forward them. It ends with the writer.
fn read(mut from: impl Read, delay: Duration, sender: &SyncSender<(Instant, Vec<u8>)>) {
    let mut chunk = vec![0; CHUNK];
    // An error is an end as well.
    while let Ok(length) = from.read(&mut chunk) {
        // The end travels as long as every byte did: an empty chunk.
        if sender.send((Instant::now() + delay, chunk[..length].to_vec())).is_err() || length == 0 {
            return;
        }
    }
}

fn write(mut to: impl Write, receiver: &Receiver<(Instant, Vec<u8>)>) {
    for (due, chunk) in receiver {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        if chunk.is_empty() || to.write_all(&chunk).and_then(|()| to.flush()).is_err() {
            return;
        }
    }
}

/// The exit code as in a shell; 255, as of ssh, for a process ended by a signal.
fn code(status: ExitStatus) -> ExitCode {
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    code.unwrap_or(u8::MAX).into()
}
