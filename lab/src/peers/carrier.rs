//! Paths for TCP connections from the sending host to the receiving one, and a file over them.

use std::net::SocketAddrV4;
use std::time::Duration;

use super::own;
use super::process::Process;
use super::run::{TransferRun, Unfinished};
use super::tcp;

/// An open path for connections.
pub(super) struct Carrier {
    /// The address to which the sending host's programs connect.
    pub(super) entry: SocketAddrV4,
    /// The congestion control of their connections; `None` if they end at the entry, where the kernel's default is good
    /// enough.
    pub(super) congestion: Option<&'static str>,
    /// The programs that forward.
    pub(super) processes: Vec<Process>,
}

impl Carrier {
    /// Returns the path without a program: the kernel's TCP.
    pub(super) const fn direct(to: SocketAddrV4, congestion: &'static str) -> Self {
        Self { entry: to, congestion: Some(congestion), processes: Vec::new() }
    }

    /// Returns its programs and a further one, none of which may fail during a wait for another.
    pub(super) fn others<'a>(&'a mut self, further: &'a mut Process) -> Vec<&'a mut Process> {
        self.processes.iter_mut().chain([further]).collect()
    }
}

/// Moves the file with the lab's own sender and receiver.
pub(super) fn move_file(
    run: &mut TransferRun<'_>,
    open: fn(&mut TransferRun<'_>, SocketAddrV4) -> Result<Carrier, Unfinished>,
) -> Result<Duration, Unfinished> {
    let (mut receiver, port) = tcp::start_receiver(run, 1)?;
    let mut carrier = open(run, run.at_receiver(port))?;
    run.start_clock();
    let mut sender = tcp::start_sender(run, carrier.entry, carrier.congestion, 1)?;
    if carrier.congestion.is_some() {
        run.congestion = Some(own::congestion(run, &mut sender, &mut carrier.others(&mut receiver))?);
    }
    own::complete(run, &mut receiver, &mut carrier.others(&mut sender))
}
