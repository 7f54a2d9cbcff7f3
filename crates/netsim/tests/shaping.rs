//! Limits of the rate: token buckets and policers, exact to the byte and the picosecond.

use downpour_netsim::{DropReason, Ecn, Link, OfferOutcome, PacketCount, Rate, Time};

fn link(text: &str) -> Link {
    Link::new(text.parse().expect("a good link")).expect("a good link")
}

/// Returns when a packet offered at `micros` arrives, in microseconds; the link has no delay.
fn offer(link: &mut Link, micros: u64, ip_bytes: u32) -> Result<f64, DropReason> {
    match link.offer(Time::from_nanos(micros * 1_000), ip_bytes, Ecn::NotEct) {
        OfferOutcome::Delivered(deliveries) => Ok(deliveries.first.at.as_picos() as f64 / 1e6),
        OfferOutcome::Dropped(reason) => Err(reason),
    }
}

#[test]
fn a_full_bucket_passes_at_once_and_then_the_rate_holds() {
    // 1 byte per microsecond.
    let mut link = link("rate=8M,bucket=2500B");
    assert_eq!(offer(&mut link, 0, 1000), Ok(0.0));
    assert_eq!(offer(&mut link, 0, 1000), Ok(0.0));
    assert_eq!(offer(&mut link, 0, 1000), Ok(500.0), "500 bytes are available, 500 are awaited");
    assert_eq!(offer(&mut link, 0, 1000), Ok(1500.0));
    assert_eq!(link.queued_bytes(Time::ZERO), 2000, "passed packets do not wait");
    assert_eq!(offer(&mut link, 1600, 1000), Ok(2500.0), "100 bytes accumulated in the meantime");
    assert_eq!(offer(&mut link, 3700, 1000), Ok(3700.0), "1200 bytes accumulated");
    assert_eq!(offer(&mut link, 3700, 300), Ok(3800.0));
    // Long enough to fill the bucket three times: it holds no more than 2500 bytes.
    assert_eq!(offer(&mut link, 11_300, 2500), Ok(11_300.0));
    assert_eq!(offer(&mut link, 11_300, 1), Ok(11_301.0));
}

#[test]
fn a_packet_larger_than_the_bucket_waits_for_missing_tokens() {
    let mut link = link("rate=8M,bucket=100B");
    assert_eq!(offer(&mut link, 0, 1000), Ok(900.0));
    assert_eq!(offer(&mut link, 5_000, 1000), Ok(5_900.0));
}

#[test]
fn the_queue_behind_a_bucket_is_bounded() {
    let mut link = link("rate=8M,bucket=1000B,queue=2000B");
    assert_eq!(offer(&mut link, 0, 1000), Ok(0.0));
    assert_eq!(offer(&mut link, 0, 1000), Ok(1000.0));
    assert_eq!(offer(&mut link, 0, 1000), Ok(2000.0));
    assert_eq!(offer(&mut link, 0, 1000), Err(DropReason::QueueFull));
}

#[test]
fn a_bucket_changes_nothing_in_the_long_run() {
    for (rate, bucket) in [(999_999_937_u64, 10_000), (7_000_003, 1), (12_345, 100_000)] {
        let mut link = link(&format!("rate={rate}bit/s,bucket={bucket}B"));
        let mut bytes = 0_u128;
        for number in 0..100_000_u32 {
            let ip_bytes = 40 + number % 1461;
            bytes += u128::from(ip_bytes);
            let OfferOutcome::Delivered(deliveries) = link.offer(Time::ZERO, ip_bytes, Ecn::NotEct) else {
                panic!("dropped")
            };
            let exact = bytes.saturating_sub(bucket) * 8_000_000_000_000 / u128::from(rate);
            assert_eq!(u128::from(deliveries.first.at.as_picos()), exact, "packet {number} at {rate} bit/s");
        }
    }
}

#[test]
fn a_policer_drops_the_excess_over_its_rate() {
    let mut link = link("police=8M:2500B");
    assert_eq!(offer(&mut link, 0, 1500), Ok(0.0), "nothing waits");
    assert_eq!(offer(&mut link, 0, 1001), Err(DropReason::Policed));
    assert_eq!(offer(&mut link, 0, 1000), Ok(0.0), "dropped packets took no tokens");
    assert_eq!(offer(&mut link, 999, 1000), Err(DropReason::Policed));
    assert_eq!(offer(&mut link, 1_000, 1000), Ok(1_000.0));
    assert_eq!(offer(&mut link, 9_000, 2501), Err(DropReason::Policed), "larger than the bucket");
    assert_eq!(offer(&mut link, 9_000, 2500), Ok(9_000.0), "it holds no more");
    assert_eq!(offer(&mut link, 9_000, 1), Err(DropReason::Policed));
    assert_eq!(link.stats().dropped_policed, PacketCount { packets: 4, bytes: 4503 });
    assert_eq!(link.stats().delivered, PacketCount { packets: 4, bytes: 6000 });
    assert_eq!(link.stats().offered, PacketCount { packets: 8, bytes: 10_503 });
}

#[test]
fn the_policer_is_before_the_queue() {
    let mut link = link("rate=8M,queue=1000B,police=16M:3000B,loss=100%");
    assert_eq!(offer(&mut link, 0, 1000), Err(DropReason::Random));
    assert_eq!(offer(&mut link, 0, 1000), Err(DropReason::QueueFull), "and this used up tokens");
    assert_eq!(offer(&mut link, 0, 1000), Err(DropReason::QueueFull));
    assert_eq!(offer(&mut link, 0, 1000), Err(DropReason::Policed));
    assert_eq!(link.queued_bytes(Time::ZERO), 1000);
}

#[test]
fn buckets_keep_their_tokens_when_they_change() {
    let mut link = link("rate=8M,bucket=3000B,police=8M:5000B");
    let change = |link: &mut Link, text: &str| link.set_config(text.parse().unwrap()).unwrap();
    assert_eq!(offer(&mut link, 0, 1000), Ok(0.0));
    change(&mut link, "rate=8M,bucket=9000B,police=8M:9000B");
    assert_eq!(offer(&mut link, 0, 2500), Ok(500.0), "2000 were left");
    assert_eq!(offer(&mut link, 0, 1501), Err(DropReason::Policed), "and 1500 now");
    change(&mut link, "rate=8M,bucket=100B,police=8M:100B");
    assert_eq!(offer(&mut link, 10_000, 100), Ok(10_000.0));
    change(&mut link, "rate=8M");
    assert_eq!(offer(&mut link, 10_000, 100), Ok(10_100.0));
    change(&mut link, "rate=8M,bucket=200B,police=8M:200B");
    assert_eq!(offer(&mut link, 10_100, 200), Ok(10_100.0), "new ones are full");
    link.set_rate(Some(Rate::from_megabits_per_second(80))).unwrap();
    assert_eq!(offer(&mut link, 10_350, 200), Ok(10_350.0));
}
