//! A network of many links, as text: routers and links of a file or drawn at random, to which hosts are joined.

use std::path::{Component, Path, PathBuf};

use fastrand::Rng;
use netsim::topology::Graph;
use netsim::{Duplex, Rate};
use serde::{Deserialize, Serialize};

use super::Text;
use crate::plan::{parse_share, put_parts};

/// Routers and links, instead of the one shared link. The seed draws the routers of the hosts and all random properties
/// of links: series with the same seed have the same network.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TopologyText {
    /// The file with routers and links, beside the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The digest of its content, which identifies it in a record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Its content.
    #[serde(skip)]
    pub content: String,
    /// Routers of a random graph.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<Text>,
    /// Its links.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub links: Option<Text>,
    /// The share of packets that links lose, in both directions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drops: Option<Text>,
    /// The share of links with drops; default all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drops_on: Option<Text>,
    /// The divisor of the rates of all links; default 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<Text>,
}

/// The independent draws from a seed: another number of links does not move hosts.
#[derive(Clone, Copy)]
enum Draw {
    Links = 1,
    Drops = 2,
    Places = 3,
}

impl Draw {
    fn seed(self, seed: u64) -> u64 {
        seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(self as u64)
    }
}

impl TopologyText {
    /// Sets the value of a key.
    ///
    /// # Errors
    /// An unknown key.
    pub(super) fn put(&mut self, key: &str, value: &str) -> Result<(), String> {
        let text = Some(Text(value.to_owned()));
        match key {
            "file" => self.file = Some(value.to_owned()),
            "nodes" => self.nodes = text,
            "links" => self.links = text,
            "drops" => self.drops = text,
            "drops-on" => self.drops_on = text,
            "scale" => self.scale = text,
            _ => {
                return Err(format!(
                    "unknown key {key:?} of topology: one of file, nodes, links, drops, drops-on, scale"
                ));
            }
        }
        Ok(())
    }

    /// Reads its file, if it has one.
    ///
    /// # Errors
    /// A file that cannot be read, or is not in the directory of the plan and so not stored with the results.
    pub(super) fn load(&mut self, plan: &Path) -> Result<(), String> {
        self.digest = None;
        let Some(path) = self.path(plan)? else { return Ok(()) };
        self.content = std::fs::read_to_string(&path)
            .map_err(|error| format!("cannot read topology {}: {error}", path.display()))?;
        self.digest = Some(blake3::hash(self.content.as_bytes()).to_hex()[..16].to_owned());
        Ok(())
    }

    /// Returns its file, if it has one.
    ///
    /// # Errors
    /// Another directory than the plan's.
    pub(super) fn path(&self, plan: &Path) -> Result<Option<PathBuf>, String> {
        let Some(file) = &self.file else { return Ok(None) };
        let mut parts = Path::new(file).components();
        match (parts.next(), parts.next()) {
            (Some(Component::Normal(name)), None) => Ok(Some(plan.with_file_name(name))),
            _ => Err(format!("topology {file} must be in the directory of the plan")),
        }
    }

    /// Returns the routers and links of a seed. `link` completes the file's links, and is every drawn link.
    ///
    /// # Errors
    /// The first invalid value.
    pub(super) fn graph(&self, link: &str, seed: u64) -> Result<Graph, String> {
        self.built(link, seed).map_err(|error| format!("topology: {error}"))
    }

    fn built(&self, link: &str, seed: u64) -> Result<Graph, String> {
        let mut graph = self.bare(link, seed)?;
        let scale = self.scale.as_ref().map_or(Ok(1), |text| number("scale", text))?.max(1);
        let drops = self.drops.as_ref().map(|text| share("drops", text)).transpose()?;
        let on = self.drops_on.as_ref().map(|text| share("drops-on", text)).transpose()?;
        if on.is_some() && drops.is_none() {
            return Err("drops-on needs drops: add drops = \"3%\"".to_owned());
        }
        let mut links: Vec<&mut Duplex> = graph.links_mut().collect();
        links.iter_mut().for_each(|link| limit_packets(link));
        for way in links.iter_mut().flat_map(|link| [&mut link.forward, &mut link.backward]) {
            let divided = |rate: Rate| Rate::from_bits_per_second(rate.bits_per_second() / scale);
            way.rate = way.rate.map(divided);
            way.steps.iter_mut().for_each(|step| step.rate = divided(step.rate));
        }
        if let Some(drops) = drops {
            Rng::with_seed(Draw::Drops.seed(seed)).shuffle(&mut links);
            let count = (on.unwrap_or(1.0) * links.len() as f64).round() as usize;
            for way in links.iter_mut().take(count).flat_map(|link| [&mut link.forward, &mut link.backward]) {
                way.loss = way.loss.with_mean(drops);
            }
        }
        Ok(graph)
    }

