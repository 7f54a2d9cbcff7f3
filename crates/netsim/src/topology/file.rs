//! A topology as described by a file.

use std::io;
use std::str::FromStr;

use serde::Deserialize;

use super::{Graph, LinkPair};
use crate::routes::Routes;
use crate::{Duplex, Fabric, LinkConfig, LinkId, Network, NetworkError, Node, NodeId, TextError, TraceFileError};

/// Hosts, routers, the links between them, and the pairs of hosts that communicate.
///
/// Read from TOML by `FromStr`. Names are letters, digits, `-` and `_`. A link has the text form of a [`Duplex`], whose
/// forward direction is from the first of its two ends to the second. Packets take the path of the fewest links; of
/// equal ones, the one with the first links. Only routers forward them.
///
/// ```
/// let topology: downpour_netsim::topology::Topology = r#"
///     hosts = ["a", "b"]
///     routers = ["middle"]
///
///     [[links]]
///     between = ["a", "middle"]
///     link = "rate=1G"
///
///     [[links]]
///     between = ["middle", "b"]
///     link = "rate=100M,delay=20ms,queue=1bdp"
///
///     [[pairs]]
///     from = "a"
///     to = "b"
/// "#
/// .parse()?;
/// assert_eq!(topology.links()[1].link.forward.queue_bytes, Some(500_000));
/// # Ok::<(), downpour_netsim::topology::TopologyError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Topology {
    hosts: Vec<String>,
    routers: Vec<String>,
    links: Vec<PlannedLink>,
    pairs: Vec<HostPair>,
}

/// A link of a [`Topology`].
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedLink {
    /// The node at which its forward direction starts.
    pub from: NodeId,
    /// The node to which it leads.
    pub to: NodeId,
    /// The link, with random streams of its own.
    pub link: Duplex,
}

/// Two hosts of a [`Topology`], one of which sends to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostPair {
    /// The sender.
    pub from: NodeId,
    /// The receiver.
    pub to: NodeId,
}

