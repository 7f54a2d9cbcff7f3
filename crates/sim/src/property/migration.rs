//! The property for hosts that change their addresses, while an attacker sends copies of their packets from its own
//! address: the data arrives identical all the same, neither host is redirected, and the attacker's address gets at
//! most three times the bytes received from it.

use super::{RunFigures, Scenario, Watch, judge};
use crate::addresses::{ADDRESSES_PER_HOST, Roaming};
use crate::host::Host;
use fastrand::Rng;
use netsim::Loss;
use std::fmt::Write;
use std::time::Duration;

/// The behaviour of an on-path attacker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attacker {
    /// No attacker.
    None,
    /// It copies one packet in `every` of one host, and its copy arrives first. An attacker that overtakes every packet
    /// and drops the replies cannot be distinguished from a dead path.
    Copies {
        /// The host of the copied packets.
        of: usize,
        /// One packet in this many is copied.
        every: u64,
        /// It relays packets sent to it to that host.
        passes_on: bool,
    },
}

/// A change of address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// When.
    pub at: Duration,
    /// The host that moves.
    pub side: usize,
    /// The index of its new address.
    pub to: usize,
    /// The old address continues to work. It does in any case until each host knows the other's address: two hosts that
    /// leave at once cannot find each other.
    pub keep: bool,
}

/// A scenario with moving hosts.
#[derive(Clone, Debug)]
pub struct MigrationScenario {
    /// Everything else.
    pub scenario: Scenario,
    /// In order of time.
    pub moves: Vec<Move>,
    /// The attacker.
    pub stranger: Attacker,
    /// The path carries nothing for a while.
    pub pause: Option<(Duration, Duration)>,
}

impl MigrationScenario {
    /// Draws the scenario of this seed.
    pub fn draw(seed: u64) -> Self {
        let mut random = Rng::with_seed(seed ^ 0x6d6f_7665);
        let scenario = Scenario { outage: super::Outage::None, ..Scenario::draw(seed) };
        let span = scenario.expected() * 2;
        let part = |random: &mut Rng| Duration::from_micros((span.as_micros() as f64 * random.f64()) as u64);
        let both = random.u8(..3) == 0;
        let flaps = random.u8(..3) == 0;
        let one = random.usize(..2);
        let mut at: Vec<Duration> = (0..[1, 1, 2, 3, 8][random.usize(..5)]).map(|_| part(&mut random)).collect();
        at.sort_unstable();
        let moves = at.into_iter().enumerate().map(|(nth, at)| Move {
            at,
            side: if both { random.usize(..2) } else { one },
            to: if flaps { (nth + 1) % 2 } else { random.usize(..ADDRESSES_PER_HOST) },
            keep: random.u8(..3) == 0,
        });
        let moves = moves.collect();
        let stranger = match random.u8(..3) {
            0 => Attacker::Copies { of: random.usize(..2), every: random.u64(2..20), passes_on: random.bool() },
            _ => Attacker::None,
        };
        let pause = (random.u8(..4) == 0).then(|| (part(&mut random), Duration::from_millis(random.u64(..6_000))));
        Self { scenario, moves, stranger, pause }
    }
}

/// Runs the scenario of this seed.
///
/// # Errors
/// The problem, the scenario, and the command that runs it again.
pub fn check(seed: u64) -> Result<RunFigures, String> {
    let moving = MigrationScenario::draw(seed);
    run(&moving).map_err(|wrong| {
        let mut text = format!("seed {seed}: {wrong}\n  {}\n  ", moving.scenario);
        let _ = write!(text, "{:?}, {:?}, pause {:?}", moving.moves, moving.stranger, moving.pause);
        text + &format!("\n  replay: SEED={seed} cargo test -p downpour-sim --test moving seeds -- --nocapture")
    })
}

/// Runs a scenario.
///
/// # Errors
/// The problem.
pub fn run(moving: &MigrationScenario) -> Result<RunFigures, String> {
    let scenario = &moving.scenario;
    let configs = [0, 1].map(|side| scenario.host_config(side, Roaming::address(1 - side, 0)));
    let mut roaming = Roaming::new(configs, &scenario.link).map_err(|error| error.to_string())?;
    if let Attacker::Copies { of, every, passes_on } = moving.stranger {
        roaming.host(of).copy_packets(Roaming::ATTACKER, every);
        roaming.pass_on(passes_on.then_some(of), true).map_err(|error| error.to_string())?;
    }
    let mut watch = Watch { completed: None, connects: scenario.connects, closes: scenario.closes };
    for (at, step) in steps(moving) {
        watch.run_roaming(&mut roaming, at)?;
        match step {
            MoveStep::Move(Move { side, to, keep, .. }) => {
                let keep = keep || !roaming.is_settled();
                // The side that does not connect must be at the address to which the other connects.
                if side == scenario.connects || roaming.is_settled() {
                    roaming.move_to(side, to, keep);
                }
            }
            MoveStep::Cut(dead) => roaming
                .change_links(
                    |config| if dead { netsim::LinkConfig { loss: Loss::Bernoulli(1.0), ..config } } else { config },
                )
                .map_err(|error| error.to_string())?,
        }
    }
    let last = roaming.network.now().checked_since(netsim::Time::ZERO).unwrap_or_default();
    watch.run_roaming(&mut roaming, last + scenario.patience())?;
    roaming
        .network
        .run_until(roaming.network.now().checked_add(scenario.storage_delay * 2).unwrap_or(netsim::Time::MAX))
        .map_err(|stalled| stalled.to_string())?;
    check_stranger(moving, &mut roaming)?;
    let hosts = [0, 1].map(|side| Roaming::seen(roaming.network.nodes(), side));
    judge(scenario, hosts, roaming.network.now(), roaming.network.stats().sent, &watch)
}

fn check_stranger(moving: &MigrationScenario, roaming: &mut Roaming) -> Result<(), String> {
    let Attacker::Copies { of, passes_on, .. } = moving.stranger else { return Ok(()) };
    let (sent, got) = (roaming.host(of).copied_bytes(), roaming.stranger_bytes());
    // An attacker that relays everything, in both directions, is the path, in addition to the copied host's own.
    if got > 3 * sent && !passes_on {
        return Err(format!("the attacker got {got} bytes for {sent}"));
    }
    Ok(())
}

#[derive(Clone, Copy)]
enum MoveStep {
    Move(Move),
    Cut(bool),
}

fn steps(moving: &MigrationScenario) -> Vec<(Duration, MoveStep)> {
    let mut steps: Vec<(Duration, MoveStep)> =
        moving.moves.iter().map(|step| (step.at, MoveStep::Move(*step))).collect();
    if let Some((at, length)) = moving.pause {
        steps.extend([(at, MoveStep::Cut(true)), (at + length, MoveStep::Cut(false))]);
    }
    steps.sort_by_key(|(at, _)| *at);
    steps
}

impl Watch {
    fn run_roaming(&mut self, roaming: &mut Roaming, until: Duration) -> Result<(), String> {
        if self.completed.is_none() {
            let either = |hosts: [&Host; 2]| self.is_content(hosts) || self.is_over(hosts);
            roaming.run(until, either).map_err(|stalled| stalled.to_string())?;
            let hosts = [0, 1].map(|side| Roaming::seen(roaming.network.nodes(), side));
            self.completed = self.is_content(hosts).then(|| roaming.network.now());
        }
        roaming.run(until, |hosts| self.is_over(hosts)).map_err(|stalled| stalled.to_string())?;
        Ok(())
    }
}
