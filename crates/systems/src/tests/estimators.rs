//! Each algorithm against known losses of tens of thousands of virtual packets.

use super::estimator;
use transport::Time;
use transport::recovery::LossEstimate;
use transport::recovery::test_path::Random;

fn estimate(text: &str) -> LossEstimate {
    LossEstimate::new(&estimator(text))
}

#[test]
fn bursts_are_runs_of_consecutive_losses() {
    for text in ["packets", "ewma", "oracle", "ttp"] {
        let mut loss = estimate(text);
        let mut ordinal = 0;
        for _ in 0..200 {
            for _ in 0..4 {
                loss.on_lost(ordinal, Time::ZERO);
                ordinal += 1;
            }
            loss.on_delivered(16);
            ordinal += 16;
        }
        assert!((loss.mean_burst() - 4.0).abs() < 0.01, "{text}: {}", loss.mean_burst());
    }
}

/// Law 5: without loss no encoder is built.
#[test]
fn without_loss_or_once_it_is_refuted_it_is_exactly_nothing() {
    for text in ["packets", "ewma", "dynamic-ewma", "autoregressive", "ttp"] {
        let mut loss = estimate(text);
        loss.on_delivered(63);
        loss.close_report(&[], &[]);
        assert!(loss.loss() > 0.0, "{text}: too little is known");
        loss.on_delivered(1000);
        loss.on_lost(3, Time::ZERO);
        loss.close_report(&[], &[]);
        assert!(loss.loss() > 0.0 || text == "autoregressive", "{text}: a prediction may be nothing");
        loss.on_delivered(1000);
        loss.on_spurious(1);
        assert_eq!((loss.loss(), loss.mean_burst()), (0.0, 1.0), "{text}");
    }
    let mut loss = estimate("oracle:7%");
    loss.on_delivered(1000);
    assert_eq!(loss.loss(), 0.07);
}

#[test]
fn averages_weigh_as_the_document_has_it() {
    let mut loss = estimate("ewma:initial=10%,packets=100");
    let mut dynamic = estimate("dynamic-ewma:initial=10%,packets=100");
    for estimate in [&mut loss, &mut dynamic] {
        (0..30).for_each(|ordinal| _ = estimate.on_lost(ordinal, Time::ZERO));
        estimate.close_report(&[], &[]);
        assert_eq!(estimate.loss(), 0.1, "the sample is not complete");
        estimate.on_delivered(70);
        estimate.close_report(&[], &[]);
    }
    assert!((loss.loss() - 0.22).abs() < 1e-12, "0.6 x 0.3 + 0.4 x 0.1: {}", loss.loss());
    assert!((dynamic.loss() - 0.25).abs() < 1e-12, "weight 0.3 / 0.4: {}", dynamic.loss());
    dynamic.on_delivered(500);
    dynamic.close_report(&[], &[]);
    assert!((dynamic.loss() - 0.25).abs() < 1e-12, "a clean sample weighs nothing: {}", dynamic.loss());
    loss.on_lost(900, Time::ZERO);
    loss.on_delivered(99);
    loss.on_spurious(1);
    loss.close_report(&[], &[]);
    assert!((loss.loss() - 0.088).abs() < 1e-12, "taken back before the sample: {}", loss.loss());
}

#[test]
fn another_estimator_continues_from_the_last_estimate() {
    let mut loss = estimate("packets");
    loss.reconfigure(&estimator("ewma:initial=20%"));
    assert_eq!(loss.loss(), 0.2, "nothing was known");
    for ordinal in 0..100 {
        loss.on_delivered(9);
        loss.on_lost(ordinal * 10, Time::ZERO);
        loss.close_report(&[], &[]);
    }
    let before = loss.loss();
    for text in ["dynamic-ewma", "autoregressive", "ttp", "packets", "ewma"] {
        loss.reconfigure(&estimator(text));
        assert!((loss.loss() - before).abs() < 1e-12, "{text}: {}", loss.loss());
    }
}

/// Losses from a chain of two states, good and bad, the latter of which loses everything: `rate` in the long run,
/// `burst` in a row on average; a burst of 0: independent.
struct Channel {
    random: Random,
    rate: f64,
    burst: f64,
    bad: bool,
}

impl Channel {
    fn loses(&mut self) -> bool {
        if self.burst == 0.0 {
            return self.random.chance(self.rate);
        }
        let leaves = if self.bad { 1.0 / self.burst } else { self.rate / (1.0 - self.rate) / self.burst };
        self.bad ^= self.random.chance(leaves);
        self.bad
    }
}

/// An estimator's result for a channel.
struct ReportBuilder {
    /// Mean estimate over time; packets are sent at a steady pace.
    mean: f64,
    /// Mean distance of the estimate from the channel's loss.
    error: f64,
}

