//! The documents' systems move 10 MB intact over every kind of link, and have the property that the engine has to have.
//! `SEED=n cargo test -p sim --test documents -- --nocapture` runs one drawn scenario.

use sim::{Case, Ending, property::check_documents};
use std::time::Duration;
use transport::{Profile, Rate};

/// 20 Mbit/s without loss, with loss alone and in bursts, short round trips and long ones.
fn links() -> impl Iterator<Item = String> {
    let losses = ["0%", "5%", "20%", "20%,burst=10"];
    [10, 500]
        .into_iter()
        .flat_map(move |rtt| losses.map(|loss| format!("rate=20M,delay={}ms,queue=1MB,loss={loss}", rtt / 2)))
}

/// Ends intact within 600 seconds of virtual time; how many floors each link took at most.
fn moves_10_megabytes(profile: &Profile, floors: [f64; 8]) {
    for (link, most) in links().zip(floors) {
        let profile = profile.clone().with_told_rate(Rate::from_bits_per_second(20_000_000));
        let limit = Duration::from_secs(600);
        let case = Case { profile, limit, ..Case::new(link.parse().expect("a link")) };
        let outcome = case.run(1);
        let (name, taken) = (&case.profile.name, outcome.completed_secs() / case.floor().as_secs_f64());
        println!(
            "{name} over {link}: {:.3} s, {taken:.2} floors, {:.3} sent per byte",
            outcome.completed_secs(),
            outcome.bytes_until_complete as f64 / case.size as f64
        );
        assert!(outcome.is_identical() && outcome.ending == Ending::Closed, "{name} over {link}: {:?}", outcome.ending);
        assert!(taken <= most, "{name} over {link}: {taken:.2} floors");
    }
}

/// Block by block it waits a round trip for each of the ten, and then for what was sent meanwhile.
#[test]
fn rc_udp_moves_10_megabytes() {
    moves_10_megabytes(&Profile::rc_udp(), [1.1, 1.15, 1.25, 1.4, 2.8, 2.8, 2.7, 3.8]);
}

/// On long paths each round of repair goes to all blocks that are on their way.
#[test]
fn tornado_transfer_moves_10_megabytes() {
    moves_10_megabytes(&Profile::tornado_transfer(), [1.05, 1.25, 1.5, 1.9, 1.1, 2.7, 4.4, 4.5]);
}

fn check_all(first: u64, count: u64) {
    if let Some(seed) = std::env::var("SEED").ok().and_then(|seed| seed.parse::<u64>().ok()) {
        return println!("{:#?}", check_documents(seed).unwrap_or_else(|wrong| panic!("{wrong}")));
    }
    let failures: Vec<String> = (first..first + count).filter_map(|seed| check_documents(seed).err()).collect();
    assert!(failures.is_empty(), "{} of {count} seeds fail:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn seeds_0_to_499() {
    check_all(0, 500);
}

#[test]
fn seeds_500_to_999() {
    check_all(500, 500);
}

/// Its window knows of congestion by marks alone (lt-tcp §1.1).
#[test]
fn lt_tcp() {
    run_all(&Profile::lt_tcp(), "20M,mark-above=60KB");
}

#[test]
fn ttp() {
    run_all(&Profile::ttp(), "20M");
}

/// The document's open fault is that it is slower than TCP where nothing is lost (lt-tcp §5).
#[test]
fn lt_tcp_is_no_slower_than_arq_where_nothing_is_lost() {
    for delay in [1, 10, 50] {
        let link = format!("rate=100M,delay={delay}ms,queue=2MB,mark-above=500KB");
        let seconds = |profile| {
            let outcome = case(profile, &link).run(1);
            assert_eq!((outcome.ending, outcome.is_identical()), (Ending::Closed, true), "{link}");
            outcome.completed_secs()
        };
        let (lt_tcp, arq) = (seconds(Profile::lt_tcp()), seconds(Profile::arq()));
        println!("{link}: lt-tcp {lt_tcp:.3} s, arq {arq:.3} s");
        assert!(arq / lt_tcp >= 0.95, "{link}: lt-tcp {lt_tcp:.3} s, arq {arq:.3} s");
    }
}
