//! Flows that share one link, in steady state: `cargo run --release -p downpour-sim --example neighbours LINK SECONDS SEEDS FLOW...`
//!
//! A flow is a choice of congestion control in the profile `auto`, or `linux-tcp`, and the changes of the link for it
//! alone: `auto`, `cubic`, `auto/loss=5%`, `linux-tcp/delay=50ms`. The first third of the time is not counted. For each
//! seed: each flow's bytes as a share of the link's, Jain's index, the median and 95th percentile of the wait at the
//! link, and its drops.

use downpour_sim::{Flow, LINUX_TCP, SharedCase, jain, linux_tcp};
use netsim::Duplex;
use netsim::topology::{Side, Topology};
use std::error::Error;
use std::time::Duration;
use transport::Profile;
use transport::profile::ProfileError;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [link, seconds, seeds, flows @ ..] = &arguments[..] else { return Err("LINK SECONDS SEEDS FLOW...".into()) };
    let bottleneck: Duplex = link.parse()?;
    let rate = bottleneck.forward.rate.ok_or("the link needs a rate")?.bits_per_second();
    let (seconds, seeds): (u64, u64) = (seconds.parse()?, seeds.parse()?);
    let mut sides = Vec::new();
    let mut profiles = Vec::new();
    for (number, flow) in flows.iter().enumerate() {
        let (congestion, own) = flow.split_once('/').unwrap_or((flow, "rate=10G"));
        profiles.push(if congestion == LINUX_TCP { linux_tcp() } else { chosen(congestion)? });
        sides.push(Side { name: format!("f{number}"), sender: own.parse()?, receiver: "rate=10G".parse()? });
    }
    let topology = Topology::dumbbell(&bottleneck, &sides)?;
    for seed in 1..=seeds {
        let flows: Vec<Flow> = (0..)
            .zip(topology.pairs().iter().zip(&profiles))
            .map(|(number, (pair, profile))| Flow {
                start: Duration::from_millis(number * 700),
                start_within: Duration::from_secs(1),
                ..Flow::endless(*pair, profile.clone())
            })
            .collect();
        let limit = Duration::from_secs(seconds);
        let case = SharedCase { flows, warm_up: limit / 3, limit, ..SharedCase::new(topology.clone()) };
        let outcome = case.run(seed)?;
        let shares: Vec<f64> = outcome.flows.iter().map(|flow| flow.throughput / rate as f64).collect();
        let wait = |part| outcome.waits[0][0].quantile(part).unwrap_or_default().as_secs_f64() * 1e3;
        let link = &outcome.links[0][0];
        println!(
            "seed {seed}: {} sum {:.3} Jain {:.3}, wait {:.1} / {:.1} ms, dropped {:.2} %",
            shares.iter().map(|share| format!("{share:.3}")).collect::<Vec<_>>().join(" "),
            shares.iter().sum::<f64>(),
            jain(&shares),
            wait(0.5),
            wait(0.95),
            100.0 * link.dropped_queue_full.packets as f64 / link.offered.packets as f64,
        );
    }
    Ok(())
}

fn chosen(congestion: &str) -> Result<Profile, ProfileError> {
    let mut profile = systems::auto();
    profile.set("congestion", congestion)?;
    Ok(profile)
}
