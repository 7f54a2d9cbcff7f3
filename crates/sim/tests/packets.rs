//! Packets with several symbols: as many as the path carries, even if it changes.

use downpour_sim::{Case, Ending, Host, HostConfig, Received};
use netsim::{LinkConfig, NodeId, topology};
use std::time::Duration;
use transport::{ConnectingSide, Profile, Rate};

const RATE: Rate = Rate::from_bits_per_second(100_000_000);

fn filling(name: &str) -> Profile {
    let mut profile = systems::profile(name).expect("listed");
    profile.set("symbols.per-packet", "fit").expect("a valid choice");
    if name == "rc-udp" { profile.with_fixed_rate(RATE) } else { profile }
}

/// r follows from the MTU (rc-udp §IV-B a), whichever side connects and whatever is lost.
#[test]
fn packets_fill_the_path_mtu() {
    // 28 bytes of IP and UDP, 43 of the packet, 1024 for each symbol.
    for (mtu, per_packet) in [(9_000, 8), (8_263, 8), (8_262, 7), (4_500, 4), (2_119, 2), (2_118, 1), (1_500, 1)] {
        for loss in ["0%", "2%"] {
            for connector in [ConnectingSide::Sender, ConnectingSide::Receiver] {
                let link = format!("rate=100M,delay=10ms,queue=1MB,mtu={mtu}B,loss={loss}");
                let case = Case::new(link.parse().expect("a link"));
                let outcome = Case { profile: filling("rc-udp"), connector, ..case.clone() }.run(1);
                assert_eq!((outcome.ending, outcome.is_identical()), (Ending::Closed, true), "{link} {connector:?}");
                assert_eq!(outcome.sender.path.per_packet, per_packet, "{link} {connector:?}");
                assert_eq!(outcome.sender.path.symbol_size, 1_024);
                let symbols = outcome.sender.symbols.source + outcome.sender.symbols.repair;
                let filled = symbols as f64 / (outcome.sender.packets.sent * u64::from(per_packet)) as f64;
                println!("{link} {connector:?}: {:.3} s, {filled:.3} full", outcome.completed_secs());
                // If the first probed size is too large, small packets are sent for three times two round trips and 25
                // ms.
                let full = if per_packet == 8 || per_packet == 1 { 0.9 } else { 0.5 };
                assert!(
                    filled > full,
                    "{link} {connector:?}: {symbols} symbols in {} packets",
                    outcome.sender.packets.sent
                );
            }
        }
    }
}

/// Every schedule, controller and form of feedback handles packets whose symbols are lost or arrive together.
#[test]
fn every_profile_can_fill_its_packets() {
    for name in systems::registry().profile_names() {
        for loss in ["0%", "3%", "10%,burst=5"] {
            let link = format!("rate=50M,delay=10ms,queue=1MB,mark-above=250KB,mtu=9000B,loss={loss}");
            let case = Case::new(link.parse().expect("a link"));
            let (profile, limit) = (filling(name), Duration::from_secs(600));
            let outcome = Case { size: 3_000_000, profile, limit, ..case }.run(3);
            assert_eq!((outcome.ending, outcome.is_identical()), (Ending::Closed, true), "{name} {link}");
            assert!(outcome.sender.path.per_packet >= 5, "{name} {link}: {}", outcome.sender.path.per_packet);
            println!("{name} {loss}: {:.3} s, {} packets", outcome.completed_secs(), outcome.sender.packets.sent);
        }
    }
}

/// Returns the symbols per packet and their size that one of the hosts (the connecting one or the other) ends up with,
/// on a path that first carries 9000 bytes and then less.
fn shrink(profile: &Profile, sender: u32, loss: &str, mtu: u32) -> (u8, u16) {
    let link = format!("rate=100M,delay=10ms,queue=1MB,mtu=9000B,loss={loss}");
    let link: netsim::Duplex = link.parse().expect("a link");
    let host = |side: u32| {
        let config = HostConfig {
            connect_to: if side == 0 { vec![NodeId::from_index(1)] } else { Vec::new() },
            objects: if side == sender { vec![4_000_000, 4_000_000] } else { Vec::new() },
            expects: if side == sender { 0 } else { 2 },
            closes: side == sender,
            ..HostConfig::idle(profile.clone(), 1)
        };
        Host::new(NodeId::from_index(side), config)
    };
    let (mut network, pair) = topology::pair(host(0), host(1), &link).expect("a network");
    network.run_until(netsim::Time::ZERO + Duration::from_millis(300)).expect("time passes");
    let [sending, receiving] = [sender as usize, 1 - sender as usize];
    let before = network.node_mut([pair.a, pair.b][sending]).expect("there").stats()[0].path.per_packet;
    assert!(before >= 6, "{before}");
    for (id, config) in [(pair.links.forward, &link.forward), (pair.links.backward, &link.backward)] {
        network.set_link(id, LinkConfig { mtu: Some(mtu), ..config.clone() }).expect("a link");
    }
    let over = |nodes: &[Host]| nodes.iter().all(Host::is_over);
    network.run_while(|nodes| !over(nodes), netsim::Time::ZERO + Duration::from_secs(60)).expect("time passes");
    let tally = |side: usize| network.nodes()[side].tallies().next().expect("they met");
    let received = &tally(receiving).received;
    assert!(
        received.len() == 2 && received.values().all(Received::is_identical),
        "loss {loss}, mtu {mtu}: {received:?}, closed {:?}, at {:?}",
        tally(sending).closed,
        network.now(),
    );
    (tally(sending).last_stats.path.per_packet, tally(sending).last_stats.path.symbol_size)
}

/// If fewer symbols of the same size fit, the flows continue unchanged; otherwise they continue with smaller symbols.
#[test]
fn a_path_that_shrinks_takes_fewer_symbols_in_a_packet() {
    for (loss, sender) in [("0%", 0), ("0%", 1), ("1%", 0), ("1%", 1)] {
        for (mtu, per_packet) in [(1_500, 1), (4_500, 4), (2_200, 2)] {
            let found = shrink(&filling("rc-udp"), sender, loss, mtu);
            assert_eq!(found, (per_packet, 1_024), "host {sender} sends, loss {loss}, mtu {mtu}");
        }
        for (mtu, per_packet, size) in [(5_000, 3, 1_408), (1_500, 1, 1_408), (1_300, 1, 1_152)] {
            let found = shrink(&filling("auto"), sender, loss, mtu);
            assert_eq!(found, (per_packet, size), "host {sender} sends, loss {loss}, mtu {mtu}");
        }
    }
}

/// A receiver that accepts one symbol per packet, as all earlier versions did, gets one.
#[test]
fn a_receiver_that_takes_no_more_gets_one() {
    let case = Case::new("rate=100M,delay=10ms,queue=1MB,mtu=9000B".parse().expect("a link"));
    let mut endpoint = case.endpoint.clone();
    endpoint.limits.flows.most_per_packet = 1;
    let outcome = Case { profile: filling("rc-udp"), endpoint, ..case }.run(1);
    assert_eq!((outcome.ending, outcome.is_identical()), (Ending::Closed, true));
    assert_eq!((outcome.sender.path.per_packet, outcome.sender.packets.lost), (1, 0));
}
