//! A network and its traffic, as text.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use netsim::topology::{HostPair, Side, Topology};
use netsim::{ConstantRate, Duplex, Rate, Time};
use serde::{Deserialize, Serialize};
use sim::{Background, Flow, Handshake, OnOff, SharedCase, Traffic};
use transport::Profile;

use super::TopologyText;
use super::topology::{limit_packets, places};
use crate::plan::{parse_bytes, parse_share, parse_time, put_parts};
use crate::program::simulated_profile;

/// A dumbbell: pairs of hosts, each behind links of its own, and one shared link. Two nodes are the special case of one
/// pair whose own links are perfect. With a topology, hosts are joined to a graph of many links instead.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Scenario {
    /// The link that all share, in the text form of links; with a topology, the common part of its links.
    pub link: String,
    /// The network between the hosts, if it is not one link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<TopologyText>,
    /// The link between each host and the shared one.
    pub access: String,
    /// The measured flows.
    pub flows: Vec<FlowText>,
    /// Background traffic.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub background: Vec<BackgroundText>,
    /// The time after which throughput and waits are counted; by default from the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_up: Option<Text>,
}

/// One object sent from a host to another, or bytes without end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FlowText {
    /// Its name in paths and pictures.
    pub name: String,
    /// The sender's profile, if the flow is simulated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// The program that sends and receives, as `downpour-lab peers` names it, if the flow is real.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// Changed choices of the profile, by their keys.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub set: BTreeMap<String, Text>,
    /// Its sender's rate, as a share of the rate of the slowest link on its path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "told")]
    pub rate_share: Option<Text>,
    /// Bytes of the object; without it, the flow continues until it is stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Text>,
    /// When it begins.
    #[serde(default = "at_once")]
    pub start: Text,
    /// The largest addition to the start, drawn from the seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_within: Option<Text>,
    /// When it is stopped, finished or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Text>,
    /// Number of consecutive transfers of a real flow; default 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<Text>,
    /// Parallel connections, each with an equal part.
    #[serde(default = "one")]
    pub connections: Text,
    /// The time for coding.
    #[serde(default = "no_time")]
    pub coding: Text,
    /// Whether a simulated flow's time includes its handshake: `counted`, which is the default, or `done`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handshake: Option<Text>,
    /// Changes to the sender's own link.
    #[serde(default)]
    pub sender: Text,
    /// Changes to the receiver's own link.
    #[serde(default)]
    pub receiver: Text,
}

/// Traffic that shares the link: of a constant rate, or with bursts and pauses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BackgroundText {
    /// Its name in paths.
    pub name: String,
    /// Its settings by their keys: `rate` and `packet`, or `burst`, `idle`, `shape`, `profile`, and choices of that.
    #[serde(flatten)]
    pub set: BTreeMap<String, Text>,
}

/// A value of a plan: text, or a number without quotes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "ValueText", into = "String")]
pub struct Text(pub String);

#[derive(Deserialize)]
#[serde(untagged)]
enum ValueText {
    Text(String),
    Whole(i64),
    Number(f64),
}

impl From<ValueText> for Text {
    fn from(written: ValueText) -> Self {
        Self(match written {
            ValueText::Text(text) => text,
            ValueText::Whole(number) => number.to_string(),
            ValueText::Number(number) => number.to_string(),
        })
    }
}

impl From<Text> for String {
    fn from(text: Text) -> Self {
        text.0
    }
}

fn at_once() -> Text {
    Text("0s".to_owned())
}

fn one() -> Text {
    Text("1".to_owned())
}

fn no_time() -> Text {
    Text("none".to_owned())
}

/// The path of all flows.
const ALL: &str = "flows";
/// The path of the network, if it is not one link.
const TOPOLOGY: &str = "topology";

