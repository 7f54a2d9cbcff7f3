//! Streams with a window code: losses are repaired without a round trip, and a path without loss costs no repair.

use crate::support::{Plan, at_seconds, is_done, is_over};
use downpour_sim::StreamScript;
use erasure::WindowCode;
use std::time::Duration;
use transport::{ConnectionStats, Rate};

/// The result of a stream.
struct Seen {
    /// Milliseconds from each write to the read that completed it: of all writes, and without those of the first two
    /// seconds, when the loss of the path was not known yet.
    latencies: [Vec<f64>; 2],
    sender: ConnectionStats,
}

/// Runs one stream over a path of 20 Mbit/s with a round trip of 200 ms, at the fixed rate of the path.
fn run(window: bool, loss: &str, script: StreamScript, seed: u64) -> Seen {
    let fixed = systems::auto().with_fixed_rate(Rate::from_bits_per_second(20_000_000));
    let profile = if window { fixed.with_window_code(WindowCode::Rlc) } else { fixed };
    let mut plan = Plan::new(format!("rate=20M,delay=100ms,queue=1MB,loss={loss},seed={seed}"), profile, Vec::new());
    plan.streams = vec![script];
    let mut network = plan.network([Vec::new(), Vec::new()]);
    let done = network.run_while(|nodes| !is_done(nodes, &plan), at_seconds(120));
    assert_eq!(done, Ok(true), "no end: {plan:?}");
    network.run_while(|nodes| !is_over(nodes), at_seconds(240)).expect("time passes");
    let [sender, receiver] = [0, 1].map(|side| network.nodes()[side].host.tallies().next().expect("they met"));
    let writing = sender.streams.writing.values().next().expect("one stream");
    let reading = receiver.streams.reading.values().next().expect("one stream");
    assert_eq!((reading.read, reading.wrong), (script.length, 0), "every byte, in order: {plan:?}");
    let mut reads = reading.log.iter();
    let mut read = reads.next();
    let mut latencies = [Vec::new(), Vec::new()];
    let known = transport::Time::ZERO + Duration::from_secs(2);
    for (until, at) in &writing.log {
        while read.is_some_and(|(read, _)| read < until) {
            read = reads.next();
        }
        let latency = read.expect("read at last").1.since(*at).as_secs_f64() * 1e3;
        latencies[0].push(latency);
        if *at >= known {
            latencies[1].push(latency);
        }
    }
    Seen { latencies, sender: sender.last_stats }
}

/// Returns a script of `count` writes of `write` bytes, one every `micros` microseconds.
fn writes(count: u64, write: u64, micros: u64) -> StreamScript {
    let every = Duration::from_micros(micros);
    StreamScript { length: count * write, write, every, reset_at: None, stop_at: None }
}

/// The combined result of three runs: sorted latencies of all and of the later writes, and repair symbols per source
/// symbol.
struct Together {
    latencies: [Vec<f64>; 2],
    repair: f64,
    bytes: u64,
}

impl Together {
    /// Returns the latency in milliseconds within which this percentage of the writes is read, once the loss is known.
    fn percentile(&self, percent: f64) -> f64 {
        percentile(&self.latencies[1], percent)
    }
}

fn percentile(latencies: &[f64], percent: f64) -> f64 {
    latencies[((latencies.len() - 1) as f64 * percent / 100.0) as usize]
}

fn runs(what: &str, window: bool, loss: &str, script: StreamScript) -> Together {
    let seen: Vec<Seen> = (1..=3).map(|seed| run(window, loss, script, seed)).collect();
    let sum = |count: fn(&ConnectionStats) -> u64| seen.iter().map(|seen| count(&seen.sender)).sum::<u64>();
    let repair = sum(|sender| sender.symbols.repair) as f64 / sum(|sender| sender.symbols.source) as f64;
    let bytes = sum(|sender| sender.packets.bytes_sent) / 3;
    let latencies = [0, 1].map(|which| {
        let mut all: Vec<f64> = seen.iter().flat_map(|seen| &seen.latencies[which]).copied().collect();
        all.sort_by(f64::total_cmp);
        all
    });
    let code = if window { "window" } else { "blocks" };
    for (which, latencies) in
        ["all", "later"].into_iter().zip(&latencies).filter(|(_, latencies)| !latencies.is_empty())
    {
        let [median, p90, p99, most] = [50.0, 90.0, 99.0, 100.0].map(|percent| percentile(latencies, percent));
        println!(
            "{what}, {loss} lost, {code}, {which}: median {median:.1} ms, 90 % {p90:.1}, 99 % {p99:.1}, worst {most:.1}"
        );
    }
    println!("{what}, {loss} lost, {code}: {repair:.3} repair, {bytes} bytes of {}", script.length);
    Together { latencies, repair, bytes }
}

/// Comparison with the block code on the same seeds. One-way delay is 100 ms. A loss delays the blocks by a round trip,
/// and everything behind them too. Measured: 5 % at 15 Mbit/s, 99 % of the writes within 113 ms and 491 ms.
#[test]
fn window_code_loss_repaired_within_rtt() {
    let busy = ("15 Mbit/s", writes(6_000, 1_400, 747));
    let half = ("10 Mbit/s", writes(4_500, 1_400, 1_120));
    for ((what, script), loss, most, most_repair) in
        [(busy, "5%", 150.0, 0.4), (half, "5%", 150.0, 0.4), (half, "20%", 200.0, 0.9)]
    {
        let [blocks, window] = [false, true].map(|window| runs(what, window, loss, script));
        let (before, after) = (blocks.percentile(99.0), window.percentile(99.0));
        assert!(
            after < most && after + 100.0 < before,
            "{what}, {loss}: {after:.1} ms, and {before:.1} ms with blocks"
        );
        assert!(window.repair < most_repair, "{what}, {loss}: {:.3} repair", window.repair);
        assert!(window.bytes < blocks.bytes, "{what}, {loss}: {} bytes, {} with blocks", window.bytes, blocks.bytes);
    }
}

/// Isolated writes are repaired too, within the same budget as separate blocks.
#[test]
fn lonely_writes_are_repaired_at_once() {
    let [blocks, window] =
        [false, true].map(|window| runs("100 writes a second", window, "5%", writes(600, 200, 10_000)));
    // One in a hundred waits for the budget.
    assert!(window.percentile(99.0) < 130.0, "{:.1} ms", window.percentile(99.0));
    assert!(window.repair < blocks.repair, "{:.2} and {:.2}", window.repair, blocks.repair);
}

/// As fast as the path permits, at both low and high loss: every byte arrives in order.
#[test]
fn bulk_survives_heavy_loss() {
    for loss in ["5%", "20%"] {
        runs("bulk", true, loss, StreamScript::bulk(3_000_000));
    }
}

/// Law 5: once the path has proved to be without loss, no repair is sent: all repair symbols belong to the
/// first round trip.
#[test]
fn a_path_without_loss_costs_nothing() {
    let seen = run(true, "0%", writes(4_000, 1_400, 747), 1);
    let first_trip = Duration::from_millis(300).as_secs_f64() / 747e-6;
    assert!((seen.sender.symbols.repair as f64) < 0.3 * first_trip, "{} repair", seen.sender.symbols.repair);
    let longer = run(true, "0%", writes(6_000, 1_400, 747), 1);
    assert_eq!(longer.sender.symbols.repair, seen.sender.symbols.repair);
}
