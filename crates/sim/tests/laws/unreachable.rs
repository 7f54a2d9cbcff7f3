//! A report of the network that the peer is unreachable is a hint: it speeds up the detection of a vanished peer, and
//! does not affect others.

use crate::support::{Censored, Plan, at_seconds, is_over, with_sender};
use downpour_sim::{StreamEnd, StreamScript};
use netsim::{Network, NodeId, Time};
use std::time::Duration;
use transport::{ConnectionError, EndpointConfig};

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn hint(network: &mut Network<Censored>) {
    with_sender(network, |now, connection| _ = connection.on_port_unreachable(now, connection.remote()));
}

fn closed(network: &Network<Censored>, side: usize) -> Option<ConnectionError> {
    network.nodes()[side].host.tallies().next().and_then(|tally| tally.closed.clone())
}

/// Runs to the end, with a hint in every interval `every`.
fn run(network: &mut Network<Censored>, every: Option<Duration>) {
    while !is_over(network.nodes()) && network.now() < at_seconds(60) {
        let until = network.now() + every.unwrap_or(millis(10));
        network.run_while(|nodes| !is_over(nodes), until).expect("time passes");
        if every.is_some() {
            hint(network);
        }
    }
}

/// Ends one process without notice.
fn vanish(network: &mut Network<Censored>, side: u32) {
    let endpoint = network.node_mut(NodeId::from_index(side)).expect("a host").host.endpoint();
    let handles: Vec<_> = endpoint.handles().collect();
    handles.into_iter().for_each(|handle| endpoint.remove(handle));
}

/// A sender that gets forged hints from its first message on sends exactly the same packets as without them.
#[test]
fn forged_hints_change_nothing_while_the_peer_sends() {
    for name in systems::registry().profile_names() {
        // Its first messages are lost, so that the first answer only arrives after 2 s.
        let network = |every| {
            let profile = systems::profile(name).expect("a profile");
            let plan = Plan::new("rate=20M,delay=25ms,queue=100KB", profile, vec![3_000_000]);
            let mut network = plan.network([(1..=16).collect(), Vec::new()]);
            run(&mut network, every);
            network
        };
        let (quiet, lied_to) = (network(None), network(Some(millis(10))));
        assert_eq!(closed(&lied_to, 0), Some(ConnectionError::LocallyClosed), "{name}");
        let [quiet, lied_to] = [quiet, lied_to].map(|network| network.nodes()[0].log.clone());
        if name == "ttp" {
            // Its receiver sends less feedback the cleaner the path is, and each silence of four round trips causes one
            // probe.
            assert!(lied_to.len() <= quiet.len() + 10, "{name}: {} and {} packets", quiet.len(), lied_to.len());
        } else {
            assert!(quiet == lied_to, "{name}: other packets, or at other times");
        }
    }
}

/// The peer never answers, and the handshake must use its whole timeout.
#[test]
fn hints_during_the_handshake_are_ignored() {
    let plan = Plan::new("rate=20M,delay=25ms,queue=100KB", systems::auto(), vec![3_000_000]);
    let mut network = plan.network([(1..1_000).collect(), Vec::new()]);
    while network.nodes()[0].host.tallies().any(|tally| tally.closed.is_none()) {
        let until = network.now() + millis(50);
        network.run_while(|nodes| !nodes[0].host.is_over(), until).expect("time passes");
        hint(&mut network);
    }
    assert_eq!(closed(&network, 0), Some(ConnectionError::HandshakeTimeout));
    assert!(network.now() >= at_seconds(30), "{:?}", network.now());
}

