//! The network to emulate.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use netsim::topology::{Topology, TopologyError};
use netsim::{Duplex, Fabric, NetworkError, NodeId, TextError, TraceFileError};

use crate::emulator::Packet;
use crate::testbed::CableKind;

/// Hosts, and the model of the network between them.
#[derive(Debug)]
pub struct Layout {
    /// Names of the hosts.
    pub hosts: Vec<String>,
    /// The pairs of hosts that communicate, as indices into `hosts`; at least one.
    pub pairs: Vec<(usize, usize)>,
    /// Names of the directed links of the fabric, in order.
    pub links: Vec<String>,
    /// The model.
    pub fabric: Fabric<Packet>,
    /// The hosts in the model.
    pub nodes: Vec<NodeId>,
    /// Least delays of each pair, without queues: forward and backward.
    pub delays: Vec<[Duration; 2]>,
    /// How hosts and emulator are connected.
    pub cables: CableKind,
}

/// An error in building a network.
#[derive(Debug, thiserror::Error)]
pub enum LayoutError {
    /// A topology that cannot be read.
    #[error("cannot read the topology {}: {error}", .file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// An invalid topology.
    #[error("{}: {error}", .file.display())]
    Topology {
        /// The file.
        file: PathBuf,
        /// The error.
        error: Box<TopologyError>,
    },
    /// A topology without pairs.
    #[error("{}: no pairs: add one, [[pairs]] with from = \"...\" and to = \"...\"", .0.display())]
    NoPair(PathBuf),
    /// A trace that cannot be loaded.
    #[error(transparent)]
    Trace(#[from] TraceFileError),
    /// A link that cannot be parsed.
    #[error(transparent)]
    Link(TextError),
    /// Links that do not form a network.
    #[error(transparent)]
    Network(#[from] NetworkError),
}

/// Reads the topology in a file.
///
/// # Errors
/// A file that cannot be read, or holds no topology.
pub fn read_topology(file: &Path) -> Result<Topology, LayoutError> {
    let text = fs::read_to_string(file).map_err(|error| LayoutError::Unreadable { file: file.to_owned(), error })?;
    text.parse().map_err(|error| LayoutError::Topology { file: file.to_owned(), error: Box::new(error) })
}

impl Layout {
    /// Creates two hosts, `a` and `b`, and a link whose forward direction leads from `a` to `b`. Reads the traces that
    /// the link names.
    ///
    /// # Errors
    /// An invalid link, or a trace that cannot be read.
    pub fn pair(link: &Duplex) -> Result<Self, LayoutError> {
        let mut layout = Self::empty();
        layout.add_pair(["a", "b"].map(str::to_owned), ["forward", "backward"].map(str::to_owned), link)?;
        Ok(layout)
    }

    /// Creates pairs of hosts, `a1` and `b1`, `a2` and `b2` and so on, each with a link of its own as in
    /// [`Self::pair`].
    ///
    /// # Errors
    /// An invalid link, or a trace that cannot be read.
    pub fn pairs(links: &[Duplex]) -> Result<Self, LayoutError> {
        let mut layout = Self::empty();
        for (number, link) in (1..).zip(links) {
            let hosts = [format!("a{number}"), format!("b{number}")];
            let names = [format!("forward{number}"), format!("backward{number}")];
            layout.add_pair(hosts, names, link)?;
        }
        Ok(layout)
    }

    fn empty() -> Self {
        Self {
            hosts: Vec::new(),
            pairs: Vec::new(),
            links: Vec::new(),
            fabric: Fabric::new(),
            nodes: Vec::new(),
            delays: Vec::new(),
            cables: CableKind::default(),
        }
    }

    fn add_pair(&mut self, hosts: [String; 2], links: [String; 2], link: &Duplex) -> Result<(), LayoutError> {
        let mut link = link.clone();
        link.load_traces(read_trace)?;
        let [a, b] = [self.fabric.add_host(), self.fabric.add_host()];
        self.delays.push([link.forward.delay, link.backward.delay]);
        self.fabric.add_link(a, b, link.forward)?;
        self.fabric.add_link(b, a, link.backward)?;
        self.pairs.push((self.hosts.len(), self.hosts.len() + 1));
        self.nodes.extend([a, b]);
        self.hosts.extend(hosts);
        self.links.extend(links);
        Ok(())
    }

    /// Creates the hosts and links of a topology read from `file`. Reads the traces that its links name.
    ///
    /// # Errors
    /// No pair, or a trace that cannot be read.
    pub fn of_topology(mut topology: Topology, file: &Path) -> Result<Self, LayoutError> {
        topology.load_traces(read_trace)?;
        let (mut fabric, _) = topology.build_fabric()?;
        let pairs: Vec<_> = topology.pairs().iter().map(|pair| (pair.from.index(), pair.to.index())).collect();
        if pairs.is_empty() {
            return Err(LayoutError::NoPair(file.to_owned()));
        }
        let both = topology.pairs().iter().map(|pair| [(pair.from, pair.to), (pair.to, pair.from)]);
        let delays = both.map(|ways| ways.map(|(from, to)| least_delay(&mut fabric, from, to))).collect();
        let name = |id| topology.name(id).unwrap_or_default();
        let both = topology.links().iter().flat_map(|link| [(link.from, link.to), (link.to, link.from)]);
        Ok(Self {
            links: both.map(|(from, to)| format!("{}>{}", name(from), name(to))).collect(),
            hosts: topology.hosts().to_vec(),
            pairs,
            nodes: (0..).map(NodeId::from_index).take(topology.hosts().len()).collect(),
            fabric,
            delays,
            cables: CableKind::default(),
        })
    }
}

/// Returns the sum of the delays of a path; a pair of a topology has one.
fn least_delay(fabric: &mut Fabric<Packet>, from: NodeId, to: NodeId) -> Duration {
    let path = fabric.path(from, to).unwrap_or_default();
    path.into_iter().filter_map(|link| Some(fabric.link(link)?.config().delay)).sum()
}

fn read_trace(name: &str) -> io::Result<String> {
    fs::read_to_string(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUMBBELL: &str = r#"
        hosts = ["a1", "a2", "b1", "b2"]
        routers = ["left", "right"]
        links = [
            { between = ["left", "right"], link = "rate=10M,delay=20ms / rate=1M,delay=30ms" },
            { between = ["a1", "left"], link = "delay=1ms" },
            { between = ["a2", "left"], link = "perfect" },
            { between = ["b1", "right"], link = "delay=2ms" },
            { between = ["b2", "right"], link = "perfect" },
        ]
        pairs = [{ from = "a1", to = "b1" }, { from = "b2", to = "a2" }]
    "#;

    #[test]
    fn topology_has_pairs_and_round_trips() {
        let file = Path::new("dumbbell.toml");
        let layout = Layout::of_topology(DUMBBELL.parse().unwrap(), file).unwrap();
        assert_eq!(layout.hosts, ["a1", "a2", "b1", "b2"]);
        assert_eq!(layout.pairs, [(0, 2), (3, 1)]);
        let millis = layout.delays.iter().map(|ways| ways.map(|delay| delay.as_millis())).collect::<Vec<_>>();
        assert_eq!(millis, [[20 + 1 + 2, 30 + 1 + 2], [30, 20]]);
        assert_eq!(layout.links[..4], ["left>right", "right>left", "a1>left", "left>a1"]);
        let without = DUMBBELL.replace("pairs = [", "pairs = []\n#");
        let error = Layout::of_topology(without.parse().unwrap(), file).unwrap_err();
        assert!(error.to_string().starts_with("dumbbell.toml: no pairs: add one"), "{error}");
    }
}
