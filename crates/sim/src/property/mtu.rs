//! The property for paths with an MTU that shrinks in mid-transfer, once or several times, without notice: the data
//! arrives identical.

use super::{Outage, RunFigures, Scenario, Watch, judge};
use fastrand::Rng;
use netsim::{LinkConfig, topology};
use std::time::Duration;

/// A reduction of the path's MTU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shrink {
    /// When it happens.
    pub at: Duration,
    /// Largest IP packet that passes from host 0 to host 1.
    pub forward: u32,
    /// Largest IP packet that passes in the other direction.
    pub backward: u32,
}

/// A scenario with a shrinking path.
#[derive(Clone, Debug)]
pub struct MtuScenario {
    /// Everything else.
    pub scenario: Scenario,
    /// In order of time.
    pub shrinks: Vec<Shrink>,
}

/// Smallest IP packet that every path carries: the first message of a handshake.
const SMALLEST: u32 = 1_200 + 28;

impl MtuScenario {
    /// Draws the scenario of this seed, with objects or, if `streams`, with streams too.
    pub fn draw(seed: u64, streams: bool) -> Self {
        let mut random = Rng::with_seed(seed ^ 0x6d74_7521);
        let scenario = if streams { Scenario::draw_with_streams(seed) } else { Scenario::draw(seed) };
        let scenario = Scenario { outage: Outage::None, ..scenario };
        let span = scenario.expected() * 2;
        let mut at: Vec<Duration> = (0..random.usize(1..4))
            .map(|_| Duration::from_micros((span.as_micros() as f64 * random.f64()) as u64))
            .collect();
        at.sort_unstable();
        let (mut forward, mut backward) = (1_500, 1_500);
        let shrinks = at.into_iter().map(|at| {
            match random.u8(..4) {
                0 => forward = random.u32(SMALLEST..=forward),
                1 => backward = random.u32(SMALLEST..=backward),
                _ => {
                    forward = random.u32(SMALLEST..=forward);
                    backward = forward.min(backward);
                }
            }
            Shrink { at, forward, backward }
        });
        let shrinks = shrinks.collect();
        Self { scenario, shrinks }
    }
}

/// Runs the scenario of this seed, with objects or, if `streams`, with streams too.
///
/// # Errors
/// The problem, the scenario, and the command that runs it again.
pub fn check(seed: u64, streams: bool) -> Result<RunFigures, String> {
    let MtuScenario { scenario, shrinks } = &MtuScenario::draw(seed, streams);
    run(scenario, shrinks).map_err(|wrong| {
        let test = if streams { "seeds_with_streams" } else { "seeds_of_objects" };
        format!(
            "seed {seed}: {wrong}\n  {scenario}\n  {shrinks:?}\n  replay: SEED={seed} cargo test -p downpour-sim --test shrinking {test} -- --nocapture"
        )
    })
}

/// Runs a scenario.
///
/// # Errors
/// The problem.
pub fn run(scenario: &Scenario, shrinks: &[Shrink]) -> Result<RunFigures, String> {
    let (mut network, pair) =
        topology::pair(scenario.host(0), scenario.host(1), &scenario.link).map_err(|error| error.to_string())?;
    let mut watch = Watch { completed: None, connects: scenario.connects, closes: scenario.closes };
    let mut last = Duration::ZERO;
    for Shrink { at, forward, backward } in shrinks {
        watch.run(&mut network, *at)?;
        last = *at;
        for (link, config, mtu) in [
            (pair.links.forward, &scenario.link.forward, *forward),
            (pair.links.backward, &scenario.link.backward, *backward),
        ] {
            network
                .set_link(link, LinkConfig { mtu: Some(mtu), ..config.clone() })
                .map_err(|error| error.to_string())?;
        }
    }
    watch.run(&mut network, last + scenario.patience())?;
    let written = network.now().checked_add(scenario.storage_delay * 2).unwrap_or(netsim::Time::MAX);
    network.run_until(written).map_err(|stalled| stalled.to_string())?;
    let hosts = [&network.nodes()[0], &network.nodes()[1]];
    judge(scenario, hosts, network.now(), network.stats().sent, &watch)
}