impl Scenario {
    /// Sets the value at a path: `link` or `access` with parts of a link, `link.KEY`, `FLOW.KEY` or `BACKGROUND.KEY`
    /// with a value; `flows.KEY` is that of every flow. A flow's keys are those of its table, `sender.KEY` and
    /// `receiver.KEY`, and the choices of its profile.
    ///
    /// # Errors
    /// An unknown path. Values are checked by [`Scenario::case`].
    pub fn put(&mut self, path: &str, value: &str) -> Result<(), String> {
        let (place, key) = path.split_once('.').map_or((path, None), |(place, key)| (place, Some(key)));
        match (place, key) {
            ("link", key) => put_link(&mut self.link, key, value),
            ("access", key) => put_link(&mut self.access, key, value),
            (TOPOLOGY, Some(key)) if self.topology.is_some() => {
                return self.topology.as_mut().map_or(Ok(()), |topology| topology.put(key, value));
            }
            _ => return self.put_at(path, place, key, value),
        }
        Ok(())
    }

    fn put_at(&mut self, path: &str, place: &str, key: Option<&str>, value: &str) -> Result<(), String> {
        let Some(key) = key else { return Err(self.unknown_path(path)) };
        let mut found = false;
        for flow in self.flows.iter_mut().filter(|flow| place == ALL || flow.name == place) {
            found = true;
            flow.put(key, value);
        }
        for background in self.background.iter_mut().filter(|background| background.name == place) {
            found = true;
            background.set.insert(key.to_owned(), Text(value.to_owned()));
        }
        if found { Ok(()) } else { Err(self.unknown_path(path)) }
    }

    fn unknown_path(&self, path: &str) -> String {
        let names = self.flows.iter().map(|flow| &flow.name).chain(self.background.iter().map(|other| &other.name));
        let names: Vec<&str> = names.map(String::as_str).collect();
        format!("unknown path {path:?}: write link.KEY, access.KEY, flows.KEY, or KEY of one of {}", names.join(", "))
    }

    /// Reads the file of its topology, if it has one, beside that of the plan.
    ///
    /// # Errors
    /// Those of reading it.
    pub(super) fn load(&mut self, plan: &Path) -> Result<(), String> {
        self.topology.as_mut().map_or(Ok(()), |topology| topology.load(plan))
    }

    /// Returns the case to simulate with this seed.
    ///
    /// # Errors
    /// The first invalid value, with its position.
    pub fn case(&self, seed: u64, count_every: Duration, limit: Duration) -> Result<SharedCase, String> {
        let topology = self.topology(seed)?;
        let mut pairs = topology.pairs().to_vec().into_iter();
        let flows = self.flows.iter().zip(&mut pairs);
        let flows =
            flows.map(|(flow, pair)| flow.build(pair, &topology).map_err(|error| format!("{}: {error}", flow.name)));
        let flows = flows.collect::<Result<_, _>>()?;
        let background = self.background.iter().zip(&mut pairs);
        let background =
            background.map(|(other, pair)| other.build(pair).map_err(|error| format!("{}: {error}", other.name)));
        let background = background.collect::<Result<_, _>>()?;
        let warm_up = self.warm_up(limit)?;
        let case = SharedCase { flows, background, count_every, warm_up, limit, ..SharedCase::new(topology) };
        case.check().map_err(|error| error.to_string())?;
        Ok(case)
    }

    /// Returns the warm-up in a run of at most this length.
    ///
    /// # Errors
    /// Not a time, or not before the cap.
    pub fn warm_up(&self, limit: Duration) -> Result<Duration, String> {
        let warm_up = self.warm_up.as_ref().map_or(Ok(Duration::ZERO), |text| time("warm-up", &text.0))?;
        if warm_up >= limit {
            return Err("warm-up must be before the cap".to_owned());
        }
        Ok(warm_up)
    }

    /// Returns whether a run lasts to its cap, since no flow has a size.
    pub fn is_endless(&self) -> bool {
        self.flows.iter().all(|flow| flow.size.is_none())
    }

    /// Returns the rate of the shared link towards the receivers, in Mbit/s; without its steps.
    pub fn rate(&self) -> Option<f64> {
        let link: Duplex = self.link.parse().ok()?;
        link.forward.rate.map(|rate| rate.bits_per_second() as f64 * 1e-6)
    }

