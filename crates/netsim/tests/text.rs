//! Parsing and printing of links.

use std::time::Duration;

use downpour_netsim::{
    Codel, DelayStep, Duplex, LinkConfig, Loss, LossStep, Mark, Outage, Police, Rate, RateStep, Reorder,
    ReorderingDelay,
};

#[test]
fn every_key_is_read() {
    let text = "rate=100M,step=10s:20M+20s:5M,bucket=10KB,police=90M:20KB,delay=50ms,jitter=1ms,slot=20ms,scatter=exponential:3ms,delay-step=10s:5ms+20s:90ms,queue=256KB,queue-packets=10,codel=5ms:100ms,mtu=1400B,fragment=on,loss=5%,burst=5,burst-time=1s,loss-step=1s:0%+2s:10%,reorder=1%:2ms,duplicate=0.1%,corrupt=0.01%,mark=2%,mark-above=64KiB,down=3s..5s+8s..9s,seed=7";
    let seconds = Duration::from_secs;
    let config = LinkConfig {
        rate: Some(Rate::from_megabits_per_second(100)),
        steps: [(10, 20), (20, 5)]
            .map(|(at, rate)| RateStep { at: seconds(at), rate: Rate::from_megabits_per_second(rate) })
            .into(),
        outages: [(3, 5), (8, 9)].map(|(from, until)| Outage { from: seconds(from), until: seconds(until) }).into(),
        trace: None,
        bucket_bytes: Some(10_000),
        police: Some(Police { rate: Rate::from_megabits_per_second(90), burst_bytes: 20_000 }),
        queue_bytes: Some(256_000),
        queue_packets: Some(10),
        codel: Some(Codel { target: Duration::from_millis(5), interval: Duration::from_millis(100) }),
        fq_codel: None,
        mtu: Some(1_400),
        fragment: true,
        delay: Duration::from_millis(50),
        jitter: Duration::from_millis(1),
        slot: Duration::from_millis(20),
        scatter: ReorderingDelay::Exponential(Duration::from_millis(3)),
        delay_steps: [(10, 5), (20, 90)]
            .map(|(at, millis)| DelayStep { at: seconds(at), delay: Duration::from_millis(millis) })
            .into(),
        loss: Loss::GilbertElliott { loss: 0.05, mean_burst: 5.0 },
        burst_time: Some(seconds(1)),
        loss_steps: [(1, 0.0), (2, 0.1)].map(|(at, loss)| LossStep { at: seconds(at), loss }).into(),
        reorder: Reorder { probability: 0.01, extra: Duration::from_millis(2) },
        duplicate: 0.001,
        corrupt: 0.0001,
        mark: Mark { above_bytes: Some(65_536), probability: 0.02 },
        seed: 7,
    };
    assert_eq!(text.parse(), Ok(config.clone()));
    assert_eq!(config.to_string(), text);
    assert_eq!(" burst = 5 , loss = 0.05 ".parse::<LinkConfig>().unwrap().loss, config.loss);
    let fair: LinkConfig = "rate=1M,fq-codel=5ms:100ms".parse().unwrap();
    assert_eq!((fair.fq_codel, fair.codel), (config.codel, None));
    assert_eq!("perfect".parse(), Ok(LinkConfig::default()));
    assert_eq!(LinkConfig::default().to_string(), "perfect");
}

#[test]
fn rates_and_sizes_have_their_units() {
    for (text, bits) in [
        ("1bit/s", 1),
        ("500k", 500_000),
        ("1.5M", 1_500_000),
        ("2.5G", 2_500_000_000),
        ("12MB/s", 96_000_000),
        ("0.1kB/s", 800),
        ("18446744073709551615bit/s", u64::MAX),
    ] {
        assert_eq!(text.parse(), Ok(Rate::from_bits_per_second(bits)), "{text}");
    }
    assert_eq!(Rate::from_bits_per_second(1_500_000).to_string(), "1500k");
    assert_eq!(Rate::from_bits_per_second(0).to_string(), "0bit/s");
    for (text, bytes) in [("1B", 1), ("1KB", 1000), ("1KiB", 1024), ("1.5MB", 1_500_000), ("1GiB", 1 << 30)] {
        let config: LinkConfig = format!("rate=1G,queue={text}").parse().unwrap();
        assert_eq!(config.queue_bytes, Some(bytes), "{text}");
    }
}

