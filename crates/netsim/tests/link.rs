//! The effect of one link on packets, exact to the byte and the picosecond.

use std::time::Duration;

use downpour_netsim::{
    Delivery, DropReason, Ecn, Link, LinkConfig, LinkError, Loss, Mark, OfferOutcome, Rate, Reorder, ReorderingDelay,
    Time, corrupt,
};

fn link(text: &str) -> Link {
    Link::new(text.parse().expect("a good link")).expect("a good link")
}

fn delivery(fate: OfferOutcome) -> Delivery {
    match fate {
        OfferOutcome::Delivered(deliveries) => deliveries.first,
        OfferOutcome::Dropped(reason) => panic!("dropped: {reason:?}"),
    }
}

#[test]
fn perfect_wire_changes_nothing() {
    let mut link = Link::new(LinkConfig::default()).unwrap();
    let now = Time::from_nanos(5);
    for ecn in [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce] {
        let OfferOutcome::Delivered(deliveries) = link.offer(now, 1500, ecn) else { panic!("dropped") };
        assert_eq!(deliveries.first, Delivery { at: now, ecn, corrupt: None, reordered: false });
        assert_eq!(deliveries.duplicate, None);
    }
    assert_eq!(link.stats().delivered.bytes, 6000);
}

#[test]
fn rate_is_exact_over_a_million_packets() {
    for rate in [999_999_937_u64, 7_000_003, 100_000_000_000] {
        let config = LinkConfig { rate: Some(Rate::from_bits_per_second(rate)), ..LinkConfig::default() };
        let mut link = Link::new(config).unwrap();
        let mut bits = 0_u128;
        for number in 0..1_000_000_u32 {
            let ip_bytes = 40 + number % 1461;
            bits += 8 * u128::from(ip_bytes);
            let at = delivery(link.offer(Time::ZERO, ip_bytes, Ecn::NotEct)).at;
            assert_eq!(
                u128::from(at.as_picos()),
                bits * 1_000_000_000_000 / u128::from(rate),
                "packet {number} at {rate} bit/s"
            );
        }
    }
}

#[test]
fn an_idle_link_starts_at_once() {
    let mut link = link("rate=8M");
    assert_eq!(delivery(link.offer(Time::from_nanos(0), 1000, Ecn::NotEct)).at, Time::from_nanos(1_000_000));
    assert_eq!(delivery(link.offer(Time::from_nanos(9_000_000), 1000, Ecn::NotEct)).at, Time::from_nanos(10_000_000));
}

#[test]
fn delay_is_exact_and_one_way() {
    let mut link = link("rate=8M,delay=50ms");
    let now = Time::from_nanos(123);
    assert_eq!(delivery(link.offer(now, 1000, Ecn::NotEct)).at, now + Duration::from_millis(51));
}

#[test]
fn packets_travel_on_together_at_the_next_slot() {
    // 1 ms a packet; each leaves the queue, waits for the slot, and travels for 3 ms.
    let mut link = link("rate=8M,delay=3ms,slot=5ms");
    let mut arrives = |micros: u64| {
        let delivery = delivery(link.offer(Time::from_nanos(micros * 1_000), 1000, Ecn::NotEct));
        assert!(!delivery.reordered);
        delivery.at.as_nanos() / 1_000
    };
    assert_eq!([0, 100, 200, 300].map(&mut arrives), [8_000; 4]);
    assert_eq!(arrives(350), 8_000, "its last bit leaves as the slot begins");
    assert_eq!(arrives(360), 13_000);
    assert_eq!(arrives(42_000), 48_000);
    let longest = link.waits().quantile(1.0).expect("packets");
    assert!(longest < Duration::from_micros(6_200), "time until a slot is none in the queue: {longest:?}");
    link.set_impaired(false);
    assert_eq!(delivery(link.offer(Time::from_nanos(51_000_000), 1000, Ecn::NotEct)).at, Time::from_nanos(55_000_000));
}

