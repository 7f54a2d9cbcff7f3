//! Controllers at work on a path: their steady state, compared with the promises of their documents.

use super::congestion;
use std::time::Duration;
use transport::recovery::test_path::{Conditions, PACKET, Path};
use transport::{Rate, Time};

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn at(time: u64) -> Time {
    Time::ZERO + millis(time)
}

fn on_path(text: &str, conditions: Conditions, seed: u64) -> Path {
    Path::new(&congestion(text), conditions, seed)
}

/// 20 Mbit/s, 50 ms of round trip and a queue of as much again.
fn bottleneck(loss: f64) -> Conditions {
    let rate = Rate::from_bits_per_second(20_000_000);
    Conditions { loss, bottleneck: Some((rate, rate.bytes_in(millis(50)))), ..Conditions::clean(millis(50)) }
}

/// Returns the share of the bottleneck used from 5 s to 25 s, and the mean round-trip time above the minimum, in
/// milliseconds.
fn share(congestion: &str, loss: f64, seed: u64) -> (f64, f64) {
    let mut path = on_path(congestion, bottleneck(loss), seed);
    path.run_until(at(5000));
    let before = path.recovery.stats().delivered_bytes;
    let mut queued = 0.0;
    for second in 6..=25 {
        path.run_until(at(second * 1000));
        queued += (path.recovery.rtt().smoothed().as_secs_f64() - 0.05) * 1e3 / 20.0;
    }
    let carried = Rate::from_bits_per_second(20_000_000).bytes_in(Duration::from_secs(20));
    ((path.recovery.stats().delivered_bytes - before) as f64 / carried as f64, queued)
}

/// RFC 6817: the queue is kept at the target, here 20 ms of the 50 ms available, and the path full.
#[test]
fn ledbat_queues_its_target() {
    let (share, queued) = share("ledbat:target=20ms", 0.0, 1);
    assert!(share > 0.97, "{share} of the bottleneck");
    assert!((15.0..25.0).contains(&queued), "{queued} ms queued");
}

/// RFC 5348: the throughput equation, at random loss on a path without bottleneck.
#[test]
fn tfrc_is_as_fast_as_its_equation() {
    for (seed, loss) in [(1, 0.002_f64), (2, 0.01), (3, 0.05)] {
        let mut path = on_path("tfrc", Conditions { loss, ..Conditions::clean(millis(50)) }, seed);
        path.run_until(at(20_000));
        let before = path.recovery.stats().sent_packets;
        path.run_until(at(120_000));
        let rate = (path.recovery.stats().sent_packets - before) as f64 / 100.0;
        let timeouts = 12.0 * (3.0 * loss / 8.0).sqrt() * loss * (1.0 + 32.0 * loss * loss);
        let expected = 1.0 / (0.05 * ((2.0 * loss / 3.0).sqrt() + timeouts));
        assert!(
            (0.75..1.35).contains(&(rate / expected)),
            "seed {seed}, loss {loss}: {rate} packets a second for {expected}"
        );
    }
}

/// ttp §II-B: the rate climbs to its maximum if nothing is lost, and a short queue that overflows halves it.
#[test]
fn ttp_climbs_and_halves() {
    let mut path = on_path("ttp:max=15M,min=1M,bottleneck=10M,add=100k", bottleneck(0.0), 1);
    path.run_until(at(10_000));
    assert_eq!(path.recovery.pacing_rate(), Some(Rate::from_bits_per_second(15_000_000)));
    let mut path = on_path("ttp:max=100M,min=1M,bottleneck=10M,add=100k", bottleneck(0.0), 1);
    path.run_until(at(10_000));
    let lost = path.recovery.stats().lost_packets;
    assert!(lost > 0 && path.recovery.pacing_rate() < Some(Rate::from_bits_per_second(30_000_000)), "{lost}");
}

/// RFC 3649 table 1: at a loss rate of 1e-4 the window averages 0.12 / p^0.835 packets; tested with one loss every
/// 10,000 packets.
#[test]
fn highspeed_averages_match_its_response_function() {
    let conditions = Conditions { periodic_loss: 10_000, ..Conditions::clean(millis(20)) };
    let mut path = on_path("highspeed", conditions, 1);
    path.run_until(at(60_000));
    let mean = path.mean_window(at(10_000));
    let expected = 0.12 / 1e-4_f64.powf(0.835);
    assert!((mean / expected - 1.0).abs() < 0.15, "{mean} packets on average, {expected} expected");
}

#[test]
fn fixed_window_equals_flight() {
    let mut path = on_path("fixed-window:segments=5", Conditions { loss: 0.02, ..Conditions::clean(millis(50)) }, 1);
    path.run_until(at(20_000));
    assert_eq!(path.most_in_flight, 5 * u64::from(PACKET));
    let mut path = on_path("fixed-window:rate=20M", Conditions::clean(millis(50)), 1);
    path.run_until(at(20_000));
    let rate = Rate::from_bits_per_second(20_000_000);
    let delivered = path.recovery.stats().delivered_bytes as f64;
    assert!(delivered > 0.95 * rate.bytes_in(Duration::from_secs(20)) as f64, "{delivered}");
}
