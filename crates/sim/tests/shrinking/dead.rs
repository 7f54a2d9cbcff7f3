//! A path that returns answers but carries no data.

use crate::{host_config, millis};
use downpour_sim::{Host, HostConfig, StreamScript};
use netsim::{LinkConfig, NodeId, topology};
use transport::{ConnectionError, EndpointConfig};

/// A path that only carries packets smaller than the smallest symbol is dead: the sender gives up although packets of
/// the receiver keep arriving, and then the receiver gives up too.
#[test]
fn a_path_without_symbols_is_given_up_although_it_answers() {
    for (objects, streams) in [(vec![10_000_000], Vec::new()), (Vec::new(), vec![StreamScript::bulk(10_000_000)])] {
        let config = |side: u32| HostConfig {
            objects: if side == 0 { objects.clone() } else { Vec::new() },
            streams: if side == 0 { streams.clone() } else { Vec::new() },
            expects: if side == 0 { 0 } else { objects.len() },
            expects_streams: if side == 0 { 0 } else { streams.len() },
            ..host_config(side, true, 1)
        };
        let link: netsim::Duplex = "rate=100M,delay=25ms,queue=1MB".parse().expect("a link");
        let host = |side| Host::new(NodeId::from_index(side), config(side));
        let (mut network, pair) = topology::pair(host(0), host(1), &link).expect("a network");
        let shrunk = netsim::Time::ZERO + millis(400);
        network.run_until(shrunk).expect("time passes");
        for (id, config) in [(pair.links.forward, &link.forward), (pair.links.backward, &link.backward)] {
            network.set_link(id, LinkConfig { mtu: Some(600), ..config.clone() }).expect("a link");
        }
        let dead_after = EndpointConfig::default().limits.dead_after;
        network.run_while(|nodes| !nodes[0].is_over(), shrunk + dead_after + millis(3_000)).expect("time passes");
        let closed = |host: &Host| host.tallies().next().expect("they met").closed.clone();
        assert_eq!(closed(&network.nodes()[0]), Some(ConnectionError::TimedOut));
        assert!(network.now() + millis(1_000) > shrunk + dead_after, "{:?}", network.now());
        let last = network.now() + dead_after + millis(1_000);
        network.run_while(|nodes| !nodes[1].is_over(), last).expect("time passes");
        assert_eq!(closed(&network.nodes()[1]), Some(ConnectionError::TimedOut));
    }
}
