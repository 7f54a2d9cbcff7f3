//! Records: their separation in a file, and their content.

use serde::Deserialize;
use serde::de::IgnoredAny;

/// The first byte of every record.
const SEPARATOR: u8 = 0x1e;
/// The longest record; longer than any valid one.
const LONGEST: usize = 1 << 20;

/// Splits a file into records, whatever the sizes of the reads.
#[derive(Debug, Default)]
pub(super) struct Records {
    /// The beginning of an incomplete record.
    rest: Vec<u8>,
    is_too_long: bool,
}

impl Records {
    /// Adds further bytes, and passes on each record that the start of the next completes, or its error.
    pub(super) fn push(&mut self, mut bytes: &[u8], mut found: impl FnMut(Result<&[u8], &str>)) {
        while let Some(end) = bytes.iter().position(|byte| *byte == SEPARATOR) {
            self.keep(&bytes[..end]);
            if std::mem::take(&mut self.is_too_long) {
                found(Err("a record longer than the limit"));
            } else if self.is_within() {
                found(Ok(&self.rest));
            }
            self.rest.clear();
            bytes = &bytes[end + 1..];
        }
        self.keep(bytes);
    }

    /// Passes on the last record, which is complete if `found` accepts it.
    pub(super) fn settle(&mut self, found: impl FnOnce(&[u8]) -> bool) {
        if self.is_within() && found(&self.rest) {
            self.rest.clear();
        }
    }

    /// Returns whether there is an incomplete record.
    pub(super) fn is_within(&self) -> bool {
        self.is_too_long || !self.rest.trim_ascii().is_empty()
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.is_too_long || self.rest.len() + bytes.len() > LONGEST {
            self.is_too_long = true;
            self.rest = Vec::new();
        } else {
            self.rest.extend_from_slice(bytes);
        }
    }
}

/// A record: the header of a connection's trace, or an event.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Record<'a> {
    file_schema: Option<IgnoredAny>,
    /// Milliseconds since the trace began.
    pub(super) time: Option<f64>,
    #[serde(borrow)]
    pub(super) name: Option<&'a str>,
    #[serde(borrow)]
    pub(super) data: Data<'a>,
}

/// The used data of events. Each event has some of it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Data<'a> {
    pub(super) congestion_window: Option<f64>,
    pub(super) bytes_in_flight: Option<f64>,
    pub(super) pacing_rate: Option<f64>,
    pub(super) delivered: Option<f64>,
    pub(super) loss: Option<f64>,
    pub(super) redundancy: Option<f64>,
    pub(super) smoothed_rtt: Option<f64>,
    pub(super) latest_rtt: Option<f64>,
    pub(super) queue_delay: Option<f64>,
    pub(super) open_blocks: Option<f64>,
    /// A transfer: bytes and files that have arrived, those known so far, and whether these are all.
    pub(super) bytes: Option<f64>,
    pub(super) known_bytes: Option<f64>,
    pub(super) files: Option<f64>,
    pub(super) known_files: Option<f64>,
    pub(super) known_is_all: Option<bool>,
    /// Seconds.
    pub(super) left: Option<f64>,
    #[serde(borrow)]
    pub(super) congestion_control: Option<&'a str>,
    #[serde(borrow)]
    pub(super) limited_by: Option<&'a str>,
    /// Mode and phase of the controller.
    #[serde(borrow)]
    pub(super) new: Option<&'a str>,
    #[serde(borrow)]
    pub(super) constraint: Option<&'a str>,
    pub(super) flow: Option<u64>,
    pub(super) block: Option<u32>,
    pub(super) length: Option<u64>,
    #[serde(borrow)]
    pub(super) symbol: Option<Symbol<'a>>,
}

/// The symbols of a packet.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct Symbol<'a> {
    pub(super) flow: u64,
    pub(super) block: u32,
    /// Source or repair; only in sent packets.
    #[serde(borrow, default)]
    pub(super) kind: Option<&'a str>,
}

impl<'a> Record<'a> {
    /// Reads a record. A valid one that is not of downpour is an event without a name.
    pub(super) fn parse(text: &'a [u8]) -> Result<Self, String> {
        // A list would be read as the fields in their order.
        if text.trim_ascii_start().starts_with(b"{")
            && let Ok(record) = serde_json::from_slice(text)
        {
            return Ok(record);
        }
        match serde_json::from_slice(text) {
            Ok(IgnoredAny) => Ok(Self::default()),
            Err(error) => Err(error.to_string()),
        }
    }

    pub(super) fn is_header(&self) -> bool {
        self.file_schema.is_some()
    }
}
