//! Streams: as fast as objects in bulk, low latency for small writes, and without impeding each other.

use crate::support::{Censored, Plan, at_seconds, is_done, is_over};
use downpour_sim::{ReadScript, StreamEnd, StreamReader, StreamScript, StreamWriter};
use erasure::WindowCode;
use netsim::{Network, NodeId};
use std::time::Duration;
use transport::{ConnectionConfig, EndpointConfig, Profile, Rate, wire::StreamLimits};

fn fixed(mbit: u64) -> Profile {
    systems::auto().with_fixed_rate(Rate::from_bits_per_second(mbit * 1_000_000))
}

fn path(delay: u32, loss: u32, seed: u64) -> String {
    format!("rate=100M,delay={delay}ms,queue=256KB,loss={loss}%,seed={seed}")
}

/// Runs until the sender knows that everything has arrived, and then to the end.
fn finish(plan: &Plan) -> Network<Censored> {
    let mut network = plan.network([Vec::new(), Vec::new()]);
    let done = network.run_while(|nodes| !is_done(nodes, plan), at_seconds(120));
    assert_eq!(done, Ok(true), "no end: {plan:?}");
    network.run_while(|nodes| !is_over(nodes), at_seconds(240)).expect("time passes");
    network
}

fn reading(network: &Network<Censored>) -> Vec<StreamReader> {
    let tally = network.nodes()[1].host.tallies().next().expect("they met");
    let readings: Vec<StreamReader> = tally.streams.reading.values().cloned().collect();
    assert!(readings.iter().all(|reading| reading.wrong == 0));
    readings
}

fn writing(network: &Network<Censored>) -> Vec<StreamWriter> {
    let tally = network.nodes()[0].host.tallies().next().expect("they met");
    tally.streams.writing.values().cloned().collect()
}