fn run(text: &str, rate: f64, burst: f64) -> ReportBuilder {
    const PACKETS: u32 = 400_000;
    let mut loss = estimate(text);
    let mut channel = Channel { random: Random::new(7), rate, burst, bad: false };
    let (mut sum, mut error) = (0.0, 0.0);
    for ordinal in 0..PACKETS {
        if channel.loses() {
            _ = loss.on_lost(ordinal, Time::ZERO)
        } else {
            loss.on_delivered(1)
        }
        if ordinal % 4 == 3 {
            loss.close_report(&[], &[]);
        }
        sum += loss.loss();
        error += (loss.loss() - rate).abs();
    }
    ReportBuilder { mean: 100.0 * sum / f64::from(PACKETS), error: 100.0 * error / f64::from(PACKETS) }
}

const RATES: [f64; 4] = [0.05, 0.1, 0.15, 0.2];
const BURSTS: [f64; 4] = [0.0, 2.0, 5.0, 10.0];

/// lt-tcp's tables 3.1 and 3.2 with these estimators; `--nocapture` prints them.
#[test]
fn the_documents_tables_of_estimates() {
    let mut all = Vec::new();
    for text in ["dynamic-ewma", "ewma", "autoregressive", "packets"] {
        println!("{text}: mean estimate / mean error in % at E = independent, 2, 5, 10");
        let rows = RATES.map(|rate| BURSTS.map(|burst| run(text, rate, burst)));
        for (rate, row) in RATES.iter().zip(&rows) {
            let cells = row.iter().map(|cell| format!("{:6.2} /{:5.2}", cell.mean, cell.error));
            println!("{:4.0} {}", 100.0 * rate, cells.collect::<Vec<_>>().join("  "));
        }
        all.push(rows);
    }
    let [dynamic, fixed, model, _] = &all[..] else { panic!("four") };
    for (at, rate) in RATES.map(|rate| 100.0 * rate).into_iter().enumerate() {
        for rows in [fixed, model] {
            assert!((rows[at][0].mean - rate).abs() < 1.0, "{rate} %: {} without bursts", rows[at][0].mean);
        }
        for (burst, cell) in BURSTS.iter().zip(&dynamic[at]).skip(1) {
            let fixed = fixed[at].iter().zip(BURSTS).find(|(_, b)| b == burst).map_or(0.0, |(cell, _)| cell.mean);
            assert!(cell.mean > rate && cell.mean > fixed, "{rate} %, E = {burst}: {} overestimates", cell.mean);
        }
        assert!(dynamic[at].windows(2).all(|pair| pair[0].mean < pair[1].mean), "{rate} %: more so with longer bursts");
        for (burst, (model, fixed)) in BURSTS.iter().zip(model[at].iter().zip(&fixed[at])) {
            assert!(model.error < fixed.error, "{rate} %, E = {burst}: {} against {}", model.error, fixed.error);
        }
    }
}

#[test]
fn the_model_survives_long_silence_and_total_loss() {
    let mut loss = estimate("autoregressive:order=8,packets=1");
    for ordinal in 0..200_000 {
        match ordinal % 100_000 {
            0 => _ = loss.on_lost(ordinal, Time::ZERO),
            50_000.. => _ = loss.on_lost(ordinal, Time::ZERO),
            _ => loss.on_delivered(1),
        }
        loss.close_report(&[], &[]);
        assert!((0.0..=1.0).contains(&loss.loss()), "packet {ordinal}: {}", loss.loss());
    }
    assert!(loss.loss() > 0.9, "{}", loss.loss());
}

/// The dynamic average is biased upwards. r' = (r + s) / 2 + (r - s)^2 / (2 (r + s)), so that in balance it is too high
/// by the mean of (r - s)^2 / (r + s): with samples of N independent packets about 2 (1 - p) / (3 N), nearly the same
/// at any loss p, and a percentage point for N = 64.
#[test]
fn the_dynamic_average_is_too_high_by_the_noise_of_its_samples() {
    for packets in [64, 256] {
        for loss in [0.05, 0.1, 0.2] {
            let mean = |name: &str| {
                let mut random = Random::new(7);
                let mut estimate = estimate(&format!("{name}:packets={packets}"));
                let (mut sum, samples) = (0.0, 20_000);
                for _ in 0..samples {
                    let lost = (0..packets).filter(|_| random.chance(loss)).count();
                    (0..lost).for_each(|_| _ = estimate.on_lost(0, Time::ZERO));
                    estimate.on_delivered(packets - lost);
                    estimate.close_report(&[], &[]);
                    sum += estimate.loss();
                }
                sum / f64::from(samples) - loss
            };
            let (above, expected) = (mean("dynamic-ewma"), 2.0 * (1.0 - loss) / (3.0 * packets as f64));
            assert!((above / expected - 1.0).abs() < 0.15, "{packets} packets at {loss}: {above} for {expected}");
            assert!(mean("ewma").abs() < 3e-4, "a fixed weight has no such noise: {}", mean("ewma"));
        }
    }
}
