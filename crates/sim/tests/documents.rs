//! The documents' systems have the property that the engine has to have, and what is claimed of them.
//! `SEED=n cargo test -p sim --test documents -- --nocapture` runs one drawn scenario.

use sim::{Case, Ending, property::check_documents};
use transport::Profile;

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

/// The document's open fault is that it is slower than TCP where nothing is lost (lt-tcp §5).
#[test]
fn lt_tcp_is_no_slower_than_arq_where_nothing_is_lost() {
    for delay in [1, 10, 50] {
        let link = format!("rate=100M,delay={delay}ms,queue=2MB,mark-above=500KB");
        let seconds = |profile| {
            let outcome = Case { profile, ..Case::new(link.parse().expect("a link")) }.run(1);
            assert_eq!((outcome.ending, outcome.is_identical()), (Ending::Closed, true), "{link}");
            outcome.completed_secs()
        };
        let (lt_tcp, arq) = (seconds(Profile::lt_tcp()), seconds(Profile::arq()));
        println!("{link}: lt-tcp {lt_tcp:.3} s, arq {arq:.3} s");
        assert!(arq / lt_tcp >= 0.95, "{link}: lt-tcp {lt_tcp:.3} s, arq {arq:.3} s");
    }
}
