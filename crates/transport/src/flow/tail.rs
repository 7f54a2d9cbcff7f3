//! The tail rule (docs/design/tail-rule.md): near the end, repair is sent until a block is decodable from the symbols
//! in flight, except with a small probability; then the sender waits for feedback.

use erasure::BlockCode;

/// The path and the target, as the rule sees them.
#[derive(Clone, Copy, Debug)]
pub struct Odds {
    /// Probability that a packet is lost.
    pub loss: f64,
    /// Mean number of packets lost together; 1 when losses are independent.
    pub burst: f64,
    /// Accepted probability that the block is undecodable.
    pub target: f64,
}

/// A block as the rule sees it.
#[derive(Clone, Copy, Debug)]
pub struct Outstanding {
    /// Symbols the receiver still needs.
    pub need: u32,
    /// Symbols in flight to it.
    pub in_flight: u32,
    /// Only source was sent and none of it is known lost: if all of it arrives, no decoder is needed.
    pub intact: bool,
    /// The block's code.
    pub code: BlockCode,
    /// Its source symbols.
    pub k: u32,
}

/// Failure probabilities below this do not affect the result.
const NEGLIGIBLE: f64 = 1e-5;

impl Outstanding {
    /// Returns the number of symbols to send beyond those in flight, so that the block is decodable with the given
    /// odds.
    #[must_use]
    pub fn extra(self, odds: Odds) -> u32 {
        let enough = |extra: u32| {
            let more = Self { in_flight: self.in_flight + extra, ..self };
            more.undecodable(odds) <= odds.target
        };
        if enough(0) {
            return 0;
        }
        let mut high = 1u32;
        while !enough(high) {
            // Past ten times the need, the path is almost dead: the sender waits for feedback.
            if high > 64 + self.need.saturating_mul(10) {
                return high;
            }
            high *= 2;
        }
        let mut low = high / 2;
        while high - low > 1 {
            let middle = low.midpoint(high);
            if enough(middle) { high = middle } else { low = middle }
        }
        high
    }

    /// Returns a block of which nothing is sent yet, as it will be when all of its source is sent.
    #[must_use]
    pub const fn whole(k: u32, code: BlockCode) -> Self {
        Self { need: k, in_flight: k, intact: true, code, k }
    }

    /// Returns the probability that too few of the symbols in flight arrive.
    #[must_use]
    pub fn undecodable(self, odds: Odds) -> f64 {
        if self.in_flight < self.need {
            return 1.0;
        }
        let spare = self.in_flight - self.need;
        let above = |lost| more_lost_than(lost, self.in_flight, odds);
        let mut chance = above(spare);
        // With `surplus` symbols more than suffice at best, decoding fails with the code's own probability (RFC 6330:
        // one in a hundred at k, in ten thousand at k + 1). Where it falls slowly, steps of a quarter are enough.
        let mut surplus = 0;
        while surplus <= spare {
            let failure = self.code.failure_probability(self.k, surplus);
            if failure < NEGLIGIBLE {
                break;
            }
            let next = (surplus + 1 + surplus / 4).min(spare.max(surplus + 1));
            let less = match spare.checked_sub(next) {
                Some(lost) => above(lost),
                None if self.intact => above(0),
                None => 1.0,
            };
            chance += (less - above(spare - surplus)).max(0.0) * failure;
            surplus = next;
        }
        chance
    }
}

/// Returns P[more than `spare` of `sent` packets are lost]. Bursts of mean length b are modelled as b packets lost at a
/// time.
fn more_lost_than(spare: u32, sent: u32, odds: Odds) -> f64 {
    if odds.loss <= 0.0 {
        return 0.0;
    }
    if odds.loss >= 1.0 {
        return if sent > spare { 1.0 } else { 0.0 };
    }
    let burst = odds.burst.max(1.0);
    let trials = (f64::from(sent) / burst).ceil() as u32;
    let bearable = (f64::from(spare) / burst).floor() as u32;
    binomial_above(bearable, trials, odds.loss)
}

/// Returns P[X > bearable] for X binomial in `trials` and `p`.
fn binomial_above(bearable: u32, trials: u32, p: f64) -> f64 {
    if bearable >= trials {
        return 0.0;
    }
    let mean = f64::from(trials) * p;
    if f64::from(bearable) + 1.0 < mean {
        // The sum from below is the shorter one here.
        return 1.0 - sum_down(bearable, trials, p);
    }
    let mut term = point(bearable + 1, trials, p);
    let mut sum = 0.0;
    for lost in bearable + 1..=trials {
        sum += term;
        term *= f64::from(trials - lost) / f64::from(lost + 1) * p / (1.0 - p);
        if term < sum * 1e-6 {
            break;
        }
    }
    sum.min(1.0)
}

/// Returns P[X <= bearable], summed downward from `bearable`.
fn sum_down(bearable: u32, trials: u32, p: f64) -> f64 {
    let mut term = point(bearable, trials, p);
    let mut sum = 0.0;
    for lost in (0..=bearable).rev() {
        sum += term;
        term *= f64::from(lost) / f64::from(trials - lost + 1) * (1.0 - p) / p;
        if term < sum * 1e-6 {
            break;
        }
    }
    sum.min(1.0)
}

