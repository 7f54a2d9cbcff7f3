//! The transfer of given bytes over a link that may change while they travel, watched byte by byte.

use crate::case::host_config;
use crate::host::{Host, HostConfig, SymbolEvent, endpoint_for};
use netsim::topology::{self, Pair};
use netsim::{Duplex, Network, NetworkError, NodeId, NodeStalled};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use transport::wire::{FlowId, SymbolRun};
use transport::{Direction, Profile, SymbolPacket};

/// How the receiver got a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DeliveredBy {
    /// In a source symbol sent once.
    Source,
    /// In a retransmitted source symbol.
    Retransmission,
    /// Rebuilt by the decoder.
    Decoding,
}

/// Bytes that the receiver has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceivedRange {
    /// First byte in the object.
    pub offset: u64,
    /// The bytes, from the receiver's memory.
    pub bytes: Vec<u8>,
    /// How it got all of them.
    pub came: DeliveredBy,
}

/// An incomplete block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenBlock {
    /// First byte in the object.
    pub offset: u64,
    /// Its bytes.
    pub length: u64,
    /// Source symbols that have arrived.
    pub source: u32,
    /// Repair symbols that have arrived.
    pub repairs: u32,
    /// Its source symbols.
    pub k: u32,
}

/// The state of a transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WatchedState {
    /// From the first datagram to the receiver's last byte, once complete.
    pub completed: Option<Duration>,
    /// A side has ended the connection before that.
    pub gave_up: bool,
    /// IP bytes that have arrived at the receiver.
    pub arrived: u64,
    /// Packets towards the receiver that the link has dropped.
    pub lost: u64,
    /// IP bytes that the sender counts as in flight.
    pub in_flight: u64,
    /// Source symbols sent again.
    pub resent: u64,
    /// Repair symbols sent.
    pub repair: u64,
}

/// Two hosts, the first of which sends one object to the second, and the link between them.
pub trait TransferPair {
    /// Returns both, the sender first.
    fn hosts(&self) -> [&Host; 2];
    /// Returns the sender to act on.
    fn sender(&mut self) -> &mut Host;
    /// Returns the receiver to act on.
    fn receiver(&mut self) -> &mut Host;
    /// Returns how many packets towards the receiver the link has dropped.
    fn lost(&self) -> u64;
}

/// Creates two hosts that transfer `bytes` with a profile: the sender, which connects at time zero to a node 1, and the
/// receiver. Coding takes no time but that of the processor.
pub fn watched_hosts(bytes: &Arc<[u8]>, profile: &Profile, seed: u64) -> [Host; 2] {
    let endpoint = endpoint_for(profile);
    let host = |size: Option<u64>, peer: Option<NodeId>| HostConfig {
        carries: Some(Arc::clone(bytes)),
        closes: false,
        watches: true,
        ..host_config(profile.clone(), endpoint.clone(), size, peer, seed)
    };
    let [a, b] = [0, 1].map(NodeId::from_index);
    [Host::new(a, host(Some(bytes.len() as u64), Some(b))), Host::new(b, host(None, None))]
}

/// A transfer of one object from one host to another over a link of its own.
#[derive(Debug)]
pub struct ObservedTransfer<E = Simulated> {
    ends: E,
    painter: Painter,
}

/// Two simulated hosts with a simulated link between them.
#[derive(Debug)]
pub struct Simulated {
    network: Network<Host>,
    pair: Pair,
}

impl TransferPair for Simulated {
    fn hosts(&self) -> [&Host; 2] {
        let nodes = self.network.nodes();
        [&nodes[0], &nodes[1]]
    }

    fn sender(&mut self) -> &mut Host {
        self.network.node_mut(self.pair.a).expect("a node of this network")
    }

    fn receiver(&mut self) -> &mut Host {
        self.network.node_mut(self.pair.b).expect("a node of this network")
    }

    fn lost(&self) -> u64 {
        self.network.link(self.pair.links.forward).map_or(0, |link| link.stats().dropped())
    }
}

