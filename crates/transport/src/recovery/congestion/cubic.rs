//! CUBIC (RFC 9438, or arq §4.1 where it differs). Windows are in bytes; a segment of the RFC is a full packet here.

use super::hystart::HyStart;
use super::inflation::Inflation;
use super::period::{Congestion, RecoveryPeriod};
use super::{CongestionControl, INITIAL_PACKETS, MIN_PACKETS, PathView};
use crate::recovery::report::{Cause, Report};
use crate::settings::{IntegerRange, Itself, Number, Or, Setting, Settings, Switch, field};
use crate::time::{Rate, Time};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Numbers of CUBIC (RFC 9438 section 4). The defaults are those of the RFCs; those of arq §4.1 are
/// `initial=1,threshold=64,beta=0.5,hystart=off,form=document`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CubicConfig {
    /// Initial cwnd in packets: 10 (RFC 6928 section 2).
    pub initial: u32,
    /// Initial ssthresh in packets: `none`, infinite (RFC 5681 section 3.1).
    pub threshold: Option<u32>,
    /// beta_cubic, the factor by which a congestion event reduces the window: 0.7, between 0.1 and 0.95.
    pub beta: f64,
    /// C, in packets per second cubed: 0.4, between 0.01 and 10.
    pub c: f64,
    /// Fast convergence (section 4.7): on.
    pub fast_convergence: bool,
    /// HyStart++ in the first slow start (section 4.10, RFC 9406): on.
    pub hystart: bool,
    /// The text that applies where two differ.
    pub form: CubicForm,
}

/// The text that applies where two differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CubicForm {
    /// RFC 9438: K is the time from the window to `W_max` (section 4.2); a timeout forgets `W_max` (section 4.8).
    Rfc9438,
    /// arq §4.1: K follows from `W_max` and beta alone, regardless of fast convergence; a timeout reduces the window and
    /// `W_max`. The document does not give the factor: it is beta, as for the window after a loss. The fast recovery of
    /// §3.1 stays, which inflates the window by three packets.
    Document,
}

impl fmt::Display for CubicForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rfc9438 => "rfc9438",
            Self::Document => "document",
        })
    }
}

impl FromStr for CubicForm {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "rfc9438" => Ok(Self::Rfc9438),
            "document" => Ok(Self::Document),
            _ => Err(()),
        }
    }
}

impl CubicForm {
    /// Returns the packets by which the window is inflated at the start of fast recovery. RFC 9438 has feedback that
    /// names the packets beyond a gap.
    const fn inflation(self) -> u32 {
        match self {
            Self::Rfc9438 => 0,
            Self::Document => 3,
        }
    }
}

impl Default for CubicConfig {
    fn default() -> Self {
        Self {
            initial: INITIAL_PACKETS,
            threshold: None,
            beta: 0.7,
            c: 0.4,
            fast_convergence: true,
            hystart: true,
            form: CubicForm::Rfc9438,
        }
    }
}

impl Settings for CubicConfig {
    const SETTINGS: &'static [&'static dyn Setting<Self>] = &[
        field!("initial", initial, IntegerRange(1, 1000)),
        field!("threshold", threshold, Or("none", IntegerRange(2, 1_000_000))),
        field!("beta", beta, Number(0.1, 0.95)),
        field!("c", c, Number(0.01, 10.0)),
        field!("fast-convergence", fast_convergence, Switch),
        field!("hystart", hystart, Switch),
        field!("form", form, Itself("rfc9438 or document")),
    ];
}

/// CUBIC, as a rule with HyStart++ ([`HyStart`]) in the first slow start, one reduction per round trip (RFC 9002 section 7.3.2),
/// collapse on persistent congestion (section 7.6), and restoration of the window after a spurious congestion event
/// (RFC 9438 section 4.9).
///
/// A probe timeout alone changes nothing: the feedback for the probe shows the losses. A retransmission timeout leaves
/// one packet.
#[derive(Debug)]
pub(super) struct Cubic {
    config: CubicConfig,
    /// Bytes of a full packet.
    packet: f64,
    growth: Growth,
    inflation: Inflation,
    hystart: HyStart,
    period: RecoveryPeriod,
    /// When the window stopped growing because it was not used.
    paused: Option<Time>,
    undo: Option<Undo>,
    started: bool,
}

/// The state that a reduction changes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Growth {
    /// cwnd, in bytes.
    pub(super) window: f64,
    /// Slow start below it.
    pub(super) threshold: f64,
    /// W_max: where the cubic has its plateau.
    pub(super) plateau: f64,
    /// cwnd_prior: the window before the last reduction, 0 without one.
    prior: f64,
    epoch: Option<Epoch>,
}

