//! `simulate`: downpour's engine over a network in virtual time, from the same options and files as `link`.

use std::time::Duration;
use std::{fs, io};

use netsim::topology::Topology;
use netsim::{Duplex, Rate};
use serde::Serialize;
use serde::de::DeserializeSeed as _;
use sim::{Ending, FlowOutcome, LINUX_TCP, SharedCase, SharedOutcome};
use transport::Profile;

use crate::args::SimulateArgs;
use crate::exit::{Code, Failure};
use crate::layout::read_topology;
use crate::output::say;
use crate::plan::parse_bytes;
use crate::program::{names, simulated_profile};
use crate::summary::LinkSummary;

/// Runs the transfers and prints their results.
///
/// # Errors
/// An invalid network or option; a transfer that failed.
pub fn run(args: &SimulateArgs) -> Result<u8, Failure> {
    let usage = |error: &dyn std::fmt::Display| Failure::new(Code::Usage, error);
    let profile = profile(args)?;
    let mut case = SharedCase::new(topology(args)?);
    let size = parse_bytes(&args.size).map_err(|error| usage(&error))?;
    for flow in &mut case.flows {
        (flow.size, flow.profile) = (Some(size), profile.clone());
    }
    case.limit = Duration::from_secs(args.limit);
    case.qlog = args.qlog.is_some();
    let mut outcome = case.run(args.run).map_err(|error| usage(&error))?;
    let name = |id| case.topology.name(id).unwrap_or_default();
    let show = |outcome: &SharedOutcome| {
        for flow in &outcome.flows {
            let result = result_text(flow, size, outcome.ending, args.limit);
            say(&format!("{} to {}: {result}\n", name(flow.pair.from), name(flow.pair.to)));
        }
    };
    if args.again {
        show(&outcome);
        let mut again = case.clone();
        for (flow, first) in again.flows.iter_mut().zip(&outcome.flows) {
            flow.memory = first.memory;
        }
        outcome = again.run(args.run).map_err(|error| usage(&error))?;
    }
    if let Some(file) = &args.qlog {
        let traces: Vec<u8> = outcome.flows.iter().flat_map(|flow| flow.qlog.iter().copied()).collect();
        fs::write(file, traces).map_err(Failure::at(file))?;
    }
    if let Some(file) = &args.json {
        let flows = outcome.flows.iter().map(|flow| FlowResult {
            from: name(flow.pair.from).to_owned(),
            to: name(flow.pair.to).to_owned(),
            bytes: size,
            seconds: flow.completed.filter(|_| flow.is_identical).map(|time| time.as_secs_f64()),
        });
        let results = Results { flows: flows.collect(), links: links(&case, &outcome) };
        let text = serde_json::to_string_pretty(&results).map_err(io::Error::from).map_err(Failure::at(file))? + "\n";
        fs::write(file, text).map_err(Failure::at(file))?;
    }
    show(&outcome);
    links(&case, &outcome).iter().for_each(|link| say(&format!("{link}\n")));
    if outcome.flows.iter().all(|flow| flow.is_identical) {
        return Ok(Code::Done as u8);
    }
    let message = match outcome.ending {
        Ending::Closed => "not every transfer delivered its bytes",
        _ if all_too_large(&outcome) => {
            "no packet arrives: the MTU is too small for downpour's first packets of 1228 bytes (PROTOCOL.md)"
        }
        _ => "not every transfer finished in time: raise --limit",
    };
    Err(Failure::new(Code::Invalid, message))
}

/// Returns whether a link dropped all packets as too large.
fn all_too_large(outcome: &SharedOutcome) -> bool {
    outcome.links.iter().flatten().any(|link| link.offered.packets > 0 && link.dropped_too_large == link.offered)
}

/// The results as JSON.
#[derive(Serialize)]
struct Results {
    flows: Vec<FlowResult>,
    links: Vec<LinkSummary>,
}

/// One transfer.
#[derive(Serialize)]
struct FlowResult {
    from: String,
    to: String,
    bytes: u64,
    /// Virtual time until all bytes had arrived; `None` if they did not.
    seconds: Option<f64>,
}

