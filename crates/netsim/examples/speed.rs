//! How many packets a second the event loop moves: `cargo run --release -p downpour-netsim --example speed`.

use std::time::{Duration, Instant};

use downpour_netsim::topology::{dumbbell, pair};
use downpour_netsim::{Duplex, Ecn, Network, Node, NodeId, Packet, Time};

const PACKETS: u64 = 5_000_000;
/// The payloads are empty, so that the event loop is measured and not the memory of the packets.
const IP_BYTES: u32 = 1479;

/// Sends a packet each microsecond, or answers every eighth it receives.
struct Trivial {
    own: NodeId,
    peer: NodeId,
    left: u64,
    answers: bool,
    due: Option<Time>,
    received: u64,
    owed: u64,
}

impl Trivial {
    fn new(own: u32, peer: u32, left: u64) -> Self {
        let due = (left > 0).then_some(Time::ZERO);
        Self {
            own: NodeId::from_index(own),
            peer: NodeId::from_index(peer),
            left,
            answers: left == 0,
            due,
            received: 0,
            owed: 0,
        }
    }
}

impl Node for Trivial {
    fn handle_packet(&mut self, _now: Time, _packet: Packet) {
        self.received += 1;
        self.owed += u64::from(self.answers && self.received.is_multiple_of(8));
    }

    fn handle_timeout(&mut self, now: Time) {
        self.owed += 1;
        self.left -= 1;
        self.due = (self.left > 0).then(|| now + Duration::from_micros(1));
    }

    fn poll_transmit(&mut self, _now: Time) -> Option<Packet> {
        self.owed = self.owed.checked_sub(1)?;
        Some(Packet {
            source: self.own,
            destination: self.peer,
            ecn: Ecn::Ect0,
            overhead: IP_BYTES,
            payload: Vec::new(),
        })
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.due
    }
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn measure(name: &str, mut network: Network<Trivial>) -> Result<(), Box<dyn std::error::Error>> {
    let start = Instant::now();
    network.run_until(Time::from_secs_f64(60.0))?;
    let seconds = start.elapsed().as_secs_f64();
    let stats = network.stats();
    let rate = stats.sent as f64 / seconds / 1e6;
    println!("{rate:6.2} million packets a second: {name} ({} sent, {} received)", stats.sent, stats.received);
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for text in [
        "perfect",
        "rate=15G,delay=10ms",
        "rate=15G,delay=10ms,queue=1MB,loss=1%",
        "rate=10G,delay=10ms,jitter=1ms,queue=1MB,loss=2%,burst=4,reorder=1%:2ms,duplicate=0.1%,corrupt=0.1%,mark-above=100KB",
    ] {
        let (network, _) = pair(Trivial::new(0, 1, PACKETS), Trivial::new(1, 0, 0), &text.parse()?)?;
        measure(text, network)?;
    }
    let flows: u32 = 32;
    let left = (0..flows).map(|own| Trivial::new(own, flows + own, PACKETS / u64::from(flows))).collect();
    let right = (0..flows).map(|own| Trivial::new(flows + own, own, 0)).collect();
    let access: Duplex = "rate=40G,delay=1ms".parse()?;
    let bottleneck: Duplex = "rate=400G,delay=10ms,queue=10MB".parse()?;
    measure("dumbbell of 32 flows, three links a packet", dumbbell(left, right, &access, &bottleneck)?.0)
}