/// Returns P[X = lost].
fn point(lost: u32, trials: u32, p: f64) -> f64 {
    let (x, n) = (f64::from(lost), f64::from(trials));
    let ways = ln_factorial(n) - ln_factorial(x) - ln_factorial(n - x);
    (ways + x * p.ln() + (n - x) * (1.0 - p).ln()).exp()
}

/// Returns ln n! by Stirling's series, exact enough (1e-9) from n = 8 on, and by product below.
fn ln_factorial(n: f64) -> f64 {
    if n < 8.0 {
        return (2..=n as u32).map(f64::from).product::<f64>().ln();
    }
    let inverse = 1.0 / n;
    let series = inverse / 12.0 - inverse.powi(3) / 360.0 + inverse.powi(5) / 1260.0;
    n * n.ln() - n + 0.5 * (std::f64::consts::TAU * n).ln() + series
}

#[cfg(test)]
mod tests {
    use super::*;
    use erasure::tornado::CheckShare;

    const fn odds(loss: f64) -> Odds {
        Odds { loss, burst: 1.0, target: 1e-3 }
    }

    const fn block(need: u32, in_flight: u32, code: BlockCode) -> Outstanding {
        Outstanding { need, in_flight, intact: false, code, k: 1000 }
    }

    #[test]
    fn no_loss_needs_no_repair() {
        let intact = Outstanding { intact: true, ..block(700, 700, BlockCode::RaptorQ) };
        assert_eq!(intact.extra(odds(0.0)), 0);
        assert_eq!(block(0, 0, BlockCode::ReedSolomon).extra(odds(0.2)), 0);
        assert_eq!(block(5, 0, BlockCode::ReedSolomon).extra(odds(0.0)), 5);
        // With k symbols, one decoding in a hundred fails: one symbol more is wanted; for a code over GF(2), about one
        // for each bit.
        assert_eq!(block(0, 0, BlockCode::RaptorQ).extra(odds(0.0)), 1);
        let raptor = block(0, 0, BlockCode::Raptor).extra(odds(0.0));
        assert!((8..=16).contains(&raptor), "{raptor}");
    }

    /// A code with reception overhead gets the symbols it needs, and no more.
    #[test]
    fn a_code_with_reception_overhead_gets_it() {
        let tornado = BlockCode::Tornado(CheckShare::QUARTER);
        let found = block(1000, 1000, tornado).extra(odds(0.0));
        let failures = [found - 1, found].map(|extra| tornado.failure_probability(1000, extra));
        assert!(failures[0] > 1e-3 && failures[1] <= 1e-3, "{found}: {failures:?}");
        let lossy = block(1000, 1000, tornado).extra(odds(0.05));
        assert!((found + 40..found + 100).contains(&lossy), "{found} without loss, {lossy} with 5 %");
    }

    /// Against the sum over all outcomes, computed independently.
    #[test]
    fn binomial_tail_is_exact() {
        for (trials, p) in [(10u32, 0.3), (200, 0.05), (1000, 0.01), (1000, 0.2)] {
            let mut point = (1.0f64 - p).powi(trials as i32);
            let mut above = 1.0;
            for lost in 0..trials {
                above -= point;
                if above > 1e-9 {
                    let found = binomial_above(lost, trials, p);
                    assert!((found - above).abs() < 1e-5 * above.max(1e-4), "{trials} {p} {lost}: {found} {above}");
                }
                point *= f64::from(trials - lost) / f64::from(lost + 1) * p / (1.0 - p);
            }
        }
    }

    #[test]
    fn extra_is_the_smallest_that_meets_the_target() {
        for code in [BlockCode::ReedSolomon, BlockCode::RaptorQ, BlockCode::Raptor, BlockCode::PrecodedLt] {
            for (need, in_flight, loss) in [(711, 711, 0.05), (40, 10, 0.1), (1, 0, 0.3), (1024, 900, 0.02)] {
                let found = block(need, in_flight, code).extra(odds(loss));
                assert!(block(need, in_flight + found, code).undecodable(odds(loss)) <= 1e-3);
                assert!(found == 0 || block(need, in_flight + found - 1, code).undecodable(odds(loss)) > 1e-3);
            }
        }
        // 711 symbols at 5 %: 37 lost on average, 6 is one standard deviation.
        let found = block(711, 711, BlockCode::ReedSolomon).extra(odds(0.05));
        assert!((52..=62).contains(&found), "{found}");
    }

    #[test]
    fn bursts_ask_for_more() {
        let alone = block(500, 500, BlockCode::RaptorQ).extra(odds(0.05));
        let together = block(500, 500, BlockCode::RaptorQ).extra(Odds { burst: 8.0, ..odds(0.05) });
        assert!(together > alone + 20, "{alone} {together}");
    }
}
