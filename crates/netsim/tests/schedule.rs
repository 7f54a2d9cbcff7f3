//! Scheduled changes of a link: outages and rate steps.

use std::time::Duration;

use downpour_netsim::{DropReason, Ecn, Link, LinkConfig, OfferOutcome, PacketCount, Rate, Time};

fn link(text: &str) -> Link {
    Link::new(text.parse().expect("a good link")).expect("a good link")
}

/// Returns when a packet offered at `micros` arrives, in microseconds.
fn offer(link: &mut Link, micros: u64, ip_bytes: u32) -> Result<f64, DropReason> {
    match link.offer(Time::from_nanos(micros * 1_000), ip_bytes, Ecn::NotEct) {
        OfferOutcome::Delivered(deliveries) => Ok(deliveries.first.at.as_picos() as f64 / 1e6),
        OfferOutcome::Dropped(reason) => Err(reason),
    }
}

#[test]
fn an_outage_drops_packets_offered_in_it() {
    let mut link = link("rate=8M,delay=5ms,down=3ms..5ms+8ms..9ms");
    let down = Err(DropReason::Down);
    assert_eq!(offer(&mut link, 2_999, 1000), Ok(8_999.0), "waiting packets and those in flight continue");
    assert_eq!(link.offer(Time::from_picos(2_999_999_999), 1000, Ecn::NotEct), link_delivers(9_999_000));
    let outcomes: Vec<_> = [3_000, 4_999, 8_000, 8_999].map(|micros| offer(&mut link, micros, 1000)).into();
    assert_eq!(outcomes, [down; 4]);
    assert_eq!(link.offer(Time::from_picos(4_999_999_999), 1000, Ecn::NotEct), OfferOutcome::Dropped(DropReason::Down));
    assert_eq!(offer(&mut link, 5_000, 1000), Ok(11_000.0));
    assert_eq!(offer(&mut link, 9_000, 1000), Ok(15_000.0));
    assert_eq!(link.stats().dropped_down, PacketCount { packets: 5, bytes: 5_000 });
    assert_eq!(link.stats().offered.packets, 9);
}

fn link_delivers(nanos: u64) -> OfferOutcome {
    let first =
        downpour_netsim::Delivery { at: Time::from_nanos(nanos), ecn: Ecn::NotEct, corrupt: None, reordered: false };
    OfferOutcome::Delivered(downpour_netsim::Deliveries { first, duplicate: None })
}

#[test]
fn packets_after_an_outage_keep_their_draws() {
    let fates = |text: &str| -> Vec<bool> {
        let mut link = link(text);
        (0..10_000).map(|number| offer(&mut link, number * 1_000, 100).is_ok()).collect()
    };
    let (steady, cut) = (fates("loss=30%,seed=5"), fates("loss=30%,seed=5,down=2s..4s"));
    assert_eq!(steady[..2_000], cut[..2_000]);
    assert!(cut[2_000..4_000].iter().all(|passes| !passes));
    assert_eq!(steady[4_000..], cut[4_000..]);
}

#[test]
fn a_rate_step_is_in_force_for_every_bit_after_it() {
    // 1 byte per microsecond until 10 ms, 4 bytes until 20 ms, then one byte per 2 microseconds.
    let mut link = link("rate=8M,step=10ms:32M+20ms:4M");
    assert_eq!(offer(&mut link, 0, 1000), Ok(1_000.0));
    assert_eq!(offer(&mut link, 9_000, 1000), Ok(10_000.0), "the last bit leaves at the step");
    assert_eq!(offer(&mut link, 9_000, 1000), Ok(10_250.0));
    assert_eq!(offer(&mut link, 19_900, 1000), Ok(21_200.0), "400 bytes before the step, 600 after");
    assert_eq!(offer(&mut link, 30_000, 1000), Ok(32_000.0));

    let mut over_both = self::link("rate=8M,step=10ms:32M+20ms:4M");
    assert_eq!(offer(&mut over_both, 9_000, 42_000), Ok(22_000.0), "1000, 40 000 and 1000 bytes");
    let mut late = self::link("rate=8M,step=10ms:32M+20ms:4M");
    assert_eq!(offer(&mut late, 25_000, 1000), Ok(27_000.0), "steps between two packets");
    assert_eq!(late.queued_bytes(Time::from_nanos(26_999_999)), 1000);
}

#[test]
fn steps_lose_no_fraction() {
    let rates = [999_999_937_u64, 7_000_003, 123_456_789];
    let mut link = link(&format!("rate={}bit/s,step=1ms:{}bit/s+3ms:{}bit/s", rates[0], rates[1], rates[2]));
    // Work in bits times picoseconds per second, done when the first two rates end.
    let done = [1_000_000_000 * u128::from(rates[0]), 2_000_000_000 * u128::from(rates[1])];
    let mut work = 0_u128;
    for number in 0..2_000_u32 {
        let ip_bytes = 40 + number % 1461;
        work += 8_000_000_000_000 * u128::from(ip_bytes);
        let exact = if work <= done[0] {
            work / u128::from(rates[0])
        } else if work <= done[0] + done[1] {
            1_000_000_000 + (work - done[0]) / u128::from(rates[1])
        } else {
            3_000_000_000 + (work - done[0] - done[1]) / u128::from(rates[2])
        };
        let OfferOutcome::Delivered(deliveries) = link.offer(Time::ZERO, ip_bytes, Ecn::NotEct) else {
            panic!("dropped")
        };
        assert_eq!(u128::from(deliveries.first.at.as_picos()), exact, "packet {number}");
    }
}

