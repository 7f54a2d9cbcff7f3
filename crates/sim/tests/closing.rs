//! Streams end under any loss, in each of the three ways of lt-tcp §3.2.

use netsim::{Network, NodeId, topology};
use sim::{Host, HostConfig, ReadScript, StreamEnd, StreamScript};
use std::time::Duration;
use transport::{EndpointConfig, Profile, Rate};

/// A stream each way over a path that loses half of all packets, both ways.
fn ends(script: StreamScript, loss: &str, seed: u64) -> Network<Host> {
    let host = |at: usize| {
        Host::new(
            NodeId::from_index(at),
            HostConfig {
                profile: Profile::lt_tcp().with_told_rate(Rate::from_bits_per_second(10_000_000)),
                endpoint: EndpointConfig::default(),
                connect_to: if at == 0 { vec![NodeId::from_index(1)] } else { Vec::new() },
                objects: Vec::new(),
                streams: vec![script],
                reads: ReadScript::default(),
                expects_streams: 1,
                expects: 0,
                closes: at == 0,
                control: 0,
                expects_control: 0,
                compute_delay: Duration::ZERO,
                storage_delay: Duration::ZERO,
                write_rate: None,
                seed,
            },
        )
    };
    let link = format!("rate=10M,delay=20ms,queue=100KB,loss={loss},seed={seed}");
    let link: netsim::Duplex = link.parse().expect("a link");
    let (mut network, _) = topology::pair(host(0), host(1), &link).expect("a link that makes sense");
    let limit = netsim::Time::ZERO + Duration::from_secs(300);
    let over = network.run_while(|nodes| !nodes.iter().all(Host::is_over), limit);
    assert!(over.is_ok() && network.nodes().iter().all(Host::is_over), "seed {seed}: {script:?} does not end");
    network
}

fn check(script: StreamScript) {
    for seed in 0..100 {
        let network = ends(script, "50%", seed);
        for (side, node) in network.nodes().iter().enumerate() {
            let tally = node.tallies().next().unwrap_or_else(|| panic!("seed {seed}: side {side} never met the other"));
            let writing = tally.streams.writing.values().next().expect("it opened one");
            // The side that closes has read all of the other's stream; its own close may overtake the news that its stream was read.
            println!(
                "{seed} {side} {:?} {:?}",
                writing.end,
                tally.streams.reading.values().map(|r| (r.read, r.end)).collect::<Vec<_>>()
            );
            for reading in tally.streams.reading.values() {
                assert_eq!((reading.read, reading.end), (script.length, StreamEnd::Whole), "seed {seed}, side {side}");
            }
        }
    }
}

const fn script(length: u64, write: u64, every: Duration) -> StreamScript {
    StreamScript { length, write, every, reset_at: None, stop_at: None }
}

/// Bytes wait when the program finishes: the block that takes them is marked.
#[test]
fn the_last_block_that_waits_is_marked() {
    check(script(100_000, 100_000, Duration::ZERO));
}

/// Everything has long arrived when the program finishes, with its last write of nothing: an empty block ends the stream.
#[test]
fn an_empty_block_ends_a_stream_of_which_nothing_is_outstanding() {
    check(script(0, 1_000, Duration::ZERO));
}

/// The last block is on its way when the program finishes: an empty one follows it.
#[test]
fn an_empty_block_follows_one_that_is_on_its_way() {
    check(script(3_000, 1_000, Duration::from_millis(7)));
}
