//! The property that the engine must have: whatever a path does, the data arrives identical, or the connection ends
//! with a clean error if the path is dead (ARCHITECTURE, laws 3, 4, 6 and 7).
//!
//! [`check`] draws a scenario from a seed, runs it in virtual time and reports failures. The tests run some thousands
//! of seeds, `cargo xtask soak` as many as the time allows.

pub mod migration;
pub mod mtu;
mod scenario;

pub use scenario::{Change, Outage, Scenario};

use crate::host::Host;
use crate::streams::Streams;
use netsim::{Loss, Network, NodeId, topology};
use std::time::Duration;
use transport::{ConnectionConfig, ConnectionError};

/// A dead path is noticed within twice the idle timeout: one side stops sending only after its own timeout.
const DEATH_NOTICED_WITHIN: Duration = Duration::from_secs(250);

/// Bytes of the largest symbol accepted, in which credit counts.
const LARGEST_SYMBOL: u64 = 1_408;

/// The figures of a correct run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunFigures {
    /// Time until the side that closes was done; `None` if the path died before.
    pub completed: Option<Duration>,
    /// Time until both sides had removed the connection.
    pub ended: Duration,
    /// Packets that both sides sent.
    pub packets: u64,
    /// The side that did not close received the close.
    pub close_heard: bool,
}

/// Runs the scenario of this seed.
///
/// # Errors
/// The problem, the scenario, and the command that runs it again.
pub fn check(seed: u64) -> Result<RunFigures, String> {
    checked(&Scenario::draw(seed), "objects")
}

/// Runs the scenario of this seed with streams.
///
/// # Errors
/// The problem, the scenario, and the command that runs it again.
pub fn check_streams(seed: u64) -> Result<RunFigures, String> {
    checked(&Scenario::draw_with_streams(seed), "streams")
}

/// Runs the scenario of this seed with the documents' systems.
///
/// # Errors
/// The problem, the scenario, and the command that runs it again.
pub fn check_documents(seed: u64) -> Result<RunFigures, String> {
    checked(&Scenario::draw_documents(seed), "documents")
}

/// Runs the scenario of this seed with the other documents' systems, and any choice of feedback and loss detection.
///
/// # Errors
/// The problem, the scenario, and the command that runs it again.
pub fn check_choices(seed: u64) -> Result<RunFigures, String> {
    checked(&Scenario::draw_choices(seed), "choices")
}

/// Runs a drawn scenario; `test` names the test that draws such.
fn checked(scenario: &Scenario, test: &str) -> Result<RunFigures, String> {
    run(scenario).map_err(|wrong| {
        let seed = scenario.seed;
        format!(
            "seed {seed}: {wrong}\n  {scenario}\n  replay: SEED={seed} cargo test -p downpour-sim --test property {test} -- --nocapture"
        )
    })
}

