//! The delay and the cost of small writes to a stream: `cargo run --release -p downpour-sim --example writes LINK BYTES EVERY_MS
//! SECONDS SEEDS [beside=MB] KEY=VALUE...`
//!
//! A write of so many bytes each so many milliseconds, with another stream of so many megabytes. Of all seeds together:
//! the milliseconds from each write to the read that completes it, without those of the first two seconds, and the IP
//! bytes of the sender, and of both, for each byte written. The settings are those of a profile: `streams=window`,
//! `congestion=fixed-rate:15M`.

use downpour_sim::{Host, HostConfig, StreamScript};
use netsim::{Duplex, NodeId, topology};
use std::error::Error;
use std::time::Duration;
use transport::Profile;

/// When the path is known.
const KNOWN: Duration = Duration::from_secs(2);

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [link, bytes, every, seconds, seeds, settings @ ..] = &arguments[..] else {
        return Err("LINK BYTES EVERY_MS SECONDS SEEDS KEY=VALUE...".into());
    };
    let mut profile = systems::auto();
    let mut beside = None;
    for setting in settings {
        match setting.split_once('=').ok_or("KEY=VALUE")? {
            ("beside", megabytes) => beside = Some(StreamScript::bulk(megabytes.parse::<u64>()? * 1_000_000)),
            (key, value) => profile.set(key, value)?,
        }
    }
    let (write, every) = (bytes.parse::<u64>()?, Duration::from_secs_f64(every.parse::<f64>()? / 1e3));
    let count = (seconds.parse::<f64>()? / every.as_secs_f64()) as u64;
    let script = StreamScript { length: count * write, write, every, reset_at: None, stop_at: None };
    let (mut delays, mut sent) = (Vec::new(), [0, 0]);
    let seeds: u64 = seeds.parse()?;
    for seed in 1..=seeds {
        let duplex: Duplex = format!("{link},seed={seed}").parse()?;
        run(&duplex, &profile, (script, beside), &mut delays, &mut sent)?;
    }
    delays.sort_by(f64::total_cmp);
    let percentile = |percent: usize| delays.get((delays.len().saturating_sub(1)) * percent / 100).copied();
    let [p50, p90, p99, most] = [50, 90, 99, 100].map(|percent| percentile(percent).unwrap_or_default());
    let written = (script.length * seeds) as f64;
    println!(
        "50 % {p50:.0} ms, 90 % {p90:.0}, 99 % {p99:.0}, most {most:.0}; {:.2} bytes a byte, {:.2} both ways",
        sent[0] as f64 / written,
        (sent[0] + sent[1]) as f64 / written,
    );
    Ok(())
}

/// Runs the streams to their ends; appends the delays of its writes and adds the bytes sent by both sides.
fn run(
    link: &Duplex,
    profile: &Profile,
    (script, beside): (StreamScript, Option<StreamScript>),
    delays: &mut Vec<f64>,
    sent: &mut [u64; 2],
) -> Result<(), Box<dyn Error>> {
    let [first, second] = [0, 1].map(NodeId::from_index);
    let idle = || HostConfig::idle(profile.clone(), 1);
    let streams: Vec<StreamScript> = [script].into_iter().chain(beside).collect();
    let receiver = HostConfig { expects_streams: streams.len(), ..idle() };
    let sender = HostConfig { connect_to: vec![second], streams, closes: true, ..idle() };
    let (mut network, _) = topology::pair(Host::new(first, sender), Host::new(second, receiver), link)?;
    let limit = netsim::Time::ZERO + script.every * (script.length / script.write) as u32 + Duration::from_secs(120);
    network.run_while(|hosts| !hosts.iter().all(Host::is_over), limit)?;
    let [sender, receiver] = [0, 1].map(|side| network.nodes()[side].tallies().next());
    let (sender, receiver) = sender.zip(receiver).ok_or("they have not met")?;
    sent[0] += sender.last_stats.packets.bytes_sent;
    sent[1] += receiver.last_stats.packets.bytes_sent;
    let (writing, reading) = (sender.streams.writing.values().next(), receiver.streams.reading.values().next());
    let (writing, reading) = writing.zip(reading).ok_or("no stream")?;
    if (reading.read, reading.wrong) != (script.length, 0) {
        return Err(format!("{} of {} bytes arrived, {} wrong", reading.read, script.length, reading.wrong).into());
    }
    let mut reads = reading.log.iter().peekable();
    for (until, at) in writing.log.iter().filter(|(_, at)| at.since(transport::Time::ZERO) >= KNOWN) {
        while reads.next_if(|(read, _)| read < until).is_some() {}
        let read = reads.peek().ok_or("read to its end")?.1;
        delays.push(read.since(*at).as_secs_f64() * 1e3);
    }
    Ok(())
}
