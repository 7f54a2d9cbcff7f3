//! The text form of links: `rate=100M,delay=50ms,loss=5%,queue=256KB`.

mod units;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::{
    Codel, DelayStep, Duplex, LinkConfig, LinkError, Loss, LossStep, Outage, Police, Rate, RateStep, Reorder,
    ReorderingDelay, TraceFile,
};
use units::{MILLIONTHS, Percent, QueueSize, bad, print_size, print_time, probability, queue_size, size, time};

/// An invalid link text, with advice.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TextError {
    /// A part without `=`.
    #[error("{0:?} is not KEY=VALUE: write parts such as rate=100M,delay=50ms,loss=5%,queue=256KB, or perfect")]
    NotAPart(String),
    /// A key that does not exist.
    #[error(
        "unknown key {0:?}: one of rate, step, trace, bucket, police, delay, delay-step, jitter, slot, scatter, queue, queue-packets, codel, fq-codel, mtu, fragment, loss, loss-step, burst, burst-time, reorder, duplicate, corrupt, mark, mark-above, down and seed"
    )]
    UnknownKey(String),
    /// A key written twice.
    #[error("duplicate key {0}")]
    Repeated(String),
    /// A value that cannot be read.
    #[error("cannot read {key}={value}: write it like {example}")]
    Value {
        /// The key.
        key: String,
        /// Its value.
        value: String,
        /// An example of the form.
        example: &'static str,
    },
    /// A rate without a unit.
    #[error(transparent)]
    Rate(#[from] ::units::RateError),
    /// A burst length without loss.
    #[error("burst has no effect without loss: write loss too, such as loss=5%,burst=5")]
    BurstWithoutLoss,
    /// A time for bursts without bursts.
    #[error("burst-time has no effect without burst: write both, such as loss=5%,burst=5,burst-time=1s")]
    BurstTimeWithoutBurst,
    /// A queue in bandwidth-delay products without a rate and delay.
    #[error("queue in bdp needs a rate and a delay: write both, such as rate=100M,delay=50ms, or a size such as 256KB")]
    BdpOfNothing,
    /// More than two directions.
    #[error("a link has two directions: write one link for both, or two with / between them")]
    TooManyDirections,
    /// Incompatible values.
    #[error(transparent)]
    Link(#[from] LinkError),
}

const PERFECT: &str = "perfect";
impl FromStr for LinkConfig {
    type Err = TextError;

    /// Parses and checks. `perfect` is the default. A queue in `bdp` holds the bytes of the rate in a round trip of
    /// twice the delay.
    fn from_str(text: &str) -> Result<Self, TextError> {
        let written = ParsedLink::read(text)?;
        let rtt = written.config.delay.saturating_mul(2);
        written.resolve(rtt)
    }
}

/// One direction as written. The size of its queue may depend on the way back.
#[derive(Clone)]
struct ParsedLink {
    config: LinkConfig,
    /// The queue in millionths of the bandwidth-delay product.
    queue_bdps: Option<u64>,
}

impl ParsedLink {
    fn read(text: &str) -> Result<Self, TextError> {
        let mut written = Self { config: LinkConfig::default(), queue_bdps: None };
        let text = text.trim();
        if text == PERFECT {
            return Ok(written);
        }
        let config = &mut written.config;
        let mut seen: Vec<&str> = Vec::new();
        let mut burst = None;
        for part in text.split(',').map(str::trim) {
            let (key, value) = part.split_once('=').ok_or_else(|| TextError::NotAPart(part.to_owned()))?;
            let (key, value) = (key.trim(), value.trim());
            if seen.contains(&key) {
                return Err(TextError::Repeated(key.to_owned()));
            }
            seen.push(key);
            match key {
                "burst" => {
                    burst = Some(value.parse::<f64>().map_err(|_| bad(key, value, "5 (packets lost in a row)"))?)
                }
                "queue" => match queue_size(key, value)? {
                    QueueSize::Bytes(bytes) => config.queue_bytes = Some(bytes),
                    QueueSize::Bdps(bdps) => written.queue_bdps = Some(bdps),
                },
                "burst-time" => config.burst_time = Some(time(key, value)?),
                _ => read_part(config, key, value)?,
            }
        }
        if let Some(mean_burst) = burst {
            let Loss::Bernoulli(loss) = config.loss else {
                return Err(TextError::BurstWithoutLoss);
            };
            config.loss = Loss::GilbertElliott { loss, mean_burst };
        } else if config.burst_time.is_some() {
            return Err(TextError::BurstTimeWithoutBurst);
        }
        Ok(written)
    }

    /// Returns the link, once its round trip is known.
    fn resolve(self, rtt: Duration) -> Result<LinkConfig, TextError> {
        let mut config = self.config;
        if let Some(bdps) = self.queue_bdps {
            let rate = config.rate.filter(|_| !rtt.is_zero()).ok_or(TextError::BdpOfNothing)?;
            config.queue_bytes = Some(bdp_bytes(bdps, rate, rtt));
        }
        config.check()?;
        Ok(config)
    }
}

/// Returns `bdps` millionths of the bytes of `rate` in `rtt`, but at least a full packet; 0 for 0.
fn bdp_bytes(bdps: u64, rate: Rate, rtt: Duration) -> u64 {
    const FULL_PACKET: u64 = 1_500;
    if bdps == 0 {
        return 0;
    }
    let bit_nanos = u128::from(rate.bits_per_second()).checked_mul(rtt.as_nanos());
    let bytes = bit_nanos
        .and_then(|work| work.checked_mul(bdps.into()))
        .map(|work| work / 8_000_000_000 / u128::from(MILLIONTHS));
    bytes.and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(u64::MAX).max(FULL_PACKET)
}

fn read_part(config: &mut LinkConfig, key: &str, value: &str) -> Result<(), TextError> {
    match key {
        "rate" => config.rate = Some(value.parse()?),
        "step" => {
            config.steps = read_all(key, value, "10s:20M+20s:5M (from when, and how fast)", |part| {
                let (at, rate) = part.split_once(':')?;
                Some(RateStep { at: time(key, at).ok()?, rate: rate.parse().ok()? })
            })?;
        }
        "delay-step" => {
            config.delay_steps = read_all(key, value, "10s:50ms+20s:5ms (from when, and how long)", |part| {
                let (at, delay) = part.split_once(':')?;
                Some(DelayStep { at: time(key, at).ok()?, delay: time(key, delay).ok()? })
            })?;
        }
        "loss-step" => {
            const EXAMPLE: &str = "10s:5%+20s:0% (from when, and how much)";
            config.loss_steps = read_all(key, value, EXAMPLE, |part| {
                let (at, loss) = part.split_once(':')?;
                Some(LossStep { at: time(key, at).ok()?, loss: probability(key, loss, EXAMPLE).ok()? })
            })?;
        }
        "down" => {
            config.outages = read_all(key, value, "3s..5s or 3s..5s+8s..9s", |part| {
                let (from, until) = part.split_once("..")?;
                Some(Outage { from: time(key, from).ok()?, until: time(key, until).ok()? })
            })?;
        }
        "trace" if value.is_empty() => return Err(bad(key, value, "cellular.trace (the name of a file)")),
        "trace" => config.trace = Some(TraceFile::new(value)),
        "bucket" => config.bucket_bytes = Some(size(key, value)?),
        "police" => {
            const EXAMPLE: &str = "10M:20KB (a rate, and how much passes at once)";
            let (rate, burst) = value.split_once(':').ok_or_else(|| bad(key, value, EXAMPLE))?;
            let rate = rate.parse().map_err(|_| bad(key, value, EXAMPLE))?;
            config.police = Some(Police { rate, burst_bytes: size(key, burst).map_err(|_| bad(key, value, EXAMPLE))? });
        }
        "delay" => config.delay = time(key, value)?,
        "jitter" => config.jitter = time(key, value)?,
        "slot" => config.slot = time(key, value)?,
        "scatter" => {
            const EXAMPLE: &str = "5ms (each packet by up to so much), or exponential:5ms (on average)";
            let (is_exponential, text) = value.strip_prefix("exponential:").map_or((false, value), |mean| (true, mean));
            let time = time(key, text).map_err(|_| bad(key, value, EXAMPLE))?;
            config.scatter =
                if is_exponential { ReorderingDelay::Exponential(time) } else { ReorderingDelay::Uniform(time) };
        }
        "queue-packets" => config.queue_packets = Some(value.parse().map_err(|_| bad(key, value, "10"))?),
        "codel" => config.codel = Some(read_codel(key, value)?),
        "fq-codel" => config.fq_codel = Some(read_codel(key, value)?),
        "mtu" => {
            const EXAMPLE: &str = "1400B (IP bytes)";
            let bytes = size(key, value).map_err(|_| bad(key, value, EXAMPLE))?;
            config.mtu = Some(u32::try_from(bytes).map_err(|_| bad(key, value, EXAMPLE))?);
        }
        "fragment" => {
            config.fragment = match value {
                "on" => true,
                "off" => false,
                _ => return Err(bad(key, value, "on, or off")),
            }
        }
        "loss" => config.loss = Loss::Bernoulli(probability(key, value, "5%")?),
        "reorder" => {
            const EXAMPLE: &str = "1%:2ms (how many, and how much later)";
            let (share, extra) = value.split_once(':').ok_or_else(|| bad(key, value, EXAMPLE))?;
            let extra = time(key, extra).map_err(|_| bad(key, value, EXAMPLE))?;
            config.reorder = Reorder { probability: probability(key, share, EXAMPLE)?, extra };
        }
        "duplicate" => config.duplicate = probability(key, value, "0.1%")?,
        "corrupt" => config.corrupt = probability(key, value, "0.01%")?,
        "mark" => config.mark.probability = probability(key, value, "1%")?,
        "mark-above" => config.mark.above_bytes = Some(size(key, value)?),
        "seed" => config.seed = value.parse().map_err(|_| bad(key, value, "7"))?,
        _ => return Err(TextError::UnknownKey(key.to_owned())),
    }
    Ok(())
}

fn read_codel(key: &str, value: &str) -> Result<Codel, TextError> {
    const EXAMPLE: &str = "5ms:100ms (the wait to aim at, and for how long more is accepted)";
    let (target, interval) = value.split_once(':').ok_or_else(|| bad(key, value, EXAMPLE))?;
    let read = |text| time(key, text).map_err(|_| bad(key, value, EXAMPLE));
    Ok(Codel { target: read(target)?, interval: read(interval)? })
}

/// Parses parts with `+` between them.
fn read_all<T>(
    key: &str,
    value: &str,
    example: &'static str,
    read: impl Fn(&str) -> Option<T>,
) -> Result<Vec<T>, TextError> {
    value.split('+').map(|part| read(part.trim()).ok_or_else(|| bad(key, value, example))).collect()
}

/// Prints parts with `+` between them.
fn print_all<T>(key: &str, values: &[T], print: impl Fn(&T) -> String) -> Option<String> {
    let parts: Vec<String> = values.iter().map(print).collect();
    (!parts.is_empty()).then(|| format!("{key}={}", parts.join("+")))
}

impl fmt::Display for LinkConfig {
    /// Prints all values other than the default, so that parsing it gives the same link.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts: Vec<String> = Vec::new();
        parts.extend(self.rate.map(|rate| format!("rate={rate}")));
        parts.extend(print_all("step", &self.steps, |step| format!("{}:{}", print_time(step.at), step.rate)));
        parts.extend(self.trace.iter().map(|file| format!("trace={}", file.name())));
        parts.extend(self.bucket_bytes.map(|bytes| format!("bucket={}", print_size(bytes))));
        parts.extend(
            self.police.map(|Police { rate, burst_bytes }| format!("police={rate}:{}", print_size(burst_bytes))),
        );
        for (key, duration) in [("delay", self.delay), ("jitter", self.jitter), ("slot", self.slot)] {
            if !duration.is_zero() {
                parts.push(format!("{key}={}", print_time(duration)));
            }
        }
        match self.scatter {
            ReorderingDelay::Uniform(most) if most.is_zero() => {}
            ReorderingDelay::Uniform(most) => parts.push(format!("scatter={}", print_time(most))),
            ReorderingDelay::Exponential(mean) => parts.push(format!("scatter=exponential:{}", print_time(mean))),
        }
        let print_delay = |step: &DelayStep| format!("{}:{}", print_time(step.at), print_time(step.delay));
        parts.extend(print_all("delay-step", &self.delay_steps, print_delay));
        parts.extend(self.queue_bytes.map(|bytes| format!("queue={}", print_size(bytes))));
        parts.extend(self.queue_packets.map(|packets| format!("queue-packets={packets}")));
        for (key, codel) in [("codel", self.codel), ("fq-codel", self.fq_codel)] {
            let print = |Codel { target, interval }| format!("{key}={}:{}", print_time(target), print_time(interval));
            parts.extend(codel.map(print));
        }
        parts.extend(self.mtu.map(|bytes| format!("mtu={}", print_size(bytes.into()))));
        parts.extend(self.fragment.then(|| "fragment=on".to_owned()));
        match self.loss {
            Loss::None => {}
            Loss::Bernoulli(loss) => parts.push(format!("loss={}", Percent(loss))),
            Loss::GilbertElliott { loss, mean_burst } => {
                parts.push(format!("loss={},burst={mean_burst}", Percent(loss)))
            }
        }
        parts.extend(self.burst_time.map(|time| format!("burst-time={}", print_time(time))));
        let print_loss = |step: &LossStep| format!("{}:{}", print_time(step.at), Percent(step.loss));
        parts.extend(print_all("loss-step", &self.loss_steps, print_loss));
        if self.reorder != Reorder::default() {
            parts.push(format!("reorder={}:{}", Percent(self.reorder.probability), print_time(self.reorder.extra)));
        }
        for (key, probability) in
            [("duplicate", self.duplicate), ("corrupt", self.corrupt), ("mark", self.mark.probability)]
        {
            if probability != 0.0 {
                parts.push(format!("{key}={}", Percent(probability)));
            }
        }
        parts.extend(self.mark.above_bytes.map(|bytes| format!("mark-above={}", print_size(bytes))));
        let print_outage = |outage: &Outage| format!("{}..{}", print_time(outage.from), print_time(outage.until));
        parts.extend(print_all("down", &self.outages, print_outage));
        if self.seed != 0 {
            parts.push(format!("seed={}", self.seed));
        }
        f.write_str(if parts.is_empty() { PERFECT.to_owned() } else { parts.join(",") }.as_str())
    }
}

impl FromStr for Duplex {
    type Err = TextError;

    /// Parses and checks. A queue in `bdp` holds the bytes of its rate in a round trip of both delays.
    fn from_str(text: &str) -> Result<Self, TextError> {
        let mut directions = text.split(" / ").map(ParsedLink::read);
        let forward = directions.next().ok_or_else(|| TextError::NotAPart(text.to_owned()))??;
        let backward = directions.next().transpose()?.unwrap_or_else(|| forward.clone());
        if directions.next().is_some() {
            return Err(TextError::TooManyDirections);
        }
        let rtt = forward.config.delay.saturating_add(backward.config.delay);
        Ok(Self::new(forward.resolve(rtt)?, backward.resolve(rtt)?))
    }
}

impl fmt::Display for Duplex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let backward = self.backward.sibling(1);
        write!(f, "{}", self.forward)?;
        if backward == self.forward { Ok(()) } else { write!(f, " / {backward}") }
    }
}
