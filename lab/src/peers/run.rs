//! The tools with which a peer's table moves a file.

use std::env;
use std::fs;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use netsim::Rate;

use super::error::PeerError;
use super::gate::Start;
use super::process::{self, Process, Stdout};
use super::stage::ScratchDirectory;
use super::transfer::Job;
use super::writes::Delays;
use crate::clock;
use crate::testbed::{Host, Protocol};

/// Time for a program to start listening, unless it has to log in first.
const PATIENCE: Duration = Duration::from_secs(10);
/// Interval at which the kernel is asked for listening sockets.
const PERIOD: Duration = Duration::from_millis(2);
/// Attempts to find a port that is free for both UDP and TCP.
const ATTEMPTS: usize = 16;

/// The part of the environment that programs keep: the directories of programs and libraries.
const KEPT: [&str; 2] = ["PATH", "LD_LIBRARY_PATH"];

/// The reason why a peer stopped before the file had arrived.
#[derive(Debug)]
pub(super) enum Unfinished {
    /// The cap was reached.
    Cap,
    /// An error.
    Failed(PeerError),
}

impl From<PeerError> for Unfinished {
    fn from(error: PeerError) -> Self {
        Self::Failed(error)
    }
}

/// A transfer in progress.
pub(super) struct TransferRun<'a> {
    /// The sending host.
    pub(super) from: &'a Host,
    /// The receiving host.
    pub(super) to: &'a Host,
    pub(super) job: &'a Job,
    pub(super) stage: &'a ScratchDirectory,
    cap: Duration,
    /// The gate that starts the clock.
    start: Option<Start<'a>>,
    /// When the clock started; all servers are listening by then.
    started: Option<Duration>,
    /// The congestion control of the sender as reported by the kernel.
    pub(super) congestion: Option<String>,
    /// Bytes counted by a receiver that keeps no file.
    pub(super) counted: Option<u64>,
    /// The delays of small writes.
    pub(super) delays: Option<Delays>,
    /// The time limit for a program to become ready.
    pub(super) patience: Duration,
    logs: usize,
}

impl<'a> TransferRun<'a> {
    pub(super) fn new(
        from: &'a Host,
        to: &'a Host,
        job: &'a Job,
        stage: &'a ScratchDirectory,
        cap: Duration,
        start: Option<Start<'a>>,
    ) -> Self {
        Self {
            from,
            to,
            job,
            stage,
            cap,
            start,
            started: None,
            congestion: None,
            counted: None,
            delays: None,
            patience: PATIENCE,
            logs: 0,
        }
    }

    /// Returns a command for a program, without arguments.
    pub(super) fn program(&self, name: &str) -> Command {
        // Its presence was checked before. If it has been removed since, starting it fails.
        Command::new(self.job.programs.find(name).unwrap_or_else(|| PathBuf::from(name)))
    }

    /// Returns a command for `downpour-lab peer`, without further arguments.
    pub(super) fn own(&self, name: &str) -> Command {
        let mut command = self.job.programs.lab();
        command.args(["peer", name]);
        command
    }

    /// Returns a command for `downpour` without a configuration and without further arguments.
    pub(super) fn downpour(&self, name: &str) -> Command {
        let mut command = self.program("downpour");
        command.args(["--config", "none", name]);
        command
    }

    /// Starts a program whose output is not read.
    pub(super) fn start(&mut self, host: &Host, command: Command) -> Result<Process, Unfinished> {
        self.spawn(host, command, Stdout::Log)
    }

    /// Starts a program whose output is read.
    pub(super) fn start_read(&mut self, host: &Host, command: Command) -> Result<Process, Unfinished> {
        self.spawn(host, command, Stdout::Read)
    }

    fn spawn(&mut self, host: &Host, mut command: Command, stdout: Stdout) -> Result<Process, Unfinished> {
        self.logs += 1;
        let log = self.stage.own(&format!("{}.log", self.logs));
        let home = self.stage.own("");
        // The user's settings for these programs do not apply.
        command.env_clear().envs(KEPT.iter().filter_map(|name| Some((name, env::var_os(name)?))));
        command.env("LC_ALL", "C").env("HOME", &home).current_dir(home);
        let program = Path::new(command.get_program()).display().to_string();
        Ok(Process::start(host, command, stdout, log).map_err(PeerError::at(program))?)
    }

    /// Runs a program to its end, which must be successful.
    pub(super) fn complete(&mut self, host: &Host, command: Command) -> Result<(), Unfinished> {
        let mut process = self.start(host, command)?;
        self.exit(&mut process, &mut []).map(drop)
    }

