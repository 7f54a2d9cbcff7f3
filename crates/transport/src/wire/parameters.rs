//! The parameters that each side sends inside its handshake message: type, length and value; unknown types are ignored.

use super::bytes::{Put, Reader, length_u16};
use super::error::WireError;
use super::feedback_config::FeedbackConfig;
use super::frame::Credit;
use super::ids::ConnectionId;
use super::limits::{MAX_APPLICATION, MAX_CIPHERS, MAX_PARAMETERS};

/// Parameter types. Every type with the low half of both bytes 0xa is reserved for grease.
mod kind {
    pub(super) const CONNECTION: u16 = 1;
    pub(super) const CIPHERS: u16 = 2;
    pub(super) const CREDIT_SYMBOLS: u16 = 3;
    pub(super) const CREDIT_CONTROL: u16 = 4;
    pub(super) const MAX_K: u16 = 5;
    pub(super) const MAX_SYMBOL_SIZE: u16 = 6;
    pub(super) const FEEDBACK: u16 = 7;
    pub(super) const APPLICATION: u16 = 8;
    pub(super) const STREAMS: u16 = 9;
    pub(super) const FEEDBACK_DETAIL: u16 = 10;
    pub(super) const MAX_PER_PACKET: u16 = 11;
    pub(super) const COUNTS_ON: u16 = 12;
    pub(super) const SHORT_SYMBOLS: u16 = 13;
}

/// One side's parameters, carried as its Noise payload and so authentic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// This side's connection id: packets sent to it carry this one.
    pub connection: ConnectionId,
    /// From the initiator the ciphers offered, best first; from the responder the one chosen. 1 to [`MAX_CIPHERS`]
    /// numbers; the responder skips unknown ones.
    pub ciphers: Vec<u8>,
    /// The credit that the peer has before the first feedback.
    pub credit: Credit,
    /// The largest `k` this side accepts.
    pub max_k: u32,
    /// The largest symbol size this side accepts, in bytes.
    pub max_symbol_size: u16,
    /// The most symbols per packet that this side accepts; one if absent.
    pub max_per_packet: u8,
    /// The feedback that this side wants for the data it sends.
    pub feedback: FeedbackConfig,
    /// Whether this side understands feedback numbers beyond 32 bits, of which the wire carries the lower 32.
    pub counts_on: bool,
    /// Whether this side accepts symbols of streams without the zeros at their end.
    pub short_symbols: bool,
    /// The streams that this side accepts.
    pub streams: StreamLimits,
    /// The program's bytes, at most [`MAX_APPLICATION`].
    pub application: Vec<u8>,
}

/// The limits that a side sets for streams; none are accepted if absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamLimits {
    /// Streams at once: announced and neither read to their end nor reset.
    pub count: u16,
    /// Source symbols started and not read that each stream may have of its own.
    pub window: u32,
    /// Source symbols that all streams together may have beyond that.
    pub shared: u32,
}

impl Parameters {
    /// Returns the source symbols of the largest block that this side accepts: no larger one could ever begin within
    /// its first credit.
    pub fn largest_block(&self) -> u32 {
        self.max_k.min(u32::try_from(self.credit.symbols).unwrap_or(u32::MAX)).max(1)
    }

    /// Returns the parameters' bytes, with one reserved entry made from `grease` that every reader must ignore.
    ///
    /// # Errors
    ///
    /// When the ciphers are none or more than [`MAX_CIPHERS`], or the program's bytes exceed [`MAX_APPLICATION`].
    pub fn encode(&self, grease: u32) -> Result<Vec<u8>, WireError> {
        check_ciphers(&self.ciphers)?;
        if self.application.len() > MAX_APPLICATION {
            return Err(WireError::Limit("application bytes"));
        }
        let mut out = Vec::new();
        put_entry(kind::CONNECTION, &self.connection.0, &mut out);
        put_entry(kind::CIPHERS, &self.ciphers, &mut out);
        put_entry(kind::CREDIT_SYMBOLS, &self.credit.symbols.to_be_bytes(), &mut out);
        put_entry(kind::CREDIT_CONTROL, &self.credit.control.to_be_bytes(), &mut out);
        put_entry(kind::MAX_K, &self.max_k.to_be_bytes(), &mut out);
        put_entry(kind::MAX_SYMBOL_SIZE, &self.max_symbol_size.to_be_bytes(), &mut out);
        put_entry(kind::FEEDBACK, &self.feedback.encode_plain(), &mut out);
        if let Some(detail) = self.feedback.encode_detail() {
            put_entry(kind::FEEDBACK_DETAIL, &detail, &mut out);
        }
        if self.max_per_packet != 1 {
            put_entry(kind::MAX_PER_PACKET, &[self.max_per_packet], &mut out);
        }
        if self.counts_on {
            put_entry(kind::COUNTS_ON, &[], &mut out);
        }
        if self.short_symbols {
            put_entry(kind::SHORT_SYMBOLS, &[], &mut out);
        }
        if self.streams != StreamLimits::default() {
            put_entry(kind::STREAMS, &self.streams.encode(), &mut out);
        }
        if !self.application.is_empty() {
            put_entry(kind::APPLICATION, &self.application, &mut out);
        }
        let [high, low, value @ ..] = grease.to_be_bytes();
        let reserved = u16::from_be_bytes([(high & 0xf0) | 0x0a, (low & 0xf0) | 0x0a]);
        put_entry(reserved, &value, &mut out);
        Ok(out)
    }