/// An invalid topology text, with advice.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TopologyError {
    /// Not TOML, or not of this form.
    #[error("line {line}: {message}")]
    Toml {
        /// The line, counted from 1.
        line: usize,
        /// The error.
        message: String,
    },
    /// An invalid name.
    #[error("invalid name {0:?}: write letters, digits, - and _")]
    BadName(String),
    /// A name used twice.
    #[error("duplicate name {0}: give each host and router its own")]
    Repeated(String),
    /// Fewer than two hosts.
    #[error("needs at least two hosts, such as hosts = [\"a\", \"b\"]")]
    TooFewHosts,
    /// An undeclared name.
    #[error("{name} is unknown: add it to hosts or routers")]
    Unknown {
        /// The name.
        name: String,
    },
    /// A link from a node to itself.
    #[error("a link joins {0} to itself: name two nodes")]
    Loop(String),
    /// Two links between the same two nodes, the second of which no packet would take.
    #[error("{0} and {1} have two links, and the second is never used: omit one")]
    Parallel(String, String),
    /// A link that cannot be parsed.
    #[error("the link between {from} and {to}: {error}")]
    Link {
        /// Its first end.
        from: String,
        /// Its second end.
        to: String,
        /// The error.
        error: TextError,
    },
    /// A link that should be replaced, but does not exist.
    #[error("no link from {from} to {to}: name the two nodes of a link, in its order")]
    NoLink {
        /// Its first end.
        from: String,
        /// Its second end.
        to: String,
    },
    /// Hosts where none are allowed.
    #[error("the flows add their hosts: omit hosts and pairs, and name routers")]
    Inhabited,
    /// Fewer than two routers where hosts are joined to them.
    #[error("needs at least two routers, such as routers = [\"a\", \"b\"]")]
    TooFewRouters,
    /// An unreachable router.
    #[error("no path to {0}: join it by links")]
    Apart(String),
    /// An unreachable host.
    #[error("{0} has no link: add one, or omit it")]
    Unconnected(String),
    /// A pair that includes a router.
    #[error("{0} is a router: pairs need hosts")]
    NotAHost(String),
    /// A pair of hosts between which no path leads.
    #[error("no path from {from} to {to}: join them by links over routers")]
    NoRoute {
        /// The intended sender.
        from: String,
        /// The intended receiver.
        to: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    #[serde(default)]
    pub(super) hosts: Vec<String>,
    #[serde(default)]
    pub(super) routers: Vec<String>,
    #[serde(default)]
    pub(super) links: Vec<FileLink>,
    #[serde(default)]
    pub(super) pairs: Vec<FilePair>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileLink {
    pub(super) between: [String; 2],
    pub(super) link: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FilePair {
    from: String,
    to: String,
}

impl File {
    pub(super) fn read(text: &str) -> Result<Self, TopologyError> {
        toml::from_str(text).map_err(|error| TopologyError::Toml {
            line: 1 + error.span().map_or(0, |span| text[..span.start].matches('\n').count()),
            message: error.message().replace('\n', ", "),
        })
    }
}

impl FromStr for Topology {
    type Err = TopologyError;

    /// Parses and checks.
    fn from_str(text: &str) -> Result<Self, TopologyError> {
        let file = File::read(text)?;
        let mut topology = Self::empty(file.hosts, file.routers)?;
        topology.check_hosts()?;
        for FileLink { between: [from, to], link } in file.links {
            topology.add_link(&from, &to, &link)?;
        }
        topology.separate_streams();
        topology.check_connected()?;
        for FilePair { from, to } in file.pairs {
            topology.add_pair(&from, &to)?;
        }
        Ok(topology)
    }
}

/// A pair of hosts on the two sides of a dumbbell.
#[derive(Clone, Debug, PartialEq)]
pub struct Side {
    /// The name of both, followed by `-sender` and `-receiver`.
    pub name: String,
    /// From the sender to the left router.
    pub sender: Duplex,
    /// From the right router to the receiver.
    pub receiver: Duplex,
}

impl Side {
    /// Returns so many pairs, named `f0`, `f1` and so on, all of whose hosts have access links like this.
    pub fn alike(pairs: usize, access: &Duplex) -> Vec<Self> {
        let side = |number| Self { name: format!("f{number}"), sender: access.clone(), receiver: access.clone() };
        (0..pairs).map(side).collect()
    }
}

impl Topology {
    /// Creates two routers with one link between them, the bottleneck, and pairs of hosts: senders behind links of
    /// their own on the left, receivers on the right. The forward direction of every link is that of the data. Sender
    /// `i` is host `2 i`, its receiver the next.
    ///
    /// # Errors
    /// Invalid or duplicate names.
    pub fn dumbbell(bottleneck: &Duplex, sides: &[Side]) -> Result<Self, TopologyError> {
        Graph::dumbbell(bottleneck).join(sides, &vec![[0, 1]; sides.len()])
    }

    /// Creates hosts and routers without links.
    pub(super) fn empty(hosts: Vec<String>, routers: Vec<String>) -> Result<Self, TopologyError> {
        let topology = Self { hosts, routers, links: Vec::new(), pairs: Vec::new() };
        topology.check_names()?;
        Ok(topology)
    }

    /// Adds all links and pairs at once.
    pub(super) fn with(self, links: Vec<PlannedLink>, pairs: Vec<HostPair>) -> Result<Self, TopologyError> {
        self.check_hosts()?;
        let mut topology = Self { links, pairs, ..self };
        topology.separate_streams();
        Ok(topology)
    }

    /// Gives random streams of their own to links, which may have the same description.
    fn separate_streams(&mut self) {
        for (number, planned) in (0..).zip(&mut self.links) {
            planned.link = planned.link.sibling(number);
        }
    }

    pub(super) fn into_routers_and_links(self) -> (Vec<String>, Vec<PlannedLink>) {
        (self.routers, self.links)
    }

    /// Returns the names of the hosts. Host number `n` is `NodeId::from_index(n)`.
    pub fn hosts(&self) -> &[String] {
        &self.hosts
    }

    /// Returns the names of the routers, whose numbers follow those of the hosts.
    pub fn routers(&self) -> &[String] {
        &self.routers
    }

    /// Returns the links, in the order of the file.
    pub fn links(&self) -> &[PlannedLink] {
        &self.links
    }

    /// Returns the pairs of hosts that communicate, in the order of the file.
    pub fn pairs(&self) -> &[HostPair] {
        &self.pairs
    }

    /// Returns the name of a host or router.
    pub fn name(&self, id: NodeId) -> Option<&str> {
        self.names().nth(id.index())
    }

    /// Returns the host or router with this name.
    pub fn node(&self, name: &str) -> Option<NodeId> {
        (0..).map(NodeId::from_index).zip(self.names()).find(|(_, own)| *own == name).map(|(id, _)| id)
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.hosts.iter().chain(&self.routers).map(String::as_str)
    }

    /// Returns the links that packets take from the first host of a pair to the second, in the direction in which they
    /// go; `None` where no path leads, or both are one.
    pub fn path(&self, HostPair { from, to }: HostPair) -> Option<Vec<&LinkConfig>> {
        let forwards: Vec<bool> = (0..self.names().count()).map(|index| index >= self.hosts.len()).collect();
        let ways = self.links.iter().flat_map(|link| [(link.from, link.to), (link.to, link.from)]);
        let ends: Vec<(usize, usize)> = ways.map(|(from, to)| (from.index(), to.index())).collect();
        let routes = Routes::new(&forwards, &ends);
        let mut path = Vec::new();
        let mut at = from.index();
        loop {
            let way = routes.next(at, to.index())?;
            let link = &self.links[way / 2].link;
            path.push(if way % 2 == 0 { &link.forward } else { &link.backward });
            at = ends[way].1;
            if at == to.index() {
                return Some(path);
            }
        }
    }

    /// Returns the same topology with other random streams on every link: for run `number` of many. Number 0 is the
    /// topology itself.
    #[must_use]
    pub fn sibling(&self, number: u64) -> Self {
        let mut sibling = self.clone();
        for planned in &mut sibling.links {
            // Far enough from the numbers of the links themselves.
            planned.link = planned.link.sibling(number << 32);
        }
        sibling
    }

    /// Replaces the link between two hosts or routers, given in the order of the file.
    ///
    /// # Errors
    /// Two names without a link between them.
    pub fn replace_link(&mut self, from: &str, to: &str, link: Duplex) -> Result<(), TopologyError> {
        let between = [self.node(from), self.node(to)];
        let planned = self.links.iter_mut().find(|planned| between == [Some(planned.from), Some(planned.to)]);
        let planned = planned.ok_or_else(|| TopologyError::NoLink { from: from.to_owned(), to: to.to_owned() })?;
        planned.link = link;
        Ok(())
    }

    /// Makes two hosts the first pair, whether or not they are one already.
    ///
    /// # Errors
    /// Names other than those of two hosts with a path between them.
    pub fn put_first(&mut self, from: &str, to: &str) -> Result<(), TopologyError> {
        self.add_pair(from, to)?;
        self.pairs.rotate_right(1);
        Ok(())
    }

    /// Loads the traces of all links; see [`LinkConfig::load_trace`].
    ///
    /// # Errors
    /// A file that cannot be read or is no trace.
    pub fn load_traces(&mut self, read: impl Fn(&str) -> io::Result<String>) -> Result<(), TraceFileError> {
        self.links.iter_mut().try_for_each(|planned| planned.link.load_traces(&read))
    }

    /// Builds a network with a node for each host; returns the links in the order of [`Topology::links`].
    ///
    /// # Errors
    /// An unloaded trace.
    pub fn build_network<N: Node>(
        &self,
        mut make_node: impl FnMut(NodeId, &str) -> N,
    ) -> Result<(Network<N>, Vec<LinkPair>), NetworkError> {
        let mut network = Network::new();
        for (id, name) in (0..).map(NodeId::from_index).zip(&self.hosts) {
            network.add_node(make_node(id, name));
        }
        for _ in &self.routers {
            network.add_router();
        }
        let links = self.join(|from, to, link| network.add_link(from, to, link))?;
        Ok((network, links))
    }

    /// Builds a fabric between the hosts; returns the links in the order of [`Topology::links`].
    ///
    /// # Errors
    /// An unloaded trace.
    pub fn build_fabric<T>(&self) -> Result<(Fabric<T>, Vec<LinkPair>), NetworkError> {
        let mut fabric = Fabric::new();
        for _ in &self.hosts {
            fabric.add_host();
        }
        for _ in &self.routers {
            fabric.add_router();
        }
        let links = self.join(|from, to, link| fabric.add_link(from, to, link))?;
        Ok((fabric, links))
    }

    fn join(
        &self,
        mut add: impl FnMut(NodeId, NodeId, LinkConfig) -> Result<LinkId, NetworkError>,
    ) -> Result<Vec<LinkPair>, NetworkError> {
        let both = |PlannedLink { from, to, link }: &PlannedLink| {
            let forward = add(*from, *to, link.forward.clone())?;
            Ok(LinkPair { forward, backward: add(*to, *from, link.backward.clone())? })
        };
        self.links.iter().map(both).collect()
    }

    fn check_names(&self) -> Result<(), TopologyError> {
        for (number, name) in self.names().enumerate() {
            let is_good = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
            if name.is_empty() || !name.bytes().all(is_good) {
                return Err(TopologyError::BadName(name.to_owned()));
            }
            if self.names().take(number).any(|other| other == name) {
                return Err(TopologyError::Repeated(name.to_owned()));
            }
        }
        Ok(())
    }

    fn check_hosts(&self) -> Result<(), TopologyError> {
        if self.hosts.len() < 2 { Err(TopologyError::TooFewHosts) } else { Ok(()) }
    }

    fn find(&self, name: &str) -> Result<NodeId, TopologyError> {
        self.node(name).ok_or_else(|| TopologyError::Unknown { name: name.to_owned() })
    }

    pub(super) fn add_link(&mut self, from_name: &str, to_name: &str, link: &str) -> Result<(), TopologyError> {
        let (from, to) = (self.find(from_name)?, self.find(to_name)?);
        if from == to {
            return Err(TopologyError::Loop(from_name.to_owned()));
        }
        if self.links.iter().any(|other| [(from, to), (to, from)].contains(&(other.from, other.to))) {
            return Err(TopologyError::Parallel(from_name.to_owned(), to_name.to_owned()));
        }
        let link: Duplex = link.parse().map_err(|error| TopologyError::Link {
            from: from_name.to_owned(),
            to: to_name.to_owned(),
            error,
        })?;
        self.links.push(PlannedLink { from, to, link });
        Ok(())
    }

    fn check_connected(&self) -> Result<(), TopologyError> {
        let is_connected = |id: NodeId| self.links.iter().any(|link| link.from == id || link.to == id);
        let mut hosts = (0..).map(NodeId::from_index).zip(&self.hosts);
        match hosts.find(|(id, _)| !is_connected(*id)) {
            Some((_, name)) => Err(TopologyError::Unconnected(name.clone())),
            None => Ok(()),
        }
    }

    fn add_pair(&mut self, from_name: &str, to_name: &str) -> Result<(), TopologyError> {
        let (from, to) = (self.find(from_name)?, self.find(to_name)?);
        for (id, name) in [(from, from_name), (to, to_name)] {
            if id.index() >= self.hosts.len() {
                return Err(TopologyError::NotAHost(name.to_owned()));
            }
        }
        if self.path(HostPair { from, to }).is_none() {
            return Err(TopologyError::NoRoute { from: from_name.to_owned(), to: to_name.to_owned() });
        }
        self.pairs.push(HostPair { from, to });
        Ok(())
    }
}
