//! `auto` without a rate on a link with FlowQueue-CoDel (RFC 8290), with other flows.

use downpour_sim::{Background, Flow, SharedCase, SharedOutcome, Traffic};
use netsim::ConstantRate;
use netsim::topology::{Side, Topology};
use std::time::Duration;
use transport::Profile;

const RATE: f64 = 20e6;

/// Runs endless flows, with a constant rate if given, for 60 s of which the last 45 count, over a link of 20 Mbit/s and
/// 50 ms.
fn run(profiles: &[Profile], constant: Option<ConstantRate>) -> SharedOutcome {
    let bottleneck = "rate=20M,delay=25ms,queue=3bdp,fq-codel=5ms:100ms".parse().expect("a link");
    let pairs = profiles.len() + usize::from(constant.is_some());
    let sides = Side::alike(pairs, &"rate=1G".parse().expect("a link"));
    let topology = Topology::dumbbell(&bottleneck, &sides).expect("names");
    let mut pairs = topology.pairs().iter().copied();
    let flow = |(number, (profile, pair)): (u64, (&Profile, _))| Flow {
        start: Duration::from_millis(730 * number),
        ..Flow::endless(pair, profile.clone())
    };
    let flows = (0..).zip(profiles.iter().zip(&mut pairs)).map(flow).collect();
    let background = constant.into_iter().zip(pairs);
    let background = background.map(|(rate, pair)| Background { pair, traffic: Traffic::Constant(rate) }).collect();
    let (warm_up, limit) = (Duration::from_secs(15), Duration::from_secs(60));
    let case = SharedCase { flows, background, warm_up, limit, ..SharedCase::new(topology.clone()) };
    case.run(1).expect("runs")
}

/// Returns the share of the link of each flow, and the wait at it that 95 % do not exceed.
fn shares(outcome: &SharedOutcome) -> (Vec<f64>, Duration) {
    let wait = outcome.waits[0][0].quantile(0.95).expect("packets");
    (outcome.flows.iter().map(|flow| flow.throughput / RATE).collect(), wait)
}

#[test]
fn flows_share_whatever_their_controller() {
    let mut cubic = systems::auto();
    cubic.set("congestion", "cubic").expect("a controller");
    for (name, other) in
        [("linux-tcp", downpour_sim::linux_tcp()), ("auto with CUBIC", cubic), ("auto", systems::auto())]
    {
        let (shares, wait) = shares(&run(&[other, systems::auto()], None));
        println!("{name} {:.3}, auto {:.3}, wait {wait:?}", shares[0], shares[1]);
        assert!(shares.iter().all(|share| (0.45..0.52).contains(share)), "{name}: {shares:?}");
        assert!((0.9..1.1).contains(&(shares[0] / shares[1])), "{name}: {shares:?}");
        assert!(wait <= Duration::from_millis(12), "{name}: {wait:?}");
    }
}

#[test]
fn auto_fq_codel_fair_share() {
    let (alone, wait) = shares(&run(&[systems::auto()], None));
    println!("{alone:.3?} alone, wait {wait:?}");
    assert!(alone[0] >= 0.96 && wait <= Duration::from_millis(7), "{alone:?}, wait {wait:?}");
    let constant = ConstantRate {
        rate: netsim::Rate::from_megabits_per_second(40),
        packet: 1_500,
        start: netsim::Time::ZERO,
        stop: netsim::Time::MAX,
    };
    let (beside, _) = shares(&run(&[systems::auto()], Some(constant)));
    println!("{beside:.3?} with 40 Mbit/s");
    assert!(beside[0] >= 0.46, "{beside:?}");
}
