//! The network between hosts: links, routers, paths, and the items in flight.

use crate::deadline_tree::DeadlineTree;
use crate::pipe::{Envelope, Pipe};
use crate::random::mix;
use crate::routes::Routes;
use crate::{DropReason, Ecn, Link, LinkConfig, LinkError, NodeId, Time};

/// A directed link of a [`Fabric`] or [`crate::Network`]. They are numbered from zero in the order they were added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(u32);

impl LinkId {
    /// Returns the id of the link with the number `index`, added or not.
    pub const fn from_index(index: u32) -> Self {
        Self(index)
    }

    /// Returns the number of this link.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// An error in building a network.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum NetworkError {
    /// An invalid link.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// A link from or to an unknown node.
    #[error("unknown {0}: add nodes before their links")]
    UnknownNode(NodeId),
    /// A change to an unknown link.
    #[error("unknown link {}", .0.0)]
    UnknownLink(LinkId),
}

/// The fields of a packet that links read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Bytes of headers and payload.
    pub ip_bytes: u32,
    /// The ECN field.
    pub ecn: Ecn,
    /// Distinguishes the flows between two hosts for `fq-codel`, as protocol and ports do.
    pub flow: u64,
}

impl Header {
    /// Creates the header of a packet of the only flow between its hosts.
    pub const fn new(ip_bytes: u32, ecn: Ecn) -> Self {
        Self { ip_bytes, ecn, flow: 0 }
    }
}

/// An item that reached its host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival<T> {
    /// The host that it reached.
    pub host: NodeId,
    /// When its last bit arrived, in model time; the caller's clock may be later.
    pub at: Time,
    /// The ECN field with which it arrives.
    pub ecn: Ecn,
    /// Entropy that picks the bits to flip, for [`crate::corrupt`]; if several links corrupted it, that of the first.
    pub corrupt: Option<u64>,
    /// The offered item, or its copy.
    pub item: T,
}

/// An item that goes no further, returned to the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undelivered<T> {
    /// The offered item, or its copy.
    pub item: T,
    /// The reason.
    pub reason: Refusal,
}

/// The reason why an item goes no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A link dropped it, and counted it.
    Dropped(DropReason),
    /// No path leads to its destination. No link counts it.
    Unroutable,
}

/// One event of a fabric.
pub(crate) enum FabricEvent<T> {
    /// It reached its host.
    Arrived(Arrival<T>),
    /// It reached a router, which put it on the next link.
    Forwarded,
    /// A link took an item from its fair queue.
    Taken,
    /// It reached a router and goes no further.
    Refused(Undelivered<T>),
}

/// Hosts and routers joined by directed links, and the items in flight between the hosts: packets, or values in their
/// place.
///
/// It owns no clock and no host: [`Fabric::offer`] puts an item on its path, [`Fabric::pop`] returns items that have
/// arrived, and between the two every hop happens at its own time, whenever the caller asks. So a late caller changes
/// no arrival as long as it calls before the next offer. An item is cloned only if a link duplicates it.
///
/// ```
/// use downpour_netsim::{Ecn, Fabric, Header, Time};
///
/// let mut fabric = Fabric::new();
/// let (a, router, b) = (fabric.add_host(), fabric.add_router(), fabric.add_host());
/// fabric.add_link(a, router, "delay=1ms".parse()?)?;
/// fabric.add_link(router, b, "rate=8M,delay=10ms".parse()?)?;
/// let header = Header::new(1000, Ecn::NotEct);
/// fabric.offer(Time::ZERO, a, b, header, "hello").map_err(|refused| format!("{refused:?}"))?;
/// let arrival = fabric.pop(Time::MAX).ok_or("nothing arrives")?;
/// assert_eq!((arrival.host, arrival.at, arrival.item), (b, Time::from_nanos(12_000_000), "hello"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Fabric<T> {
    /// By `NodeId`: whether it forwards the items of others.
    routers: Vec<bool>,
    pipes: Vec<Pipe<T>>,
    routes: Option<Routes>,
    events: DeadlineTree,
}

impl<T> Default for Fabric<T> {
    fn default() -> Self {
        Self { routers: Vec::new(), pipes: Vec::new(), routes: None, events: DeadlineTree::default() }
    }
}

impl<T> Fabric<T> {
    /// Creates an empty fabric.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a host. It forwards nothing.
    pub fn add_host(&mut self) -> NodeId {
        self.add_vertex(false)
    }

    /// Adds a router: it forwards items at once, and its queues are those of the links that leave it.
    pub fn add_router(&mut self) -> NodeId {
        self.add_vertex(true)
    }

    fn add_vertex(&mut self, is_router: bool) -> NodeId {
        self.routes = None;
        self.routers.push(is_router);
        NodeId(u32::try_from(self.routers.len() - 1).expect("memory ends before 2^32 nodes"))
    }

    /// Adds a link in one direction. Items take the path of the fewest links; of equal ones, the one added first.
    ///
    /// # Errors
    /// A host or router that does not exist, or an invalid link.
    pub fn add_link(&mut self, from: NodeId, to: NodeId, config: LinkConfig) -> Result<LinkId, NetworkError> {
        for node in [from, to] {
            if node.index() >= self.routers.len() {
                return Err(NetworkError::UnknownNode(node));
            }
        }
        self.pipes.push(Pipe::new(config, from.index(), to.index())?);
        self.events.push();
        self.routes = None;
        Ok(LinkId(u32::try_from(self.pipes.len() - 1).expect("memory ends before 2^32 links")))
    }