#[test]
fn a_printed_link_reads_back_the_same() {
    let mut random = fastrand::Rng::with_seed(1);
    for seed in 0..5_000 {
        let codel = random.bool().then(|| Codel {
            target: Duration::from_nanos(random.u64(1..)),
            interval: Duration::from_nanos(random.u64(1..)),
        });
        let mut probability = || match random.u8(..4) {
            0 => 0.0,
            1 => f64::from(random.u32(0..=1000)) / 1000.0,
            2 => random.f64(),
            _ => random.f64() * 1e-9,
        };
        let loss = probability();
        let is_fair = seed % 2 == 0;
        let config = LinkConfig {
            duplicate: probability(),
            corrupt: probability(),
            mark: Mark { above_bytes: (seed % 3 == 0).then_some(seed), probability: probability() },
            reorder: Reorder { probability: probability(), extra: Duration::from_nanos(random.u64(1..1 << 40)) },
            rate: Some(Rate::from_bits_per_second(random.u64(1..))),
            steps: (0..random.u64(..3))
                .map(|number| RateStep {
                    at: Duration::from_nanos(number << 40 | random.u64(..1 << 40)),
                    rate: Rate::from_bits_per_second(random.u64(1..)),
                })
                .collect(),
            outages: (0..random.u64(..3))
                .map(|number| Outage {
                    from: Duration::from_nanos(number << 40 | random.u64(..1 << 39)),
                    until: Duration::from_nanos(number << 40 | random.u64(1 << 39..1 << 40)),
                })
                .collect(),
            trace: None,
            bucket_bytes: random.bool().then(|| random.u64(1..)),
            police: random
                .bool()
                .then(|| Police { rate: Rate::from_bits_per_second(random.u64(1..)), burst_bytes: random.u64(1..) }),
            queue_bytes: Some(random.u64(1..)),
            queue_packets: random.bool().then(|| random.u32(1..)),
            codel: codel.filter(|_| !is_fair),
            fq_codel: codel.filter(|_| is_fair),
            mtu: random.bool().then(|| random.u32(..)),
            fragment: false,
            delay: Duration::from_nanos(random.u64(..)),
            jitter: Duration::from_micros(random.u64(..1_000_000)),
            slot: Duration::from_micros(random.u64(..1_000_000)),
            scatter: match random.u8(..3) {
                0 => ReorderingDelay::default(),
                1 => ReorderingDelay::Uniform(Duration::from_nanos(random.u64(..1 << 40))),
                _ => ReorderingDelay::Exponential(Duration::from_nanos(random.u64(..1 << 40))),
            },
            delay_steps: (0..random.u64(..3))
                .map(|number| DelayStep {
                    at: Duration::from_nanos(number << 40 | random.u64(..1 << 40)),
                    delay: Duration::from_nanos(random.u64(..)),
                })
                .collect(),
            loss_steps: (0..random.u64(..3))
                .map(|number| LossStep {
                    at: Duration::from_nanos(number << 40 | random.u64(..1 << 40)),
                    loss: random.f64() * 0.5,
                })
                .collect(),
            loss: match seed % 3 {
                0 => Loss::None,
                1 => Loss::Bernoulli(loss),
                _ => Loss::GilbertElliott { loss: loss * 0.5, mean_burst: 2.0 + random.f64() },
            },
            burst_time: (seed % 3 == 2 && random.bool()).then(|| Duration::from_nanos(random.u64(..))),
            seed,
        };
        let text = config.to_string();
        assert_eq!(text.parse(), Ok(config.clone()), "{text}");
        let link = Duplex::new(config.clone(), LinkConfig { seed: seed / 2, ..config });
        let text = link.to_string();
        assert_eq!(text.parse(), Ok(link), "{text}");
    }
}

