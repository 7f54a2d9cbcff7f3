//! The random choices of a link: rates, independence and order.

use std::time::Duration;

use downpour_netsim::{Delivery, DropReason, Ecn, Link, LinkConfig, Loss, OfferOutcome, Time};

const MANY: u64 = 200_000;
/// Longer than any packet takes, so that no packet is queued.
const GAP: Duration = Duration::from_millis(1);

fn delivery(fate: OfferOutcome) -> Delivery {
    match fate {
        OfferOutcome::Delivered(deliveries) => deliveries.first,
        OfferOutcome::Dropped(reason) => panic!("dropped: {reason:?}"),
    }
}

/// Returns the outcomes of `count` packets of 1000 bytes, `GAP` apart.
fn fates(config: &LinkConfig, count: u64) -> Vec<OfferOutcome> {
    let mut link = Link::new(config.clone()).expect("a good link");
    let mut now = Time::ZERO;
    (0..count)
        .map(|_| {
            now = now + GAP;
            link.offer(now, 1000, Ecn::Ect0)
        })
        .collect()
}

fn lost(fates: &[OfferOutcome]) -> Vec<bool> {
    fates.iter().map(|fate| matches!(fate, OfferOutcome::Dropped(_))).collect()
}

/// Asserts that `hits` of `MANY` draws match probability `p` within four standard deviations.
fn assert_share(hits: u64, p: f64, what: &str) {
    let expected = MANY as f64 * p;
    let sigma = (expected * (1.0 - p)).sqrt();
    assert!(
        (hits as f64 - expected).abs() <= 4.0 * sigma,
        "{what}: {hits} of {MANY}, expected {expected} +- {sigma:.0}"
    );
}

#[test]
fn bernoulli_loss_has_its_rate() {
    for (seed, p) in [(1, 0.001), (2, 0.01), (3, 0.05), (4, 0.5), (5, 0.99)] {
        let config = LinkConfig { loss: Loss::Bernoulli(p), seed, ..LinkConfig::default() };
        let count = lost(&fates(&config, MANY)).into_iter().filter(|&lost| lost).count() as u64;
        assert_share(count, p, &format!("loss {p}, seed {seed}"));
    }
    let everything = LinkConfig { loss: Loss::Bernoulli(1.0), ..LinkConfig::default() };
    assert!(lost(&fates(&everything, 1000)).into_iter().all(|lost| lost));
}

#[test]
fn gilbert_elliott_loss_has_its_rate_and_its_bursts() {
    for (seed, loss, mean_burst) in [(1, 0.05, 5.0), (2, 0.1, 5.0), (3, 0.01, 20.0), (4, 0.3, 2.0), (5, 0.5, 2.0)] {
        let config = LinkConfig { loss: Loss::GilbertElliott { loss, mean_burst }, seed, ..LinkConfig::default() };
        let lost = lost(&fates(&config, 2_000_000));
        let packets = lost.len() as f64;
        let count = lost.iter().filter(|&&lost| lost).count() as f64;
        let bursts = f64::from(u8::from(lost[0])) + lost.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;
        let (rate, burst) = (count / packets, count / bursts);
        // Consecutive packets are correlated by the chain's second eigenvalue, which widens the spread. The length of
        // bursts is geometric.
        let likeness = 1.0 - 1.0 / (mean_burst * (1.0 - loss));
        let rate_sigma = (loss * (1.0 - loss) / packets * (1.0 + likeness) / (1.0 - likeness)).sqrt();
        let burst_sigma = (mean_burst * (mean_burst - 1.0) / bursts).sqrt();
        let what = format!(
            "loss {loss}, burst {mean_burst}, seed {seed}: {rate:.5} ({rate_sigma:.5}), {burst:.3} ({burst_sigma:.3})"
        );
        assert!((rate - loss).abs() < 4.0 * rate_sigma, "{what}");
        assert!((burst - mean_burst).abs() < 4.0 * burst_sigma, "{what}");
    }
}

