//! The text form of links: `rate=100M,delay=50ms,loss=5%,queue=256KB`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::{Duplex, LinkConfig, LinkError, Loss, Rate, Reorder};

/// A text that is not a link, with what to write.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TextError {
    /// A part without `=`.
    #[error("{0:?} is not KEY=VALUE: write parts such as rate=100M,delay=50ms,loss=5%,queue=256KB, or perfect")]
    NotAPart(String),
    /// A key that does not exist.
    #[error(
        "there is no {0:?}: the keys are rate, delay, jitter, queue, mtu, loss, burst, reorder, duplicate, corrupt, mark, mark-above and seed"
    )]
    UnknownKey(String),
    /// A key written twice.
    #[error("{0} is there twice: write it once")]
    Repeated(String),
    /// A value that cannot be read.
    #[error("cannot read {key}={value}: write it like {example}")]
    Value {
        /// The key.
        key: String,
        /// Its value.
        value: String,
        /// What one looks like.
        example: &'static str,
    },
    /// Bursts of nothing.
    #[error("burst has no effect without loss: write loss too, such as loss=5%,burst=5")]
    BurstWithoutLoss,
    /// More than two directions.
    #[error("a link has two directions: write one link for both, or two with / between them")]
    TooManyDirections,
    /// Values that do not go together.
    #[error(transparent)]
    Link(#[from] LinkError),
}

const PERFECT: &str = "perfect";
const RATES: [(&str, u64); 4] = [("G", 1_000_000_000), ("M", 1_000_000), ("k", 1_000), ("", 1)];
const BYTE_RATES: [(&str, u64); 4] = [("GB/s", 8_000_000_000), ("MB/s", 8_000_000), ("kB/s", 8_000), ("B/s", 8)];
/// The first that divides a size prints it. `KB` is 1000 bytes, `KiB` 1024.
const SIZES: [(&str, u64); 7] = [
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("KB", 1_000),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("B", 1),
];
const TIMES: [(&str, u64); 4] = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)];

impl FromStr for Rate {
    type Err = TextError;

    /// `100M`, `2.5G`, `500k` or plain bits per second, in powers of ten; `12MB/s` in bytes.
    fn from_str(text: &str) -> Result<Self, TextError> {
        scaled(text, &BYTE_RATES)
            .or_else(|| scaled(text, &RATES))
            .map(Self::from_bits_per_second)
            .ok_or_else(|| bad("rate", text, "100M (Mbit/s), 1G, 500k or 12MB/s"))
    }
}

impl fmt::Display for Rate {
    /// The largest unit of bits that leaves no fraction.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&print_scaled(self.bits_per_second(), &RATES))
    }
}

impl FromStr for LinkConfig {
    type Err = TextError;

    /// Reads and checks. `perfect` is the default.
    fn from_str(text: &str) -> Result<Self, TextError> {
        let mut config = Self::default();
        let text = text.trim();
        if text == PERFECT {
            return Ok(config);
        }
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
                _ => read_part(&mut config, key, value)?,
            }
        }
        if let Some(mean_burst) = burst {
            let Loss::Bernoulli(loss) = config.loss else {
                return Err(TextError::BurstWithoutLoss);
            };
            config.loss = Loss::GilbertElliott { loss, mean_burst };
        }
        config.check()?;
        Ok(config)
    }
}