    /// Returns a link with its statistics.
    pub fn link(&self, id: LinkId) -> Option<&Link> {
        self.pipes.get(id.index()).map(|pipe| &pipe.link)
    }

    /// Iterates over all links, in the order they were added.
    pub fn links(&self) -> impl Iterator<Item = (LinkId, &Link)> {
        (0..).map(LinkId).zip(self.pipes.iter().map(|pipe| &pipe.link))
    }

    /// Switches the impairments of all links off or on again; see [`Link::set_impaired`].
    pub fn set_impaired(&mut self, impaired: bool) {
        for pipe in &mut self.pipes {
            pipe.link.set_impaired(impaired);
        }
    }

    /// Returns the links from one host to another, in the order they are taken; `None` without a path.
    pub fn path(&mut self, from: NodeId, to: NodeId) -> Option<Vec<LinkId>> {
        let mut path = Vec::new();
        let mut vertex = from.index();
        while vertex != to.index() {
            let number = self.routes().next(vertex, to.index())?;
            path.push(LinkId(u32::try_from(number).ok()?));
            vertex = self.pipes[number].to;
        }
        Some(path)
    }

    fn routes(&mut self) -> &Routes {
        self.routes.get_or_insert_with(|| {
            let links: Vec<(usize, usize)> = self.pipes.iter().map(|pipe| (pipe.from, pipe.to)).collect();
            Routes::new(&self.routers, &links)
        })
    }

    /// Returns when the next item arrives at a host or a router, or leaves a fair queue; `None` if nothing is in flight.
    pub fn next_event(&self) -> Option<Time> {
        self.events.first().map(|(at, _)| at)
    }

    /// Returns the number of items in flight, copies included.
    pub fn under_way(&self) -> usize {
        self.pipes.iter().map(Pipe::under_way).sum()
    }
}

impl<T: Clone> Fabric<T> {
    /// Changes a link for items that reach it from now on, and those that wait with `fq-codel`; see
    /// [`Link::set_config`].
    ///
    /// # Errors
    /// A link that does not exist, or that would be invalid.
    pub fn set_link(&mut self, id: LinkId, config: LinkConfig) -> Result<(), NetworkError> {
        let pipe = self.pipes.get_mut(id.index()).ok_or(NetworkError::UnknownLink(id))?;
        pipe.set_config(config)?;
        self.events.set(id.index(), pipe.next_event());
        Ok(())
    }

    /// Puts an item on the first link of the path from one host to another.
    ///
    /// Offers are made in the order of their times, and [`Fabric::pop`] is called up to `now` before: on a link that
    /// has seen later items already, an item offered late is queued behind them.
    ///
    /// # Errors
    /// The item again, if the first link drops it or `to` has no path. An item dropped by a later link, or by
    /// `fq-codel` once it waits, is gone; the link's statistics count it.
    pub fn offer(
        &mut self,
        now: Time,
        from: NodeId,
        to: NodeId,
        header: Header,
        item: T,
    ) -> Result<(), Undelivered<T>> {
        let Header { ip_bytes, ecn, flow } = header;
        let flow = mix(flow ^ mix(u64::from(from.0) << 32 | u64::from(to.0)));
        self.send(now, from.index(), Envelope { to, ip_bytes, ecn, flow, corrupt: None, item })
    }

    /// Returns the next item that has arrived at a host by `now`, in the order of arrival; of those at one instant the
    /// one whose last link was added first.
    pub fn pop(&mut self, now: Time) -> Option<Arrival<T>> {
        while self.next_event().is_some_and(|at| at <= now) {
            if let FabricEvent::Arrived(arrival) = self.step()? {
                return Some(arrival);
            }
        }
        None
    }

    /// Performs the next event: one item reaches a host or a router, or leaves a fair queue. `None` if nothing is in
    /// flight.
    pub(crate) fn step(&mut self) -> Option<FabricEvent<T>> {
        let (at, number) = self.events.first()?;
        let pipe = &mut self.pipes[number];
        if pipe.turn() <= at {
            pipe.take();
            self.events.set(number, pipe.next_event());
            return Some(FabricEvent::Taken);
        }
        let (_, envelope) = pipe.transit.pop(at)?;
        let vertex = pipe.to;
        self.events.set(number, pipe.next_event());
        if vertex == envelope.to.index() && !self.routers[vertex] {
            let Envelope { to: host, ecn, corrupt, item, .. } = envelope;
            return Some(FabricEvent::Arrived(Arrival { host, at, ecn, corrupt, item }));
        }
        Some(match self.send(at, vertex, envelope) {
            Ok(()) => FabricEvent::Forwarded,
            Err(refused) => FabricEvent::Refused(refused),
        })
    }

    /// Puts an item on the next link of its path.
    fn send(&mut self, at: Time, vertex: usize, envelope: Envelope<T>) -> Result<(), Undelivered<T>> {
        let Some(number) = self.routes().next(vertex, envelope.to.index()) else {
            return Err(Undelivered { item: envelope.item, reason: Refusal::Unroutable });
        };
        let pipe = &mut self.pipes[number];
        match pipe.send(at, envelope) {
            Ok(()) => {
                self.events.set(number, pipe.next_event());
                Ok(())
            }
            Err((reason, item)) => Err(Undelivered { item, reason: Refusal::Dropped(reason) }),
        }
    }
}