#[test]
fn two_directions_share_no_stream() {
    let both: Duplex = "rate=1M,loss=5%".parse().unwrap();
    assert_eq!(both.forward.loss, both.backward.loss);
    assert_ne!(both.forward.seed, both.backward.seed);
    assert_eq!(both.to_string(), "rate=1M,loss=5%");
    let each: Duplex = "rate=1M,loss=5% / rate=12MB/s".parse().unwrap();
    assert_eq!(each.backward.rate, Some(Rate::from_megabits_per_second(96)));
    assert_eq!(each.backward.loss, Loss::None);
    assert_ne!(each.forward.seed, each.backward.seed);
    assert_eq!(each.to_string(), "rate=1M,loss=5% / rate=96M");
}

#[test]
fn a_trace_is_written_as_the_name_of_its_file() {
    let text = "trace=traces/cellular down.txt,delay=20ms,queue=64KB,mark-above=30KB";
    let config: LinkConfig = text.parse().unwrap();
    let file = config.trace.as_ref().unwrap();
    assert_eq!((file.name(), file.trace()), ("traces/cellular down.txt", None));
    assert_eq!(config.to_string(), text);
    for (key, value) in [("rate", "1M"), ("bucket", "1KB"), ("step", "1s:2M")] {
        let refused = format!("trace=x,{key}={value}").parse::<LinkConfig>().unwrap_err().to_string();
        assert_eq!(refused, format!("{key} has no effect on a link with a trace: omit one of them"));
    }
    let refused = "trace=".parse::<LinkConfig>().unwrap_err().to_string();
    assert_eq!(refused, "cannot read trace=: write it like cellular.trace (the name of a file)");
    assert!("trace=x,delay=5ms,queue=1bdp".parse::<LinkConfig>().is_err());
}

#[test]
fn a_queue_in_bdp_holds_a_round_trip_of_the_rate() {
    let queue = |text: &str| text.parse::<LinkConfig>().unwrap().queue_bytes.unwrap();
    assert_eq!(queue("rate=100M,delay=50ms,queue=1bdp"), 1_250_000);
    assert_eq!(queue("queue=0.5bdp,delay=50ms,rate=100M"), 625_000, "in any order");
    assert_eq!(queue("rate=999999937bit/s,delay=123456789ns,queue=2.000001bdp"), 61_728_421);
    assert_eq!(queue("rate=1M,delay=1ms,queue=1bdp"), 1_500, "room for a full packet");
    assert_eq!(queue("rate=18446744073709551615bit/s,delay=18446744073s,queue=9bdp"), u64::MAX);

    let queues = |text: &str| {
        let link: Duplex = text.parse().unwrap();
        (link.forward.queue_bytes.unwrap(), link.backward.queue_bytes)
    };
    assert_eq!(queues("rate=100M,delay=50ms,queue=1bdp"), (1_250_000, Some(1_250_000)));
    assert_eq!(queues("rate=100M,delay=50ms,queue=1bdp / rate=10M,delay=10ms,queue=2bdp"), (750_000, Some(150_000)));
    assert_eq!(queues("rate=8M,queue=1bdp / delay=10ms"), (10_000, None));
    let link: Duplex = "rate=100M,delay=50ms,queue=1bdp / rate=10M".parse().unwrap();
    assert_eq!(link.to_string(), "rate=100M,delay=50ms,queue=625KB / rate=10M");

    let refused = |text: &str| text.parse::<Duplex>().unwrap_err().to_string();
    let nothing =
        "queue in bdp needs a rate and a delay: write both, such as rate=100M,delay=50ms, or a size such as 256KB";
    assert_eq!(refused("delay=50ms,queue=1bdp"), nothing);
    assert_eq!(refused("rate=100M,queue=1bdp"), nothing);
    assert!(refused("rate=100M,delay=50ms,queue=0bdp").starts_with("queue is 0: write a size"));
    assert!(refused("rate=100M,delay=50ms,queue=0.0000001bdp").starts_with("cannot read queue=0.0000001bdp"));
    assert!(refused("rate=100M,delay=50ms,queue=bdp").starts_with("cannot read queue=bdp"));
}

