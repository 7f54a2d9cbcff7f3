//! Claims about the systems that send repair with each block: lt-tcp and ttp.

use downpour_sim::{Case, Ending};
use std::time::Duration;
use transport::{ConnectionError, Profile};

fn case(profile: Profile, link: &str) -> Case {
    Case { profile, limit: Duration::from_secs(600), ..Case::new(link.parse().expect("a link")) }
}

/// The document's open problem is that it is slower than TCP without loss (lt-tcp §5).
#[test]
fn lt_tcp_is_no_slower_than_arq_where_nothing_is_lost() {
    for delay in [1, 10, 50] {
        let link = format!("rate=100M,delay={delay}ms,queue=2MB,mark-above=500KB");
        let seconds = |profile| {
            let outcome = case(profile, &link).run(1);
            assert_eq!((outcome.ending, outcome.is_identical()), (Ending::Closed, true), "{link}");
            outcome.completed_secs()
        };
        let (lt_tcp, arq) = (seconds(systems::lt_tcp::profile()), seconds(systems::arq::profile()));
        println!("{link}: lt-tcp {lt_tcp:.3} s, arq {arq:.3} s");
        assert!(arq / lt_tcp >= 0.95, "{link}: lt-tcp {lt_tcp:.3} s, arq {arq:.3} s");
    }
}

/// The fault that the document measured and then repairs: the counter of §3.5 stalls a window that does not outgrow it,
/// and the statistics report it; no data is lost.
#[test]
fn lt_tcp_with_its_documents_faults_stalls_and_arrives() {
    let link = "rate=20M,delay=10ms,queue=100KB,mark-above=25KB,loss=5% / rate=20M,delay=10ms";
    let run = |choices: &[(&str, &str)]| {
        let mut profile = systems::lt_tcp::profile();
        profile.set_all(choices.iter().copied()).expect("choices");
        let outcome = Case { size: 2_000_000, ..case(profile, link) }.run(1);
        assert_eq!((outcome.ending, outcome.is_identical()), (Ending::Closed, true), "{choices:?}");
        (outcome.completed_secs(), outcome.sender.timers.counter_resets)
    };
    let mended = run(&[]);
    let counter = run(&[("in-flight", "counter")]);
    let all = run(&[
        ("in-flight", "counter"),
        ("schedule.idle", "10"),
        ("detection", "threshold:packets=1,adapt=off"),
        ("rtt", "overestimated"),
    ]);
    println!("mended {mended:?}, with the counter {counter:?}, with all faults {all:?}");
    assert_eq!(mended.1, 0);
    assert!(counter.1 > 0 && counter.0 > 2.0 * mended.0, "{counter:?} for {mended:?}");
    assert!(all.1 > 0 && all.0 > counter.0, "{all:?} for {counter:?}");
}

/// The document's average padding, without our correction: half of the chunks fail, and the transfer reports it (ttp
/// §I).
#[test]
fn ttp_of_the_document_fails_and_reports_it() {
    let mut profile = systems::ttp::profile();
    profile.set("schedule", "chunks:padding=document,mend=off").expect("a schedule");
    let run = |loss: &str| case(profile.clone(), &format!("rate=20M,delay=25ms,queue=1MB,loss={loss}")).run(1);
    assert!(run("0%").is_identical(), "nothing is lost");
    let outcome = run("10%");
    assert_eq!(outcome.sender_closed, Some(ConnectionError::Undecodable));
    let is_reported = |closed: Option<ConnectionError>| matches!(closed, Some(ConnectionError::ClosedByPeer { code: 2, reason }) if reason.contains("not sent again"));
    assert!(is_reported(outcome.receiver_closed.clone()), "{:?}", outcome.receiver_closed);
}
