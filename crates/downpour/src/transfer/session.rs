//! The common part of sender and receiver, on a thread of its own: processing events in order, detecting the end of the
//! connection, reporting progress, writing the trace, and reporting the result to the peer.

mod config;
mod control;
mod ending;
mod liveness;
mod monitor;
mod path;
mod peer;
mod recording;
mod stopwatch;
mod strains;

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use net::{Connection, Event, NetError, PIPE_PEER, Stats};
use transport::Rate;

pub(super) use config::{Acquaintance, Origin, SessionConfig};
use control::ControlStream;
use liveness::Liveness;
use monitor::Monitor;
use path::Path;
use peer::Peer;
pub(super) use peer::application;
use recording::Recording;
use stopwatch::Stopwatch;
use strains::Strains;

use super::input::{Input, SideInput};
use super::peer_progress::PeerProgress;
use super::totals::SideProgress;
use super::{Events, TransferEvent};
use crate::block_on::block_on;
use crate::error::{Error, PeerContext};

/// Interval of progress reports.
const TICK: Duration = Duration::from_millis(200);

/// The transfer over one connection.
pub(super) struct Session {
    pub(super) connection: Connection,
    pub(super) events: Events,
    pub(super) config: SessionConfig,
    inputs: Receiver<Input>,
    next_tick: Instant,
    /// The latest statistics of the connection.
    stats: Option<Stats>,
    is_closed: bool,
    pub(super) peer: Peer,
    pub(super) control: ControlStream,
    pub(super) liveness: Liveness,
    pub(super) headway: PeerProgress,
    pub(super) stopwatch: Stopwatch,
    pub(super) path: Path,
    strains: Strains,
    monitor: Monitor,
    recording: Recording,
}

impl Session {
    /// Creates a session whose first datagram was sent or received just now.
    ///
    /// # Errors
    /// [`Error::Trace`] if the trace file cannot be opened.
    pub(super) fn new(
        connection: Connection,
        events: Events,
        config: SessionConfig,
        inputs: Receiver<Input>,
        started: Instant,
    ) -> Result<Self, Error> {
        Ok(Self {
            connection,
            events,
            inputs,
            next_tick: started + TICK,
            stats: None,
            is_closed: false,
            peer: Peer::default(),
            control: ControlStream::default(),
            liveness: Liveness::default(),
            headway: PeerProgress::new(started, config.patience()),
            stopwatch: Stopwatch::new(started),
            path: Path::new(config.options.engine.profile.limit),
            strains: Strains::default(),
            monitor: Monitor::new(started),
            recording: Recording::open(config.trace.clone(), started)?,
            config,
        })
    }

    /// Returns the capacity or the rate limit of the path, if any is known.
    pub(super) fn line_rate(&self) -> Option<Rate> {
        let learned =
            || self.stats.as_ref().and_then(|stats| stats.connection.congestion.memory).map(|memory| memory.rate);
        self.path.least(self.config.fixed_rate().or_else(learned).or(self.path.remembered()))
    }

    /// Appends to the control stream.
    pub(super) fn write(&mut self, bytes: Vec<u8>) {
        self.control.on_written(bytes.len());
        self.connection.write_control(bytes);
    }

    /// Waits for the next step.
    ///
    /// # Errors
    /// Any end of the transfer: by the peer, the network, the disk, the user.
    pub(super) fn next(&mut self) -> Result<SideInput, Error> {
        self.headway.on_handled(runtime::now());
        let step = self.wait()?;
        self.headway.on_step(runtime::now());
        Ok(step)
    }

    fn wait(&mut self) -> Result<SideInput, Error> {
        loop {
            if let Some(message) = self.control.next() {
                self.headway.on_message(runtime::now(), &message);
                return Ok(SideInput::Message(message));
            }
            let released = self.control.release();
            if released > 0 {
                self.connection.release_control(released);
            }
            let now = runtime::now();
            if now >= self.next_tick {
                self.next_tick = now + TICK;
                return self.tick().map(|()| SideInput::Tick);
            }
            match runtime::recv_timeout(&self.inputs, self.next_tick.saturating_duration_since(now)) {
                Ok(Input::Step(SideInput::Network(event))) => {
                    if let Some(event) = self.on_network(event)? {
                        return Ok(SideInput::Network(event));
                    }
                }
                Ok(Input::Step(step)) => return Ok(step),
                Ok(Input::Takeover(on_alive)) => self.liveness.on_takeover(on_alive),
                Ok(Input::End(error)) => return Err(error),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(Error::Internal("the network thread has ended")),
            }
        }
    }