#[test]
fn the_queue_does_not_shorten_bursts() {
    // Twice the rate is offered: every other packet finds the queue full and does not reach the channel.
    let config = LinkConfig { queue_bytes: Some(4000), ..("rate=8M,loss=20%,burst=5,seed=9".parse().unwrap()) };
    let mut link = Link::new(config).unwrap();
    let (mut count, mut bursts, mut before) = (0.0, 0.0, false);
    for number in 0..1_000_000_u64 {
        match link.offer(Time::from_nanos(number * 500_000), 1000, Ecn::NotEct) {
            OfferOutcome::Dropped(DropReason::Random) => {
                count += 1.0;
                bursts += if before { 0.0 } else { 1.0 };
                before = true;
            }
            OfferOutcome::Dropped(_) => {}
            OfferOutcome::Delivered(_) => before = false,
        }
    }
    let burst: f64 = count / bursts;
    assert!((burst / 5.0 - 1.0).abs() < 0.04, "mean burst {burst}");
}

/// Returns the most packets lost in a row of those sent so many milliseconds apart.
fn longest_burst(link: &str, millis: u64) -> usize {
    let mut link = Link::new(link.parse().expect("a link")).expect("a link that makes sense");
    let mut offer = |number| link.offer(Time::from_nanos(number * millis * 1_000_000), 100, Ecn::NotEct);
    let lost: Vec<bool> = (0..10_000).map(|number| matches!(offer(number), OfferOutcome::Dropped(_))).collect();
    lost.split(|lost| !lost).map(<[bool]>::len).max().unwrap_or(0)
}

#[test]
fn a_burst_is_over_after_its_time() {
    let link = "loss=1%,burst=20,seed=3";
    let bounded = format!("{link},burst-time=2s");
    assert_eq!(longest_burst(link, 1_000), 36);
    assert_eq!(longest_burst(&bounded, 1_000), 2, "those of the first two seconds");
    assert_eq!(longest_burst(&bounded, 5_000), 1);
    assert_eq!(longest_burst(&bounded, 1), longest_burst(link, 1), "packets close together meet the whole burst");
}

#[test]
fn other_impairments_have_their_rates() {
    let config = "reorder=2%:3ms,duplicate=3%,corrupt=4%,mark=5%,seed=11".parse().unwrap();
    let mut link = Link::new(config).unwrap();
    for number in 0..MANY {
        link.offer(Time::from_nanos(number), 100, Ecn::Ect1);
    }
    let stats = *link.stats();
    assert_share(stats.reordered.packets, 0.02, "reordered, seed 11");
    assert_share(stats.duplicated.packets, 0.03, "duplicated, seed 11");
    assert_share(stats.corrupted.packets, 0.04, "corrupted, seed 11");
    assert_share(stats.marked.packets, 0.05, "marked, seed 11");
    assert_eq!(stats.delivered.packets, MANY);
    assert_eq!(stats.marked.bytes, 100 * stats.marked.packets);
}

#[test]
fn one_impairment_does_not_change_the_draws_of_another() {
    /// Returns the effect of one impairment on each packet; `None` for lost packets, whose effect is unknown.
    fn marks(fates: &[OfferOutcome], of: impl Fn(&downpour_netsim::Deliveries) -> u64) -> Vec<Option<u64>> {
        fates
            .iter()
            .map(|fate| if let OfferOutcome::Delivered(deliveries) = fate { Some(of(deliveries)) } else { None })
            .collect()
    }
    type View = fn(&downpour_netsim::Deliveries) -> u64;
    let single: [(&str, View); 4] = [
        ("reorder=10%:2ms", |d| u64::from(d.first.reordered)),
        ("duplicate=10%", |d| u64::from(d.duplicate.is_some())),
        ("corrupt=10%", |d| d.first.corrupt.unwrap_or(0)),
        ("mark=10%", |d| u64::from(d.first.ecn == Ecn::Ce)),
    ];
    let parts = ["loss=10%", "jitter=1us", "reorder=10%:2ms", "duplicate=10%", "corrupt=10%", "mark=10%"];
    let all: LinkConfig = format!("{},seed=5", parts.join(",")).parse().unwrap();
    let together = fates(&all, 20_000);
    for (text, view) in single {
        let alone = marks(&fates(&format!("{text},seed=5").parse().unwrap(), 20_000), view);
        for (number, (alone, together)) in alone.iter().zip(marks(&together, view)).enumerate() {
            assert!(together.is_none() || *alone == together, "{text}: packet {number}, seed 5");
        }
    }
    let alone = fates(&"loss=10%,seed=5".parse().unwrap(), 20_000);
    assert_eq!(lost(&alone), lost(&together), "loss, seed 5");
    let jittered = fates(&"jitter=1us,seed=5".parse().unwrap(), 20_000);
    for (number, (alone, together)) in jittered.iter().zip(&together).enumerate() {
        if let OfferOutcome::Delivered(together) = together
            && !together.first.reordered
        {
            assert_eq!(delivery(*alone).at, together.first.at, "jitter: packet {number}, seed 5");
        }
    }
    // Packets dropped by the queue also consume their random draws.
    let mut short = Link::new("rate=8M,queue=1000B,loss=10%,seed=5".parse().unwrap()).unwrap();
    let pattern: Vec<OfferOutcome> =
        (0..20_000).map(|number| short.offer(Time::from_nanos(number * 700_000), 1000, Ecn::NotEct)).collect();
    for (number, (alone, short)) in alone.iter().zip(&pattern).enumerate() {
        let full = matches!(short, OfferOutcome::Dropped(DropReason::QueueFull));
        assert!(full || lost(&[*alone]) == lost(&[*short]), "behind a queue: packet {number}, seed 5");
    }
    assert!(short.stats().dropped_queue_full.packets > 5_000);
}

