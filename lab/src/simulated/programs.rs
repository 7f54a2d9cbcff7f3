//! A scenario with flows of real programs, over an emulated network.

use std::time::Duration;

use netsim::topology::Topology;
use netsim::{Duplex, Rate};

use super::scenario::time;
use super::{FlowText, Scenario};
use crate::peers::{self, Peer};
use crate::plan::parse_bytes;
use crate::results::Engine;

/// An endless file exceeds the capacity of the link during the run by this factor.
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
    /// The warm-up, which is not counted.
    pub warm_up: Duration,
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
    /// Whether it continues until it is stopped.
    pub endless: bool,
    /// Whether all of its files have to arrive.
    pub has_to_finish: bool,
    /// The earliest start.
    pub start: Duration,
    /// The largest random addition to the start.
    pub start_within: Duration,
    /// The latest time at which it is stopped.
    pub stop: Duration,
    /// The number of transfers, one after the other.
    pub repeat: u32,
}

impl Scenario {
    /// Returns whether its flows are of real programs.
    pub fn is_emulated(&self) -> bool {
        self.flows.iter().any(|flow| flow.peer.is_some())
    }

    /// Returns the sources on which the result depends.
    pub(crate) fn engine(&self) -> Engine {
        match self.is_emulated() {
            true => Engine::of_peers(self.flows.iter().filter_map(|flow| flow.peer.as_deref())),
            false => Engine::Simulated,
        }
    }

    /// Returns the choices of each profile involved, each once.
    pub(crate) fn profiles(&self) -> Vec<String> {
        let mut texts = Vec::new();
        for flow in &self.flows {
            let text = match flow.peer_name() {
                Some(peer) => peers::profile_text(&peer),
                None => flow.profile_text(),
            };
            texts.extend(text.filter(|text| !texts.contains(text)));
        }
        texts
    }

