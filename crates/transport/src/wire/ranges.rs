//! The packets section of feedback: which packet numbers arrived, as run lengths or as a bitmap, both from the newest
//! packet downward.

use super::bytes::{Put, Reader, length_u16};
use super::error::WireError;
use super::frame::PacketRanges;
use super::limits::{MAX_PACKET_NUMBER, MAX_RANGES_BODY};

/// Bytes before the runs or the bitmap: largest 8, delay 4, form 1, length 2.
const HEAD: usize = 15;

/// Fewest bytes of a packets section: one run.
pub(super) const MIN_SECTION: usize = HEAD + 2;

/// The longest run that one number holds; a longer one continues after a run of length 0 of the other kind.
const LONGEST_RUN: u64 = 65_535;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RangeEncoding {
    Runs = 0,
    Bitmap = 1,
}

/// How much of the ranges fits in one form.
#[derive(Clone, Copy, Debug)]
struct Fit {
    form: RangeEncoding,
    /// Bytes after the head.
    body: usize,
    /// Distance from the largest number to the lowest one reported as arrived.
    depth: u64,
}

impl PacketRanges {
    /// Writes the section in the smaller of its two forms; if both need more than `budget` bytes, the newest part that
    /// fits. Returns the bytes written: 0 without ranges or if the budget does not hold one run (17 bytes).
    pub fn encode_within(&self, budget: usize, out: &mut Vec<u8>) -> usize {
        let Some((&(_, largest), fit)) = self.ranges.first().zip(self.fit(budget)) else {
            return 0;
        };
        out.put_u64(largest);
        out.put_u32(self.delay_micros);
        out.put_u8(fit.form as u8);
        out.put_u16(length_u16(fit.body));
        match fit.form {
            RangeEncoding::Runs => self.runs().take(fit.body / 2).for_each(|run| out.put_u16(run)),
            RangeEncoding::Bitmap => self.put_bitmap(fit, largest, out),
        }
        HEAD + fit.body
    }

    /// Returns the bytes that [`encode_within`](Self::encode_within) writes with this budget.
    pub(super) fn len_within(&self, budget: usize) -> usize {
        self.fit(budget).map_or(0, |fit| HEAD + fit.body)
    }

    fn fit(&self, budget: usize) -> Option<Fit> {
        let body = budget.checked_sub(HEAD)?.min(MAX_RANGES_BODY);
        let (runs, bitmap) = (self.fit_runs(body)?, self.fit_bitmap(body)?);
        let better = bitmap.depth > runs.depth || (bitmap.depth == runs.depth && bitmap.body < runs.body);
        Some(if better { bitmap } else { runs })
    }

    /// Iterates over run lengths from the largest number downward, received and missing alternately.
    fn runs(&self) -> impl Iterator<Item = u16> + '_ {
        let lengths = self.ranges.iter().scan(None, |lowest: &mut Option<u64>, &(low, high)| {
            debug_assert!(low <= high && lowest.is_none_or(|lowest| high < lowest.saturating_sub(1)));
            let missing = lowest.replace(low).map(|lowest| lowest.saturating_sub(high).saturating_sub(1));
            Some(missing.into_iter().chain([high.saturating_sub(low).saturating_add(1)]))
        });
        lengths.flatten().flat_map(pieces)
    }

    /// Returns the longest sequence of runs in `body` bytes that ends with packets that arrived.
    fn fit_runs(&self, body: usize) -> Option<Fit> {
        let (mut best, mut covered) = (None, 0_u64);
        for (index, run) in self.runs().take(body / 2).enumerate() {
            covered = covered.saturating_add(u64::from(run));
            if index % 2 == 0 && run > 0 {
                best = Some(Fit { form: RangeEncoding::Runs, body: 2 * (index + 1), depth: covered - 1 });
            }
        }
        best
    }

    fn fit_bitmap(&self, body: usize) -> Option<Fit> {
        let &(_, largest) = self.ranges.first()?;
        let floor = largest.saturating_sub((8 * body as u64).checked_sub(1)?);
        let &(low, _) = self.ranges.iter().take_while(|&&(_, high)| high >= floor).last()?;
        let depth = largest - low.max(floor);
        Some(Fit { form: RangeEncoding::Bitmap, body: (depth / 8) as usize + 1, depth })
    }

    fn put_bitmap(&self, fit: Fit, largest: u64, out: &mut Vec<u8>) {
        let start = out.len();
        out.resize(start + fit.body, 0);
        let bitmap = &mut out[start..];
        for &(low, high) in &self.ranges {
            let (from, to) = (largest - high, (largest - low).min(fit.depth));
            if from > to {
                break;
            }
            set_bits(bitmap, from as usize, to as usize);
        }
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let largest = reader.u64()?;
        let delay_micros = reader.u32()?;
        let (form, length) = (reader.u8()?, usize::from(reader.u16()?));
        if largest > MAX_PACKET_NUMBER {
            return Err(WireError::Malformed("largest packet number"));
        }
        if length > MAX_RANGES_BODY {
            return Err(WireError::Limit("ranges"));
        }
        let body = reader.bytes(length)?;
        let ranges = match form {
            form if form == RangeEncoding::Runs as u8 => decode_runs(largest, body)?,
            form if form == RangeEncoding::Bitmap as u8 => decode_bitmap(largest, body)?,
            _ => return Err(WireError::Malformed("form of the ranges")),
        };
        Ok(Self { delay_micros, ranges })
    }
}

