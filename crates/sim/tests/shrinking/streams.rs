//! Streams on a path whose MTU decreases: every byte is read once, in order, and soon.

use crate::{FOUND_WITHIN, FOUND_WITHIN_SEARCHING, host_config, millis};
use downpour_sim::{Host, HostConfig, ReadScript, StreamEnd, StreamReader, StreamScript, StreamWriter};
use netsim::{LinkConfig, NodeId, topology};
use std::time::Duration;

/// The streams and the path of a run.
#[derive(Clone, Debug)]
struct Case {
    /// Loss in percent, both ways.
    loss: u32,
    seed: u64,
    fixed: bool,
    /// Streams of the first host; the other sends the same.
    streams: Vec<StreamScript>,
    reads: ReadScript,
    /// Times of the decreases, in milliseconds, and the largest IP packet from then on.
    shrinks: Vec<(u64, u32)>,
}

/// The writes and reads of each host.
struct Seen {
    writing: [Vec<StreamWriter>; 2],
    reading: [Vec<StreamReader>; 2],
    /// The larger symbol size T of both.
    size: u16,
}

/// Runs a case at 100 Mbit/s and a round trip of 50 ms.
fn run(case: &Case) -> Seen {
    let config = |side: u32| HostConfig {
        streams: case.streams.clone(),
        reads: case.reads,
        expects_streams: case.streams.len(),
        ..host_config(side, case.fixed, case.seed)
    };
    let path = format!("rate=100M,delay=25ms,queue=1MB,loss={}%,seed={}", case.loss, case.seed);
    let link: netsim::Duplex = path.parse().expect("a link");
    let host = |side| Host::new(NodeId::from_index(side), config(side));
    let (mut network, pair) = topology::pair(host(0), host(1), &link).expect("a network");
    for (at, mtu) in &case.shrinks {
        network.run_until(netsim::Time::ZERO + millis(*at)).expect("time passes");
        for (id, config) in [(pair.links.forward, &link.forward), (pair.links.backward, &link.backward)] {
            network.set_link(id, LinkConfig { mtu: Some(*mtu), ..config.clone() }).expect("a link");
        }
    }
    let over = |nodes: &[Host]| nodes.iter().all(Host::is_over);
    network.run_while(|nodes| !over(nodes), netsim::Time::ZERO + millis(120_000)).expect("time passes");
    assert!(over(network.nodes()), "no end: {case:?}");
    let tallies = [0, 1].map(|side| network.nodes()[side].tallies().next().expect("they met").clone());
    let seen = Seen {
        size: tallies.iter().map(|tally| tally.last_stats.path.symbol_size).max().expect("two"),
        writing: tallies.each_ref().map(|tally| tally.streams.writing.values().cloned().collect()),
        reading: tallies.each_ref().map(|tally| tally.streams.reading.values().cloned().collect()),
    };
    for readings in &seen.reading {
        assert_eq!(readings.len(), case.streams.len(), "{case:?}");
        for (reading, script) in readings.iter().zip(&case.streams) {
            assert_eq!((reading.read, reading.wrong, reading.end), (script.length, 0, StreamEnd::Whole), "{case:?}");
        }
    }
    // The closing side knows that all of its data has arrived; the other may not know it.
    assert!(seen.writing[0].iter().all(|writing| writing.end == StreamEnd::Whole), "{case:?}");
    let stats = &tallies[0].last_stats;
    let length: u64 = case.streams.iter().map(|script| script.length).sum();
    assert_eq!((stats.congestion.in_flight, stats.objects.acknowledged), (0, length), "{case:?}");
    seen
}

fn seconds(at: transport::Time) -> f64 {
    at.as_nanos() as f64 / 1e9
}

/// Returns the longest time from a write to the read that completed it.
fn longest(writing: &StreamWriter, reading: &StreamReader) -> Duration {
    let read = |until: u64| reading.log.iter().find(|(read, _)| *read >= until).expect("read at last").1;
    writing.log.iter().map(|(until, at)| read(*until).since(*at)).max().expect("something was written")
}

