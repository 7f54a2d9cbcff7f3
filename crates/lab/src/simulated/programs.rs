//! A scenario whose flows are those of real programs, over an emulated network.

use std::time::Duration;

use netsim::topology::Topology;
use netsim::{Duplex, Rate};

use super::scenario::time;
use super::{FlowText, Scenario};
use crate::peers::{self, Peer};
use crate::plan::parse_bytes;

/// An endless file is larger than what the link can carry meanwhile, by this factor.
const BEYOND: f64 = 1.1;
/// The most transfers of one flow.
const MOST_REPEATS: u32 = 1_000;

/// A run of real programs, checked.
#[derive(Clone, Debug)]
pub struct ProgramCase {
    /// The network, with a pair of hosts for each flow.
    pub topology: Topology,
    /// The flows.
    pub flows: Vec<ProgramFlow>,
    /// The rate of the shared link, if it has one.
    pub rate: Option<Rate>,
}

/// A flow of a real program, checked.
#[derive(Clone, Debug)]
pub struct ProgramFlow {
    /// The program.
    pub peer: &'static Peer,
    /// Choices of its profile.
    pub choices: Vec<(String, String)>,
    /// Bytes of the file; if it is endless, more than can arrive.
    pub size: u64,
    /// Whether it goes on until it is stopped.
    pub endless: bool,
    /// When it begins.
    pub start: Duration,
    /// When it is ended at the latest.
    pub stop: Duration,
    /// The number of transfers, one after the other.
    pub repeat: u32,
}

impl Scenario {
    /// Returns whether its flows are those of real programs.
    pub fn is_emulated(&self) -> bool {
        self.flows.iter().any(|flow| flow.peer.is_some())
    }

    /// Returns whether a flow goes on until it is stopped.
    pub fn is_endless(&self) -> bool {
        self.flows.iter().any(|flow| flow.size.is_none())
    }

    /// Returns the run of its programs, which is ended after `limit`.
    ///
    /// # Errors
    /// The first invalid value, with its position.
    pub fn programs(&self, limit: Duration) -> Result<ProgramCase, String> {
        if let Some(background) = self.background.first() {
            let name = &background.name;
            return Err(format!("{name}: background is simulated only: write a flow with a peer instead"));
        }
        let link: Duplex = self.link.parse().map_err(|error| format!("link: {error}"))?;
        let fastest = link.forward.steps.iter().map(|step| step.rate).chain(link.forward.rate).max();
        let flows = self
            .flows
            .iter()
            .map(|flow| flow.program(fastest, limit).map_err(|error| format!("{}: {error}", flow.name)));
        Ok(ProgramCase { flows: flows.collect::<Result<_, _>>()?, topology: self.topology()?, rate: link.forward.rate })
    }
}

impl FlowText {
    /// Returns the name of its peer, with the choices of its profile.
    pub(super) fn peer_name(&self) -> Option<String> {
        let choices = self.set.iter().map(|(key, value)| format!(" {key}={}", value.0));
        self.peer.as_ref().map(|peer| format!("{peer}{}", choices.collect::<String>()))
    }

    fn program(&self, fastest: Option<Rate>, limit: Duration) -> Result<ProgramFlow, String> {
        let simulated = [(self.profile.is_some(), "profile"), (self.connections.0 != "1", "connections")];
        let simulated = simulated.into_iter().chain([(self.coding.0 != "none", "coding")]);
        if let Some((_, key)) = simulated.into_iter().find(|(is_there, _)| *is_there) {
            return Err(format!("{key} is for simulated flows: leave it out, or the peer"));
        }
        let name = self.peer_name().ok_or("write a peer, or a profile for every flow")?;
        let peer = peers::named(&name).map_err(|error| error.to_string())?;
        let choices = peers::choices(&name).map_err(|error| error.to_string())?;
        let start = time("start", &self.start.0)?;
        let stop = self.stop.as_ref().map_or(Ok(limit), |stop| time("stop", &stop.0))?;
        if start >= stop || stop > limit {
            return Err("it is to stop after its start, and before the cap".to_owned());
        }
        let repeat = self.repeat.as_ref().map_or(Ok(1), |repeat| {
            let number = repeat.0.parse().ok().filter(|number| (1..=MOST_REPEATS).contains(number));
            number.ok_or_else(|| format!("repeat is {:?}: write a number from 1 to {MOST_REPEATS}", repeat.0))
        })?;
        let size = match &self.size {
            Some(size) => parse_bytes(&size.0).map_err(|error| error.to_string())?,
            None if repeat > 1 => return Err("an endless flow is not repeated: write its size".to_owned()),
            None => {
                let fastest = fastest.ok_or("without a rate of the link an endless flow has no end: write its size")?;
                (fastest.bits_per_second() as f64 / 8.0 * (stop - start).as_secs_f64() * BEYOND).ceil() as u64
            }
        };
        Ok(ProgramFlow { peer, choices, size, endless: self.size.is_none(), start, stop, repeat })
    }
}
