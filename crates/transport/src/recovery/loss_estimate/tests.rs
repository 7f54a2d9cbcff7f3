//! The estimate against known losses of thousands of virtual packets. The estimators of systems are tested with them.

use super::*;

fn estimate(text: &str) -> LossEstimate {
    LossEstimate::new(&text.parse().expect("an estimator"))
}

#[test]
fn the_assumption_yields_to_measurements() {
    let mut loss = estimate("packets");
    assert_eq!(loss.loss(), 0.05);
    loss.on_delivered(32);
    assert!((loss.loss() - 0.025).abs() < 1e-9, "{}", loss.loss());
    loss.on_delivered(33);
    assert_eq!(loss.loss(), 0.0);
    assert_eq!(loss.mean_burst(), 1.0);
}

#[test]
fn one_loss_among_few_packets_is_damped_and_never_forgotten_entirely() {
    let mut loss = estimate("packets");
    loss.on_lost(0, Time::ZERO);
    assert!((loss.loss() - 4.15 / 64.0).abs() < 1e-9, "{}", loss.loss());
    loss.on_delivered(20_000);
    assert!(loss.loss() > 0.0 && loss.loss() < 1e-6, "{}", loss.loss());
}

#[test]
fn follows_the_path_with_its_half_life() {
    for half_life in [2000.0, 500.0] {
        let mut loss = estimate(&format!("packets:half-life={half_life}"));
        let mut ordinal = 0;
        for _ in 0..2000 {
            loss.on_delivered(9);
            loss.on_lost(ordinal, Time::ZERO);
            ordinal += 10;
        }
        assert!((loss.loss() - 0.1).abs() < 0.001, "{}", loss.loss());
        // The weights of all earlier packets add up to half-life / ln 2, and half of that remains.
        let left = half_life / std::f64::consts::LN_2 / 2.0;
        loss.on_delivered(half_life as usize);
        let expected = 0.1 * left / (left + half_life);
        assert!((loss.loss() - expected).abs() < 0.002, "{} for {expected}", loss.loss());
    }
}

#[test]
fn a_loss_run_has_the_time_over_which_it_was_sent() {
    let mut loss = estimate("packets");
    let at = |millis| Time::ZERO + Duration::from_millis(millis);
    assert_eq!(loss.on_lost(7, at(10)), Duration::ZERO);
    assert_eq!(loss.on_lost(8, at(30)), Duration::from_millis(20));
    assert_eq!(loss.on_lost(9, at(90)), Duration::from_millis(80));
    assert_eq!(loss.on_lost(11, at(95)), Duration::ZERO);
}

#[test]
fn bursts_are_runs_of_consecutive_losses() {
    let mut loss = estimate("packets");
    let mut ordinal = 0;
    for _ in 0..200 {
        for _ in 0..4 {
            loss.on_lost(ordinal, Time::ZERO);
            ordinal += 1;
        }
        loss.on_delivered(16);
        ordinal += 16;
    }
    assert!((loss.mean_burst() - 4.0).abs() < 0.01, "{}", loss.mean_burst());
}