#[test]
fn errors_are_one_line_with_advice() {
    for (text, error) in [
        ("", "\"\" is not KEY=VALUE: write parts such as rate=100M,delay=50ms,loss=5%,queue=256KB, or perfect"),
        (
            "speed=1M",
            "unknown key \"speed\": one of rate, step, trace, bucket, police, delay, delay-step, jitter, slot, scatter, queue, queue-packets, codel, fq-codel, mtu, fragment, loss, loss-step, burst, burst-time, reorder, duplicate, corrupt, mark, mark-above, down and seed",
        ),
        ("rate=1M,rate=2M", "duplicate key rate"),
        (
            "rate=10",
            "\"10\" has no unit: write 10M for Mbit/s, 10MB/s for megabytes per second, 10bit/s if you mean that",
        ),
        ("rate=fast", "cannot read rate=fast: write it like 100M (Mbit/s), 1G, 500k or 12MB/s"),
        ("rate=1.23456789k", "cannot read rate=1.23456789k: write it like 100M (Mbit/s), 1G, 500k or 12MB/s"),
        ("rate=99999999999G", "cannot read rate=99999999999G: write it like 100M (Mbit/s), 1G, 500k or 12MB/s"),
        ("delay=50", "cannot read delay=50: write it like 50ms, 1s, 200us or 100ns"),
        ("delay=-5ms", "cannot read delay=-5ms: write it like 50ms, 1s, 200us or 100ns"),
        ("queue=256", "cannot read queue=256: write it like 256KB (1 KB is 1000 bytes), 256KiB or 1bdp"),
        (
            "rate=1M,mark-above=1bdp",
            "cannot read mark-above=1bdp: write it like 256KB (1 KB is 1000 bytes), 256KiB or 1MB",
        ),
        ("police=1M", "cannot read police=1M: write it like 10M:20KB (a rate, and how much passes at once)"),
        ("police=1M:1bdp", "cannot read police=1M:1bdp: write it like 10M:20KB (a rate, and how much passes at once)"),
        ("rate=1M,queue-packets=10KB", "cannot read queue-packets=10KB: write it like 10"),
        ("loss=5e0%", "cannot read loss=5e0%: write it like 5%"),
        ("loss=nan", "loss is NaN: write a probability from 0% to 100%"),
        ("reorder=1%", "cannot read reorder=1%: write it like 1%:2ms (how many, and how much later)"),
        (
            "loss=5%,burst-time=1s",
            "burst-time has no effect without burst: write both, such as loss=5%,burst=5,burst-time=1s",
        ),
        (
            "rate=1M,codel=5ms",
            "cannot read codel=5ms: write it like 5ms:100ms (the wait to aim at, and for how long more is accepted)",
        ),
        (
            "rate=1M,fq-codel=5:100",
            "cannot read fq-codel=5:100: write it like 5ms:100ms (the wait to aim at, and for how long more is accepted)",
        ),
        (
            "scatter=normal:5ms",
            "cannot read scatter=normal:5ms: write it like 5ms (each packet by up to so much), or exponential:5ms (on average)",
        ),
        ("burst=5", "burst has no effect without loss: write loss too, such as loss=5%,burst=5"),
    ] {
        assert_eq!(text.parse::<LinkConfig>().unwrap_err().to_string(), error);
    }
    let three = "perfect / perfect / perfect".parse::<Duplex>().unwrap_err();
    assert_eq!(three.to_string(), "a link has two directions: write one link for both, or two with / between them");
}