fn read_at(reading: &StreamReader) -> f64 {
    reading.log.last().expect("something was read").1.as_nanos() as f64 / 1e9
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Returns the seconds and IP bytes sent of the median run, for an object and for a stream of the same length.
fn object_and_stream(size: u64, delay: u32, loss: u32) -> [(f64, f64); 2] {
    let runs = |streams: bool| {
        let (mut times, mut bytes) = (Vec::new(), Vec::new());
        for seed in 1..=15 {
            let mut plan = Plan::new(path(delay, loss, seed), fixed(100), if streams { vec![] } else { vec![size] });
            plan.streams = if streams { vec![StreamScript::bulk(size)] } else { vec![] };
            let network = finish(&plan);
            let tally = network.nodes()[1].host.tallies().next().expect("they met");
            let object = tally.complete_at.map(|at| at.as_secs_f64());
            times.push(object.unwrap_or_else(|| read_at(&reading(&network)[0])));
            let sender = network.nodes()[0].host.tallies().next().expect("they met");
            bytes.push(sender.last_stats.packets.bytes_sent as f64);
        }
        (median(times), median(bytes))
    };
    [runs(false), runs(true)]
}

#[test]
fn a_bulk_stream_is_as_quick_as_an_object() {
    for (size, delay, loss) in [(10_000_000, 25, 0), (10_000_000, 25, 5), (10_000_000, 300, 2), (1_000_000, 100, 5)] {
        let [object, stream] = object_and_stream(size, delay, loss);
        let (time, bytes) = (stream.0 / object.0, stream.1 / object.1);
        println!(
            "{size} bytes, {delay} ms, {loss} %: time {:.3} and {:.3} s, {time:.4}; bytes {bytes:.4}",
            object.0, stream.0
        );
        if (size, delay) == (10_000_000, 25) {
            assert!(time < 1.05 && bytes < 1.05, "a stream takes {time:.3} times as long, {bytes:.3} times the bytes");
        }
    }
}

/// Returns the seconds from each write to the read that completed it.
fn latencies(writing: &StreamWriter, reading: &StreamReader) -> Vec<f64> {
    let read = |until: u64| reading.log.iter().find(|(read, _)| *read >= until).expect("read at last").1;
    writing.log.iter().map(|(until, at)| read(*until).since(*at).as_secs_f64()).collect()
}

fn small_writes(every: Duration) -> StreamScript {
    StreamScript { length: 40_000, write: 100, every, reset_at: None, stop_at: None }
}

#[test]
fn small_writes_arrive_in_little_more_than_the_way_takes() {
    for (loss, every, beside) in [(0, 100, 0), (5, 100, 0), (5, 7, 0), (5, 100, 20_000_000), (5, 7, 20_000_000)] {
        // Below the path's rate: at that rate, a queue that builds up in the first milliseconds would persist to the
        // end.
        // More than a few bytes a second may cost no more than half of them in repair, which goes further in a window.
        let profile = if every < 100 { fixed(90).with_window_code(WindowCode::Rlc) } else { fixed(90) };
        let mut plan = Plan::new(path(25, loss, 3), profile, if beside > 0 { vec![beside; 3] } else { vec![] });
        plan.streams = vec![small_writes(Duration::from_millis(every))];
        let network = finish(&plan);
        let mut times = latencies(&writing(&network)[0], &reading(&network)[0]);
        times.sort_by(f64::total_cmp);
        let at = |share: f64| times[(times.len() as f64 * share) as usize] * 1e3;
        let stats = network.nodes()[0].host.tallies().next().expect("they met").last_stats;
        println!(
            "{loss} % loss, every {every} ms, {beside} other bytes: median {:.2} ms, 95 % {:.2}, 99 % {:.2}, worst {:.2}; {stats:?}",
            at(0.5),
            at(0.95),
            at(0.99),
            at(0.9999)
        );
        assert!(at(0.5) < 25.0 + 3.0, "median of {:.2} ms where the way takes 25", at(0.5));
        assert!(at(0.95) < 25.0 + 25.0, "95 % within {:.2} ms", at(0.95));
    }
}

#[test]
fn unread_streams_block_no_other() {
    let mut plan = Plan::new(path(25, 1, 1), fixed(100), vec![20_000_000]);
    // More than their buffers hold, read at 11 Mbit/s each.
    plan.streams = vec![StreamScript::bulk(40_000_000); 2];
    plan.reads = ReadScript { most: 40_000, every: Duration::from_millis(30) };
    let network = finish(&plan);
    let tally = network.nodes()[1].host.tallies().next().expect("they met");
    let object = tally.complete_at.expect("complete").as_secs_f64();
    // With everything that may be buffered, 23 MB, and everything read meanwhile, it is 50 MB.
    assert!(object < 4.3, "the object took {object} s");
    // The sender closes when everything has arrived; buffered data can still be read.
    assert!(reading(&network).iter().all(|reading| reading.read == 40_000_000));
}

#[test]
fn objects_and_streams_share_the_path() {
    let mut plan = Plan::new(path(25, 1, 1), fixed(100), vec![20_000_000]);
    plan.streams = vec![StreamScript::bulk(5_000_000); 3];
    let network = finish(&plan);
    let ends: Vec<f64> = reading(&network).iter().map(read_at).collect();
    // Four share equally: 5 MB of each stream take as long as 20 MB, and the object always gets its share.
    for end in &ends {
        assert!((1.5..2.1).contains(end), "{ends:?}");
    }
    let object = network.nodes()[1].host.tallies().next().and_then(|tally| tally.complete_at).expect("complete");
    assert!(object.as_secs_f64() < 3.4, "35 MB took {:.3} s", object.as_secs_f64());
}

/// More streams than the peer accepts at once, each reset, stopped or read, one after the other: the peer's credit must
/// be returned completely, or the last stream could not be sent.
#[test]
fn stream_credit_read_returned() {
    let streams_allowed = StreamLimits { count: 4, window: 64, shared: 100 };
    for seed in 0..20 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut script = || {
            let length = random.u64(1..300_000);
            let mut cut = || (random.u8(..2) == 0).then(|| random.u64(..=length));
            StreamScript { reset_at: cut(), stop_at: cut(), ..StreamScript::bulk(length) }
        };
        let mut streams: Vec<StreamScript> = std::iter::repeat_with(&mut script).take(60).collect();
        streams.push(StreamScript::bulk(1_000_000));
        let mut plan = Plan::new(path(5, 3, seed), fixed(100), vec![]);
        let limits = ConnectionConfig { streams: streams_allowed, ..ConnectionConfig::default() };
        plan.endpoint = EndpointConfig { limits, ..EndpointConfig::default() };
        plan.streams = streams;
        let network = finish(&plan);
        let last = reading(&network).pop().expect("the last one");
        assert_eq!((last.read, last.end), (1_000_000, StreamEnd::Whole), "seed {seed}");
    }
}

/// An open stream without writes costs no more than a connection without streams.
#[test]
fn an_idle_stream_is_silent() {
    let mut plan = Plan::new(path(25, 0, 1), fixed(100), vec![]);
    plan.streams =
        vec![StreamScript { length: 200, write: 100, every: Duration::from_secs(60), reset_at: None, stop_at: None }];
    let mut network = plan.network([Vec::new(), Vec::new()]);
    network.run_until(at_seconds(5)).expect("time passes");
    let sent = |network: &Network<Censored>| [0, 1].map(|side| network.nodes()[side].sent);
    let before = sent(&network);
    network.run_until(at_seconds(50)).expect("time passes");
    let after = sent(&network);
    // One keep-alive every 15 s, and the answers to it.
    assert!(after.iter().zip(before).all(|(after, before)| after - before <= 8), "{before:?} and {after:?}");
    let handles = network.node_mut(NodeId::from_index(0)).map(|node| node.host.endpoint().handles().count());
    assert_eq!(handles, Some(1));
}
