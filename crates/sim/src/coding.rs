//! The time that encoding and decoding take on a host, in virtual time.

use netsim::TextError;
use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::str::FromStr;
use std::time::Duration;
use transport::{ConnectionHandle, FlowId, Time, WorkRequest};

/// The time that coding takes, and how much of it runs in parallel. The default takes none.
///
/// The simulator really codes, which takes no virtual time; this is the time to charge for it. The text form is `none`,
/// the name of a measured code (`raptorq`), or numbers (`encode=500,decode=0,workers=1`): nanoseconds for each byte.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Coding {
    /// Time of the first encoding of a block for each byte of the block, and of later ones for each byte of the symbols
    /// they make: a block is solved once, and then kept.
    pub encode: CodingTime,
    /// Time of each attempt to decode a block, for each byte of the block.
    pub decode: CodingTime,
    /// How many requests a host works on at once; the others wait in order. `None`: all.
    pub workers: Option<NonZeroU32>,
}

/// The time that a request takes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CodingTime {
    /// Fixed part.
    pub request: Duration,
    /// Nanoseconds for each byte.
    pub nanos_per_byte: f64,
}

/// Codes with measured times, in nanoseconds for each byte: the results of `experiments/rc-udp/fig3` and
/// `experiments/ttp/fig3` for 1 MB in symbols of 1 KB (medians), and the values printed in the documents.
const MEASURED: [(&str, f64, f64); 4] = [
    ("raptorq", 0.25, 0.36),
    ("precoded-lt", 0.33, 0.62),
    ("tornado", 0.24, 0.54),
    // ttp III-A: "even for 10MB data chunks the time taken for encoding is less than 5 seconds", and decoding is
    // negligible.
    ("ttp-figure-3", 500.0, 0.0),
];

impl Coding {
    /// No time at all.
    pub const NONE: Self = {
        let time = CodingTime { request: Duration::ZERO, nanos_per_byte: 0.0 };
        Self { encode: time, decode: time, workers: None }
    };

    /// Returns a coding that takes `delay` for each request, with unlimited workers.
    pub const fn each(delay: Duration) -> Self {
        let time = CodingTime { request: delay, nanos_per_byte: 0.0 };
        Self { encode: time, decode: time, workers: None }
    }

    /// Returns a coding that takes this many nanoseconds for each byte, one request after the other.
    pub fn per_byte(encode: f64, decode: f64) -> Self {
        let time = |nanos_per_byte| CodingTime { request: Duration::ZERO, nanos_per_byte };
        Self { encode: time(encode), decode: time(decode), workers: NonZeroU32::new(1) }
    }
}

impl CodingTime {
    fn of(self, bytes: usize) -> Duration {
        self.request + Duration::from_nanos((self.nanos_per_byte * bytes as f64) as u64)
    }
}

impl FromStr for Coding {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        const EXAMPLE: &str =
            "none, raptorq, precoded-lt, tornado, ttp-figure-3, or encode=0.25,decode=0.36,workers=1 (ns a byte)";
        let bad = || TextError::Value { key: "coding".to_owned(), value: text.to_owned(), example: EXAMPLE };
        if text == "none" {
            return Ok(Self::NONE);
        }
        if let Some((_, encode, decode)) = MEASURED.iter().find(|(name, ..)| *name == text) {
            return Ok(Self::per_byte(*encode, *decode));
        }
        let mut coding = Self::per_byte(0.0, 0.0);
        for part in text.split(',') {
            let (key, value) = part.split_once('=').ok_or_else(bad)?;
            let number =
                || value.trim().parse::<f64>().ok().filter(|number| (0.0..1e9).contains(number)).ok_or_else(bad);
            match key.trim() {
                "encode" => coding.encode.nanos_per_byte = number()?,
                "decode" => coding.decode.nanos_per_byte = number()?,
                "workers" => coding.workers = Some(value.trim().parse().map_err(|_| bad())?),
                _ => return Err(bad()),
            }
        }
        Ok(coding)
    }
}

/// The workers of a host.
#[derive(Debug)]
pub(crate) struct Workers {
    coding: Coding,
    /// When each of them is free; empty if their number is unlimited.
    free: Vec<Time>,
    /// Blocks that have been encoded before.
    encoded: BTreeSet<(ConnectionHandle, FlowId, u32)>,
    /// Total time that they have worked.
    busy: Duration,
}

impl Workers {
    pub(crate) fn new(coding: Coding) -> Self {
        let free = coding.workers.map_or_else(Vec::new, |workers| vec![Time::ZERO; workers.get() as usize]);
        Self { coding, free, encoded: BTreeSet::new(), busy: Duration::ZERO }
    }

    /// Returns how long a request takes from now on, including the wait for a worker; `None` for a request other than
    /// coding.
    pub(crate) fn take(&mut self, now: Time, handle: ConnectionHandle, request: &WorkRequest) -> Option<Duration> {
        let time = match request {
            WorkRequest::Encode(job) => {
                let (flow, block) = job.block();
                let is_first = self.encoded.insert((handle, flow, block));
                self.coding.encode.of(if is_first { job.source_bytes() } else { job.repair_bytes() })
            }
            WorkRequest::Decode(job) => self.coding.decode.of(job.source_bytes()),
            _ => return None,
        };
        self.busy += time;
        let Some(worker) = self.free.iter_mut().min() else { return Some(time) };
        *worker = (*worker).max(now) + time;
        Some(worker.since(now))
    }

    /// Returns the total time that they have worked.
    pub(crate) const fn busy(&self) -> Duration {
        self.busy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read() {
        for (text, expected) in [
            ("none", Coding::NONE),
            ("encode=500,decode=0,workers=1", Coding::per_byte(500.0, 0.0)),
            (
                "encode=0.25,decode=0.36,workers=4",
                Coding { workers: NonZeroU32::new(4), ..Coding::per_byte(0.25, 0.36) },
            ),
        ] {
            let coding: Coding = text.parse().expect(text);
            assert_eq!(coding, expected, "{text}");
        }
        assert_eq!("raptorq".parse(), Ok(Coding::per_byte(0.25, 0.36)));
        for text in ["fast", "encode=-1", "encode=nan", "workers=0", "encode"] {
            let refused = text.parse::<Coding>().expect_err(text).to_string();
            assert!(
                refused.starts_with(&format!("cannot read coding={text}: write it like none, raptorq")),
                "{refused}"
            );
        }
    }
}