/// A stage of congestion avoidance.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    /// Start of the epoch; pauses are not counted.
    start: Time,
    /// K: seconds from the start to the plateau.
    to_plateau: f64,
    /// W_est: the window Reno would have, in bytes.
    reno: f64,
}

/// State before the last reduction, while all of its losses may still prove spurious.
#[derive(Debug)]
struct Undo {
    growth: Growth,
    losses: u64,
}

impl Cubic {
    pub(super) fn new(config: CubicConfig, max_packet: u32) -> Self {
        let packet = f64::from(max_packet);
        Self {
            config,
            packet,
            growth: config.start(packet),
            inflation: Inflation::default(),
            hystart: HyStart::default(),
            period: RecoveryPeriod::default(),
            paused: None,
            undo: None,
            started: false,
        }
    }

    /// Returns whether this is a slow start before any congestion event. Later ones have a threshold set by a loss, and
    /// need no HyStart.
    fn in_first_slow_start(&self) -> bool {
        self.in_slow_start() && self.growth.prior == 0.0
    }

    fn smallest(&self) -> f64 {
        f64::from(MIN_PACKETS) * self.packet
    }

    /// Reduces the window at most once per round trip: packets sent before the last reduction do not count again.
    fn on_congestion(&mut self, report: &Report<'_>, path: &PathView<'_>) {
        let Congestion { lost, marked } = self.period.congestion(report, path);
        let losses = report.lost.len() as u64;
        if lost || marked {
            // A mark is never spurious, so that a reduction with one is not undone.
            self.undo = (!marked).then_some(Undo { growth: self.growth, losses });
            self.reduce(report.now);
            self.inflation.begin(if lost { self.config.form.inflation() } else { 0 }, self.packet);
        } else if let Some(undo) = &mut self.undo {
            undo.losses += losses;
        }
    }

    fn reduce(&mut self, now: Time) {
        let CubicConfig { beta, fast_convergence, .. } = self.config;
        self.growth.reduce(beta, fast_convergence, self.smallest());
        self.period.begin(now);
        self.paused = None;
    }

    /// RFC 9002 section 7.6.2: the minimum window, then slow start up to the threshold of the reduction.
    fn collapse(&mut self) {
        self.growth.window = self.smallest();
        self.growth.epoch = None;
        self.inflation.clear();
        self.period.clear();
        self.undo = None;
    }

    /// Handles a timeout. RFC 9438 section 4.8: one packet, slow start up to the threshold of a reduction, and at it a new
    /// epoch with its plateau where it begins; a timeout after a timeout keeps the threshold (RFC 5681 section 3.1). In
    /// the document's form (arq §4.1) the window is reduced as by a loss, and so is the plateau, from which a new epoch
    /// begins.
    fn on_timeout(&mut self, now: Time) {
        let plateau = self.growth.plateau;
        if self.growth.window > self.packet {
            self.reduce(now);
        }
        match self.config.form {
            CubicForm::Rfc9438 => (self.growth.window, self.growth.plateau) = (self.packet, 0.0),
            CubicForm::Document => self.growth.plateau = plateau * self.config.beta,
        }
        self.inflation.clear();
        self.period.begin(now);
        self.undo = None;
    }

    /// Handles spurious losses: if all losses of a reduction were spurious, restores the window before it.
    fn on_spurious(&mut self, report: &Report<'_>) {
        let Some(start) = self.period.start() else {
            return;
        };
        let refuted = report.spurious.iter().filter(|sent| sent.time <= start).count() as u64;
        let Some(undo) = &mut self.undo else { return };
        undo.losses = undo.losses.saturating_sub(refuted);
        if undo.losses == 0 && refuted > 0 {
            self.growth = Growth { window: undo.growth.window.max(self.growth.window), ..undo.growth };
            // Time has passed while the window was reduced; the cubic continues from its last value.
            self.growth.epoch = None;
            self.inflation.clear();
            self.undo = None;
            self.period.clear();
        }
    }

    fn grow(&mut self, now: Time, acked: f64, path: &PathView<'_>) {
        if let Some(since) = self.paused.take()
            && let Some(epoch) = &mut self.growth.epoch
        {
            epoch.start += now.since(since);
        }
        if self.in_slow_start() {
            let acked = acked / self.hystart.divisor();
            self.growth.window = (self.growth.window + acked).min(self.growth.threshold);
        } else {
            self.growth.avoid_congestion(now, acked, path.rtt.smoothed(), self.packet, &self.config);
        }
    }
}

