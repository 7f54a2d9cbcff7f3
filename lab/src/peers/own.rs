//! The senders and receivers in this program itself: `downpour-lab peer ...`, started by the tables of the peers.

use std::io::{self, Write as _};
use std::net::SocketAddrV4;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize};

use super::process::Process;
use super::run::{TransferRun, Unfinished};
use super::{PeerError, quic, tcp, writes};
use crate::clock;
use crate::plan::Writes;

/// One end of a transfer.
#[derive(Debug, Subcommand)]
pub enum OwnPeer {
    /// Send a file over TCP
    TcpSend(TcpSend),
    /// Receive a file over TCP
    TcpReceive(TcpReceive),
    /// Write small amounts over TCP, and upload a file at the same time
    TcpWrite(TcpWrite),
    /// Read these writes, or echo them
    TcpHear(TcpHear),
    /// Send a file over QUIC
    QuicSend(QuicSend),
    /// Receive a file over QUIC
    QuicReceive(QuicReceive),
}

/// `tcp-send`.
#[derive(Args, Debug)]
pub struct TcpSend {
    /// Address of the receiver
    #[arg(long)]
    pub(super) to: SocketAddrV4,
    /// The congestion control of its sockets [default: the system's]
    #[arg(long)]
    pub(super) congestion: Option<String>,
    /// Connections that share the file
    #[arg(long, default_value_t = 1)]
    pub(super) streams: u64,
    /// The file
    pub(super) file: PathBuf,
}

/// `tcp-receive`.
#[derive(Args, Debug)]
pub struct TcpReceive {
    /// Address to listen on; port 0 takes a free one
    #[arg(long)]
    pub(super) listen: SocketAddrV4,
    /// Connections that share the file
    #[arg(long, default_value_t = 1)]
    pub(super) streams: u64,
    /// Bytes of the file
    #[arg(long)]
    pub(super) size: u64,
    /// The file to create
    pub(super) file: PathBuf,
}

/// `tcp-write`.
#[derive(Args, Debug)]
pub struct TcpWrite {
    /// Address of the reader, or of the tunnel to it
    #[arg(long)]
    pub(super) to: SocketAddrV4,
    /// The congestion control of its sockets [default: the system's]
    #[arg(long)]
    pub(super) congestion: Option<String>,
    /// Bytes of each write
    #[arg(long)]
    pub(super) size: u64,
    /// Seed of random times
    #[arg(long)]
    pub(super) seed: u64,
    /// Times of the writes, as JSON
    #[arg(long, value_parser = writes_of)]
    pub(super) writes: Writes,
    /// The file to upload
    pub(super) file: PathBuf,
}

/// `tcp-hear`.
#[derive(Args, Debug)]
pub struct TcpHear {
    /// Address to listen on; port 0 takes a free one
    #[arg(long)]
    pub(super) listen: SocketAddrV4,
    /// Bytes of each write
    #[arg(long)]
    pub(super) size: u64,
    /// Echo the writes
    #[arg(long)]
    pub(super) echo: bool,
    /// The file for the upload
    pub(super) file: PathBuf,
}

fn writes_of(json: &str) -> Result<Writes, serde_json::Error> {
    serde_json::from_str(json)
}

/// `quic-send`.
#[derive(Args, Debug)]
pub struct QuicSend {
    /// Address of the receiver
    #[arg(long)]
    pub(super) to: SocketAddrV4,
    /// The congestion control
    #[arg(long, value_enum)]
    pub(super) congestion: quic::Congestion,
    /// The receiver's certificate (DER), the only trusted one
    #[arg(long)]
    pub(super) certificate: PathBuf,
    /// The file
    pub(super) file: PathBuf,
}