/// Makes another choice for every connection of both hosts.
fn change(network: &mut Network<Host>, change: &Change) -> Result<(), String> {
    let now = transport::Time::from_nanos(network.now().as_nanos());
    for id in [0, 1].map(NodeId::from_index) {
        let Some(endpoint) = network.node_mut(id).map(Host::endpoint) else { continue };
        let handles: Vec<_> = endpoint.handles().collect();
        for handle in handles {
            let Some(connection) = endpoint.connection(handle) else { continue };
            connection.set(now, change.key, change.value).map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}

/// Runs a scenario.
///
/// # Errors
/// The problem.
pub fn run(scenario: &Scenario) -> Result<RunFigures, String> {
    let (mut network, pair) =
        topology::pair(scenario.host(0), scenario.host(1), &scenario.link).map_err(|error| error.to_string())?;
    let cut = |network: &mut Network<Host>, dead: bool| {
        for (link, config) in
            [(pair.links.forward, &scenario.link.forward), (pair.links.backward, &scenario.link.backward)]
        {
            let loss = if dead { Loss::Bernoulli(1.0) } else { config.loss };
            network.set_link(link, netsim::LinkConfig { loss, ..config.clone() }).map_err(|error| error.to_string())?;
        }
        Ok::<(), String>(())
    };
    let mut watch = Watch { completed: None, connects: scenario.connects, closes: scenario.closes };
    match scenario.outage {
        Outage::None => {
            if let Some(choice) = &scenario.change {
                watch.run(&mut network, choice.at)?;
                change(&mut network, choice)?;
            }
            watch.run(&mut network, scenario.patience())?;
        }
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
    // Blocks submitted before the close are still written after it.
    let written = network.now().checked_add(scenario.storage_delay * 2).unwrap_or(netsim::Time::MAX);
    network.run_until(written).map_err(|stalled| stalled.to_string())?;
    let hosts = [&network.nodes()[0], &network.nodes()[1]];
    judge(scenario, hosts, network.now(), network.stats().sent, &watch)
}

/// Runs a network and records when the work was done.
struct Watch {
    completed: Option<netsim::Time>,
    /// The connecting side: only it certainly knows of the connection.
    connects: usize,
    /// The side that closes as soon as it is done.
    closes: usize,
}

impl Watch {
    fn run(&mut self, network: &mut Network<Host>, until: Duration) -> Result<(), String> {
        let until = netsim::Time::ZERO + until;
        let (over, content) = (
            |nodes: &[Host]| self.is_over([&nodes[0], &nodes[1]]),
            |nodes: &[Host]| self.is_content([&nodes[0], &nodes[1]]),
        );
        if self.completed.is_none() {
            network.run_while(|nodes| !content(nodes) && !over(nodes), until).map_err(|stalled| stalled.to_string())?;
            self.completed = content(network.nodes()).then(|| network.now());
        }
        let over = |nodes: &[Host]| self.is_over([&nodes[0], &nodes[1]]);
        network.run_while(|nodes| !over(nodes), until).map_err(|stalled| stalled.to_string())?;
        if !over(network.nodes()) && network.next_event().is_none() {
            return Err(format!("deadlock: no event is left at {}", seconds(network.now())));
        }
        Ok(())
    }

    /// Returns whether no connection is left.
    fn is_over(&self, hosts: [&Host; 2]) -> bool {
        let rest = |host: &Host| host.is_over() || host.tallies().next().is_none();
        hosts[self.connects].is_over() && hosts.into_iter().all(rest)
    }

    /// Returns whether the side that closes is done.
    fn is_content(&self, hosts: [&Host; 2]) -> bool {
        hosts[self.closes].tallies().any(|tally| tally.content_at.is_some())
    }
}

fn judge(
    scenario: &Scenario,
    hosts: [&Host; 2],
    now: netsim::Time,
    packets: u64,
    watch: &Watch,
) -> Result<RunFigures, String> {
    let ends = hosts.map(|host| host.tallies().next().and_then(|tally| tally.closed.clone()));
    for side in [0, 1] {
        judge_side(scenario, hosts, now, watch, side, &ends).map_err(|wrong| format!("side {side}: {wrong}"))?;
    }
    let since = |time: netsim::Time| time.checked_since(netsim::Time::ZERO).unwrap_or_default();
    Ok(RunFigures {
        completed: watch.completed.map(since),
        ended: since(now),
        packets,
        close_heard: matches!(ends[1 - scenario.closes], Some(ConnectionError::ClosedByPeer { .. })),
    })
}

fn judge_side(
    scenario: &Scenario,
    hosts: [&Host; 2],
    now: netsim::Time,
    watch: &Watch,
    side: usize,
    ends: &[Option<ConnectionError>; 2],
) -> Result<(), String> {
    let dies = matches!(scenario.outage, Outage::Death { .. });
    let now = seconds(now);
    let mut tallies = hosts[side].tallies();
    let Some(tally) = tallies.next() else {
        // An accepting side learns of the peer by its first packet under the agreed keys.
        let gave_up = ends[1 - side] == Some(ConnectionError::LocallyClosed) && side != scenario.closes;
        let excused = side != scenario.connects && (dies || gave_up || never_met(scenario, hosts));
        return if excused { Ok(()) } else { Err("received nothing from the peer".into()) };
    };
    if tallies.next().is_some() {
        return Err("one handshake made two connections".into());
    }
    if let Some(received) = tally.received.values().find(|received| received.wrong > 0) {
        return Err(format!("wrong bytes were written: {received:?}"));
    }
    if tally.repeated > 0 {
        return Err(format!("{} blocks were read or written twice", tally.repeated));
    }
    if tally.control_wrong > 0 {
        return Err("wrong bytes on the control stream".into());
    }
    if tally.storing_peak > scenario.credit.symbols * LARGEST_SYMBOL {
        return Err(format!("{} bytes held for a credit of {} symbols", tally.storing_peak, scenario.credit.symbols));
    }
    if tally.last_stats.congestion.in_flight > 0 {
        return Err(format!("{} bytes are in flight after the end", tally.last_stats.congestion.in_flight));
    }
    // A close frame may be lost after its sender has left: the peer then loses the connection.
    let other_closed = side != scenario.closes && ends[scenario.closes] == Some(ConnectionError::LocallyClosed);
    let clean = match &ends[side] {
        Some(ConnectionError::LocallyClosed) => side == scenario.closes,
        Some(ConnectionError::ClosedByPeer { code, .. }) => *code == 0 && side != scenario.closes,
        // The network must have been silent as well: for as long, or somewhat less where symbols were unanswered before.
        Some(ConnectionError::TimedOut) => {
            (dies || other_closed) && tally.silence >= ConnectionConfig::default().dead_after / 2
        }
        Some(ConnectionError::HandshakeTimeout) => dies || other_closed || never_met(scenario, hosts),
        Some(
            ConnectionError::VersionMismatch { .. }
            | ConnectionError::Violation(_)
            | ConnectionError::Undecodable
            | ConnectionError::Exhausted(_),
        )
        | None => false,
    };
    let (lengths, expected) = (tally.received.values().map(|received| received.length), &scenario.objects[1 - side]);
    // A side that learns that all blocks have arrived may close before the peer has written the last of them.
    let whole = lengths.eq(expected.iter().copied()) && tally.received.values().all(crate::Received::is_whole);
    if !clean {
        return Err(format!(
            "ended as {:?}, the peer as {:?}, at {now}: {:?}",
            ends[side],
            ends[1 - side],
            tally.received
        ));
    }
    let over = watch.completed.is_some()
        || matches!(ends[side], Some(ConnectionError::LocallyClosed | ConnectionError::ClosedByPeer { .. }))
        || other_closed;
    if over && !whole {
        return Err(format!("ended as {:?} at {now} with {:?} of {expected:?}", ends[side], tally.received));
    }
    judge_streams(scenario, &tally.streams, side, over)?;
    if over && tally.control != scenario.control[1 - side] {
        return Err(format!("{} bytes of control of {}", tally.control, scenario.control[1 - side]));
    }
    Ok(())
}

/// Returns whether the network kept the hosts from meeting although they tried: the side that connects sent many copies
/// of its first message, and fewer arrived at one of the hosts than may have been corrupted.
fn never_met(scenario: &Scenario, hosts: [&Host; 2]) -> bool {
    const COPIES: u64 = 20;
    const CORRUPTED: u64 = 3;
    let [connects, other] = [scenario.connects, 1 - scenario.connects].map(|side| hosts[side].carried());
    let answered = other.sent >= other.arrived.min(CORRUPTED);
    connects.sent >= COPIES && answered && connects.arrived.min(other.arrived) < CORRUPTED
}

/// Checks that streams neither reset nor stopped arrived completely, and the others as far as received.
fn judge_streams(scenario: &Scenario, streams: &Streams, side: usize, over: bool) -> Result<(), String> {
    let scripts = &scenario.streams[1 - side];
    if streams.reading.values().any(|stream| stream.wrong > 0) {
        return Err("wrong bytes on a stream".into());
    }
    // Streams arrive in any order; their flows' numbers follow the order in which they were opened.
    let first = 1 + scenario.objects[1 - side].len() as u16;
    for (script, number) in scripts.iter().zip(first..) {
        let read = streams.reading.get(&transport::FlowId(number)).map_or(0, |stream| stream.read);
        if read > script.length || (over && script.is_whole() && read < script.length) {
            return Err(format!("{read} bytes of stream {number}, {script:?}"));
        }
    }
    Ok(())
}

fn seconds(time: netsim::Time) -> String {
    format!("{:.3} s", time.as_secs_f64())
}