impl CubicConfig {
    /// Returns the first window and threshold, for packets of this size in bytes.
    fn start(&self, packet: f64) -> Growth {
        let threshold = self.threshold.map_or(f64::INFINITY, |packets| f64::from(packets) * packet);
        Growth { threshold, ..Growth::new(f64::from(self.initial) * packet) }
    }
}

impl Growth {
    /// A window in slow start.
    pub(super) const fn new(window: f64) -> Self {
        Self { window, threshold: f64::INFINITY, plateau: 0.0, prior: 0.0, epoch: None }
    }

    /// Begins an epoch at the next acknowledgement, on the way to `plateau`.
    pub(super) const fn begin_epoch(&mut self, plateau: f64) {
        (self.plateau, self.prior, self.epoch) = (plateau, plateau, None);
    }

    /// Reduces the window (sections 4.6 and 4.7). Of the two bases that the RFC allows, this is the window and not the
    /// flight size: it does not grow while unused, and a flight size that pacing keeps small would reduce it too much.
    pub(super) fn reduce(&mut self, beta: f64, fast_convergence: bool, smallest: f64) {
        let window = self.window;
        let loses_ground = window < self.plateau && fast_convergence;
        self.plateau = if loses_ground { window * (1.0 + beta) / 2.0 } else { window };
        self.prior = window;
        self.window = (window * beta).max(smallest);
        self.threshold = self.window;
        self.epoch = None;
    }

    /// Sections 4.2 to 4.5.
    pub(super) fn avoid_congestion(
        &mut self,
        now: Time,
        acked: f64,
        smoothed: Duration,
        packet: f64,
        config: &CubicConfig,
    ) {
        let &CubicConfig { beta, c, form, .. } = config;
        let window = self.window;
        let epoch = self.epoch.get_or_insert_with(|| {
            // Without a previous reduction (slow start ended at a threshold) the plateau is at the window and K is 0.
            self.plateau = self.plateau.max(window);
            let below = match form {
                CubicForm::Document if self.plateau > window => self.plateau * (1.0 - beta),
                _ => self.plateau - window,
            };
            let packets = below / packet;
            Epoch { start: now, to_plateau: (packets / c).cbrt(), reno: window }
        });
        let plateau = self.plateau;
        let cubic = |seconds: f64| c * (seconds - epoch.to_plateau).powi(3) * packet + plateau;
        let elapsed = now.since(epoch.start).as_secs_f64();
        let target = cubic(elapsed + smoothed.as_secs_f64()).clamp(window, 1.5 * window);

        // alpha_cubic makes Reno's average equal to that of a Reno with beta 1/2, until it has caught up (section 4.3).
        let alpha = if epoch.reno < self.prior { 3.0 * (1.0 - beta) / (1.0 + beta) } else { 1.0 };
        epoch.reno += alpha * packet * acked / window;
        self.window = if cubic(elapsed) < epoch.reno {
            epoch.reno.max(window)
        } else {
            // Several packets per report: the sum of the steps of the RFC, which never exceeds the target.
            (window + (target - window) * acked / window).min(target)
        };
    }
}

impl CongestionControl for Cubic {
    fn on_path(&mut self, path: &PathView<'_>) {
        self.packet = f64::from(path.max_packet);
        if !self.started {
            self.growth = self.config.start(self.packet);
        }
        let least = MIN_PACKETS.min(self.config.initial);
        self.growth.window = self.growth.window.max(f64::from(least) * self.packet);
    }

    fn on_sent(&mut self, _now: Time, _bytes: u32, _in_flight: u64) {
        self.started = true;
    }

    fn on_report(&mut self, report: &Report<'_>, path: &PathView<'_>) {
        self.on_spurious(report);
        if report.cause == Cause::Timeout {
            self.on_timeout(report.now);
            return;
        }
        self.on_congestion(report, path);
        if path.persistent_congestion {
            self.collapse();
            return;
        }
        let acked = self.period.acknowledged(report);
        self.inflation.on_report(report, acked, self.packet, self.growth.window / self.config.beta);
        if report.app_limited {
            self.paused.get_or_insert(report.now);
        } else if acked > 0 {
            if self.config.hystart && self.in_first_slow_start() && self.hystart.on_report(report) {
                self.growth.threshold = self.growth.window;
            }
            self.grow(report.now, acked as f64, path);
        }
    }

    fn window(&self) -> u64 {
        (self.growth.window + self.inflation.bytes()) as u64
    }

    fn inflation(&self) -> u64 {
        self.window() - self.growth.window as u64
    }

    fn rate(&self) -> Option<Rate> {
        None
    }

    fn name(&self) -> &'static str {
        "cubic"
    }

    fn in_slow_start(&self) -> bool {
        self.growth.window < self.growth.threshold
    }
}

#[cfg(test)]
mod tests;
