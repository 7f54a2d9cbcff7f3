//! The steps of an examination, on the host that runs the doctor.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use net::{Bind, Endpoint, PIPE_PEER};
use serde::de::DeserializeOwned;

use super::checkup::{Checkup, DoctorVerdict, Finding, Side, Udp};
use super::machine::{self, Machine};
use super::meter::{TICK, Traffic};
use super::probe::{Direction, Failure, ProbeHandle, Target};
use super::remote::Arrivals;
use super::{DEAD_AFTER, DoctorOptions, Reporter, verdict};
use crate::base64::Bytes;
use crate::error::Error;
use crate::protocol::ssh::{FALL_BACK, MEASURE};
use crate::remote::launch::log_in;
use crate::remote::request::{RemoteTask, Request};
use crate::remote::{CarrierChoice, PathOptions};
use crate::ticket::Ticket;

/// Time for the remote host to measure itself: a slow disk takes long.
const LINE_TIME: Duration = Duration::from_secs(30);

/// Maximum length of its answer line in bytes.
const MAX_LINE: u64 = 64 << 10;

/// Bytes of the headers of IP and UDP.
const HEADERS_V4: usize = 28;
const HEADERS_V6: usize = 48;

/// Connects to the remote host and examines it.
pub(super) fn through_ssh(doctor: &DoctorOptions, reporter: &Reporter) -> Result<Checkup, Error> {
    let host = (&doctor.ssh, doctor.host.as_str(), doctor.path.family);
    // An examination shows no notes; prompts of ssh itself appear on the terminal.
    let answer = log_in(host, &request(doctor), &reporter.switch, &mut |_| {});
    let mut remote = answer.map_err(|error| reporter.stopped().err().unwrap_or(error))?;
    let (read, write) = remote.take_pipes().map_err(Error::OutOfResources)?;
    let ticket = remote.ticket.clone();
    reporter.found(Finding::Reached { host: doctor.host.clone() });
    // The pipes are closed before waiting for ssh.
    examine(doctor, ticket, (read, write), remote.udp_patience(), reporter)
}

/// Creates the request to the remote host.
pub(super) fn request(doctor: &DoctorOptions) -> Request {
    let directory = doctor.target.as_ref().map(|directory| Bytes::from(directory.as_path()));
    let task = RemoteTask::Examine { directory };
    Request::new(task, &PathOptions { via: CarrierChoice::Auto, ..doctor.path.clone() }, &doctor.engine)
}

/// Examines the host of `ticket`, whose program reads and writes `pipes`.
pub(super) fn examine(
    doctor: &DoctorOptions,
    ticket: Ticket,
    pipes: (File, File),
    udp_timeout: Duration,
    reporter: &Reporter,
) -> Result<Checkup, Error> {
    let load = machine::load();
    let endpoint = Endpoint::builder()
        .options(doctor.engine.endpoint)
        .bind(&Bind::Ports { family: doctor.path.family, ports: 0..=0 })?;
    let mut found = Network::default();
    let stopped = || reporter.stopped();
    let mut target = Target {
        endpoint: &endpoint,
        key: ticket.key,
        remotes: ticket.addresses.clone(),
        patience: udp_timeout,
        profile: &doctor.engine.profile,
        time: doctor.probe_time,
        stopped: &stopped,
    };
    let silence = found.probe(&target, reporter)?;
    let (read, mut write) = pipes;
    write.write_all(&[MEASURE]).map_err(|_| Error::ConnectionLost)?;
    let (Arrivals { arrivals }, read) = read_line(read, reporter)?;
    let port = ticket.addresses.first().map_or(0, SocketAddr::port);
    if let Some(hint) = silence {
        let udp = Udp::Closed {
            port,
            waited: udp_timeout.as_secs_f64(),
            arrived: arrivals > 0,
            hint: hint.map(|hint| machine::cleaned(&hint)),
        };
        found.report_udp(udp, reporter);
    }
    let directory = doctor.local.clone().unwrap_or_else(|| PathBuf::from("."));
    let stops = || reporter.stopped().is_err();
    let (remote, local) = thread::scope(|scope| {
        let measure = || Machine::measure(&directory, endpoint.facts(), load, &stops);
        let local = runtime::spawn_scoped(scope, "downpour-measure", measure).map_err(Error::OutOfResources)?;
        Ok::<_, Error>((read_line::<Machine>(read, reporter), local.join()))
    })?;
    let ((remote, read), local) =
        (remote?, local.map_err(|_| Error::Internal("the measurement of the local host panicked"))?);
    let remote = remote.cleaned();
    reporter.found(Finding::Machine { side: Side::Remote, machine: Box::new(remote.clone()) });
    let over_ssh = !matches!(found.udp, Some(Udp::Open { .. }));
    if over_ssh {
        write.write_all(&[FALL_BACK]).map_err(|_| Error::ConnectionLost)?;
        let endpoint = Endpoint::builder().options(doctor.engine.endpoint).over_pipes(read.into(), write.into())?;
        (target.endpoint, target.remotes, target.patience) = (&endpoint, vec![PIPE_PEER], DEAD_AFTER);
        // Over pipes there is no silence: this is an answer, or another failure.
        if found.probe(&target, reporter)?.is_some() {
            found.troubles.push(Error::ConnectionLost.to_string());
        }
    } else {
        drop((read, write));
    }
    reporter.stopped()?;
    reporter.found(Finding::Machine { side: Side::Local, machine: Box::new(local.clone()) });
    Ok(found.checkup(doctor, over_ssh, local, remote))
}