fn read_part(config: &mut LinkConfig, key: &str, value: &str) -> Result<(), TextError> {
    match key {
        "rate" => config.rate = Some(value.parse()?),
        "delay" => config.delay = time(key, value)?,
        "jitter" => config.jitter = time(key, value)?,
        "queue" => config.queue_bytes = Some(size(key, value)?),
        "mtu" => {
            const EXAMPLE: &str = "1400B (IP bytes)";
            let bytes = size(key, value).map_err(|_| bad(key, value, EXAMPLE))?;
            config.mtu = Some(u32::try_from(bytes).map_err(|_| bad(key, value, EXAMPLE))?);
        }
        "loss" => config.loss = Loss::Bernoulli(probability(key, value, "5%")?),
        "reorder" => {
            const EXAMPLE: &str = "1%:2ms (how many, and how much later)";
            let (share, extra) = value.split_once(':').ok_or_else(|| bad(key, value, EXAMPLE))?;
            let extra = scaled(extra, &TIMES).map(Duration::from_nanos).ok_or_else(|| bad(key, value, EXAMPLE))?;
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

impl fmt::Display for LinkConfig {
    /// What is not the default, so that reading it back gives the same link.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts: Vec<String> = Vec::new();
        let print_time =
            |duration: Duration| print_scaled(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX), &TIMES);
        parts.extend(self.rate.map(|rate| format!("rate={rate}")));
        for (key, duration) in [("delay", self.delay), ("jitter", self.jitter)] {
            if !duration.is_zero() {
                parts.push(format!("{key}={}", print_time(duration)));
            }
        }
        parts.extend(self.queue_bytes.map(|bytes| format!("queue={}", print_scaled(bytes, &SIZES))));
        parts.extend(self.mtu.map(|bytes| format!("mtu={}", print_scaled(bytes.into(), &SIZES))));
        match self.loss {
            Loss::None => {}
            Loss::Bernoulli(loss) => parts.push(format!("loss={}", Percent(loss))),
            Loss::GilbertElliott { loss, mean_burst } => {
                parts.push(format!("loss={},burst={mean_burst}", Percent(loss)))
            }
        }
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
        parts.extend(self.mark.above_bytes.map(|bytes| format!("mark-above={}", print_scaled(bytes, &SIZES))));
        if self.seed != 0 {
            parts.push(format!("seed={}", self.seed));
        }
        f.write_str(if parts.is_empty() { PERFECT.to_owned() } else { parts.join(",") }.as_str())
    }
}

impl FromStr for Duplex {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        let mut directions = text.split(" / ").map(LinkConfig::from_str);
        let forward = directions.next().ok_or_else(|| TextError::NotAPart(text.to_owned()))??;
        let backward = directions.next().transpose()?.unwrap_or(forward);
        if directions.next().is_some() {
            return Err(TextError::TooManyDirections);
        }
        Ok(Self::new(forward, backward))
    }
}

impl fmt::Display for Duplex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let backward = self.backward.sibling(1);
        write!(f, "{}", self.forward)?;
        if backward == self.forward { Ok(()) } else { write!(f, " / {backward}") }
    }
}

fn bad(key: &str, value: &str, example: &'static str) -> TextError {
    TextError::Value { key: key.to_owned(), value: value.to_owned(), example }
}

fn time(key: &str, value: &str) -> Result<Duration, TextError> {
    scaled(value, &TIMES).map(Duration::from_nanos).ok_or_else(|| bad(key, value, "50ms, 1s, 200us or 100ns"))
}

fn size(key: &str, value: &str) -> Result<u64, TextError> {
    scaled(value, &SIZES).ok_or_else(|| bad(key, value, "256KB (1 KB is 1000 bytes), 256KiB or 1MB"))
}

/// `5%` or `0.05`.
fn probability(key: &str, value: &str, example: &'static str) -> Result<f64, TextError> {
    // As one decimal number, not divided by 100: the nearest double to five percent is that of 0.05.
    let number = match value.strip_suffix('%') {
        Some(percent) => format!("{}e-2", percent.trim_end()).parse(),
        None => value.parse(),
    };
    number.map_err(|_| bad(key, value, example))
}

/// A probability in percent where that reads back as the same number, else as a fraction.
struct Percent(f64);

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rounded = format!("{:.10}", self.0 * 100.0);
        let percent = format!("{}%", rounded.trim_end_matches('0').trim_end_matches('.'));
        if probability("", &percent, "") == Ok(self.0) { f.write_str(&percent) } else { write!(f, "{}", self.0) }
    }
}

/// A decimal number and one of `units`, as a whole number of the smallest; `None` if it is none or has a fraction left.
fn scaled(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = text[digits.len()..].trim();
    let &(_, scale) = units.iter().find(|(name, _)| *name == unit)?;
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty()
        || fraction.len() > 18
        || !whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit())
    {
        return None;
    }
    let divisor = 10_u128.pow(u32::try_from(fraction.len()).ok()?);
    let number = u128::from(whole.parse::<u64>().ok()?) * divisor + fraction.parse::<u128>().unwrap_or(0);
    let product = number.checked_mul(u128::from(scale))?;
    if product.is_multiple_of(divisor) { u64::try_from(product / divisor).ok() } else { None }
}

/// A whole number in the first of `units` that leaves no fraction; the last has scale 1.
fn print_scaled(number: u64, units: &[(&str, u64)]) -> String {
    let unit = units.iter().find(|(_, scale)| number != 0 && number.is_multiple_of(*scale));
    let (name, scale) = unit.or(units.last()).copied().unwrap_or(("", 1));
    format!("{}{name}", number / scale)
}