    /// Returns the run of its programs, which is stopped after `limit`.
    ///
    /// # Errors
    /// The first invalid value, with its position.
    pub fn programs(&self, limit: Duration) -> Result<ProgramCase, String> {
        if let Some(background) = self.background.first() {
            let name = &background.name;
            return Err(format!("{name}: background is simulated only: use a flow with a peer"));
        }
        if self.topology.is_some() {
            return Err("topology is simulated only: programs share one link".to_owned());
        }
        let link: Duplex = self.link.parse().map_err(|error| format!("link: {error}"))?;
        let fastest = link.forward.steps.iter().map(|step| step.rate).chain(link.forward.rate).max();
        let flows = self
            .flows
            .iter()
            .map(|flow| flow.program(fastest, limit).map_err(|error| format!("{}: {error}", flow.name)));
        Ok(ProgramCase {
            flows: flows.collect::<Result<_, _>>()?,
            // A dumbbell, which is the same with every seed.
            topology: self.topology(0)?,
            rate: link.forward.rate,
            warm_up: self.warm_up(limit)?,
        })
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
        let simulated = simulated.into_iter().chain([
            (self.coding.0 != "none", "coding"),
            (self.handshake.is_some(), "handshake"),
            (self.rate_share.is_some(), "told"),
        ]);
        if let Some((_, key)) = simulated.into_iter().find(|(is_set, _)| *is_set) {
            return Err(format!("{key} is for simulated flows: omit it, or the peer"));
        }
        let name = self.peer_name().ok_or("no peer: add one, or a profile to every flow")?;
        let peer = peers::named(&name).map_err(|error| error.to_string())?;
        let choices = peers::choices(&name).map_err(|error| error.to_string())?;
        if peer.needs_fixed_rate() && fastest.is_none() {
            return Err(format!("{} needs the rate of the link: add rate=", peer.name()));
        }
        let start = time("start", &self.start.0)?;
        let stop = self.stop.as_ref().map_or(Ok(limit), |stop| time("stop", &stop.0))?;
        let within = self.start_within.as_ref().map(|text| time("start-within", &text.0));
        let start_within = within.transpose()?.unwrap_or_default();
        if start + start_within >= stop || stop > limit {
            return Err("stop must be after start and before the cap".to_owned());
        }
        let repeat = self.repeat.as_ref().map_or(Ok(1), |repeat| {
            let number = repeat.0.parse().ok().filter(|number| (1..=MOST_REPEATS).contains(number));
            number.ok_or_else(|| format!("repeat is {:?}: write a number from 1 to {MOST_REPEATS}", repeat.0))
        })?;
        let size = match &self.size {
            Some(size) => parse_bytes(&size.0).map_err(|error| error.to_string())?,
            None if repeat > 1 => return Err("an endless flow cannot be repeated: add its size".to_owned()),
            None => {
                let fastest = fastest.ok_or("an endless flow needs a rate of the link: add rate=, or its size")?;
                (fastest.bits_per_second() as f64 / 8.0 * (stop - start).as_secs_f64() * BEYOND).ceil() as u64
            }
        };
        let (endless, has_to_finish) = (self.size.is_none(), self.has_to_finish());
        Ok(ProgramFlow { peer, choices, size, endless, has_to_finish, start, start_within, stop, repeat })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::SimPlan;
    use super::*;

    const PLAN: &str = r#"
        name = "neighbours/cubic"
        title = "Two programs"
        link = "rate=20M,delay=10ms,queue=0.5bdp,step=5s:40M"
        seeds = [1, 2]
        cap = "60s"
        warm-up = "20s"
        [[flow]]
        name = "ours"
        peer = "downpour-auto"
        [[flow]]
        name = "cubic"
        peer = "tcp-cubic"
        size = "1MB"
        start = "5s"
        stop = "40s"
        repeat = 3
        sender = "loss=1%"
        [[series]]
        name = "auto"
        set = { "ours.congestion.beta" = 0.5, "ours.congestion" = "cubic", "ours.peer" = "downpour-arq" }
        [[series]]
        name = "tcp"
        set = { "ours.peer" = "tcp-reno", "cubic.size" = "2MB" }
        [picture]
        y = "harm"
        against = "tcp"
        [[sweep]]
        name = "queue"
        vary = "link.queue"
        values = ["0.5bdp", "1bdp"]
        flows = ["cubic"]
    "#;

    fn parsed(text: &str) -> Result<SimPlan, String> {
        let plan = SimPlan::parse(Path::new("plan.toml"), text).map_err(|error| error.to_string());
        plan.map(|plan| plan.expect("it has flows"))
    }

    #[test]
    fn flows_with_peers_become_programs() {
        let plan = parsed(PLAN).expect("it makes sense");
        assert!(plan.base.is_emulated() && !plan.base.is_endless());
        assert_eq!((plan.cases().len(), plan.sweeps[0].picture.against), (2 * 2 * 2, Some(1)));
        let limit = Duration::from_secs(60);
        let case = plan.sweeps[0].points[1].scenarios[0].programs(limit).expect("it was checked");
        let [ours, cubic] = &case.flows[..] else { panic!("two flows") };
        let choices: Vec<_> = ours.choices.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        assert_eq!(
            (ours.peer.name(), &choices[..]),
            ("downpour-arq", &[("congestion", "cubic"), ("congestion.beta", "0.5")][..])
        );
        // 60 s at 40 Mbit/s, and a tenth.
        assert_eq!((ours.endless, ours.size, ours.stop, ours.repeat), (true, 330_000_000, limit, 1));
        assert_eq!((cubic.endless, cubic.size, cubic.repeat), (false, 1_000_000, 3));
        assert_eq!([cubic.start, cubic.stop].map(|time| time.as_secs()), [5, 40]);
        assert_eq!((case.topology.hosts().len(), case.rate), (4, Some(Rate::from_megabits_per_second(20))));
        assert_eq!(case.topology.links()[3].link.forward.loss.mean(), 0.01, "the second sender's own link");
        let tcp = &plan.sweeps[0].points[0].scenarios[1];
        assert_eq!(
            (tcp.flows[0].peer_name().as_deref(), tcp.flows[1].size.as_ref().map(|size| size.0.as_str())),
            (Some("tcp-reno"), Some("2MB"))
        );
    }

    #[test]
    fn ids_depend_on_all_inputs() {
        let id = |text: &str| parsed(text).expect("it makes sense").cases()[0].id();
        let longer = |text: &str| text.replace("cap = \"60s\"", "cap = \"61s\"");
        for (from, to) in
            [("\"20s\"", "\"21s\""), ("repeat = 3", "repeat = 2"), ("40s", "41s"), ("tcp-cubic", "tcp-bbr")]
        {
            assert_ne!(id(&PLAN.replace(from, to)), id(PLAN), "{to}");
        }
        assert_eq!(id(&longer(PLAN)), id(PLAN), "a flow ends the run");
        let endless = PLAN.replace("size = \"1MB\"", "").replace("repeat = 3", "");
        let endless = endless.replace("y = \"harm\"", "y = \"share\"").replace("against = \"tcp\"", "");
        assert_ne!(id(&longer(&endless)), id(&endless), "the cap is its length");
    }

    #[test]
    fn programs_error_names_the_flow() {
        for (from, to, said) in [
            ("peer = \"tcp-cubic\"", "peer = \"tcp-vegas\"", "cubic: unknown peer 'tcp-vegas'"),
            ("peer = \"tcp-cubic\"", "peer = \"linux-tcp\"", "cubic: linux-tcp is simulated only: use tcp-cubic"),
            ("peer = \"tcp-cubic\"", "profile = \"linux-tcp\"", "cubic: profile is for simulated flows"),
            ("peer = \"tcp-cubic\"", "profile = \"arq\"", "cubic: profile is for simulated flows"),
            ("repeat = 3", "repeat = 0", "cubic: repeat is \"0\": write a number from 1 to 1000"),
            ("size = \"1MB\"", "", "cubic: an endless flow cannot be repeated"),
            ("start = \"5s\"", "start = \"50s\"", "cubic: stop must be after start"),
            ("stop = \"40s\"", "stop = \"61s\"", "cubic: stop must be after start and before the cap"),
            (
                "rate=20M,delay=10ms,queue=0.5bdp,step=5s:40M",
                "delay=10ms",
                "ours: an endless flow needs a rate of the link",
            ),
            ("warm-up = \"20s\"", "warm-up = \"60s\"", "warm-up must be before the cap"),
            ("against = \"tcp\"", "against = \"udp\"", "unknown series \"udp\" in against"),
            ("y = \"harm\"", "y = \"share\"", "against needs y = \"harm\""),
            ("y = \"harm\"", "y = \"overhead\"", "y is not available for real programs"),
            ("y = \"harm\"", "y = \"loss-estimate\"", "y is not available for real programs"),
            ("flows = [\"cubic\"]", "", "harm needs flows with a size: give ours one, or select other flows"),
            ("against = \"tcp\"", "", "harm is relative to a series: add against"),
            (
                "[[series]]",
                "[[background]]\nname = \"cbr\"\nrate = \"1M\"\n[[series]]",
                "cbr: background is simulated only",
            ),
            (
                "\"tcp-reno\"",
                "\"tcp-reno\", \"ours.congestion\" = \"reno\"",
                "ours: tcp-reno congestion=reno: it has no profile",
            ),
        ] {
            assert!(PLAN.contains(from), "{from}");
            let refused = parsed(&PLAN.replacen(from, to, 1)).expect_err(to);
            assert!(refused.contains(said), "{refused}");
        }
    }
}