/// `quic-receive`.
#[derive(Args, Debug)]
pub struct QuicReceive {
    /// Address to listen on; port 0 takes a free one
    #[arg(long)]
    pub(super) listen: SocketAddrV4,
    /// File for its self-signed certificate (DER)
    #[arg(long)]
    pub(super) certificate: PathBuf,
    /// Bytes of the file
    #[arg(long)]
    pub(super) size: u64,
    /// The file to create
    pub(super) file: PathBuf,
}

/// Runs one end to completion.
///
/// # Errors
/// The failure of the system or of the peer, in one line.
pub fn run(own: OwnPeer) -> io::Result<()> {
    match own {
        OwnPeer::TcpSend(args) => tcp::send(&args),
        OwnPeer::TcpReceive(args) => tcp::receive(&args),
        OwnPeer::TcpWrite(args) => writes::write(&args),
        OwnPeer::TcpHear(args) => writes::hear(&args),
        OwnPeer::QuicSend(args) => quic::send(&args),
        OwnPeer::QuicReceive(args) => quic::receive(&args),
    }
}

/// A line of JSON printed for the process that started it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum PeerMessage {
    /// The receiver listens on this port.
    Listening(u16),
    /// The sender is connected; the congestion control as reported by the kernel.
    Congestion(String),
    /// The receiver had the last byte at this time, in nanoseconds of [`clock::now`].
    Complete(u64),
    /// Each write was due, or its last byte had arrived, at these times of the same clock.
    Stamps(Vec<u64>),
}

/// Returns a time in nanoseconds.
pub(super) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl PeerMessage {
    /// Prints it.
    pub(super) fn print(&self) -> io::Result<()> {
        let mut line = serde_json::to_vec(self)?;
        line.push(b'\n');
        let mut stdout = io::stdout().lock();
        stdout.write_all(&line)?;
        stdout.flush()
    }

    /// Returns the message that the last byte has arrived now.
    pub(super) fn complete_now() -> Self {
        Self::Complete(nanos(clock::now()))
    }
}

/// Returns the next line of one of them.
fn next(run: &TransferRun<'_>, process: &mut Process, others: &mut [&mut Process]) -> Result<PeerMessage, Unfinished> {
    let (line, _) = run.wait_for_line(process, others, |line| Some(line.to_owned()))?;
    let program = process.name.clone();
    serde_json::from_str(&line).map_err(|_| PeerError::UnexpectedOutput { program, line }.into())
}

fn unexpected_output(process: &Process, message: &PeerMessage) -> Unfinished {
    PeerError::UnexpectedOutput { program: process.name.clone(), line: format!("{message:?}") }.into()
}

/// Returns the port on which a receiver listens.
pub(super) fn port(run: &TransferRun<'_>, receiver: &mut Process) -> Result<u16, Unfinished> {
    match next(run, receiver, &mut [])? {
        PeerMessage::Listening(port) => Ok(port),
        message => Err(unexpected_output(receiver, &message)),
    }
}

/// Returns the congestion control of a sender.
pub(super) fn congestion(
    run: &TransferRun<'_>,
    sender: &mut Process,
    others: &mut [&mut Process],
) -> Result<String, Unfinished> {
    match next(run, sender, others)? {
        PeerMessage::Congestion(name) => Ok(name),
        message => Err(unexpected_output(sender, &message)),
    }
}

/// Returns when a receiver had the last byte.
pub(super) fn complete(
    run: &TransferRun<'_>,
    receiver: &mut Process,
    others: &mut [&mut Process],
) -> Result<Duration, Unfinished> {
    match next(run, receiver, others)? {
        PeerMessage::Complete(at) => Ok(Duration::from_nanos(at)),
        message => Err(unexpected_output(receiver, &message)),
    }
}

/// Returns the times of all writes.
pub(super) fn stamps(
    run: &TransferRun<'_>,
    process: &mut Process,
    others: &mut [&mut Process],
) -> Result<Vec<u64>, Unfinished> {
    match next(run, process, others)? {
        PeerMessage::Stamps(times) => Ok(times),
        message => Err(unexpected_output(process, &message)),
    }
}