    fn bare(&self, link: &str, seed: u64) -> Result<Graph, String> {
        match (&self.file, &self.nodes, &self.links) {
            (Some(_), None, None) => {
                Graph::read(&self.content, |own| put_parts(link, own)).map_err(|error| error.to_string())
            }
            (None, Some(nodes), Some(links)) => {
                let [nodes, links] = [number("nodes", nodes)?, number("links", links)?].map(u32::try_from);
                let link: Duplex = link.parse().map_err(|error| format!("link: {error}"))?;
                let drawn =
                    Graph::random(nodes.unwrap_or(u32::MAX), links.unwrap_or(u32::MAX), &link, Draw::Links.seed(seed));
                drawn.map_err(|error| error.to_string())
            }
            _ => Err("use either file, or nodes and links of a random graph".to_owned()),
        }
    }
}

/// Returns the routers of the senders and receivers of this number of pairs. Each has a router of its own as long as
/// there are enough.
pub(super) fn places(routers: usize, pairs: usize, seed: u64) -> Vec<[usize; 2]> {
    let mut order: Vec<usize> = (0..routers).collect();
    Rng::with_seed(Draw::Places.seed(seed)).shuffle(&mut order);
    (0..pairs).map(|pair| [2 * pair, 2 * pair + 1].map(|end| order[end % routers])).collect()
}

/// Sets the largest packet to that of Ethernet, unless another is given: packets of some profiles are as large as the
/// path allows.
pub(super) fn limit_packets(link: &mut Duplex) {
    for way in [&mut link.forward, &mut link.backward] {
        way.mtu = way.mtu.or(Some(1_500));
    }
}

fn number(key: &str, text: &Text) -> Result<u64, String> {
    text.0.parse().map_err(|_| format!("{key} is {:?}: write a whole number", text.0))
}