#[test]
fn queue_bound_is_exact_and_counts_the_packet_being_sent() {
    let mut link = link("rate=8M,queue=3000B");
    let packet = |link: &mut Link, nanos: u64, ip_bytes| link.offer(Time::from_nanos(nanos), ip_bytes, Ecn::NotEct);
    for _ in 0..3 {
        delivery(packet(&mut link, 0, 1000));
    }
    assert_eq!(packet(&mut link, 0, 1), OfferOutcome::Dropped(DropReason::QueueFull));
    assert_eq!(link.queued_bytes(Time::ZERO), 3000);
    // A picosecond before its last bit leaves, the first packet still holds all its bytes.
    let last = Time::from_picos(999_999_999);
    assert_eq!(link.offer(last, 1, Ecn::NotEct), OfferOutcome::Dropped(DropReason::QueueFull));
    assert_eq!(packet(&mut link, 1_000_000, 1001), OfferOutcome::Dropped(DropReason::QueueFull));
    assert_eq!(delivery(packet(&mut link, 1_000_000, 1000)).at, Time::from_nanos(4_000_000));
    assert_eq!(link.queued_bytes(Time::from_nanos(3_999_999)), 1000);
    assert_eq!(link.queued_bytes(Time::from_nanos(4_000_000)), 0);
    assert_eq!(link.stats().dropped_queue_full.packets, 3);
    assert_eq!(link.stats().dropped_queue_full.bytes, 1003);
}

#[test]
fn a_lost_packet_has_used_the_rate() {
    let mut link = link("rate=8M,loss=100%");
    assert_eq!(link.offer(Time::ZERO, 1000, Ecn::NotEct), OfferOutcome::Dropped(DropReason::Random));
    assert_eq!(link.queued_bytes(Time::ZERO), 1000);
    link.set_config("rate=8M".parse().unwrap()).unwrap();
    assert_eq!(delivery(link.offer(Time::ZERO, 1000, Ecn::NotEct)).at, Time::from_nanos(2_000_000));
}

#[test]
fn marks_above_the_threshold_and_only_ect_packets() {
    let mut link = link("rate=8M,mark-above=2000B");
    let mut offer = |ecn| delivery(link.offer(Time::ZERO, 1000, ecn)).ecn;
    assert_eq!(offer(Ecn::Ect0), Ecn::Ect0);
    assert_eq!(offer(Ecn::Ect0), Ecn::Ect0);
    assert_eq!(offer(Ecn::Ect1), Ecn::Ect1, "finds 2000 bytes, not more");
    assert_eq!(offer(Ecn::Ect1), Ecn::Ce);
    assert_eq!(offer(Ecn::Ect0), Ecn::Ce);
    assert_eq!(offer(Ecn::NotEct), Ecn::NotEct);
    assert_eq!(offer(Ecn::Ce), Ecn::Ce);
    assert_eq!(link.stats().marked.packets, 2);
}

#[test]
fn a_packet_held_back_is_late_and_delays_no_other() {
    let config = LinkConfig {
        delay: Duration::from_millis(1),
        reorder: Reorder { probability: 0.2, extra: Duration::from_millis(7) },
        seed: 8,
        ..LinkConfig::default()
    };
    let mut link = Link::new(config).unwrap();
    let mut overtaken = 0;
    let mut latest = Time::ZERO;
    for number in 0..10_000_u64 {
        let now = Time::from_nanos(number * 1_000_000);
        let delivery = delivery(link.offer(now, 100, Ecn::NotEct));
        let expected = if delivery.reordered { 8 } else { 1 };
        assert_eq!(delivery.at, now + Duration::from_millis(expected), "packet {number}, seed 8");
        overtaken += u64::from(delivery.at < latest);
        latest = latest.max(delivery.at);
    }
    assert!(overtaken > 5_000, "{overtaken} packets overtook, seed 8");
}

#[test]
fn set_rate_keeps_queued_departures() {
    let mut link = link("rate=8M");
    assert_eq!(delivery(link.offer(Time::ZERO, 1000, Ecn::NotEct)).at, Time::from_nanos(1_000_000));
    link.set_rate(Some(Rate::from_megabits_per_second(80))).unwrap();
    assert_eq!(delivery(link.offer(Time::ZERO, 1000, Ecn::NotEct)).at, Time::from_nanos(1_100_000));
    link.set_rate(None).unwrap();
    assert_eq!(delivery(link.offer(Time::ZERO, 1000, Ecn::NotEct)).at, Time::from_nanos(1_100_000), "order is kept");
    assert_eq!(link.set_rate(Some(Rate::from_bits_per_second(0))), Err(LinkError::ZeroRate));
    assert_eq!(link.config().rate, None);
    let before = link.config().clone();
    link.set_config(LinkConfig { seed: 99, ..before.clone() }).unwrap();
    assert_eq!(*link.config(), before, "the seed stays");
}

