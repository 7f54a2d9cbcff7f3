//! The network between hosts: paths, times, and the outcome of each item.

use std::time::Duration;

use downpour_netsim::topology::pair;
use downpour_netsim::{
    Arrival, DropReason, Duplex, Ecn, Fabric, Header, LinkId, NetworkError, Node, NodeId, Packet, PacketCount, Refusal,
    Time, Undelivered,
};

/// Two hosts with a router between them.
struct Path {
    fabric: Fabric<u32>,
    a: NodeId,
    b: NodeId,
    links: [LinkId; 2],
}

fn path(first: &str, second: &str) -> Path {
    let mut fabric = Fabric::new();
    let (a, router, b) = (fabric.add_host(), fabric.add_router(), fabric.add_host());
    let mut link =
        |from, to, text: &str| fabric.add_link(from, to, text.parse().expect("a link")).expect("its ends exist");
    let links = [link(a, router, first), link(router, b, second)];
    Path { fabric, a, b, links }
}

impl Path {
    fn offer(&mut self, nanos: u64, item: u32) -> Result<(), Undelivered<u32>> {
        self.fabric.offer(Time::from_nanos(nanos), self.a, self.b, Header::new(1000, Ecn::Ect0), item)
    }

    fn rest(&mut self) -> Vec<Arrival<u32>> {
        std::iter::from_fn(|| self.fabric.pop(Time::MAX)).collect()
    }
}

#[test]
fn every_hop_happens_at_its_own_time() {
    let mut path = path("rate=8M,delay=5ms", "rate=4M,delay=7ms");
    for item in 0..3 {
        path.offer(0, item).unwrap();
    }
    assert_eq!((path.fabric.under_way(), path.fabric.next_event()), (3, Some(Time::from_nanos(6_000_000))));
    // 1 ms each to send and 5 ms to the router, then 2 ms each and 7 ms to the host.
    assert_eq!(path.fabric.pop(Time::from_nanos(14_999_999)), None);
    let first = path.fabric.pop(Time::from_nanos(15_000_000)).expect("due");
    let nanos: Vec<(u64, u32)> =
        std::iter::once(first).chain(path.rest()).map(|arrival| (arrival.at.as_nanos(), arrival.item)).collect();
    assert_eq!(nanos, [(15_000_000, 0), (17_000_000, 1), (19_000_000, 2)]);
    assert_eq!((path.fabric.under_way(), path.fabric.next_event()), (0, None));
    for id in path.links {
        assert_eq!(path.fabric.link(id).unwrap().stats().delivered, PacketCount { packets: 3, bytes: 3000 });
    }
    let ids: Vec<LinkId> = path.fabric.links().map(|(id, _)| id).collect();
    assert_eq!(ids, path.links);
}

#[test]
fn offer_dropped_returns_item() {
    let mut path = path("rate=8M,queue=2000B", "perfect");
    path.offer(0, 0).unwrap();
    path.offer(0, 1).unwrap();
    let full = Refusal::Dropped(DropReason::QueueFull);
    assert_eq!(path.offer(0, 2), Err(Undelivered { item: 2, reason: full }));
    let absent = NodeId::from_index(9);
    for to in [path.a, absent] {
        let refused = path.fabric.offer(Time::ZERO, path.a, to, Header::new(1000, Ecn::NotEct), 3).unwrap_err();
        assert_eq!(refused, Undelivered { item: 3, reason: Refusal::Unroutable }, "{to}");
    }
    let lonely = path.fabric.add_host();
    for from in [path.b, lonely] {
        let refused = path.fabric.offer(Time::ZERO, from, path.a, Header::new(1000, Ecn::NotEct), 4).unwrap_err();
        assert_eq!(refused.reason, Refusal::Unroutable, "links have a direction, and {lonely} has none");
    }
    let refused = path.fabric.offer(Time::ZERO, lonely, path.b, Header::new(1000, Ecn::NotEct), 4).unwrap_err();
    assert_eq!(refused.reason, Refusal::Unroutable);
    assert_eq!(path.rest().len(), 2);
}

#[test]
fn a_drop_of_a_later_link_is_counted_by_it() {
    let mut path = path("delay=1ms", "rate=8M,queue=2000B");
    for item in 0..5 {
        path.offer(0, item).unwrap();
    }
    let items: Vec<u32> = path.rest().iter().map(|arrival| arrival.item).collect();
    assert_eq!(items, [0, 1]);
    let stats = *path.fabric.link(path.links[1]).unwrap().stats();
    assert_eq!((stats.offered.packets, stats.dropped_queue_full.packets), (5, 3));
    assert_eq!(path.fabric.under_way(), 0);
}

#[test]
fn marks_corruption_and_copies_reach_the_host() {
    let mut twice = path("duplicate=100%,mark=100%", "corrupt=100%");
    twice.offer(0, 7).unwrap();
    let [first, copy] = twice.rest().try_into().unwrap();
    assert_eq!((first.item, first.ecn, copy.item, copy.ecn), (7, Ecn::Ce, 7, Ecn::Ce));
    assert!(first.corrupt.is_some() && copy.corrupt.is_some() && first.corrupt != copy.corrupt);

    let mut twice = path("corrupt=100%", "corrupt=100%,duplicate=100%,seed=1");
    twice.offer(0, 7).unwrap();
    let [first, copy] = twice.rest().try_into().unwrap();
    assert_eq!(first.corrupt, copy.corrupt, "both are of the corrupt item");
    let mut once = path("corrupt=100%", "perfect");
    once.offer(0, 7).unwrap();
    assert_eq!(once.rest()[0].corrupt, first.corrupt, "the first link's corruption stays");
}