/// Splits a run length into pieces of at most [`LONGEST_RUN`], with a zero run of the other kind between two of them.
fn pieces(length: u64) -> impl Iterator<Item = u16> {
    let full = length.saturating_sub(1) / LONGEST_RUN;
    let last = length - full * LONGEST_RUN;
    (0..2 * full).map(|index| if index % 2 == 0 { LONGEST_RUN } else { 0 }).chain([last]).map(|piece| piece as u16)
}

/// Sets the bits `from..=to`, counted from the most significant bit of the first byte.
fn set_bits(bitmap: &mut [u8], from: usize, to: usize) {
    for (index, byte) in bitmap.iter_mut().enumerate().take(to / 8 + 1).skip(from / 8) {
        let after_first = if index == from / 8 { 0xff >> (from % 8) } else { 0xff };
        let up_to_last = if index == to / 8 { 0xff << (7 - to % 8) } else { 0xff };
        *byte |= after_first & up_to_last;
    }
}

fn decode_runs(largest: u64, body: &[u8]) -> Result<Vec<(u64, u64)>, WireError> {
    let mut reader = Reader::new(body);
    let mut ranges: Vec<(u64, u64)> = Vec::with_capacity(body.len() / 4 + 1);
    // Numbers not yet covered: those below this one.
    let mut below = largest + 1;
    let (mut received, mut previous, mut continued) = (true, 0, false);
    while !reader.is_empty() {
        let run = u64::from(reader.u16()?);
        below = below.checked_sub(run).ok_or(WireError::Malformed("run below packet number 0"))?;
        match (run, received) {
            (0, _) if previous != LONGEST_RUN => return Err(WireError::Malformed("empty run")),
            (0, _) | (_, false) => {}
            (_, true) => match ranges.last_mut().filter(|_| continued) {
                Some((low, _)) => *low = below,
                None => ranges.push((below, below + run - 1)),
            },
        }
        continued = run == 0;
        (received, previous) = (!received, run);
    }
    // An odd number of runs has been read when the next one is of missing packets.
    if received || previous == 0 {
        return Err(WireError::Malformed("runs that do not end with received packets"));
    }
    Ok(ranges)
}

fn decode_bitmap(largest: u64, body: &[u8]) -> Result<Vec<(u64, u64)>, WireError> {
    if body.first().is_none_or(|byte| byte & 0x80 == 0) {
        return Err(WireError::Malformed("bitmap without its largest packet"));
    }
    let mut ranges = Vec::new();
    let mut open = None;
    for (index, &byte) in body.iter().enumerate() {
        // Fast path for the most frequent bytes, which change nothing.
        if (byte == 0xff && open.is_some()) || (byte == 0 && open.is_none()) {
            continue;
        }
        for bit in 0..8 {
            let distance = (8 * index + bit) as u64;
            let received = byte & (0x80 >> bit) != 0;
            match open {
                None if received => open = Some(distance),
                Some(first) if !received => {
                    ranges.push(range_at(largest, first, distance - 1)?);
                    open = None;
                }
                _ => {}
            }
        }
    }
    if let Some(first) = open {
        ranges.push(range_at(largest, first, 8 * body.len() as u64 - 1)?);
    }
    Ok(ranges)
}

/// Returns the range between two distances below `largest`.
fn range_at(largest: u64, first: u64, last: u64) -> Result<(u64, u64), WireError> {
    let low = largest.checked_sub(last).ok_or(WireError::Malformed("bitmap below packet number 0"))?;
    Ok((low, largest - first))
}