    /// Reads a set of parameters.
    ///
    /// # Errors
    ///
    /// When an entry is truncated, has an invalid value or appears twice, or one of the types 1 to 7 is missing.
    pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let mut found = PartialParameters::default();
        let mut seen = Vec::new();
        let mut reader = Reader::new(bytes);
        while !reader.is_empty() {
            let (kind, length) = (reader.u16()?, reader.u16()?);
            let value = reader.bytes(usize::from(length))?;
            if seen.contains(&kind) {
                return Err(WireError::Malformed("duplicate parameter"));
            }
            if seen.len() == MAX_PARAMETERS {
                return Err(WireError::Limit("parameters"));
            }
            seen.push(kind);
            found.take(kind, value)?;
        }
        found.complete()
    }
}

/// Parameters read so far.
#[derive(Default)]
struct PartialParameters<'a> {
    connection: Option<ConnectionId>,
    ciphers: Option<&'a [u8]>,
    credit_symbols: Option<u64>,
    credit_control: Option<u64>,
    max_k: Option<u32>,
    max_symbol_size: Option<u16>,
    feedback: Option<FeedbackConfig>,
    feedback_detail: Option<[u8; FeedbackConfig::DETAIL]>,
    max_per_packet: Option<u8>,
    counts_on: bool,
    short_symbols: bool,
    streams: StreamLimits,
    application: &'a [u8],
}

impl<'a> PartialParameters<'a> {
    fn take(&mut self, kind: u16, value: &'a [u8]) -> Result<(), WireError> {
        match kind {
            kind::CONNECTION => self.connection = Some(ConnectionId(fixed(value, "connection id")?)),
            kind::CIPHERS => {
                check_ciphers(value)?;
                self.ciphers = Some(value);
            }
            kind::CREDIT_SYMBOLS => self.credit_symbols = Some(u64::from_be_bytes(fixed(value, "credit in symbols")?)),
            kind::CREDIT_CONTROL => self.credit_control = Some(u64::from_be_bytes(fixed(value, "credit of control")?)),
            kind::MAX_K => self.max_k = Some(u32::from_be_bytes(fixed(value, "largest k")?)),
            kind::MAX_SYMBOL_SIZE => {
                self.max_symbol_size = Some(u16::from_be_bytes(fixed(value, "largest symbol size")?))
            }
            kind::FEEDBACK => self.feedback = Some(FeedbackConfig::decode_plain(fixed(value, "feedback choice")?)?),
            kind::FEEDBACK_DETAIL => self.feedback_detail = Some(fixed(value, "feedback choice in detail")?),
            kind::MAX_PER_PACKET => {
                let [count] = fixed(value, "symbols per packet")?;
                let count = Some(count).filter(|count| *count > 0);
                self.max_per_packet = Some(count.ok_or(WireError::Malformed("symbols per packet"))?);
            }
            kind::COUNTS_ON => {
                let [] = fixed(value, "counts on")?;
                self.counts_on = true;
            }
            kind::SHORT_SYMBOLS => {
                let [] = fixed(value, "short symbols")?;
                self.short_symbols = true;
            }
            kind::STREAMS => self.streams = StreamLimits::decode(fixed(value, "streams")?),
            kind::APPLICATION if value.len() > MAX_APPLICATION => {
                return Err(WireError::Limit("application bytes"));
            }
            kind::APPLICATION => self.application = value,
            _ => {}
        }
        Ok(())
    }

    fn complete(self) -> Result<Parameters, WireError> {
        let missing = WireError::Missing;
        let plain = self.feedback.ok_or(missing("feedback choice"))?;
        let feedback = self.feedback_detail.map_or(Ok(plain), |detail| plain.with_detail(&detail))?;
        Ok(Parameters {
            connection: self.connection.ok_or(missing("connection id"))?,
            ciphers: self.ciphers.ok_or(missing("ciphers"))?.to_vec(),
            credit: Credit {
                symbols: self.credit_symbols.ok_or(missing("credit in symbols"))?,
                control: self.credit_control.ok_or(missing("credit of control"))?,
            },
            max_k: self.max_k.ok_or(missing("largest k"))?,
            max_symbol_size: self.max_symbol_size.ok_or(missing("largest symbol size"))?,
            max_per_packet: self.max_per_packet.unwrap_or(1),
            feedback,
            counts_on: self.counts_on,
            short_symbols: self.short_symbols,
            streams: self.streams,
            application: self.application.to_vec(),
        })
    }
}

impl StreamLimits {
    fn encode(self) -> [u8; 10] {
        let ([a, b], [c, d, e, f]) = (self.count.to_be_bytes(), self.window.to_be_bytes());
        let [g, h, i, j] = self.shared.to_be_bytes();
        [a, b, c, d, e, f, g, h, i, j]
    }

    const fn decode([a, b, c, d, e, f, shared @ ..]: [u8; 10]) -> Self {
        let (count, window) = (u16::from_be_bytes([a, b]), u32::from_be_bytes([c, d, e, f]));
        Self { count, window, shared: u32::from_be_bytes(shared) }
    }
}

fn put_entry(kind: u16, value: &[u8], out: &mut Vec<u8>) {
    out.put_u16(kind);
    out.put_u16(length_u16(value.len()));
    out.put(value);
}

fn fixed<const N: usize>(value: &[u8], name: &'static str) -> Result<[u8; N], WireError> {
    value.try_into().map_err(|_| WireError::Malformed(name))
}

fn check_ciphers(ciphers: &[u8]) -> Result<(), WireError> {
    if ciphers.is_empty() || ciphers.len() > MAX_CIPHERS { Err(WireError::Limit("ciphers")) } else { Ok(()) }
}
