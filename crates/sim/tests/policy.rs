//! A sender's claim on a path: `--policy` and rates above the capacity.

use downpour_sim::{Flow, SharedCase, SharedOutcome};
use netsim::topology::{Side, Topology};
use std::time::Duration;
use transport::Rate;
use transport::congestion::RateConstraint;

const SECONDS: u64 = 30;

/// Runs flows with these controllers over one link of 20 Mbit/s with a queue of one bandwidth-delay product at 50 ms,
/// whose starts differ by parts of a second.
fn beside(controllers: &[&str]) -> SharedOutcome {
    let bottleneck = "rate=20M,delay=25ms,queue=125KB".parse().expect("a link");
    let sides = Side::alike(controllers.len(), &"rate=1G".parse().expect("a link"));
    let topology = Topology::dumbbell(&bottleneck, &sides).expect("names");
    let flow = |(number, (pair, controller)): (u64, (_, &&str))| {
        let mut profile = systems::auto();
        profile.set("congestion", controller).expect("a controller");
        Flow { start: Duration::from_millis(730 * number), ..Flow::new(pair, profile, 20_000_000 / 8 * SECONDS) }
    };
    let flows = (0..).zip(topology.pairs().iter().copied().zip(controllers)).map(flow).collect();
    let case = SharedCase { flows, limit: Duration::from_secs(SECONDS), ..SharedCase::new(topology.clone()) };
    case.run(1).expect("runs")
}

/// Returns each flow's share of the link's bytes in the last two thirds.
fn shares(outcome: &SharedOutcome) -> Vec<f64> {
    let (spans, all) = (SECONDS as usize * 10, 20_000_000.0 / 8.0 * SECONDS as f64 * 2.0 / 3.0);
    let late = |arrived: &[u64]| arrived.iter().take(spans).skip(spans / 3).sum::<u64>() as f64;
    outcome.flows.iter().map(|flow| late(&flow.arrived) / all).collect()
}

#[test]
fn low_policy_uses_spare_capacity_only() {
    for other in ["cubic", "reno", "auto"] {
        let (alone, both) = (shares(&beside(&[other])), shares(&beside(&[other, "auto:policy=low"])));
        assert!(both[0] > 0.94 * alone[0], "{other}: {both:?}, alone {alone:?}");
    }
    let alone = shares(&beside(&["auto:policy=low"]));
    assert!(alone[0] > 0.9, "{alone:?}");
}

#[test]
fn connections_with_a_part_of_a_share_claim_as_much_as_one() {
    let ours = |controllers: &[&str]| shares(&beside(controllers)).iter().skip(1).sum::<f64>();
    let (one, part) = (ours(&["cubic", "auto"]), "auto:share=0.25");
    let (parts, whole) = (ours(&["cubic", part, part, part, part]), ours(&["cubic", "auto", "auto", "auto", "auto"]));
    println!("one {one}, four of a quarter {parts}, four {whole}");
    assert!((0.55..1.4).contains(&(parts / one)) && whole > 1.5 * one, "{one}, {parts}, {whole}");
}

#[test]
fn a_rate_far_above_the_path_is_named_in_two_seconds_and_given_up_unless_it_insists() {
    let states = |controller| {
        let outcome = beside(&[controller, "cubic"]);
        let at = |wanted: &[RateConstraint]| {
            let is_wanted = |state: Option<transport::congestion::ControllerState>| {
                state.is_some_and(|state| wanted.contains(&state.constraint))
            };
            outcome.flows[0].course.iter().position(|moment| is_wanted(moment.controller))
        };
        (at(&[RateConstraint::Overload]), at(&[RateConstraint::Path, RateConstraint::Neighbors]), shares(&outcome))
    };
    // In tenths of a second.
    let (named, given_up, after) = states("fixed-rate:200M");
    assert!(named.is_some_and(|at| at <= 20), "{named:?}");
    assert!(given_up.is_some_and(|at| (50..75).contains(&at)), "{given_up:?}");
    assert!(after[1] > 0.3, "{after:?}");
    let (named, given_up, after) = states("fixed-rate:200M,insist=on");
    assert!(named.is_some_and(|at| at <= 20) && given_up.is_none(), "{named:?} {given_up:?}");
    assert!(after[1] < 0.05, "{after:?}");
    let (named, given_up, _) = states("fixed-rate:19M");
    assert_eq!((named, given_up), (None, None), "another CUBIC flow is no overload");
}

#[test]
fn a_rate_is_held_over_a_path_that_loses_much() {
    let rate = Rate::from_bits_per_second(19_000_000);
    let text = "hosts = [\"a\", \"b\"]\nlinks = [{ between = [\"a\", \"b\"], link = \"rate=20M,delay=50ms,loss=40%,jitter=3ms,queue=125KB\" }]\n\
                pairs = [{ from = \"a\", to = \"b\" }]\n";
    let topology: Topology = text.parse().expect("a topology");
    let flows = vec![Flow::new(topology.pairs()[0], systems::auto().with_fixed_rate(rate), 15_000_000)];
    let outcome =
        SharedCase { flows, limit: Duration::from_secs(60), ..SharedCase::new(topology) }.run(1).expect("runs");
    assert!(outcome.flows[0].is_identical);
    let states = outcome.flows[0].course.iter().filter_map(|moment| moment.controller);
    let constraints: Vec<RateConstraint> = states.map(|state| state.constraint).collect();
    assert!(constraints.len() > 100 && constraints.iter().all(|constraint| *constraint == RateConstraint::FixedRate));
}