#[test]
fn impairments_are_not_correlated() {
    let config: LinkConfig = "reorder=50%:2ms,duplicate=50%,corrupt=50%,mark=50%,seed=21".parse().unwrap();
    let mut pairs = [[0_u64; 4]; 4];
    for fate in fates(&config, MANY) {
        let OfferOutcome::Delivered(d) = fate else { continue };
        let bits = [d.first.reordered, d.duplicate.is_some(), d.first.corrupt.is_some(), d.first.ecn == Ecn::Ce];
        for (one, row) in pairs.iter_mut().enumerate() {
            for (other, count) in row.iter_mut().enumerate() {
                *count += u64::from(bits[one] && bits[other]);
            }
        }
    }
    for (one, row) in pairs.iter().enumerate() {
        for (other, &count) in row.iter().enumerate().skip(one + 1) {
            assert_share(count, 0.25, &format!("impairments {one} and {other} together, seed 21"));
        }
    }
}

#[test]
fn same_seed_same_run_and_another_seed_another() {
    let config: LinkConfig = "rate=8M,queue=20KB,delay=3ms,jitter=5ms,loss=5%,burst=3,reorder=5%:9ms,duplicate=5%,corrupt=5%,mark=5%,seed=77"
        .parse()
        .unwrap();
    assert_eq!(fates(&config, 10_000), fates(&config, 10_000), "seed 77");
    assert_ne!(fates(&config, 10_000), fates(&LinkConfig { seed: 78, ..config.clone() }, 10_000), "seeds 77 and 78");
    assert_ne!(fates(&config, 10_000), fates(&config.sibling(1), 10_000), "seed 77 and its sibling");
    assert_eq!(config.sibling(4).sibling(4), config);
}

#[test]
fn jitter_keeps_order_and_spreads_evenly() {
    let jitter = Duration::from_millis(10);
    let config = LinkConfig { delay: Duration::from_millis(5), jitter, seed: 3, ..LinkConfig::default() };
    let mut link = Link::new(config.clone()).unwrap();
    let mut last = Time::ZERO;
    for number in 0..50_000_u64 {
        let now = Time::from_nanos(number * 100_000);
        let at = delivery(link.offer(now, 100, Ecn::NotEct)).at;
        assert!(at >= last, "packet {number} overtakes, seed 3");
        assert!(at >= now + config.delay && at <= now + config.delay + jitter, "packet {number}, seed 3");
        last = at;
    }
    // Far enough apart that packets cannot overtake each other: the mean is half the jitter.
    let mut link = Link::new(config).unwrap();
    let sum: f64 = (0..MANY)
        .map(|number| {
            let now = Time::from_nanos(number * 20_000_000);
            (delivery(link.offer(now, 100, Ecn::NotEct)).at - now).as_secs_f64() - 0.005
        })
        .sum();
    let (mean, sigma) = (sum / MANY as f64, 0.010 / (12.0 * MANY as f64).sqrt());
    assert!((mean - 0.005).abs() < 4.0 * sigma, "mean jitter {mean}, seed 3");
}

/// Returns how much later than `now + 5 ms` packets offered a microsecond apart arrive, in seconds.
fn lateness(config: &str) -> Vec<f64> {
    let mut link = Link::new(config.parse().expect("a link")).expect("a link that makes sense");
    let late = |number| {
        let now = Time::from_nanos(number * 1_000);
        let delivery = delivery(link.offer(now, 100, Ecn::NotEct));
        assert!(delivery.reordered, "packet {number}");
        (delivery.at - now).as_secs_f64() - 0.005
    };
    (0..MANY).map(late).collect()
}