    /// Returns a port of `host` that was free a moment ago, for UDP and for TCP: most programs cannot choose one
    /// themselves.
    pub(super) fn free_port(host: &Host) -> Result<u16, Unfinished> {
        let address = host.address();
        let port = host.within(move || {
            let mut result = TcpListener::bind((address, 0));
            for _ in 0..ATTEMPTS {
                let port = result?.local_addr()?.port();
                if UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port)).is_ok() {
                    return Ok(port);
                }
                result = TcpListener::bind((address, 0));
            }
            result?.local_addr().map(|address| address.port())
        });
        Ok(port.map_err(PeerError::at(format!("a free port of {address}")))?)
    }

    /// Waits until the process's host has a listening socket on this port, according to the kernel: a probing
    /// connection would be mistaken for the sender's.
    pub(super) fn listens(
        &self,
        process: &mut Process,
        host: &Host,
        protocol: Protocol,
        port: u16,
    ) -> Result<(), Unfinished> {
        let begun = clock::now();
        while !host.listening().contains(&(protocol, port)) {
            if process.ended().map_err(PeerError::at(process.name.clone()))?.is_some() {
                return Err(ended_early(process).into());
            }
            if clock::now() > begun + self.patience {
                let (program, output) = (process.name.clone(), process.last_output());
                return Err(PeerError::NotListening { program, seconds: self.patience.as_secs(), output }.into());
            }
            thread::sleep(PERIOD);
        }
        Ok(())
    }

    /// Starts the clock, at the transfer's start time if it has one.
    pub(super) fn start_clock(&mut self) {
        if let Some(start) = &self.start {
            start.wait();
        }
        self.started = Some(clock::now());
    }

    /// Returns when the clock started.
    pub(super) fn started(&self) -> Duration {
        self.started.unwrap_or_default()
    }

    /// Waits until `process` exits successfully, and returns the time. None of the others may fail before.
    pub(super) fn exit(&self, process: &mut Process, others: &mut [&mut Process]) -> Result<Duration, Unfinished> {
        self.until(false, process, others, |process| {
            match process.ended().map_err(PeerError::at(process.name.clone()))? {
                Some(status) if status.success() => Ok(Some(clock::now())),
                Some(_) => Err(ended_early(process)),
                None => Ok(None),
            }
        })
    }

    /// Waits for a line of `process` for which `wanted` returns a value. None of the others may fail before.
    pub(super) fn wait_for_line<T>(
        &self,
        process: &mut Process,
        others: &mut [&mut Process],
        mut wanted: impl FnMut(&str) -> Option<T>,
    ) -> Result<(T, Duration), Unfinished> {
        self.until(true, process, others, |process| {
            if process.ended().map_err(PeerError::at(process.name.clone()))?.is_none() && !process.is_readable() {
                return Ok(None);
            }
            match process.line().map_err(PeerError::at(process.name.clone()))? {
                Some(line) => Ok(wanted(&line).map(|found| (found, clock::now()))),
                None => Err(ended_early(process)),
            }
        })
    }

    /// Waits until the received file has its full length, for receivers that write sequentially and report nothing.
    pub(super) fn full(&self, receiver: &mut Process, others: &mut [&mut Process]) -> Result<Duration, Unfinished> {
        let target = self.stage.target();
        let deadline = self.deadline();
        loop {
            // Checked first: an exited receiver writes no more.
            let ended = receiver.ended().map_err(PeerError::at(receiver.name.clone()))?.is_some();
            if fs::metadata(&target).is_ok_and(|metadata| metadata.len() >= self.job.size) {
                return Ok(clock::now());
            }
            if ended {
                return Err(ended_early(receiver).into());
            }
            self.check_processes(receiver, others, deadline)?;
            process::wait(None, &[receiver], deadline.min(clock::now() + PERIOD)).map_err(PeerError::at("waiting"))?;
        }
    }

    fn until<T>(
        &self,
        reads: bool,
        process: &mut Process,
        others: &mut [&mut Process],
        mut step: impl FnMut(&mut Process) -> Result<Option<T>, PeerError>,
    ) -> Result<T, Unfinished> {
        let deadline = self.deadline();
        loop {
            if let Some(found) = step(process)? {
                return Ok(found);
            }
            self.check_processes(process, others, deadline)?;
            let mut all: Vec<&Process> = others.iter().map(|other| &**other).collect();
            all.push(process);
            process::wait(reads.then_some(process), &all, deadline).map_err(PeerError::at("waiting"))?;
        }
    }

    fn deadline(&self) -> Duration {
        self.started.map_or_else(|| clock::now() + self.patience, |started| started + self.cap)
    }

    /// Checks that no process has failed, and that the cap is not reached.
    fn check_processes(
        &self,
        process: &Process,
        others: &mut [&mut Process],
        deadline: Duration,
    ) -> Result<(), Unfinished> {
        for other in others {
            let status = other.ended().map_err(PeerError::at(other.name.clone()))?;
            if status.is_some_and(|status| !status.success()) {
                return Err(ended_early(other).into());
            }
        }
        if clock::now() < deadline { Ok(()) } else { Err(self.has_reached_cap(process)) }
    }

    fn has_reached_cap(&self, process: &Process) -> Unfinished {
        if self.started.is_some() {
            return Unfinished::Cap;
        }
        let (program, output) = (process.name.clone(), process.last_output());
        PeerError::NotListening { program, seconds: self.patience.as_secs(), output }.into()
    }

    /// Returns this percentage of the path's rate.
    pub(super) fn share_of_rate(&self, percent: u64) -> Rate {
        // The presence of a rate was checked before.
        let rate = self.job.rate.unwrap_or(Rate::from_bits_per_second(0));
        Rate::from_bits_per_second(rate.bits_per_second() / 100 * percent)
    }

    /// Returns the address of a port of the receiving host.
    pub(super) fn at_receiver(&self, port: u16) -> SocketAddrV4 {
        SocketAddrV4::new(self.to.address(), port)
    }
}

fn ended_early(process: &mut Process) -> PeerError {
    let (program, output) = (process.name.clone(), process.last_output());
    match process.settled() {
        Ok(status) => PeerError::Failed { program, status, output },
        Err(error) => PeerError::System { operation: program, error },
    }
}
