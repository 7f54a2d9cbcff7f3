//! Whole transfers with every loss detection, every timeout and every compatible form of feedback.

use downpour_sim::{Case, Ending, Outcome};
use std::time::Duration;
use transport::{Profile, Rate};

fn run(mut profile: Profile, choices: &[(&str, &str)], link: &str) -> Outcome {
    for (key, value) in choices {
        profile.set(key, value).expect("a choice");
    }
    let case = Case { size: 1_000_000, profile, ..Case::new(link.parse().expect("a link")) };
    let outcome = Case { limit: Duration::from_secs(600), ..case }.run(1);
    assert_eq!((outcome.ending, outcome.is_identical()), (Ending::Closed, true), "{choices:?} over {link}");
    outcome
}

#[test]
fn every_combination_moves_a_megabyte() {
    let in_order = ["duplicates", "duplicates:newreno=off", "duplicates:recovery=off", "threshold"];
    let named = ["threshold", "threshold:packets=1,adapt=off", "duplicates"];
    // A sender that only learns how many packets arrived, not which, sends interchangeable symbols.
    let counted = systems::rc_udp::profile().with_fixed_rate(Rate::from_bits_per_second(20_000_000));
    let forms = [
        ("in-order", systems::arq::profile(), &in_order[..]),
        ("ranges", systems::arq::profile(), &named[..]),
        ("count", counted, &named[..]),
    ];
    for (form, profile, detections) in forms {
        for detection in detections {
            for timeout in ["rto", "rto:min=1s,max=5s", "probe"] {
                for loss in ["0%", "1%", "10%"] {
                    let link = format!("rate=20M,delay=10ms,queue=100KB,loss={loss}");
                    let choices = [("feedback.packets", form), ("detection", detection), ("timeout", timeout)];
                    let outcome = run(profile.clone(), &choices, &link);
                    println!("{form:8} {detection:29} {timeout:18} {loss:3}: {:.3} s", outcome.completed_secs());
                }
            }
        }
    }
}

/// Reproduces arq's figures 1 and 2 qualitatively.
#[test]
fn fast_recovery_is_faster_than_timeouts() {
    let link = "rate=20M,delay=20ms,queue=100KB,loss=1%";
    let with = |detection| {
        let choices = [("feedback.packets", "in-order"), ("detection", detection), ("timeout", "rto:min=1s")];
        run(systems::arq::profile(), &choices, link).completed_secs()
    };
    let (on, off) = (with("duplicates"), with("duplicates:recovery=off"));
    assert!(on * 2.0 < off, "{on} s with, {off} s without");
}

/// Law 3: a timeout longer than the tolerated silence of a peer does not end the connection, since the peer is probed
/// meanwhile.
#[test]
fn a_long_timeout_gives_no_connection_up() {
    for timeout in ["rto:min=60s", "rto:min=20s,max=600s"] {
        let choices =
            [("feedback.packets", "in-order"), ("detection", "duplicates:recovery=off"), ("timeout", timeout)];
        run(systems::arq::profile(), &choices, "rate=20M,delay=20ms,queue=100KB,loss=1%");
        run(systems::lt_tcp::profile(), &[("timeout", timeout)], "rate=20M,delay=20ms,queue=100KB,loss=20%,burst=10");
    }
}