#[test]
fn scatter_has_its_distribution_and_keeps_no_order() {
    // Shares of the packets later than so many milliseconds.
    for (config, tails) in [
        ("delay=5ms,scatter=10ms,seed=3", [(2.0, 0.8), (9.0, 0.1), (10.0, 0.0)]),
        ("delay=5ms,scatter=exponential:10ms,seed=3", [(2.0, 0.8187), (10.0, 0.3679), (50.0, 0.0067)]),
    ] {
        let late = lateness(config);
        for (millis, share) in tails {
            let later = late.iter().filter(|&&seconds| seconds > millis * 1e-3 + 1e-9).count() as u64;
            assert_share(later, share, &format!("later than {millis} ms, {config}"));
        }
        let overtaken = late.windows(2).filter(|pair| pair[1] + 1e-6 < pair[0]).count() as u64;
        assert!(overtaken.abs_diff(MANY / 2) < MANY / 100, "half of all pairs change places: {overtaken}, {config}");
    }
    let [alone, together] = ["loss=10%,seed=5", "loss=10%,scatter=10ms,seed=5"].map(|text| text.parse().unwrap());
    assert_eq!(lost(&fates(&alone, 20_000)), lost(&fates(&together, 20_000)), "loss, seed 5");
}

#[test]
fn bursts_may_already_be_under_way_at_the_first_packet() {
    let mut count = 0;
    for seed in 0..MANY {
        let config =
            LinkConfig { loss: Loss::GilbertElliott { loss: 0.2, mean_burst: 10.0 }, seed, ..LinkConfig::default() };
        count += u64::from(lost(&fates(&config, 1))[0]);
    }
    assert_share(count, 0.2, "first packets lost, seeds from 0");
}

#[test]
fn flipped_bits_are_spread_evenly() {
    let config: LinkConfig = "corrupt=1%,seed=13".parse().unwrap();
    let entropies: Vec<u64> = fates(&config, MANY).into_iter().filter_map(|fate| delivery(fate).corrupt).collect();
    for bit in 0..64 {
        let ones = entropies.iter().filter(|&&entropy| entropy >> bit & 1 == 1).count() as f64;
        let (mean, sigma) = (entropies.len() as f64 / 2.0, (entropies.len() as f64 / 4.0).sqrt());
        assert!((ones - mean).abs() < 4.5 * sigma, "bit {bit}: {ones} of {}, seed 13", entropies.len());
    }
}

#[test]
fn impairments_pause_and_continue_with_the_same_draws() {
    for loss in ["loss=20%", "loss=20%,burst=4"] {
        let text = format!(
            "rate=8M,queue=40KB,delay=3ms,jitter=50us,{loss},reorder=20%:900us,duplicate=20%,corrupt=20%,mark=20%,mark-above=100B,seed=17"
        );
        let config: LinkConfig = text.parse().unwrap();
        let (mut paused, mut steady) = (Link::new(config.clone()).unwrap(), Link::new(config).unwrap());
        let mut differ = 0;
        for number in 0..6_000_u64 {
            // Further apart than the jitter, so that the order does not delay packets. Packets of two sizes, so that
            // some are queued.
            let (now, ip_bytes) = (Time::from_nanos(number * 2_000_000), if number % 7 == 0 { 2_500 } else { 1_000 });
            let pause = (2_000..4_000).contains(&number);
            paused.set_impaired(!pause);
            let (fate, other) = (paused.offer(now, ip_bytes, Ecn::Ect0), steady.offer(now, ip_bytes, Ecn::Ect0));
            if !pause {
                assert_eq!(fate, other, "packet {number}, {loss}, seed 17");
                continue;
            }
            differ += u64::from(fate != other);
            let OfferOutcome::Delivered(deliveries) = fate else { panic!("packet {number} is lost, {loss}, seed 17") };
            assert_eq!((deliveries.first.ecn, deliveries.first.corrupt, deliveries.duplicate), (Ecn::Ect0, None, None));
            let waits = if number % 7 == 1 { 500 } else { 0 };
            let travels = Duration::from_micros(u64::from(ip_bytes) + waits + 3_000);
            assert_eq!((deliveries.first.at, deliveries.first.reordered), (now + travels, false), "packet {number}");
        }
        assert!(differ > 1_900, "{differ}");
        assert!(paused.stats().dropped_random.packets > 600, "{:?}", paused.stats());
    }
}