    /// Returns the network of a seed: a pair of hosts for each flow, and then for each background.
    pub(super) fn topology(&self, seed: u64) -> Result<Topology, String> {
        let sides = self.sides()?;
        let built = match &self.topology {
            None => {
                let mut link: Duplex = self.link.parse().map_err(|error| format!("link: {error}"))?;
                limit_packets(&mut link);
                Topology::dumbbell(&link, &sides)
            }
            Some(text) => {
                let graph = text.graph(&self.link, seed)?;
                graph.join(&sides, &places(graph.routers(), sides.len(), seed))
            }
        };
        built.map_err(|error| error.to_string())
    }

    fn sides(&self) -> Result<Vec<Side>, String> {
        let access = |name: &str, own: &str| {
            put_parts(&self.access, own).parse::<Duplex>().map_err(|error| format!("{name}: {error}"))
        };
        let mut sides = Vec::new();
        for FlowText { name, sender, receiver, .. } in &self.flows {
            let sender = access(name, &sender.0)?;
            sides.push(Side { name: name.clone(), sender, receiver: access(name, &receiver.0)? });
        }
        for BackgroundText { name, .. } in &self.background {
            let link = || access(name, "");
            sides.push(Side { name: name.clone(), sender: link()?, receiver: link()? });
        }
        if let Some(name) =
            ["link", "access", TOPOLOGY, ALL].into_iter().find(|name| sides.iter().any(|side| side.name == *name))
        {
            return Err(format!("{name} is reserved in paths: rename the flow"));
        }
        if sides.iter().any(|side| side.name.is_empty()) {
            return Err("a flow has no name: add one, for paths and pictures".to_owned());
        }
        Ok(sides)
    }
}

fn put_link(link: &mut String, key: Option<&str>, value: &str) {
    // `1%` for both directions, `1% / 0%` for each direction separately.
    let parts = match key {
        None => value.to_owned(),
        Some(key) => value.split(" / ").map(|value| format!("{key}={value}")).collect::<Vec<_>>().join(" / "),
    };
    *link = put_parts(link, &parts);
}

impl FlowText {
    fn put(&mut self, key: &str, value: &str) {
        let text = || Text(value.to_owned());
        match key.split_once('.').map_or((key, None), |(place, key)| (place, Some(key))) {
            ("profile", None) => {
                self.profile = Some(value.to_owned());
                // The choices were of another profile.
                self.set.clear();
                self.rate_share = None;
            }
            ("told", None) => self.rate_share = Some(text()),
            ("peer", None) => {
                self.peer = Some(value.to_owned());
                self.set.clear();
            }
            ("size", None) => self.size = Some(text()),
            ("start", None) => self.start = text(),
            ("start-within", None) => self.start_within = Some(text()),
            ("stop", None) => self.stop = Some(text()),
            ("repeat", None) => self.repeat = Some(text()),
            ("connections", None) => self.connections = text(),
            ("coding", None) => self.coding = text(),
            ("handshake", None) => self.handshake = Some(text()),
            ("sender", key) => put_link(&mut self.sender.0, key, value),
            ("receiver", key) => put_link(&mut self.receiver.0, key, value),
            _ => {
                // The numbers were of another algorithm.
                self.set.retain(|other, _| other.strip_prefix(key).is_none_or(|rest| !rest.starts_with('.')));
                self.set.insert(key.to_owned(), text());
            }
        }
    }

    /// Returns whether the complete object has to arrive.
    pub(super) fn has_to_finish(&self) -> bool {
        self.size.is_some() && self.stop.is_none()
    }

    /// Returns the choices of its profile, if it has one.
    pub(super) fn profile_text(&self) -> Option<String> {
        let profile = profile(self.profile.as_deref()?, self.set.iter()).ok()?;
        serde_json::to_string(&profile).ok()
    }

