//! Controllers at work on a path: their steady state, compared with the promises of their documents.

use super::*;

/// 20 Mbit/s, 50 ms of round trip and a queue of as much again.
fn bottleneck(loss: f64) -> Conditions {
    let rate = Rate::from_bits_per_second(20_000_000);
    Conditions { loss, bottleneck: Some((rate, rate.bytes_in(millis(50)))), ..Conditions::clean(millis(50)) }
}

/// Returns the share of the bottleneck used from 5 s to 25 s, and the mean round-trip time above the minimum, in
/// milliseconds.
fn share(congestion: &str, loss: f64, seed: u64) -> (f64, f64) {
    let mut path = path(congestion, bottleneck(loss), seed);
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

/// draft-ietf-ccwg-bbr: the path is full and its queue short. Random loss costs some throughput, since each lossy round
/// lowers the short-term bandwidth to its delivery rate, until the next probe lifts it.
#[test]
fn bbr_fills_a_path_through_loss_and_keeps_its_queue_short() {
    for (seed, loss, least) in [(1, 0.0, 0.95), (2, 0.005, 0.8), (3, 0.01, 0.7)] {
        let (share, queued) = share("bbr", loss, seed);
        assert!(share > least && share < 1.01, "seed {seed}, loss {loss}: {share} of the bottleneck");
        assert!(queued < 25.0, "seed {seed}, loss {loss}: {queued} ms queued");
    }
}

/// docs/design/auto.md: the path is full whatever it loses, and its queue short.
#[test]
fn auto_fills_a_path_through_loss_and_keeps_its_queue_short() {
    for (seed, loss) in [(1, 0.0), (2, 0.01), (3, 0.05), (4, 0.1)] {
        let (share, queued) = share("auto", loss, seed);
        let possible = 1.0 - loss;
        assert!(share > 0.93 * possible && share < 1.01, "seed {seed}, loss {loss}: {share} of the bottleneck");
        assert!(queued < 12.0, "seed {seed}, loss {loss}: {queued} ms queued");
    }
}
