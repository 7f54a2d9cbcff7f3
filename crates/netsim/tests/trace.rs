//! Links that follow a packet-delivery trace.

use std::io;

use downpour_netsim::{DropReason, Duplex, Ecn, Link, LinkConfig, LinkError, OfferOutcome, Time, Trace};

fn link(text: &str, trace: &str) -> Link {
    let mut config: LinkConfig = format!("trace=x{text}").parse().expect("a good link");
    config.load_trace(|_| Ok(trace.to_owned())).expect("a good trace");
    Link::new(config).expect("a good link")
}

/// Returns when a packet offered at `millis` arrives, in milliseconds.
fn offer(link: &mut Link, millis: u64, ip_bytes: u32) -> Result<u64, DropReason> {
    match link.offer(Time::from_nanos(millis * 1_000_000), ip_bytes, Ecn::NotEct) {
        OfferOutcome::Delivered(deliveries) => Ok(deliveries.first.at.as_nanos() / 1_000_000),
        OfferOutcome::Dropped(reason) => Err(reason),
    }
}

#[test]
fn a_packet_leaves_at_the_next_opportunity() {
    let mut link = link("", "2\n5\n5\n10\n");
    assert_eq!(offer(&mut link, 0, 1504), Ok(2));
    assert_eq!(offer(&mut link, 0, 1504), Ok(5));
    assert_eq!(offer(&mut link, 0, 1504), Ok(5), "two opportunities at once");
    assert_eq!(offer(&mut link, 0, 1504), Ok(10));
    assert_eq!(offer(&mut link, 0, 1504), Ok(12), "the trace begins anew");
    assert_eq!(offer(&mut link, 15, 1504), Ok(20), "those of its own time are too early for it");
    assert_eq!(offer(&mut link, 36, 1504), Ok(40), "unused opportunities are lost");
    assert_eq!(offer(&mut link, 1_000_003, 1504), Ok(1_000_005), "any number of rounds later");
}

#[test]
fn packets_share_opportunities_and_cross_them() {
    let mut link = link("", "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n");
    assert_eq!(offer(&mut link, 0, 1000), Ok(1));
    assert_eq!(offer(&mut link, 0, 504), Ok(1), "to the last byte");
    assert_eq!(offer(&mut link, 0, 1000), Ok(2));
    assert_eq!(offer(&mut link, 0, 505), Ok(3), "504 with the one before and one byte alone");
    assert_eq!(offer(&mut link, 0, 1503), Ok(3));
    assert_eq!(offer(&mut link, 0, 9000), Ok(9), "six opportunities, 24 bytes left");
    assert_eq!(offer(&mut link, 8, 24), Ok(9), "of which this one takes all");
    assert_eq!(offer(&mut link, 8, 1), Ok(10));
    assert_eq!(offer(&mut link, 10, 1503), Ok(11), "the rest of the last is lost");
}

#[test]
fn a_trace_has_its_rate_and_its_queue() {
    // 1504 bytes per millisecond: 12.032 Mbit/s.
    let mut link = link(",delay=20ms,queue=6016B", "1\n");
    for number in 0..4 {
        assert_eq!(offer(&mut link, 0, 1504), Ok(21 + number));
    }
    assert_eq!(offer(&mut link, 0, 1), Err(DropReason::QueueFull));
    assert_eq!(link.queued_bytes(Time::from_nanos(1_000_000)), 4512);
    let arrivals = (4..10_000).map(|number| offer(&mut link, number - 3, 1504)).collect::<Vec<_>>();
    assert!(arrivals.iter().copied().eq((4..10_000).map(|number| Ok(number + 21))));
}

#[test]
fn another_trace_continues_behind_waiting_packets() {
    let mut link = link("", "10\n");
    assert_eq!(offer(&mut link, 0, 100), Ok(10));
    let mut other: LinkConfig = "trace=y".parse().unwrap();
    assert_eq!(link.set_config(other.clone()), Err(LinkError::TraceNotLoaded));
    other.load_trace(|_| Ok("1\n3\n".to_owned())).unwrap();
    link.set_config(other).unwrap();
    assert_eq!(offer(&mut link, 0, 100), Ok(12), "rounds of 3 ms: 10, 12 and 13, of which the first is over");
    link.set_config("rate=8M".parse().unwrap()).unwrap();
    assert_eq!(offer(&mut link, 0, 1000), Ok(13));
}

#[test]
fn bad_traces_name_their_line() {
    for (text, error) in [
        ("1\n2\nx\n", "line 3: \"x\" is not a whole number of milliseconds"),
        ("1\n\n2\n", "line 2: \"\" is not a whole number of milliseconds"),
        ("1.5\n", "line 1: \"1.5\" is not a whole number of milliseconds"),
        ("-1\n", "line 1: \"-1\" is not a whole number of milliseconds"),
        ("5\n7\n6\n", "line 3: 6 ms is before 7 ms, the line above: put the lines in order"),
        ("", "empty file: write one whole number of milliseconds per line"),
        ("0\n0\n", "all times are 0: the last must be later, as the trace repeats from there"),
    ] {
        assert_eq!(Trace::parse(text).unwrap_err().to_string(), error);
    }
    let long = Trace::parse(&"x".repeat(1_000_000)).unwrap_err().to_string();
    assert_eq!(long, format!("line 1: {:?} is not a whole number of milliseconds", "x".repeat(40)));
    assert_eq!(Trace::parse("0\r\n7\r\n"), Trace::parse("0\n7"));
}

#[test]
fn trace_files_are_read_by_the_caller() {
    let mut duplex: Duplex = "trace=up / trace=down,seed=3".parse().unwrap();
    assert_eq!(Link::new(duplex.forward.clone()).unwrap_err(), LinkError::TraceNotLoaded);
    assert!(LinkError::TraceNotLoaded.to_string().ends_with("write a rate, such as rate=100M"));
    let missing = duplex.load_traces(|name| Err(io::Error::other(format!("no {name}")))).unwrap_err();
    assert_eq!(missing.to_string(), "cannot read the trace up: no up");
    let bad = duplex.load_traces(|name| Ok(if name == "up" { "1" } else { "?" }.to_owned())).unwrap_err();
    assert_eq!(bad.to_string(), "down is not a trace: line 1: \"?\" is not a whole number of milliseconds");
    duplex.load_traces(|name| Ok(if name == "up" { "1" } else { "2" }.to_owned())).unwrap();
    assert_eq!(duplex.forward.trace.as_ref().unwrap().trace(), Trace::parse("1").ok().as_ref());
    assert!(Link::new(duplex.backward.clone()).is_ok());
    assert_eq!(duplex.to_string(), "trace=up / trace=down,seed=3", "the name stays");
}