#[test]
fn impairments_of_all_links_pause() {
    let mut path = path("loss=100%", "duplicate=100%,corrupt=100%,mark=100%");
    path.fabric.set_impaired(false);
    path.offer(0, 7).unwrap();
    let arrivals = path.rest();
    assert_eq!(arrivals, [Arrival { host: path.b, at: Time::ZERO, ecn: Ecn::Ect0, corrupt: None, item: 7 }]);
    path.fabric.set_impaired(true);
    assert_eq!(path.offer(0, 8), Err(Undelivered { item: 8, reason: Refusal::Dropped(DropReason::Random) }));
}

#[test]
fn a_late_caller_changes_nothing() {
    let text = "rate=20M,delay=2ms,jitter=3ms,queue=30KB,loss=5%,reorder=10%:4ms,duplicate=5%";
    let run = |prompt: bool| {
        let mut path = path(text, &format!("{text},seed=3"));
        let mut arrivals = Vec::new();
        for item in 0..3_000 {
            let now = u64::from(item) * 450_000;
            while prompt && let Some(at) = path.fabric.next_event().filter(|at| at.as_nanos() <= now) {
                arrivals.extend(path.fabric.pop(at));
            }
            arrivals.extend(std::iter::from_fn(|| path.fabric.pop(Time::from_nanos(now))));
            let _ = path.offer(now, item);
        }
        arrivals.extend(path.rest());
        assert!(arrivals.is_sorted_by_key(|arrival| arrival.at));
        let stats: Vec<_> = path.fabric.links().map(|(_, link)| *link.stats()).collect();
        (arrivals, stats)
    };
    let (arrivals, stats) = run(false);
    assert!(arrivals.len() > 2_000 && stats[1].dropped_random.packets > 80);
    assert!(run(true) == (arrivals, stats));
}

/// Sends one numbered packet each millisecond and records which arrive.
#[derive(Default)]
struct Counter {
    to_send: u32,
    sent: u32,
    came: Vec<(Time, u32)>,
}

impl Counter {
    fn due(&self) -> Time {
        Time::from(Duration::from_millis(1) * self.sent)
    }
}

impl Node for Counter {
    fn handle_packet(&mut self, now: Time, packet: Packet) {
        self.came.push((now, u32::from_be_bytes(packet.payload[..4].try_into().expect("four bytes"))));
    }

    fn handle_timeout(&mut self, _now: Time) {}

    fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        if self.sent == self.to_send || now < self.due() {
            return None;
        }
        let mut payload = vec![0; 972];
        payload[..4].copy_from_slice(&self.sent.to_be_bytes());
        self.sent += 1;
        let (source, destination) = (NodeId::from_index(0), NodeId::from_index(1));
        Some(Packet { source, destination, ecn: Ecn::Ect0, overhead: 28, payload })
    }

    fn poll_timeout(&self) -> Option<Time> {
        (self.sent < self.to_send).then(|| self.due())
    }
}

#[test]
fn a_seed_loses_the_same_packets_as_in_a_network() {
    let link: Duplex = "rate=9M,delay=2ms,queue=20KB,loss=10%,burst=3,reorder=5%:4ms,seed=12".parse().unwrap();
    let (mut network, ids) = pair(Counter { to_send: 2_000, ..Counter::default() }, Counter::default(), &link).unwrap();
    network.run_until(Time::from_nanos(10_000_000_000)).unwrap();

    let mut fabric = Fabric::new();
    let (a, b) = (fabric.add_host(), fabric.add_host());
    let forward = fabric.add_link(a, b, link.forward.clone()).unwrap();
    let mut came = Vec::new();
    for number in 0..2_000 {
        let now = Time::from(Duration::from_millis(1) * number);
        came.extend(std::iter::from_fn(|| fabric.pop(now)));
        let _ = fabric.offer(now, a, b, Header::new(1000, Ecn::Ect0), number);
    }
    came.extend(std::iter::from_fn(|| fabric.pop(Time::MAX)));
    let came: Vec<(Time, u32)> = came.into_iter().map(|arrival| (arrival.at, arrival.item)).collect();
    assert!((1_700..1_900).contains(&came.len()), "{}", came.len());
    assert_eq!(network.node(ids.b).unwrap().came, came);
    assert_eq!(network.link(ids.links.forward).unwrap().stats(), fabric.link(forward).unwrap().stats());
}

#[test]
fn links_need_their_ends_and_changes_their_links() {
    let mut fabric = Fabric::<u32>::new();
    let a = fabric.add_host();
    let unknown = NodeId::from_index(7);
    let refused = fabric.add_link(a, unknown, "perfect".parse().unwrap()).unwrap_err();
    assert_eq!(
        (refused, refused.to_string().as_str()),
        (NetworkError::UnknownNode(unknown), "unknown node 7: add nodes before their links")
    );
    let link = path("perfect", "perfect").links[1];
    assert_eq!(fabric.set_link(link, "perfect".parse().unwrap()), Err(NetworkError::UnknownLink(link)));
    assert!(fabric.link(link).is_none());
}