impl ObservedTransfer {
    /// Creates a transfer of `bytes` in virtual time; the sender connects at time zero. Coding takes no time. Links with
    /// equal seeds lose the same packets, by their number.
    ///
    /// # Errors
    /// A link that makes no sense.
    pub fn new(bytes: &Arc<[u8]>, link: &Duplex, profile: &Profile, seed: u64) -> Result<Self, NetworkError> {
        let [sender, receiver] = watched_hosts(bytes, profile, seed);
        let (network, pair) = topology::pair(sender, receiver, &link.sibling(seed))?;
        Ok(Self::between(Simulated { network, pair }, bytes.len()))
    }

    /// Runs until this time after the start, or until the receiver has all bytes or a connection is lost.
    ///
    /// # Errors
    /// A host that does not let time pass.
    pub fn run_until(&mut self, until: Duration) -> Result<(), NodeStalled> {
        self.ends.network.run_while(|nodes| !is_over([&nodes[0], &nodes[1]]), netsim::Time::ZERO + until).map(drop)
    }

    /// Changes the link for packets sent from now on; its seeds stay.
    ///
    /// # Errors
    /// An invalid link; the first direction may have changed then.
    pub fn set_link(&mut self, link: &Duplex) -> Result<(), NetworkError> {
        let Simulated { network, pair } = &mut self.ends;
        network.set_link(pair.links.forward, link.forward.clone())?;
        network.set_link(pair.links.backward, link.backward.clone())
    }
}

impl<E: TransferPair> ObservedTransfer<E> {
    /// Watches the transfer of an object of `length` bytes between hosts that [`watched_hosts`] has made.
    pub fn between(ends: E, length: usize) -> Self {
        Self { ends, painter: Painter::new(length) }
    }

    /// Returns the ends, to let them act.
    pub fn ends_mut(&mut self) -> &mut E {
        &mut self.ends
    }

    /// Returns whether the receiver has all bytes, or a connection is lost.
    pub fn is_over(&self) -> bool {
        is_over(self.ends.hosts())
    }

    /// Returns the bytes that the receiver has got since the last call, in no order, and the open blocks. Every byte is
    /// returned once.
    pub fn look(&mut self) -> (Vec<ReceivedRange>, Vec<OpenBlock>) {
        let (mut pieces, mut open) = (Vec::new(), Vec::new());
        let Self { ends, painter } = self;
        ends.sender().take_seen().into_iter().for_each(|seen| painter.see(seen, &mut pieces));
        let receiver = ends.receiver();
        receiver.take_seen().into_iter().for_each(|seen| painter.see(seen, &mut pieces));
        receiver.visit_partial_blocks(|block| {
            let (source, length) = (block.source, block.length);
            for esi in 0..source.k() {
                let start = esi as usize * source.symbol_size();
                if let Some(symbol) = source.symbol(esi).filter(|_| start < length) {
                    let symbol = &symbol[..symbol.len().min(length - start)];
                    let came = painter.came(block.number, esi);
                    painter.paint(block.offset + start as u64, symbol, came, &mut pieces);
                }
            }
            open.push(OpenBlock {
                offset: block.offset,
                length: length as u64,
                source: source.present_count(),
                repairs: block.repairs,
                k: source.k(),
            });
        });
        (pieces, open)
    }

    /// Returns the state of the transfer now.
    pub fn state(&mut self) -> WatchedState {
        let sender = self.ends.sender().all_stats().pop().unwrap_or_default();
        let receiver = self.ends.receiver().all_stats().pop().unwrap_or_default();
        let [sends, receives] = self.ends.hosts();
        let complete = receives.tallies().find_map(|tally| tally.complete_at);
        let first = sends.first_sent().unwrap_or(netsim::Time::ZERO);
        WatchedState {
            completed: complete.map(|at| at - first),
            gave_up: complete.is_none() && self.is_over(),
            arrived: receiver.packets.bytes_received,
            lost: self.ends.lost(),
            in_flight: sender.congestion.in_flight,
            resent: sender.symbols.resent,
            repair: sender.symbols.repair,
        }
    }

