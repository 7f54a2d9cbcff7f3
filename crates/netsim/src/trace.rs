//! Packet-delivery traces: the times at which a recorded link could send packets.

use std::io;
use std::sync::Arc;

use crate::Time;

const NANOS_PER_MILLI: u64 = 1_000_000;

/// When a link may send, in the form of Mahimahi: one whole number of milliseconds per line, in ascending order, each
/// an opportunity to send [`Trace::OPPORTUNITY_BYTES`]; a repeated number is another opportunity at the same time.
/// After its last line the trace starts over, with that line's time as zero.
///
/// As in Mahimahi an opportunity is used up by the bytes of waiting packets, in order: several small packets share one,
/// a packet may take the rest of one and finish in a later one, and leaves with its last byte. An opportunity at which
/// nothing waits, or the rest of it, is lost, and a packet cannot use one at the very time of its arrival. Unlike in
/// Mahimahi, packets may be larger than an opportunity, and IP bytes are counted, without the 4 bytes that a TUN device
/// adds in front.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Not empty, never falling, and not all zero.
    millis: Vec<u64>,
}

/// An invalid trace text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// A line other than a number.
    #[error("line {line}: {text:?} is not a whole number of milliseconds")]
    NotANumber {
        /// The line, counted from 1.
        line: usize,
        /// Its beginning.
        text: String,
    },
    /// Time decreases.
    #[error("line {line}: {millis} ms is before {before} ms, the line above: put the lines in order")]
    GoesBack {
        /// The line, counted from 1.
        line: usize,
        /// Its time.
        millis: u64,
        /// The time of the line above.
        before: u64,
    },
    /// The trace is empty.
    #[error("empty file: write one whole number of milliseconds per line")]
    Empty,
    /// It would repeat without end in zero time.
    #[error("all times are 0: the last must be later, as the trace repeats from there")]
    NoTime,
}

impl Trace {
    /// IP bytes that one opportunity carries.
    pub const OPPORTUNITY_BYTES: u32 = 1504;

    /// Parses the text of a trace file.
    ///
    /// # Errors
    /// The problem, with the line.
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

    /// Returns when a round is over, in milliseconds.
    fn round(&self) -> u64 {
        self.millis.last().copied().unwrap_or(1)
    }

    /// Returns the time of opportunity `number`, counted from 0 over all rounds.
    fn time(&self, number: u64) -> Time {
        let each = self.millis.len() as u64;
        let millis = self.millis[(number % each) as usize];
        let millis = (number / each).saturating_mul(self.round()).saturating_add(millis);
        Time::from_nanos(millis.saturating_mul(NANOS_PER_MILLI))
    }

    /// Returns the first opportunity later than `now`.
    fn first_after(&self, now: Time) -> u64 {
        // The first whole millisecond later than now lies in the round that ends at it or after it.
        let passed = now.as_nanos() / NANOS_PER_MILLI;
        let rounds = passed / self.round();
        let within = passed % self.round();
        let number = self.millis.partition_point(|&millis| millis <= within);
        rounds * self.millis.len() as u64 + number as u64
    }
}

/// A link's progress through its trace.
#[derive(Clone, Debug, Default)]
pub(crate) struct Playback {
    /// The last opportunity used, and the bytes left of it.
    used: Option<(u64, u32)>,
}

impl Playback {
    /// Sends a packet behind one that left at `busy_until`, and returns when its last byte leaves.
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

/// A trace by the name of its file, and its content once a caller has loaded it: this crate opens no files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceFile {
    name: String,
    trace: Option<Arc<Trace>>,
}

/// A trace file that cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum TraceFileError {
    /// It cannot be read.
    #[error("cannot read the trace {name}: {error}")]
    Unreadable {
        /// Its name.
        name: String,
        /// The reason.
        error: io::Error,
    },
    /// It is not a trace.
    #[error("{name} is not a trace: {error}")]
    NotATrace {
        /// Its name.
        name: String,
        /// The problem.
        error: TraceError,
    },
}

impl TraceFile {
    /// Creates an unloaded trace. A link's text form cannot express a comma in a name.
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), trace: None }
    }

    /// Returns the name of the file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the content; `None` until it is loaded.
    pub fn trace(&self) -> Option<&Trace> {
        self.trace.as_deref()
    }

    /// Loads the content of the file; `read` reads a file by name.
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
        // Found by counting.
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