#[test]
fn the_ends_of_numbers_do_not_panic() {
    let config = LinkConfig {
        rate: Some(Rate::from_bits_per_second(1)),
        queue_bytes: Some(u64::MAX),
        delay: Duration::MAX,
        jitter: Duration::MAX,
        slot: Duration::MAX,
        scatter: ReorderingDelay::Exponential(Duration::MAX),
        mark: Mark { above_bytes: Some(0), probability: 1.0 },
        ..LinkConfig::default()
    };
    let mut link = Link::new(config).unwrap();
    for now in [Time::MAX, Time::ZERO, Time::MAX] {
        assert_eq!(delivery(link.offer(now, u32::MAX, Ecn::Ect0)).at, Time::MAX);
        delivery(link.offer(now, 0, Ecn::Ect0));
    }
}

#[test]
fn corruption_always_changes_one_byte() {
    for entropy in (0..10_000_u64).map(|number| number.wrapping_mul(0x9e37_79b9_7f4a_7c15)).chain([0, 256, u64::MAX]) {
        let mut packet = [0_u8; 37];
        corrupt(&mut packet, entropy);
        assert_eq!(packet.iter().filter(|&&byte| byte != 0).count(), 1, "entropy {entropy}");
    }
    corrupt(&mut [], 7);
}

#[test]
fn nonsense_is_refused() {
    let check = |text: &str| text.parse::<LinkConfig>().unwrap_err().to_string();
    assert_eq!(check("loss=101%"), "loss is 1.01: write a probability from 0% to 100%");
    assert_eq!(check("corrupt=-0.1"), "corrupt is -0.1: write a probability from 0% to 100%");
    assert_eq!(
        check("loss=5%,burst=1"),
        "burst is 1: with 0.05 loss write at least 1.053, or omit burst for independent loss"
    );
    assert!(check("rate=0").starts_with("rate is 0: write a rate such as 100M"));
    assert!(check("rate=1M,queue=0B").starts_with("queue is 0: write a size"));
    assert!(check("queue=1KB").starts_with("queue has no effect without a rate"));
    assert!(check("rate=1M,queue-packets=0").starts_with("queue is 0: write a size"));
    assert!(check("queue-packets=3").starts_with("queue-packets has no effect without a rate"));
    assert!(check("codel=5ms:100ms").starts_with("codel has no effect without a rate"));
    assert!(check("rate=1M,codel=0ms:100ms").starts_with("codel acts on every packet"));
    assert!(check("fq-codel=5ms:100ms").starts_with("fq-codel has no effect without a rate"));
    assert!(check("rate=1M,fq-codel=5ms:0ms").starts_with("fq-codel acts on every packet"));
    assert!(check("rate=1M,codel=5ms:100ms,fq-codel=5ms:100ms").starts_with("codel has no effect with fq-codel"));
    let fair: LinkConfig = "rate=1M,fq-codel=5ms:100ms".parse().expect("a link");
    assert_eq!(Link::new(fair.clone()).unwrap_err(), LinkError::NoFlows);
    assert_eq!(link("rate=1M").set_config(fair), Err(LinkError::NoFlows));
    assert!(check("mark-above=1KB").starts_with("mark-above has no effect without a rate"));
    assert!(check("rate=1M,bucket=0B").starts_with("bucket is 0: write a size such as 10KB"));
    assert!(check("bucket=1KB").starts_with("bucket has no effect without a rate"));
    assert!(check("police=0:1KB").starts_with("police lets nothing pass: write a rate and a burst"));
    assert!(check("police=1M:0B").starts_with("police lets nothing pass: write a rate and a burst"));
    assert!(check("reorder=1%:0ms").starts_with("reorder holds packets back by 0"));
    assert!(check("loss=100%,burst=5").starts_with("a link that loses everything"));
    let infinite = Loss::GilbertElliott { loss: 0.1, mean_burst: f64::NAN };
    assert!(matches!(
        LinkConfig { loss: infinite, ..LinkConfig::default() }.check(),
        Err(LinkError::BurstTooShort { .. })
    ));
}

/// 8,936 bytes behind a header are 6 times 1,480 and 56, each behind a header of its own: 9,076 bytes.
#[test]
fn a_packet_larger_than_the_mtu_takes_the_time_of_its_fragments() {
    let mut link = link("rate=12M,mtu=1500B,fragment=on");
    let arrival = delivery(link.offer(Time::ZERO, 8_956, Ecn::Ect0));
    assert_eq!(arrival.at.as_nanos(), 9_076 * 8 * 1_000 / 12);
    assert_eq!((link.stats().offered.packets, link.stats().delivered.bytes), (7, 9_076));
    delivery(link.offer(Time::ZERO, 1_500, Ecn::NotEct));
    assert_eq!(link.stats().delivered.packets, 8, "a packet that fits is not fragmented");
    delivery(link.offer(Time::ZERO, 1_501, Ecn::NotEct));
    assert_eq!((link.stats().delivered.packets, link.stats().delivered.bytes), (10, 9_076 + 1_500 + 1_521));
}