fn share(key: &str, text: &Text) -> Result<f64, String> {
    parse_share(key, &text.0).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::super::scenario::tests::{case, scenario};
    use super::*;

    /// Two flows and two backgrounds over a graph with 50 routers.
    fn drawn() -> super::super::Scenario {
        let mut scenario = scenario();
        scenario.access = "perfect".to_owned();
        scenario.topology = toml::from_str("nodes = 50\nlinks = 140").expect("a topology");
        scenario
    }

    #[test]
    fn seed_draws_links_positions_and_drops_independently() {
        let mut scenario = drawn();
        let first = scenario.topology(1).expect("it makes sense");
        assert_eq!((first.hosts().len(), first.routers().len(), first.links().len()), (8, 50, 140 + 8));
        assert_eq!(first, scenario.topology(1).expect("it makes sense"));
        let ends = |topology: &netsim::topology::Topology, skip| -> Vec<_> {
            topology.links()[skip..].iter().map(|link| (link.from, link.to)).collect()
        };
        assert_ne!(ends(&first, 140), ends(&scenario.topology(2).expect("it makes sense"), 140), "other positions");

        for (path, value) in [("topology.links", "160"), ("topology.drops", "3%"), ("topology.drops-on", "50%")] {
            scenario.put(path, value).expect(path);
        }
        let denser = scenario.topology(1).expect("it makes sense");
        assert_eq!(ends(&first, 140), ends(&denser, 160), "the same positions");
        let mut routers: Vec<_> = ends(&denser, 160).iter().map(|(from, to)| (*from).max(*to)).collect();
        routers.sort_unstable();
        routers.dedup();
        assert_eq!(routers.len(), 8, "each host has a router of its own");
        let losses =
            denser.links().iter().map(|link| [&link.link.forward, &link.link.backward].map(|way| way.loss.mean()));
        assert_eq!(losses.clone().filter(|loss| *loss == [0.03; 2]).count(), 80);
        assert_eq!(losses.filter(|loss| *loss == [0.0; 2]).count(), 80 + 8, "those to the hosts lose nothing");
    }

    #[test]
    fn topology_file_has_own_values_of_links() {
        let directory = tempfile::tempdir().expect("a directory");
        let map = r#"
            routers = ["a", "b", "c"]
            links = [{ between = ["a", "b"], link = "rate=100G,delay=3ms" }, { between = ["b", "c"], link = "rate=10G" }]
        "#;
        std::fs::write(directory.path().join("map.toml"), map).expect("it is written");
        let mut scenario = drawn();
        scenario.link = "queue-packets=10000".to_owned();
        scenario.topology = toml::from_str("file = \"map.toml\"\nscale = 1000").expect("a topology");
        scenario.load(&directory.path().join("plan.toml")).expect("it exists");
        let topology = scenario.topology(3).expect("it makes sense");
        let link = &topology.links()[0].link.backward;
        assert_eq!(
            (link.rate, link.delay.as_millis(), link.queue_packets, link.mtu),
            (Some(Rate::from_megabits_per_second(100)), 3, Some(10_000), Some(1_500))
        );
        let record = serde_json::to_string(&scenario).expect("JSON");
        let digest = &blake3::hash(map.as_bytes()).to_hex()[..16];
        assert!(
            record.contains(&format!("\"file\":\"map.toml\",\"digest\":\"{digest}\",\"scale\":\"1000\"")),
            "{record}"
        );
        let back: super::super::Scenario = serde_json::from_str(&record).expect("it reads back");
        assert_eq!(back.topology.and_then(|topology| topology.digest).as_deref(), Some(digest));
        for (path, said) in
            [("other.toml", "cannot read topology"), ("../map.toml", "topology ../map.toml must be in the directory")]
        {
            scenario.put("topology.file", path).expect("a path");
            let refused = scenario.load(&directory.path().join("plan.toml")).expect_err(path);
            assert!(refused.contains(said), "{refused}");
        }
    }

    /// Six ends on five routers: no flow has one router at both ends.
    #[test]
    fn hosts_share_routers_if_too_few() {
        for seed in 0..100 {
            let places = places(5, 3, seed);
            assert!(places.iter().all(|[from, to]| from != to), "seed {seed}: {places:?}");
            let used: std::collections::BTreeSet<_> = places.iter().flatten().collect();
            assert_eq!(used.len(), 5, "seed {seed}: {places:?}");
        }
    }

    #[test]
    fn rate_share_is_of_the_slowest_link() {
        let mut scenario = drawn();
        scenario.flows[0].set.clear();
        for (path, value) in [("test.profile", "rc-udp"), ("test.told", "97%"), ("topology.scale", "10")] {
            scenario.put(path, value).expect(path);
        }
        let rate = |scenario: &super::super::Scenario| case(scenario).map(|case| case.flows[0].profile.fixed_rate());
        // 50 Mbit/s by ten.
        assert_eq!(rate(&scenario), Ok(Some(transport::Rate::from_bits_per_second(4_850_000))));
        scenario.put("test.sender", "rate=1M").expect("a path");
        assert_eq!(rate(&scenario), Ok(Some(transport::Rate::from_bits_per_second(970_000))));
        scenario.put("test.profile", "auto").expect("a path");
        assert_eq!(rate(&scenario), Ok(None), "the share of the previous profile is gone");
    }

    #[test]
    fn topology_error_names_the_key() {
        for (topology, said) in [
            ("nodes = 50", "topology: use either file, or nodes and links of a random graph"),
            ("file = \"a\"\nnodes = 50", "topology: use either file, or nodes and links of a random graph"),
            ("nodes = 1\nlinks = 1", "topology: a random graph has from 2 to 1000 nodes"),
            ("nodes = \"many\"\nlinks = 1", "topology: nodes is \"many\": write a whole number"),
            ("nodes = 50\nlinks = 140\ndrops = \"much\"", "topology: cannot read drops=much"),
            ("nodes = 50\nlinks = 140\ndrops-on = \"50%\"", "topology: drops-on needs drops"),
            ("nodes = 50\nlinks = 140\nscale = \"1e3\"", "topology: scale is \"1e3\": write a whole number"),
        ] {
            let mut scenario = drawn();
            scenario.topology = toml::from_str(topology).expect("TOML");
            let refused = case(&scenario).expect_err(topology);
            assert!(refused.starts_with(said), "{refused}");
        }
        let mut scenario = drawn();
        let refused = scenario.put("topology.colour", "red").expect_err("no such key");
        assert!(refused.starts_with("unknown key \"colour\" of topology"), "{refused}");
        scenario.topology = None;
        assert!(scenario.put("topology.links", "1").expect_err("no topology").contains("unknown path"));
        scenario.put("test.told", "97%").expect("a path");
        scenario.link = "delay=1ms".to_owned();
        scenario.access = "perfect".to_owned();
        assert!(case(&scenario).expect_err("no rate").starts_with("test: told is a share of the path's rate"));
    }
}