/// A peer that has been silent for a second is probed, and answers.
#[test]
fn a_forged_hint_on_a_quiet_path_costs_one_round_of_probes() {
    for name in systems::registry().profile_names() {
        let sent = |hinted: bool| {
            let mut plan =
                Plan::new("rate=20M,delay=25ms,queue=100KB", systems::profile(name).expect("a profile"), vec![]);
            plan.streams = vec![StreamScript { every: millis(10_000), write: 1_000, ..StreamScript::bulk(2_000) }];
            let mut network = plan.network([Vec::new(), Vec::new()]);
            network.run_until(at_seconds(3)).expect("time passes");
            let before = network.nodes()[0].sent;
            if hinted {
                hint(&mut network);
            }
            network.run_until(at_seconds(4)).expect("time passes");
            let sent = network.nodes()[0].sent - before;
            // The timeout of a vanished peer would have expired by now.
            network.run_while(|nodes| !is_over(nodes), at_seconds(60)).expect("time passes");
            assert_eq!(closed(&network, 0), Some(ConnectionError::LocallyClosed), "{name}");
            let read: Vec<_> =
                network.nodes()[1].host.tallies().flat_map(|tally| tally.streams.reading.values()).collect();
            assert_eq!((read[0].read, read[0].end, read[0].wrong), (2_000, StreamEnd::Whole, 0), "{name}");
            sent
        };
        let (quiet, hinted) = (sent(false), sent(true));
        assert!(hinted > quiet, "{name}: no probe was sent");
        // Two probes, and the confirmation of the receiver's feedback.
        assert!(hinted <= quiet + 4, "{name}: {quiet} and {hinted} packets");
    }
}

/// If the receiver has vanished, the sender gives up 3 s or six round trips after the first hint, whatever its
/// timeouts.
#[test]
fn a_lost_peer_is_given_up_soon_after_the_first_hint() {
    for (delay, wait) in [(25, millis(3_000)), (600, millis(6 * 1_200))] {
        for name in systems::registry().profile_names() {
            let profile = systems::profile(name).expect("a profile");
            let plan = Plan::new(format!("rate=20M,delay={delay}ms,queue=100KB"), profile, vec![100_000_000]);
            let mut network = plan.network([Vec::new(), Vec::new()]);
            network.run_until(at_seconds(10)).expect("time passes");
            vanish(&mut network, 1);
            let silent = at_seconds(20);
            network.run_until(silent).expect("time passes");
            assert_eq!(closed(&network, 0), None, "{name}");
            for _ in 0..4 {
                hint(&mut network);
                let until = network.now() + wait / 5;
                network.run_until(until).expect("time passes");
            }
            assert_eq!(closed(&network, 0), None, "{name}: a hint alone ends nothing");
            network.run_while(|nodes| !nodes[0].host.is_over(), at_seconds(60)).expect("time passes");
            assert_eq!(closed(&network, 0), Some(ConnectionError::TimedOut), "{name}");
            let took = network.now().checked_since(silent).expect("later");
            // The measured round trip includes the queue.
            let longest = if delay == 25 { wait } else { wait * 5 / 4 };
            assert!(took >= wait && took <= longest + millis(1), "{name}: {took:?}");
        }
    }
}

/// The peer was unreachable for a while, and a router reported it.
#[test]
fn port_unreachable_live_peer_kept() {
    for name in systems::registry().profile_names() {
        let mut endpoint = EndpointConfig::default();
        endpoint.limits.dead_after = Duration::from_secs(100);
        let profile = systems::profile(name).expect("a profile");
        let link = "rate=20M,delay=25ms,queue=100KB,down=1s..3300ms";
        let mut network = Plan { endpoint, ..Plan::new(link, profile, vec![5_000_000]) }.network([vec![], vec![]]);
        network.run_until(Time::ZERO + millis(1_500)).expect("time passes");
        hint(&mut network);
        network.run_while(|nodes| !is_over(nodes), at_seconds(60)).expect("time passes");
        assert_eq!(closed(&network, 0), Some(ConnectionError::LocallyClosed), "{name}");
        let complete = network.nodes()[1].host.tallies().next().and_then(|tally| tally.complete_at);
        assert!(complete.is_some_and(|at| at > at_seconds(3)), "{name}: {complete:?}");
    }
}