#[test]
fn a_packet_is_lost_with_any_of_its_fragments() {
    let mut link = link("mtu=1500B,fragment=on,loss=5%");
    let count = 20_000;
    let lost =
        (0..count).filter(|_| matches!(link.offer(Time::ZERO, 8_956, Ecn::NotEct), OfferOutcome::Dropped(_))).count();
    let expected = 1.0 - 0.95_f64.powi(7);
    assert!((lost as f64 / f64::from(count) - expected).abs() < 0.01, "{lost} of {count} lost, {expected} expected");
    let fragments = link.stats().dropped_random.packets as f64 / link.stats().offered.packets as f64;
    assert!((fragments - 0.05).abs() < 0.002, "{fragments} of the fragments");
}

#[test]
fn fragments_fill_queues_and_carry_marks() {
    let mut short = link("rate=12M,queue-packets=6,mtu=1500B,fragment=on");
    assert_eq!(short.offer(Time::ZERO, 8_956, Ecn::NotEct), OfferOutcome::Dropped(DropReason::QueueFull));
    assert_eq!((short.stats().dropped_queue_full.packets, short.stats().delivered.packets), (1, 6));
    let mut marking = link("rate=12M,mtu=1500B,fragment=on,mark-above=3KB,duplicate=100%");
    let OfferOutcome::Delivered(deliveries) = marking.offer(Time::ZERO, 8_956, Ecn::Ect0) else { panic!("dropped") };
    assert_eq!((deliveries.first.ecn, deliveries.duplicate), (Ecn::Ce, None), "one of its fragments is marked");
}

#[test]
fn fragments_need_a_size_and_no_fair_queue() {
    for (text, said) in [
        ("fragment=on", "fragment needs an mtu of at least 68B: write it too, such as mtu=1500B,fragment=on"),
        ("mtu=67B,fragment=on", "fragment needs an mtu of at least 68B: write it too, such as mtu=1500B,fragment=on"),
        (
            "rate=1M,fq-codel=5ms:100ms,mtu=1500B,fragment=on",
            "fq-codel takes whole packets: omit fragment, or write codel instead",
        ),
        ("mtu=1500B,fragment=yes", "cannot read fragment=yes: write it like on, or off"),
    ] {
        assert_eq!(text.parse::<LinkConfig>().map_err(|error| error.to_string()), Err(said.to_owned()));
    }
}

#[test]
fn packets_larger_than_the_mtu_vanish() {
    let config = LinkConfig { mtu: Some(1_400), ..LinkConfig::default() };
    let mut link = Link::new(config).unwrap();
    assert!(matches!(link.offer(Time::ZERO, 1_400, Ecn::NotEct), OfferOutcome::Delivered(_)));
    assert_eq!(link.offer(Time::ZERO, 1_401, Ecn::NotEct), OfferOutcome::Dropped(DropReason::TooLarge));
    let stats = link.stats();
    assert_eq!((stats.offered.packets, stats.delivered.packets, stats.dropped_too_large.bytes), (2, 1, 1_401));
}

#[test]
fn a_queue_of_packets_holds_so_many_of_any_size() {
    let mut link = link("rate=8M,queue-packets=3");
    let offer =
        |link: &mut Link, micros: u64, bytes: u32| link.offer(Time::from_nanos(micros * 1_000), bytes, Ecn::NotEct);
    // One packet is sent for 1 ms, followed by two small ones of 0.1 ms each.
    for bytes in [1_000, 100, 100] {
        assert!(matches!(offer(&mut link, 0, bytes), OfferOutcome::Delivered(_)));
    }
    assert_eq!(offer(&mut link, 999, 20), OfferOutcome::Dropped(DropReason::QueueFull));
    assert!(matches!(offer(&mut link, 1_000, 1_500), OfferOutcome::Delivered(_)), "the first has left");
    assert_eq!(offer(&mut link, 1_000, 20), OfferOutcome::Dropped(DropReason::QueueFull));
    assert_eq!(link.stats().dropped_queue_full.packets, 2);
}
