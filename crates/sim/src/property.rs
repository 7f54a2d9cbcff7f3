//! The property that the engine has to have: whatever a path does, what was sent arrives identical, or the connection ends
//! with a clean error where the path is dead (ARCHITECTURE, laws 3, 4, 6 and 7).
//!
//! [`check`] draws a scenario from a seed, runs it in virtual time and says what is wrong. The tests run some thousands of
//! seeds, `cargo xtask soak` as many as there is time for.

mod scenario;

pub use scenario::{Outage, Scenario};

use crate::host::Host;
use netsim::{Loss, Network, topology};
use std::time::Duration;
use transport::Closed;

/// A path that is dead is noticed within twice the time that a connection waits for a sign of life: one side stops
/// sending only when it has given up itself.
const DEATH_NOTICED_WITHIN: Duration = Duration::from_secs(100);

/// What a run that was as it should be took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// From the first event to both sides' last byte; `None` where the path died before.
    pub completed: Option<Duration>,
    /// Until both sides had forgotten the connection.
    pub ended: Duration,
    /// Packets that both sides sent.
    pub packets: u64,
    /// The side that did not close heard of it.
    pub close_heard: bool,
}

/// Runs the scenario of this seed.
///
/// # Errors
/// What is wrong, the scenario, and the command that runs it again.
pub fn check(seed: u64) -> Result<Report, String> {
    let scenario = Scenario::draw(seed);
    run(&scenario).map_err(|wrong| {
        format!("seed {seed}: {wrong}\n  {scenario}\n  replay: SEED={seed} cargo test -p sim --test property -- --nocapture")
    })
}

/// Runs a scenario; what is wrong with it.
///
/// # Errors
/// What is wrong.
pub fn run(scenario: &Scenario) -> Result<Report, String> {
    let (mut network, pair) =
        topology::pair(scenario.host(0), scenario.host(1), &scenario.link).map_err(|error| error.to_string())?;
    let cut = |network: &mut Network<Host>, dead: bool| {
        for (link, config) in [(pair.links.forward, scenario.link.forward), (pair.links.backward, scenario.link.backward)] {
            let loss = if dead { Loss::Bernoulli(1.0) } else { config.loss };
            network.set_link(link, netsim::LinkConfig { loss, ..config }).map_err(|error| error.to_string())?;
        }
        Ok::<(), String>(())
    };
    let mut watch = Watch { completed: None, connects: scenario.connects };
    match scenario.outage {
        Outage::None => watch.run(&mut network, scenario.patience())?,
        Outage::Pause { at, length } => {
            watch.run(&mut network, at)?;
            cut(&mut network, true)?;
            watch.run(&mut network, at + length)?;
            cut(&mut network, false)?;
            watch.run(&mut network, at + length + scenario.patience())?;
        }
        Outage::Death { at } => {
            watch.run(&mut network, at)?;
            cut(&mut network, true)?;
            watch.run(&mut network, at + DEATH_NOTICED_WITHIN)?;
        }
    }
    judge(scenario, &network, &watch)
}

/// Runs a network and notes when the work was done.
struct Watch {
    completed: Option<netsim::Time>,
    /// The side that connects: only it is sure to know of the connection.
    connects: usize,
}

impl Watch {
    fn run(&mut self, network: &mut Network<Host>, until: Duration) -> Result<(), String> {
        let until = netsim::Time::ZERO + until;
        let connects = self.connects;
        let over = |nodes: &[Host]| {
            let rest = |node: &Host| node.is_over() || node.tallies().next().is_none();
            nodes[connects].is_over() && nodes.iter().all(rest)
        };
        let content = |nodes: &[Host]| nodes.iter().all(|node| node.tallies().any(|tally| tally.content_at.is_some()));
        if self.completed.is_none() {
            network.run_while(|nodes| !content(nodes) && !over(nodes), until).map_err(|stalled| stalled.to_string())?;
            self.completed = content(network.nodes()).then(|| network.now());
        }
        network.run_while(|nodes| !over(nodes), until).map_err(|stalled| stalled.to_string())?;
        if !over(network.nodes()) && network.next_event().is_none() {
            return Err(format!("deadlock: nothing is left to happen at {}", seconds(network.now())));
        }
        Ok(())
    }
}

fn judge(scenario: &Scenario, network: &Network<Host>, watch: &Watch) -> Result<Report, String> {
    let dies = matches!(scenario.outage, Outage::Death { .. });
    let mut close_heard = false;
    for (side, node) in network.nodes().iter().enumerate() {
        let wrong = |what: String| Err(format!("side {side}: {what}"));
        let mut tallies = node.tallies();
        let Some(tally) = tallies.next() else {
            if dies && side != scenario.connects {
                continue;
            }
            return wrong("never heard of the other".into());
        };
        if tallies.next().is_some() {
            return wrong("one handshake made two connections".into());
        }
        let lengths: Vec<u64> = tally.received.values().map(|received| received.length).collect();
        if let Some(received) = tally.received.values().find(|received| received.wrong > 0) {
            return wrong(format!("wrong bytes were written: {received:?}"));
        }
        if tally.control_wrong > 0 {
            return wrong("wrong bytes on the control stream".into());
        }
        if tally.storing_peak > scenario.credit.symbols {
            return wrong(format!("{} symbols held for a credit of {}", tally.storing_peak, scenario.credit.symbols));
        }
        let Some(closed) = &tally.closed else {
            return wrong(format!("not over at {}: {:?}", seconds(network.now()), tally.received));
        };
        if tally.last_stats.in_flight > 0 {
            return wrong(format!("{} bytes are in flight after the end", tally.last_stats.in_flight));
        }
        close_heard |= matches!(closed, Closed::ByPeer { .. });
        // A close frame may be lost, and who had sent it is gone: the other side then finds the connection dead.
        let clean = match closed {
            Closed::ByUs => side == scenario.closes,
            Closed::ByPeer { code, .. } => *code == 0 && side != scenario.closes,
            Closed::Dead => dies || (watch.completed.is_some() && side != scenario.closes),
            Closed::HandshakeTimeout => dies,
            Closed::VersionMismatch { .. } | Closed::Violation(_) => false,
        };
        if !clean {
            return wrong(format!("ended as {closed:?} at {}; {lengths:?} came", seconds(network.now())));
        }
        let ended_well = matches!(closed, Closed::ByUs | Closed::ByPeer { .. }) || watch.completed.is_some();
        let expected = &scenario.objects[1 - side];
        // Who is told that the blocks have arrived may close before the other side has written the last of them.
        if ended_well && (lengths != *expected || !tally.received.values().all(crate::Received::is_whole)) {
            return wrong(format!("ended as {closed:?} with {:?} of {expected:?}", tally.received));
        }
        if ended_well && tally.control != scenario.control[1 - side] {
            return wrong(format!("{} bytes of control of {}", tally.control, scenario.control[1 - side]));
        }
    }
    let since = |time: netsim::Time| time.checked_since(netsim::Time::ZERO).unwrap_or_default();
    Ok(Report {
        completed: watch.completed.map(since),
        ended: since(network.now()),
        packets: network.stats().sent,
        close_heard,
    })
}

fn seconds(time: netsim::Time) -> String {
    format!("{:.3} s", time.as_secs_f64())
}