    fn build(&self, pair: HostPair, topology: &Topology) -> Result<Flow, String> {
        let name = self.profile.as_deref().ok_or("no profile: add one, or a peer to every flow")?;
        if self.peer.is_some() || self.repeat.is_some() {
            return Err("peer and repeat are for real flows: omit them".to_owned());
        }
        let size = self.size.as_ref().map(|text| parse_bytes(&text.0));
        let within = self.start_within.as_ref().map(|text| time("start-within", &text.0));
        let stop = self.stop.as_ref().map(|text| time("stop", &text.0));
        let connections = self.connections.0.parse().ok().filter(|number| (1..=256).contains(number));
        Ok(Flow {
            pair,
            profile: match &self.rate_share {
                Some(share) => {
                    profile(name, self.set.iter().chain([(&RATE.to_owned(), &rate(share, pair, topology)?)]))?
                }
                None => profile(name, self.set.iter())?,
            },
            size: size.transpose().map_err(|error| error.to_string())?,
            start: time("start", &self.start.0)?,
            start_within: within.transpose()?.unwrap_or_default(),
            stop: stop.transpose()?,
            connections: connections
                .ok_or_else(|| format!("connections is {:?}: write a number from 1 to 256", self.connections.0))?,
            coding: self.coding.0.parse().map_err(|error: netsim::TextError| error.to_string())?,
            handshake: self.handshake()?,
            memory: None,
        })
    }

    fn handshake(&self) -> Result<Handshake, String> {
        match self.handshake.as_ref().map(|text| text.0.as_str()) {
            None | Some("counted") => Ok(Handshake::Counted),
            Some("done") => Ok(Handshake::Done),
            Some(other) => Err(format!("handshake is {other:?}: write counted, or done")),
        }
    }
}

/// The choice set by a flow's `told`.
const RATE: &str = "congestion.rate";

/// Returns a share of the rate of the slowest link on a path.
fn rate(share: &Text, pair: HostPair, topology: &Topology) -> Result<Text, String> {
    let share = parse_share("told", &share.0).map_err(|error| error.to_string())?;
    let path = topology.path(pair).unwrap_or_default();
    let slowest = path.iter().filter_map(|link| link.rate).min();
    let slowest = slowest.ok_or("told is a share of the path's rate, but no link has one: add rate=")?;
    Ok(Text(format!("{}k", (share * slowest.bits_per_second() as f64 / 1e3).round())))
}

/// ns-2's default packet of a source of constant rate.
const CONSTANT_PACKET: u64 = 210;

impl BackgroundText {
    fn build(&self, pair: HostPair) -> Result<Background, String> {
        let mut left = self.set.clone();
        let mut take = |key: &str| left.remove(key).map(|text| text.0);
        let start = take("start").map_or(Ok(Duration::ZERO), |text| time("start", &text))?;
        let bytes = |text: String| parse_bytes(&text).map_err(|error| error.to_string());
        if let Some(rate) = take("rate") {
            let rate: Rate = rate.parse().map_err(|error: netsim::TextError| error.to_string())?;
            let packet = take("packet").map_or(Ok(CONSTANT_PACKET), bytes)?;
            let stop = take("stop").map_or(Ok(Time::MAX), |text| time("stop", &text).map(Time::from))?;
            if rate.bits_per_second() == 0 || !(28..=65_535).contains(&packet) {
                return Err(
                    "a source of constant rate needs a rate such as 1M, and packets of 28B to 65535B".to_owned()
                );
            }
            if let Some(key) = left.keys().next() {
                return Err(format!(
                    "unknown key {key:?} of a source of constant rate: one of rate, packet, start, stop"
                ));
            }
            let traffic = ConstantRate { rate, packet: packet as u32, start: Time::from(start), stop };
            return Ok(Background { pair, traffic: Traffic::Constant(traffic) });
        }
        let Some(burst) = take("burst") else {
            return Err("no traffic: add rate = \"1M\" for a constant rate, or burst = \"4KB\" for bursts and pauses"
                .to_owned());
        };
        let standard = OnOff::default();
        let shape = take("shape").map_or(Ok(standard.shape), |text| {
            let shape = text.parse::<f64>().ok().filter(|shape| *shape > 1.0 && shape.is_finite());
            shape.ok_or_else(|| format!("shape is {text:?}: write a number above 1, such as 1.5"))
        })?;
        let idle = take("idle").map_or(Ok(standard.idle), |text| time("idle", &text))?;
        let script = OnOff { burst: bytes(burst)?, idle, shape };
        let name = take("profile").unwrap_or_else(|| "arq".to_owned());
        let profile = Box::new(profile(&name, left.iter())?);
        Ok(Background { pair, traffic: Traffic::OnOff { script, profile, start } })
    }
}