#[test]
fn a_path_that_shrinks_in_the_midst_of_a_stream_costs_it_little() {
    for (loss, fixed) in [(0, true), (1, true), (5, true), (0, false)] {
        for seed in 1..=5 {
            let mut case = Case {
                loss,
                seed,
                fixed,
                streams: vec![StreamScript::bulk(10_000_000), StreamScript::bulk(2_000_000)],
                reads: ReadScript::default(),
                shrinks: Vec::new(),
            };
            let end = |seen: &Seen| {
                let ends = seen.reading.iter().flatten().map(|reading| reading.log.last().expect("read").1);
                seconds(ends.max().expect("two"))
            };
            let before = end(&run(&case));
            case.shrinks = vec![(300, 1_400), (900, 1_300)];
            let seen = run(&case);
            let after = end(&seen);
            println!("{loss} % loss, fixed {fixed}, seed {seed}: {before:.3} s, {after:.3} s with smaller packets");
            assert_eq!(seen.size, 1_152, "{case:?}");
            // Data in flight is retransmitted, with a silence each time until the cause is known.
            let found = if fixed { FOUND_WITHIN } else { FOUND_WITHIN_SEARCHING };
            let within = 1.25 * before + 2.0 * found.as_secs_f64();
            assert!(after < within, "{after:.3} s instead of {before:.3} s: {case:?}");
        }
    }
}

/// The decrease is not noticed until something is written.
#[test]
fn a_stream_idle_while_the_path_shrank_continues() {
    let every = |secs| Duration::from_secs(secs);
    let mut worst = Duration::ZERO;
    for (length, write) in [(80, 20), (40_000, 10_000)] {
        for (loss, seed) in [(0, 1), (1, 2), (5, 3), (5, 4), (5, 5)] {
            // At 0, 5, 10 and 15 s; the first 20 bytes are written long before the decrease.
            let script = StreamScript { length, write, every: every(5), reset_at: None, stop_at: None };
            let case = Case {
                loss,
                seed,
                fixed: false,
                streams: vec![script; 3],
                reads: ReadScript::default(),
                shrinks: vec![(2_000, 1_400), (7_000, 1_300)],
            };
            let seen = run(&case);
            // Small writes fit any path.
            assert_eq!(seen.size, if write < 1_000 { 1_408 } else { 1_152 }, "{case:?}");
            for side in 0..2 {
                for (writing, reading) in seen.writing[side].iter().zip(&seen.reading[1 - side]) {
                    let longest = longest(writing, reading);
                    worst = worst.max(longest);
                    assert!(longest < FOUND_WITHIN * 2, "{longest:?} of {case:?}");
                }
            }
        }
    }
    println!("worst: {worst:?}");
}

/// A reader slower than the path has blocks of all sizes waiting and reads them in order. Their credit must return to
/// the writer, or the transfer would never end.
#[test]
fn a_stream_that_is_read_slowly_while_the_path_shrinks_is_read_whole() {
    for seed in 1..=3 {
        let case = Case {
            loss: 2,
            seed,
            fixed: true,
            streams: vec![StreamScript::bulk(30_000_000); 2],
            reads: ReadScript { most: 200_000, every: millis(20) },
            shrinks: vec![(400, 1_430), (1_400, 1_360), (2_400, 1_240)],
        };
        let seen = run(&case);
        assert_eq!(seen.size, 1_152);
        let ends = seen.reading.iter().flatten().map(|reading| seconds(reading.log.last().expect("read").1));
        let last = ends.fold(0.0, f64::max);
        println!("seed {seed}: {last:.3} s");
        // 150 reads of 20 ms, or the time that the path takes for 60 MB in each direction.
        assert!(last < 12.0, "{last:.3} s");
    }
}