/// Returns the summaries of all links, each in both directions.
fn links(case: &SharedCase, outcome: &SharedOutcome) -> Vec<LinkSummary> {
    let name = |id| case.topology.name(id).unwrap_or_default();
    let both = case.topology.links().iter().zip(&outcome.links).flat_map(|(planned, ways)| {
        let (from, to) = (name(planned.from), name(planned.to));
        [LinkSummary::new(&format!("{from}>{to}"), &ways[0]), LinkSummary::new(&format!("{to}>{from}"), &ways[1])]
    });
    both.collect()
}

/// Returns the profile, by its name or from a file, with changes applied.
fn profile(args: &SimulateArgs) -> Result<Profile, Failure> {
    let refused = |error: &dyn std::fmt::Display| Failure::new(Code::Usage, error);
    let text = &args.profile;
    let mut choices = Vec::new();
    for set in &args.set {
        let (key, value) = set.split_once('=').ok_or_else(|| refused(&format_args!("--set {set}: write KEY=VALUE")))?;
        choices.push((key.trim(), value.trim()));
    }
    if text == LINUX_TCP {
        if args.fixed_rate.is_some() {
            return Err(refused(&format_args!(
                "--told has no effect on {LINUX_TCP}, which finds its rate itself: omit it"
            )));
        }
        return simulated_profile(text, choices).map_err(|error| refused(&format_args!("--set {error}")));
    }
    let mut profile = if text.contains(['/', '.']) {
        let read = fs::read_to_string(text).map_err(|error| refused(&format_args!("cannot read {text}: {error}")))?;
        let profile = toml::Deserializer::parse(&read).and_then(|file| names().deserialize(file));
        profile.map_err(|error| refused(&format_args!("invalid profile {text}: {}", error.message())))?
    } else {
        simulated_profile(text, []).map_err(|error| refused(&error))?
    };
    if let Some(rate) = &args.fixed_rate {
        let rate: Rate = rate.parse().map_err(|error| refused(&error))?;
        profile = profile.with_fixed_rate(transport::Rate::from_bits_per_second(rate.bits_per_second()));
    }
    let rate = profile.fixed_rate().filter(|_| args.fixed_rate.is_some());
    profile.set_all(choices).map_err(|error| refused(&format_args!("--set {error}")))?;
    if rate.is_some() && profile.fixed_rate() != rate {
        return Err(refused(&"--told and --set congestion exclude each other: omit one"));
    }
    Ok(profile)
}

fn result_text(flow: &FlowOutcome, size: u64, ending: Ending, limit: u64) -> String {
    match flow.completed {
        Some(time) if flow.is_identical => {
            let rate = size as f64 * 8e-6 / time.as_secs_f64();
            format!("{} in {}, {} Mbit/s", units::bytes(size), units::seconds(time.as_secs_f64()), units::number(rate))
        }
        None if ending == Ending::Closed => "gave up".to_owned(),
        _ => format!("not finished after {limit} s"),
    }
}

/// Returns the topology of a file, or of the options of a link.
fn topology(args: &SimulateArgs) -> Result<Topology, Failure> {
    let usage = |error: &dyn std::fmt::Display| Failure::new(Code::Usage, error);
    let mut topology = match &args.topology {
        Some(file) => {
            args.link.check_beside_topology()?;
            read_topology(file).map_err(|error| usage(&error))?
        }
        None => pair(&args.link.duplex().map_err(|error| usage(&error))?),
    };
    topology.load_traces(|name| std::fs::read_to_string(name)).map_err(|error| usage(&error))?;
    Ok(topology)
}

/// Returns two hosts and a link.
fn pair(link: &Duplex) -> Topology {
    const TWO: &str = r#"
        hosts = ["a", "b"]
        links = [{ between = ["a", "b"], link = "perfect" }]
        pairs = [{ from = "a", to = "b" }]
    "#;
    let mut topology: Topology = TWO.parse().expect("two hosts and a link make sense");
    let mut link = link.clone();
    // As on Ethernet, unless specified otherwise: packets of some profiles are as large as the path allows.
    for way in [&mut link.forward, &mut link.backward] {
        way.mtu = way.mtu.or(Some(1_500));
    }
    topology.replace_link("a", "b", link).expect("it exists");
    topology
}