/// Findings about the path.
#[derive(Default)]
struct Network {
    udp: Option<Udp>,
    min_rtt: Option<Duration>,
    up: Option<Traffic>,
    down: Option<Traffic>,
    troubles: Vec<String>,
}

impl Network {
    /// Probes both directions. If there is no answer, returns the kernel's error, if any.
    fn probe(&mut self, target: &Target<'_>, reporter: &Reporter) -> Result<Option<Option<String>>, Error> {
        for direction in [Direction::Up, Direction::Down] {
            let trouble = match ProbeHandle::new(target, direction) {
                Ok(opened) => self.measure(opened, target, direction, reporter).err(),
                Err(Failure::Silence(hint)) if direction == Direction::Up => return Ok(Some(hint)),
                Err(failure) => Some(failure.into()),
            };
            match trouble {
                Some(error @ (Error::Cancelled | Error::Terminated | Error::VersionMismatch)) => return Err(error),
                Some(error) => self.troubles.push(machine::cleaned(&format!("{direction}: {error}"))),
                None => {}
            }
        }
        Ok(None)
    }

    /// Measures one direction.
    fn measure(
        &mut self,
        opened: ProbeHandle<'_>,
        target: &Target<'_>,
        direction: Direction,
        reporter: &Reporter,
    ) -> Result<(), Error> {
        self.connected(&opened, reporter);
        let remote = opened.remote;
        let (sender, receiver) = opened.run()?;
        let mut traffic = Traffic::of(&target.profile.recovery.congestion, &sender, &receiver, headers(remote));
        if remote == PIPE_PEER {
            // Pipes carry no ECN marks.
            traffic.ecn = None;
        }
        // The handshake's sample includes the time in which both sides woke up.
        let loaded = traffic.loaded_rtt.and_then(|rtt| Duration::try_from_secs_f64(rtt).ok());
        self.min_rtt = [self.min_rtt, loaded].into_iter().flatten().min();
        reporter.found(Finding::Traffic { up: direction == Direction::Up, traffic: Box::new(traffic.clone()) });
        match direction {
            Direction::Up => self.up = Some(traffic),
            Direction::Down => self.down = Some(traffic),
        }
        Ok(())
    }

    /// Notes the results of the first handshakes.
    fn connected(&mut self, opened: &ProbeHandle<'_>, reporter: &Reporter) {
        let (remote, stats) = (opened.remote, opened.stats);
        self.min_rtt = [self.min_rtt, stats.path.min_rtt].into_iter().flatten().min();
        if remote != PIPE_PEER && self.udp.is_none() {
            let udp = Udp::Open {
                address: remote,
                datagram: stats.path.datagram,
                packet: stats.path.datagram + headers(remote),
                largest_tried: opened.largest_tried(),
                min_rtt: self.min_rtt.map(|rtt| rtt.as_secs_f64()),
            };
            self.report_udp(udp, reporter);
        }
    }

    fn report_udp(&mut self, udp: Udp, reporter: &Reporter) {
        reporter.found(Finding::Udp(udp.clone()));
        self.udp = Some(udp);
    }

    fn checkup(self, doctor: &DoctorOptions, over_ssh: bool, local: Machine, remote: Machine) -> Checkup {
        let is_capped = doctor.engine.profile.fixed_rate().is_some() || doctor.engine.profile.limit.is_some();
        let mut checkup = Checkup {
            host: doctor.host.clone(),
            udp: self.udp.unwrap_or(Udp::Unclear),
            over_ssh,
            min_rtt: self.min_rtt.map(|rtt| rtt.as_secs_f64()),
            up: self.up,
            down: self.down,
            local,
            remote,
            troubles: self.troubles,
            verdict: DoctorVerdict::default(),
        };
        checkup.verdict = verdict::judge(&checkup, is_capped, doctor.size);
        checkup
    }
}

/// Returns the bytes that IP and UDP add to a datagram.
const fn headers(remote: SocketAddr) -> usize {
    if remote.is_ipv4() { HEADERS_V4 } else { HEADERS_V6 }
}

/// Reads one line of JSON from the remote host, which may take long; the user may stop it.
fn read_line<T: DeserializeOwned>(read: File, reporter: &Reporter) -> Result<(T, File), Error> {
    let (sender, receiver) = channel();
    let work = move || {
        let mut line = Vec::new();
        // Byte by byte: everything after the line belongs to other readers.
        let mut reader = BufReader::with_capacity(1, read);
        let result = reader.by_ref().take(MAX_LINE).read_until(b'\n', &mut line);
        // Fails if the doctor has stopped waiting.
        let _ = sender.send(result.map(|_| (line, reader.into_inner())));
    };
    runtime::spawn("downpour-report", work).map_err(Error::OutOfResources)?;
    let deadline = runtime::now() + LINE_TIME;
    loop {
        reporter.stopped()?;
        match runtime::recv_timeout(&receiver, TICK) {
            Ok(result) => {
                let (line, read) = result.map_err(|error| Error::Ssh(format!("ssh exited: {error}")))?;
                if line.is_empty() {
                    return Err(Error::ConnectionLost);
                }
                let unreadable = |error| Error::Ssh(format!("unreadable report from the remote host: {error}"));
                return Ok((serde_json::from_slice(&line).map_err(unreadable)?, read));
            }
            Err(RecvTimeoutError::Timeout) if runtime::now() < deadline => {}
            Err(_) => return Err(Error::Ssh("no report from the remote host in time".to_owned())),
        }
    }
}