pub(super) fn time(key: &str, text: &str) -> Result<Duration, String> {
    parse_time(key, text).map_err(|error| error.to_string())
}

fn profile<'a>(name: &str, set: impl Iterator<Item = (&'a String, &'a Text)>) -> Result<Profile, String> {
    simulated_profile(name, set.map(|(key, value)| (key.as_str(), value.0.as_str())))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn scenario() -> Scenario {
        toml::from_str(
            r#"
            link = "rate=50M,delay=25ms,queue-packets=10"
            access = "rate=10M,delay=2ms"
            flows = [
                { name = "test", profile = "auto", size = "1MB", set = { "congestion" = "fixed-rate:9M" }, coding = "raptorq" },
                { name = "tcp", profile = "arq", size = "1MB", receiver = "delay=50ms" },
            ]
            background = [
                { name = "cbr", rate = "1M" },
                { name = "pareto", burst = "4KB", idle = "200ms", limit = "5M" },
            ]
            "#,
        )
        .expect("a scenario")
    }

    pub(in super::super) fn case(scenario: &Scenario) -> Result<SharedCase, String> {
        scenario.case(1, Duration::from_secs(1), Duration::from_secs(60))
    }

    #[test]
    fn scenario_becomes_a_case() {
        let case = case(&scenario()).expect("it makes sense");
        assert_eq!(case.topology.hosts().len(), 8);
        let [test, tcp] = &case.flows[..] else { panic!("two flows") };
        assert_eq!((test.size, test.coding), (Some(1_000_000), "raptorq".parse().expect("measured")));
        assert_eq!(test.profile.fixed_rate(), Some(transport::Rate::from_bits_per_second(9_000_000)));
        let delays = case.topology.links().iter().map(|link| link.link.forward.delay.as_millis()).collect::<Vec<_>>();
        assert_eq!(delays, [25, 2, 2, 2, 50, 2, 2, 2, 2]);
        assert_eq!(case.topology.name(tcp.pair.to), Some("tcp-receiver"));
        let Traffic::Constant(constant) = &case.background[0].traffic else { panic!("constant") };
        assert_eq!((constant.rate, constant.packet), (Rate::from_megabits_per_second(1), 210));
        let Traffic::OnOff { script, profile, .. } = &case.background[1].traffic else { panic!("bursts") };
        assert_eq!((script.burst, script.idle, script.shape), (4_000, Duration::from_millis(200), 1.5));
        assert_eq!((profile.name.as_str(), profile.limit.is_some()), ("arq", true));
    }

    #[test]
    fn linux_tcp_flow_has_no_choices() {
        let mut scenario = scenario();
        scenario.put("tcp.profile", "linux-tcp").expect("a path");
        assert_eq!(case(&scenario).expect("it makes sense").flows[1].profile, sim::linux_tcp());
        scenario.put("tcp.congestion", "reno").expect("a path");
        let refused = case(&scenario).expect_err("it has no choices");
        assert!(refused.starts_with("tcp: congestion: linux-tcp has no choices"), "{refused}");
        scenario.put("tcp.profile", "linux-udp").expect("a path");
        let refused = case(&scenario).expect_err("no such profile");
        assert!(refused.ends_with(", linux-tcp"), "{refused}");
    }

    #[test]
    fn put_sets_every_value() {
        let mut scenario = scenario();
        for (path, value) in [
            ("link.loss", "1% / 0%"),
            ("access", "delay=5ms"),
            ("tcp.receiver.delay", "80ms"),
            ("test.sender.loss", "2%"),
            ("flows.size", "3MB"),
            ("tcp.connections", "8"),
            ("tcp.handshake", "done"),
            ("tcp.start", "2s"),
            ("tcp.start-within", "500ms"),
            ("tcp.stop", "30s"),
            ("tcp.congestion.beta", "0.5"),
            ("cbr.packet", "1000B"),
            ("pareto.shape", "1.2"),
        ] {
            scenario.put(path, value).expect(path);
        }
        let case = case(&scenario).expect("it makes sense");
        assert_eq!(case.topology.links()[0].link.forward.loss.mean(), 0.01);
        assert_eq!(case.topology.links()[0].link.backward.loss.mean(), 0.0);
        let delays = case.topology.links().iter().map(|link| link.link.forward.delay.as_millis()).collect::<Vec<_>>();
        assert_eq!(delays[..5], [25, 5, 5, 5, 80]);
        assert_eq!(case.topology.links()[1].link.forward.loss.mean(), 0.02);
        assert_eq!(case.flows.iter().map(|flow| flow.size).collect::<Vec<_>>(), [Some(3_000_000); 2]);
        assert_eq!((case.flows[1].connections, case.flows[1].start), (8, Duration::from_secs(2)));
        assert_eq!([0, 1].map(|flow| case.flows[flow].handshake), [Handshake::Counted, Handshake::Done]);
        let within = Duration::from_millis(500);
        assert_eq!((case.flows[1].start_within, case.flows[1].stop), (within, Some(Duration::from_secs(30))));
        assert!(case.flows[1].profile.recovery.congestion.to_string().contains("beta=0.5"));
        scenario.put("tcp.congestion", "fixed-rate:1M").expect("the numbers of the previous one are gone");
        assert_eq!(scenario.flows[1].set.len(), 1);
        scenario.put("test.profile", "arq").expect("a profile");
        assert!(scenario.flows[0].set.is_empty());
    }

    #[test]
    fn scenario_error_names_the_position() {
        for (path, value, said) in [
            ("link.loss", "120%", "link: loss is 1.2"),
            ("tcp.sender.delay", "soon", "tcp: cannot read delay=soon"),
            ("tcp.profile", "brutal", "tcp: unknown profile 'brutal'"),
            ("tcp.colour", "red", "tcp: colour=red: unknown profile key 'colour'"),
            ("tcp.size", "much", "tcp: cannot read size=much"),
            ("tcp.stop", "0s", "the flow from tcp-sender stops before it starts"),
            ("tcp.start-within", "soon", "tcp: cannot read start-within=soon"),
            ("tcp.connections", "0", "tcp: connections is \"0\": write a number from 1 to 256"),
            ("test.coding", "slow", "test: cannot read coding=slow"),
            ("test.handshake", "skipped", "test: handshake is \"skipped\": write counted, or done"),
            ("cbr.colour", "red", "cbr: unknown key \"colour\" of a source of constant rate"),
            ("cbr.rate", "0", "cbr: a source of constant rate needs a rate such as 1M"),
            ("pareto.shape", "1", "pareto: shape is \"1\""),
            ("pareto.colour", "red", "pareto: colour=red: unknown profile key 'colour'"),
        ] {
            let mut scenario = scenario();
            scenario.put(path, value).expect(path);
            let refused = case(&scenario).expect_err(path);
            assert!(refused.starts_with(said), "{refused}");
        }
        let mut late = scenario();
        late.warm_up = Some(Text("60s".to_owned()));
        assert_eq!(case(&late).expect_err("no time is counted"), "warm-up must be before the cap");
        let unknown = scenario().put("udp.size", "1MB").expect_err("no such flow");
        assert!(unknown.ends_with("or KEY of one of test, tcp, cbr, pareto"), "{unknown}");
        let mut named = scenario();
        named.flows[0].name = "link".to_owned();
        assert!(case(&named).expect_err("a reserved name").starts_with("link is reserved in paths"));
        named.flows[0].name.clear();
        assert!(case(&named).expect_err("no name").starts_with("a flow has no name"));
    }
}
