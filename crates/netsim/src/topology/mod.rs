//! Networks that many experiments use, and those that a file describes.

mod file;
mod graph;

use crate::{Duplex, LinkId, Network, NetworkError, Node, NodeId};

pub use file::{HostPair, PlannedLink, Side, Topology, TopologyError};
pub use graph::{Graph, GraphError};

/// The two links between two vertices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkPair {
    /// From the first to the second.
    pub forward: LinkId,
    /// From the second to the first.
    pub backward: LinkId,
}

/// The network that [`pair`] builds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The first node: `NodeId::from_index(0)`.
    pub a: NodeId,
    /// The second node: `NodeId::from_index(1)`.
    pub b: NodeId,
    /// From `a` to `b` and back.
    pub links: LinkPair,
}

/// The network that [`dumbbell`] builds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dumbbell {
    /// Nodes of the left side: the first indices, in order.
    pub left: Vec<NodeId>,
    /// Nodes of the right side: the indices after those.
    pub right: Vec<NodeId>,
    /// From the left router to the right one and back.
    pub bottleneck: LinkPair,
}

/// Builds two nodes and a link between them.
///
/// # Errors
/// An invalid link.
pub fn pair<N: Node>(a: N, b: N, link: &Duplex) -> Result<(Network<N>, Pair), NetworkError> {
    let mut network = Network::new();
    let a = network.add_node(a);
    let b = network.add_node(b);
    let links = join(&mut network, a, b, link)?;
    Ok((network, Pair { a, b, links }))
}

/// Builds a dumbbell: nodes on the left, each behind its own access link to one router, nodes on the right likewise,
/// and one bottleneck between the routers. `access.forward` leads towards the bottleneck on both sides. Access links
/// have the given seed but streams of their own.
///
/// # Errors
/// An invalid link.
pub fn dumbbell<N: Node>(
    left: Vec<N>,
    right: Vec<N>,
    access: &Duplex,
    bottleneck: &Duplex,
) -> Result<(Network<N>, Dumbbell), NetworkError> {
    let mut network = Network::new();
    let left: Vec<NodeId> = left.into_iter().map(|node| network.add_node(node)).collect();
    let right: Vec<NodeId> = right.into_iter().map(|node| network.add_node(node)).collect();
    let (left_router, right_router) = (network.add_router(), network.add_router());
    let bottleneck = join(&mut network, left_router, right_router, bottleneck)?;
    let left_side = left.iter().map(|&node| (node, left_router));
    let right_side = right.iter().map(|&node| (node, right_router));
    for (number, (node, router)) in (1..).zip(left_side.chain(right_side)) {
        join(&mut network, node, router, &access.sibling(number))?;
    }
    Ok((network, Dumbbell { left, right, bottleneck }))
}

/// Adds a link in both directions.
///
/// # Errors
/// A node that does not exist, or an invalid link.
pub fn join<N: Node>(network: &mut Network<N>, a: NodeId, b: NodeId, link: &Duplex) -> Result<LinkPair, NetworkError> {
    Ok(LinkPair {
        forward: network.add_link(a, b, link.forward.clone())?,
        backward: network.add_link(b, a, link.backward.clone())?,
    })
}
