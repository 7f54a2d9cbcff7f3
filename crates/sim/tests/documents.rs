//! The systems of the documents move 10 MB intact over every kind of link.

use sim::{Case, Ending, Outcome};
use std::time::Duration;
use transport::{Profile, Rate};

const LIMIT: Duration = Duration::from_secs(600);

fn case(profile: Profile, link: &str) -> Case {
    Case { profile, limit: LIMIT, ..Case::new(link.parse().expect("a link")) }
}

/// Loss alone and in bursts, short round trips and long ones.
fn links(rate: &str) -> Vec<String> {
    let mut links = Vec::new();
    for rtt in [10, 50, 500] {
        for loss in
            ["0%", "1%", "5%", "10%", "20%", "1%,burst=5", "5%,burst=2", "5%,burst=10", "10%,burst=10", "20%,burst=10"]
        {
            let delay = rtt / 2;
            links.push(format!("rate={rate},delay={delay}ms,queue=1MB,loss={loss}"));
        }
    }
    links
}

fn run_all(profile: &Profile, rate: &str) {
    let mut failures = Vec::new();
    for link in links(rate) {
        let case = case(profile.clone(), &link);
        let outcome = case.run(1);
        let Outcome { sender, receiver, .. } = &outcome;
        println!(
            "{:18} {link}: {:.3} s of {:.3}, {:.3} sent per byte, source {} repair {} resent {} surplus {}",
            profile.name,
            outcome.completed_secs(),
            case.floor().as_secs_f64(),
            outcome.bytes_until_complete as f64 / case.size as f64,
            sender.source_symbols,
            sender.repair_symbols,
            sender.resent_symbols,
            receiver.surplus_symbols,
        );
        if outcome.ending != Ending::Closed || !outcome.is_identical() {
            failures.push(format!("{} over {link}: {:?}", profile.name, outcome.ending));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn rc_udp() {
    run_all(&Profile::rc_udp().with_told_rate(Rate::from_bits_per_second(20_000_000)), "20M");
}

#[test]
fn tornado_transfer() {
    run_all(&Profile::tornado_transfer(), "20M");
}

#[test]
fn tornado_transfer_told() {
    run_all(&Profile::tornado_transfer().with_told_rate(Rate::from_bits_per_second(20_000_000)), "20M");
}
