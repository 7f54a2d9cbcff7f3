//! Packet-delivery traces: the times at which a recorded link let packets go.

use std::io;
use std::sync::Arc;

use crate::Time;

const NANOS_PER_MILLI: u64 = 1_000_000;

/// When a link may send, in the form of Mahimahi: one whole number of milliseconds a line, none smaller than the one before, each an
/// opportunity to send [`Trace::OPPORTUNITY_BYTES`]; the same number again is another opportunity at once. After its last line the
/// trace begins anew, with that line's time as zero.
///
/// As in Mahimahi an opportunity is used up by the bytes of waiting packets, in order: several small packets share one, a packet may
/// take the rest of one and finish in a later one, and leaves with its last byte. An opportunity at which nothing waits, or the rest of
/// it, is lost, and one at the very time at which a packet comes is too early for it. Unlike there, packets may be larger than an
/// opportunity, and what counts are IP bytes, without the 4 bytes that a TUN device puts before them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Not empty, never falling, and not all zero.
    millis: Vec<u64>,
}

/// A text that is not a trace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// Something else than a number.
    #[error("line {line}: {text:?} is not a whole number of milliseconds")]
    NotANumber {
        /// The line, counted from 1.
        line: usize,
        /// How it begins.
        text: String,
    },
    /// Time runs backwards.
    #[error("line {line}: {millis} ms is before {before} ms, the line above: put the lines in order")]
    GoesBack {
        /// The line, counted from 1.
        line: usize,
        /// Its time.
        millis: u64,
        /// The time of the line above.
        before: u64,
    },
    /// There is nothing in it.
    #[error("it is empty: write one whole number of milliseconds a line")]
    Empty,
    /// It would repeat without end in no time.
    #[error("all its times are 0: the last must be later, for there the trace begins anew")]
    NoTime,
}

impl Trace {
    /// IP bytes that one opportunity carries.
    pub const OPPORTUNITY_BYTES: u32 = 1504;

    /// Reads the text of a trace file.
    ///
    /// # Errors
    /// What is wrong, with the line.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let mut millis = Vec::new();
        let mut before = 0;
        for (line, text) in (1..).zip(text.lines()) {
            let number = text.trim().parse().map_err(|_| TraceError::NotANumber {
                line,
                // A file of another kind may be one long line.
                text: text.chars().take(40).collect(),
            })?;
            if number < before {
                return Err(TraceError::GoesBack { line, millis: number, before });
            }
            before = number;
            millis.push(number);
        }
        match before {
            _ if millis.is_empty() => Err(TraceError::Empty),
            0 => Err(TraceError::NoTime),
            _ => Ok(Self { millis }),
        }
    }

    /// When a round is over, in milliseconds.
    fn round(&self) -> u64 {
        self.millis.last().copied().unwrap_or(1)
    }

    /// When opportunity `number` is, counted from 0 over all rounds.
    fn time(&self, number: u64) -> Time {
        let each = self.millis.len() as u64;
        let millis = self.millis[(number % each) as usize];
        let millis = (number / each).saturating_mul(self.round()).saturating_add(millis);
        Time::from_nanos(millis.saturating_mul(NANOS_PER_MILLI))
    }

    /// The first opportunity later than `now`.
    fn first_after(&self, now: Time) -> u64 {
        // The first whole millisecond later than now lies in the round that ends at it or after it.
        let passed = now.as_nanos() / NANOS_PER_MILLI;
        let rounds = passed / self.round();
        let within = passed % self.round();
        let number = self.millis.partition_point(|&millis| millis <= within);
        rounds * self.millis.len() as u64 + number as u64
    }
}

/// How far a link has got with its trace.
#[derive(Clone, Debug, Default)]
pub(crate) struct Playback {
    /// The last opportunity that was used, and the bytes left of it.
    used: Option<(u64, u32)>,
}

impl Playback {
    /// Sends a packet behind one that left at `busy_until`, and says when its last byte leaves.
    pub(crate) fn send(&mut self, trace: &Trace, now: Time, busy_until: Time, ip_bytes: u32) -> Time {
        const FULL: u64 = Trace::OPPORTUNITY_BYTES as u64;
        let (number, left) = match self.used {
            Some(used) if busy_until > now => used,
            _ => (trace.first_after(now.max(busy_until)), Trace::OPPORTUNITY_BYTES),
        };
        let more = u64::from(ip_bytes.saturating_sub(left));
        let further = more.div_ceil(FULL);
        let left = u64::from(left) + further * FULL - u64::from(ip_bytes);
        let number = number.saturating_add(further);
        self.used = Some((number, u32::try_from(left).expect("at most one opportunity is left over")));
        trace.time(number)
    }
}

/// A trace by the name of its file, and what is in it once somebody has read it: this crate opens no files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceFile {
    name: String,
    trace: Option<Arc<Trace>>,
}

/// A trace file that cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum TraceFileError {
    /// It cannot be read.
    #[error("cannot read the trace {name}: {error}")]
    Unreadable {
        /// Its name.
        name: String,
        /// Why not.
        error: io::Error,
    },
    /// It is not a trace.
    #[error("{name} is not a trace: {error}")]
    NotATrace {
        /// Its name.
        name: String,
        /// What is wrong with it.
        error: TraceError,
    },
}

impl TraceFile {
    /// A trace that is not loaded yet. A link's text form has no way to write a comma in a name.
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), trace: None }
    }

    /// The name of the file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What is in it; `None` until it is loaded.
    pub fn trace(&self) -> Option<&Trace> {
        self.trace.as_deref()
    }

    /// Takes what is in the file; `read` reads a file of a name.
    ///
    /// # Errors
    /// A file that cannot be read or is no trace.
    pub fn load(&mut self, read: impl FnOnce(&str) -> io::Result<String>) -> Result<(), TraceFileError> {
        let text = read(&self.name).map_err(|error| TraceFileError::Unreadable { name: self.name.clone(), error })?;
        let trace =
            Trace::parse(&text).map_err(|error| TraceFileError::NotATrace { name: self.name.clone(), error })?;
        self.trace = Some(Arc::new(trace));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opportunities_are_found_in_every_round() {
        let trace = Trace::parse("0\n3\n3\n10\n").unwrap();
        // By counting.
        let times: Vec<u64> = (0..40).map(|number| trace.time(number).as_nanos() / NANOS_PER_MILLI).collect();
        assert_eq!(times[..9], [0, 3, 3, 10, 10, 13, 13, 20, 20]);
        for micros in 0..40_000_u64 {
            let expected = times.iter().position(|millis| millis * 1_000 > micros).unwrap() as u64;
            assert_eq!(trace.first_after(Time::from_nanos(micros * 1_000)), expected, "{micros} us");
        }
        let late = trace.first_after(Time::MAX);
        assert_eq!((trace.time(late), trace.time(u64::MAX)), (Time::MAX, Time::MAX));
        let slow = Trace::parse("18446744073709551615").unwrap();
        assert_eq!(slow.time(slow.first_after(Time::ZERO)), Time::MAX);
    }
}