#[test]
fn a_bucket_fills_at_the_rates_of_its_time() {
    let mut link = link("rate=8M,bucket=5000B,step=10ms:800k");
    assert_eq!(offer(&mut link, 0, 5000), Ok(0.0));
    // 1000 bytes until the step, and 100 in the millisecond after.
    assert_eq!(offer(&mut link, 9_000, 5000), Ok(9_000.0));
    assert_eq!(offer(&mut link, 11_000, 1200), Ok(12_000.0), "1100 are available, 100 take a millisecond");
}

#[test]
fn a_rate_set_by_hand_ends_the_steps() {
    let mut link = link("rate=8M,step=10ms:32M");
    link.set_rate(Some(Rate::from_bits_per_second(4_000_000))).unwrap();
    assert_eq!(offer(&mut link, 20_000, 1000), Ok(22_000.0));
    link.set_config("rate=8M,step=10ms:32M".parse().unwrap()).unwrap();
    assert_eq!(offer(&mut link, 30_000, 1000), Ok(30_250.0), "steps of the past hold as well");
    link.set_config("rate=8M".parse().unwrap()).unwrap();
    assert_eq!(offer(&mut link, 40_000, 1000), Ok(41_000.0));
    link.set_config("rate=8M,step=50ms:4M".parse().unwrap()).unwrap();
    assert_eq!(offer(&mut link, 45_000, 1000), Ok(46_000.0), "and later ones do not yet");
}

#[test]
fn times_out_of_order_are_refused() {
    let check = |text: &str| text.parse::<LinkConfig>().unwrap_err().to_string();
    for (text, error) in [
        (
            "down=5s..5s",
            "an outage from 5s until 5s is empty: write its beginning and a later end, such as down=3s..5s",
        ),
        (
            "down=3s..5s+4999ms..9s",
            "an outage begins at 4.999s, before the previous one ends: write them in order, such as down=3s..5s+8s..9s",
        ),
        (
            "rate=1M,step=10s:20M+10s:5M",
            "a rate step at 10s is not after the previous one: write them in order, such as step=10s:20M+20s:5M",
        ),
        ("rate=1M,step=10s", "cannot read step=10s: write it like 10s:20M+20s:5M (from when, and how fast)"),
        ("down=3s-5s", "cannot read down=3s-5s: write it like 3s..5s or 3s..5s+8s..9s"),
        ("down=3s..5s+", "cannot read down=3s..5s+: write it like 3s..5s or 3s..5s+8s..9s"),
        ("step=10s:20M", "step has no effect without a rate: write a rate too, such as rate=100M"),
    ] {
        assert_eq!(check(text), error);
    }
    assert!(check("rate=1M,step=10s:0").starts_with("rate is 0"));
    assert!("down=3s..5s+5s..9s".parse::<LinkConfig>().is_ok(), "they may touch");
    let text = "rate=8M,step=0ns:1M+10s:20M,down=0ns..1ms+1500ms..2s";
    assert_eq!(text.parse::<LinkConfig>().unwrap().to_string(), text);
    let steps = text.parse::<LinkConfig>().unwrap().steps;
    assert_eq!((steps[1].at, steps[1].rate), (Duration::from_secs(10), Rate::from_megabits_per_second(20)));
}

#[test]
fn loss_and_delay_change_at_their_times() {
    let text = "delay=10ms,delay-step=1s:30ms+2s:5ms,loss-step=1s:20%+3s:0%,seed=5";
    let mut link = Link::new(text.parse().unwrap()).unwrap();
    let mut lost = [0_u32; 4];
    for millis in 0..4_000_u64 {
        let at = Time::from_nanos(millis * 1_000_000);
        match link.offer(at, 100, Ecn::NotEct) {
            OfferOutcome::Dropped(_) => lost[(millis / 1_000) as usize] += 1,
            OfferOutcome::Delivered(deliveries) => {
                let late = deliveries.first.at - at;
                let expected = match millis {
                    ..1_000 => 10,
                    1_000..2_000 => 30,
                    // Packets do not overtake the last packet with the longer delay, which arrives about 30 ms after it
                    // left.
                    2_000..2_030 => continue,
                    _ => 5,
                };
                assert_eq!(late, Duration::from_millis(expected), "at {millis} ms");
            }
        }
    }
    assert_eq!([lost[0], lost[3]], [0, 0], "{lost:?}");
    // 200 of 1000, with a standard deviation of 12.6: within four of them.
    assert!(lost[1..3].iter().all(|lost| (150..250).contains(lost)), "{lost:?}, seed 5");
}

#[test]
fn steps_out_of_order_are_refused() {
    for (text, name) in [("loss-step=2s:1%+2s:2%", "a loss step"), ("delay-step=2s:1ms+1s:2ms", "a delay step")] {
        let refused = text.parse::<downpour_netsim::LinkConfig>().unwrap_err().to_string();
        assert!(refused.starts_with(name) && refused.contains("is not after the previous one"), "{refused}");
    }
    let refused = "loss-step=1s:120%".parse::<downpour_netsim::LinkConfig>().unwrap_err().to_string();
    assert_eq!(refused, "loss-step is 1.2: write a probability from 0% to 100%");
    let refused = "loss=5%,burst=2,loss-step=1s:80%".parse::<downpour_netsim::LinkConfig>().unwrap_err().to_string();
    assert!(refused.starts_with("burst is 2: with 0.8 loss write at least 5"), "{refused}");
}