    /// Returns the error that ended the session, when another part has noticed the end first.
    pub(super) fn end(&mut self) -> Error {
        loop {
            if let Err(error) = self.next() {
                return error;
            }
        }
    }

    /// Handles network events that concern every session, and returns those that sender or receiver get too.
    fn on_network(&mut self, event: Event) -> Result<Option<Event>, Error> {
        match event {
            Event::Connected { remote, ref application } => {
                self.peer = Peer::new(remote, application, self.config.role)?;
                self.liveness.on_connected(runtime::now());
                if let Some(memory) = self.path.recall(remote, &self.config) {
                    self.connection.recall(memory);
                }
                self.events.emit(TransferEvent::Connected { peer: (remote != PIPE_PEER).then_some(remote) });
            }
            Event::Control(bytes) => {
                self.control.on_bytes(&bytes, |strain| self.strains.on_peer(strain))?;
                return Ok(None);
            }
            Event::ControlAcknowledged(bytes) => self.control.on_acknowledged(bytes),
            Event::StreamOpened => {
                return Err(Error::ProtocolViolation("stream opened in a transfer of files".to_owned()));
            }
            Event::ObjectFailed(error) => return Err(error.into()),
            Event::Trace(records) => {
                self.recording.write(&records);
                return Ok(None);
            }
            Event::Closed(error) => {
                self.stats = Some(block_on(self.connection.stats()));
                self.is_closed = true;
                return Err(self.ended_by(error));
            }
            _ => {}
        }
        Ok(Some(event))
    }

    fn ended_by(&self, error: NetError) -> Error {
        let tried = match &self.config.origin {
            Origin::Connected { addresses, timeout } => Some((&addresses[..], *timeout)),
            Origin::Accepted => None,
        };
        Error::ended(error, &PeerContext { role: self.config.role.other(), tried })
    }

    fn tick(&mut self) -> Result<(), Error> {
        let (is_news, life) = self.take_stats();
        life?;
        self.strains.on_tick();
        if is_news {
            self.send_pressure();
        }
        Ok(())
    }

    /// Takes the statistics of the connection. Returns whether the local pressure has changed, and an error if the peer
    /// has stalled or is lost.
    fn take_stats(&mut self) -> (bool, Result<(), Error>) {
        let (stats, now) = (block_on(self.connection.stats()), runtime::now());
        self.stats = Some(stats);
        self.liveness.on_bytes(now, stats.connection.packets.bytes_received);
        let is_news = self.strains.on_stats(&stats);
        (is_news, self.check_life(now, &stats))
    }

    fn check_life(&mut self, now: Instant, stats: &Stats) -> Result<(), Error> {
        let connection = &stats.connection;
        self.headway.on_bytes(now, connection.objects.written + connection.objects.acknowledged);
        // A pause does not excuse the peer: it lasts until the peer reads notices, or sends the missing data of earlier
        // batches. Neither do blocks that it never reports as done.
        let waits = self.stopwatch.is_waiting() || connection.objects.reading > 0;
        self.headway.check(now, waits, self.liveness.is_contested())?;
        if self.liveness.check(now, connection.congestion.in_flight)? {
            self.connection.ping();
        }
        Ok(())
    }

    /// Reports the local pressure to the peer.
    fn send_pressure(&mut self) {
        let mut bytes = Vec::new();
        // A message of fixed length can be encoded.
        if self.peer.hears_strain() && self.strains.message().encode(&mut bytes).is_ok() {
            self.write(bytes);
        }
    }

    /// Reports progress with the latest statistics.
    pub(super) fn report(&mut self, counts: SideProgress) {
        self.monitor.on_counts(counts);
        self.report_progress();
    }

    fn report_progress(&mut self) {
        let Some(stats) = &self.stats else { return };
        let now = runtime::now();
        if let Some(note) = self.monitor.note(self.config.fixed_rate(), &stats.connection) {
            self.events.emit(TransferEvent::UserNote(note));
        }
        let elapsed = self.stopwatch.elapsed(now);
        let progress = self.monitor.progress(now, stats, &self.strains, self.config.sends(), elapsed);
        self.recording.write_progress(&progress);
        self.events.try_emit(TransferEvent::Progress(progress));
    }

    /// Returns the latest statistics of the engine.
    pub(super) const fn stats(&self) -> Option<&Stats> {
        self.stats.as_ref()
    }
}
