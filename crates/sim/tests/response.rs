//! Response functions: the end-to-end throughput of loss-based controllers at a given loss rate in virtual time,
//! compared with closed formulas.

use downpour_sim::{Case, Ending};
use std::time::Duration;

/// Returns the packets per round trip of a transfer, with feedback by ranges, over a path with random loss of data
/// packets and without a bottleneck.
fn packets_per_round_trip(profile: &str, congestion: &str, rtt_millis: u64, loss_percent: u64) -> f64 {
    let delay = rtt_millis * 500;
    let link = format!("delay={delay}us,loss={loss_percent}% / delay={delay}us");
    let mut profile = systems::profile(profile).expect("a name");
    let choices =
        [("feedback.packets", "ranges"), ("detection", "threshold"), ("timeout", "probe"), ("congestion", congestion)];
    choices.iter().for_each(|(key, value)| profile.set(key, value).expect("a choice"));
    let size = 6_000_000;
    let limit = Duration::from_secs(3600);
    let case = Case { size, profile, limit, ..Case::new(link.parse().expect("a link")) };
    let rates: Vec<f64> = (1..=3)
        .map(|seed| {
            let outcome = case.run(seed);
            assert_eq!((outcome.ending, outcome.is_identical()), (Ending::Closed, true), "seed {seed}");
            let packets = (size as f64 / 1408.0) / (1.0 - loss_percent as f64 / 100.0);
            packets * rtt_millis as f64 / 1000.0 / outcome.completed_secs()
        })
        .collect();
    rates.iter().sum::<f64>() / rates.len() as f64
}

/// Mathis 1997: a Reno acknowledged packet by packet averages sqrt(3 / (2 p)) packets. Only whole packets of the window
/// are in flight, half a packet less on average, which is a tenth at 5 %.
#[test]
fn reno_averages_match_its_response_function() {
    for profile in ["arq", "auto"] {
        for (rtt, loss) in [(20, 1), (100, 1), (20, 2), (100, 2), (20, 5), (100, 5)] {
            let got = packets_per_round_trip(profile, "reno:initial=10,threshold=none,inflation=0", rtt, loss);
            let expected = (150.0 / loss as f64).sqrt() - 0.5;
            let ratio = got / expected;
            assert!((0.85..1.15).contains(&ratio), "{profile}, {rtt} ms, {loss} %: {got:.2} for {expected:.2}");
        }
    }
}

/// All numbers, as arq has others.
const RFC_9438: &str = "cubic:initial=10,threshold=none,beta=0.7,hystart=on,form=rfc9438";

/// Where Reno is faster than the cubic function, CUBIC should average the same as Reno (RFC 9438 section 4.3). It
/// averages somewhat more: once it is above the window of the last reduction, it adds a whole packet per round trip.
#[test]
fn cubic_gets_at_least_renos_response() {
    for profile in ["arq", "auto"] {
        for (rtt, loss) in [(20, 1), (100, 1), (20, 2), (100, 2), (20, 5), (100, 5)] {
            let got = packets_per_round_trip(profile, RFC_9438, rtt, loss);
            let expected = (150.0 / loss as f64).sqrt() - 0.5;
            let ratio = got / expected;
            assert!((0.95..1.3).contains(&ratio), "{profile}, {rtt} ms, {loss} %: {got:.2} for {expected:.2}");
        }
    }
}