    /// Returns whether the receiver has written every byte, once and correct.
    pub fn is_identical(&self) -> bool {
        let mut received = self.ends.hosts()[1].tallies().flat_map(|tally| tally.received.values());
        received.next().is_some_and(crate::Received::is_identical)
    }
}

fn is_over(hosts: [&Host; 2]) -> bool {
    let is_complete = hosts[1].tallies().any(|tally| tally.complete_at.is_some());
    is_complete || hosts.into_iter().flat_map(Host::tallies).any(|tally| tally.closed.is_some())
}

/// Finds for every byte of the receiver how it was delivered.
#[derive(Debug)]
struct Painter {
    /// By byte of the object.
    known: Vec<Option<DeliveredBy>>,
    /// The content of each packet sent and not arrived.
    sent: BTreeMap<u64, SymbolRun>,
    /// The first packet with each symbol, by flow, block and esi.
    firsts: BTreeMap<(FlowId, u32, u32), u64>,
    /// The flow of the arriving symbols: its successor has new blocks.
    flow: FlowId,
    /// The symbols that arrived, by block and esi.
    arrived: BTreeMap<(u32, u32), DeliveredBy>,
}

impl Painter {
    fn new(length: usize) -> Self {
        let (sent, firsts, arrived) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { known: vec![None; length], sent, firsts, flow: FlowId(0), arrived }
    }

    /// Notes the events of a host: those of the sender before those of the receiver.
    fn see(&mut self, seen: SymbolEvent, pieces: &mut Vec<ReceivedRange>) {
        match seen {
            SymbolEvent::Symbols(SymbolPacket { direction: Direction::Sending, number, symbols }) => {
                self.sent.insert(number, symbols);
                for id in symbols.ids() {
                    self.firsts.entry((id.flow, id.block, id.esi)).or_insert(number);
                }
            }
            SymbolEvent::Symbols(packet) => self.arrive(packet.number),
            SymbolEvent::Written { block, offset, symbol_size, bytes } => {
                for ((esi, start), symbol) in (0..).zip((offset..).step_by(symbol_size)).zip(bytes.chunks(symbol_size))
                {
                    let came = self.came(block, esi);
                    self.paint(start, symbol, came, pieces);
                }
            }
        }
    }

    /// Notes that a packet has arrived. Its symbols are those that the sender put into it.
    fn arrive(&mut self, number: u64) {
        let Some(symbols) = self.sent.remove(&number) else { return };
        let flow = symbols.first.flow;
        if flow > self.flow {
            self.flow = flow;
            self.arrived.clear();
        }
        for id in symbols.ids().filter(|id| id.flow == self.flow) {
            let is_first = self.firsts.get(&(id.flow, id.block, id.esi)) == Some(&number);
            let came = if is_first { DeliveredBy::Source } else { DeliveredBy::Retransmission };
            self.arrived.entry((id.block, id.esi)).or_insert(came);
        }
    }

    /// Returns how the receiver got a source symbol.
    fn came(&self, block: u32, esi: u32) -> DeliveredBy {
        self.arrived.get(&(block, esi)).copied().unwrap_or(DeliveredBy::Decoding)
    }

    /// Adds to `pieces` the new ones of the bytes from `offset` on.
    fn paint(&mut self, offset: u64, bytes: &[u8], came: DeliveredBy, pieces: &mut Vec<ReceivedRange>) {
        let known = &mut self.known[offset as usize..offset as usize + bytes.len()];
        for (at, known) in (offset..).zip(known.iter_mut()).filter(|(_, known)| known.is_none()) {
            *known = Some(came);
            let byte = bytes[(at - offset) as usize];
            match pieces.last_mut() {
                Some(last) if last.came == came && last.offset + last.bytes.len() as u64 == at => last.bytes.push(byte),
                _ => pieces.push(ReceivedRange { offset: at, bytes: vec![byte], came }),
            }
        }
    }
}
