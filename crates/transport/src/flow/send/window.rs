//! Repair symbols of a stream with a window code: when they are made, and over which symbols.
//!
//! They are sent between source symbols, as many as a full window needs against the expected loss; and when the stream
//! has been idle for a moment, until those in flight suffice. Lost source is resent all the same: whichever arrives
//! first counts. A program that writes faster than the path takes gets none: there the time of the last byte counts, and
//! repair would only put it off.

use crate::flow::schedule::PathEstimate;
use crate::flow::stream_layout::WindowShape;
use crate::flow::tail::Outstanding;
use crate::time::Time;
use crate::wire::{FlowId, SymbolId, WINDOW_REPAIR};
use erasure::BlockCode;
use erasure::rlc::{Density, Field, WindowEncoder};
use std::collections::VecDeque;

/// A path that loses less gets no repair (law 5): at most one window in 1,000 would need it.
const LEAST_LOSS: f64 = 1e-4;

/// Accepted probability that a window, or its last symbol, cannot be recovered with the repair in flight
/// (docs/design/tail-rule.md: 1e-3).
const FAILURE: f64 = 1e-3;

/// A stream is idle when nothing was sent of it for this part of a round trip: anything written sooner is followed by
/// repair over the whole window.
const IDLE_PER_RTT: u32 = 32;

/// Most repair symbols for each source symbol. If more are needed, the sender waits for feedback.
const MOST_SHARE: f64 = 2.0;

/// An upper bound on how often random combinations fail: a code over GF(256) with all coefficients drawn needs one
/// symbol more in 1 of 255 cases, two in 1 of 65,000. The bound used for RaptorQ, 1e-2 and 1e-4, is above both.
const ODDS_OF: BlockCode = BlockCode::RaptorQ;

/// The repair of one stream being sent.
#[derive(Debug)]
pub(in crate::flow) struct WindowSender {
    shape: WindowShape,
    /// The symbols sent last; `None` while the path loses nothing.
    encoder: Option<WindowEncoder>,
    /// Repair symbols for each source symbol; recomputed after each report.
    share: Option<f64>,
    /// Due repair symbols; made one at a time.
    owed: f64,
    key: u16,
    /// The symbol made last.
    symbol: Vec<u8>,
    /// Bytes without padding of the last source symbols, with their numbers, and the most of a window's.
    unpadded: VecDeque<(u64, usize)>,
    longest: usize,
    in_flight: u32,
    /// Repair symbols made since the last source symbol.
    since_source: u32,
    /// When the last source symbol went out.
    sent_at: Time,
    /// The repair in flight was found to suffice, and nothing has changed since.
    content: bool,
    /// When an idle stream wants repair.
    idle_at: Option<Time>,
    /// The program writes faster than the path takes.
    backlogged: bool,
}

impl WindowSender {
    pub(in crate::flow) const fn new(shape: WindowShape) -> Self {
        Self {
            shape,
            encoder: None,
            share: None,
            owed: 0.0,
            key: 0,
            symbol: Vec::new(),
            unpadded: VecDeque::new(),
            longest: 0,
            in_flight: 0,
            since_source: 0,
            sent_at: Time::ZERO,
            content: true,
            idle_at: None,
            backlogged: false,
        }
    }

    /// Notes whether the program writes faster than the path takes. The window that follows then begins with its last
    /// symbols.
    pub(in crate::flow) fn set_backlogged(&mut self, backlogged: bool) {
        self.backlogged = backlogged;
        if backlogged {
            self.stop();
        }
    }

    /// Makes no repair, and keeps nothing for it.
    fn stop(&mut self) {
        self.encoder = None;
        self.unpadded.clear();
        self.idle_at = None;
    }

    /// Returns the number of a block's first symbol among all source symbols.
    const fn first_of(&self, block: u32) -> u64 {
        block as u64 * self.shape.per_block as u64
    }

    /// Handles a source symbol sent for the first time, of which so many bytes are not padding.
    pub(in crate::flow) fn on_source(
        &mut self,
        now: Time,
        id: SymbolId,
        (symbol, unpadded): (&[u8], usize),
        path: &PathEstimate,
    ) {
        if self.backlogged || path.loss < LEAST_LOSS {
            return self.stop();
        }
        let number = self.first_of(id.block) + u64::from(id.esi);
        let WindowShape { symbol_size, symbols, .. } = self.shape;
        let encoder = self.encoder.get_or_insert_with(|| WindowEncoder::new(Field::Gf256, symbol_size, symbols));
        if encoder.window().end != number || encoder.window().is_empty() {
            // Repair follows the first symbol of a window at once: it makes the receiver keep arriving symbols.
            encoder.restart(number);
            self.owed = 1.0;
        } else {
            self.owed += Self::share(&mut self.share, symbols, path);
        }
        encoder.push(symbol);
        self.unpadded.push_back((number, unpadded));
        let first = encoder.window().start;
        while self.unpadded.pop_front_if(|(number, _)| *number < first).is_some() {}
        (self.since_source, self.content, self.sent_at) = (0, false, now);
    }

    /// Returns the number for each source symbol that makes a full window recoverable.
    fn share(known: &mut Option<f64>, window: u32, path: &PathEstimate) -> f64 {
        *known.get_or_insert_with(|| {
            let sent = Outstanding { need: window, in_flight: window, intact: true, k: window, code: ODDS_OF };
            (f64::from(sent.extra(path.odds(FAILURE))) / f64::from(window)).min(MOST_SHARE)
        })
    }

    /// Makes a due repair symbol between source symbols. `base`: the first block that the receiver may lack.
    pub(in crate::flow) fn due(&mut self, flow: FlowId, base: u32) -> Option<SymbolId> {
        if self.owed < 1.0 { None } else { self.make(flow, base) }
    }

    /// Notes that no repair may be sent now: little of the due repair is sent later.
    pub(in crate::flow) const fn put_off(&mut self) {
        self.owed = self.owed.min(1.0);
        self.idle_at = None;
    }

    /// Makes a repair symbol for a stream with nothing else to send, of which the receiver may need `lacking` blocks.
    pub(in crate::flow) fn idle(
        &mut self,
        now: Time,
        flow: FlowId,
        base: u32,
        lacking: usize,
        path: &PathEstimate,
    ) -> Option<SymbolId> {
        self.idle_at = None;
        if self.content || self.encoder.is_none() {
            return None;
        }
        let odds = path.odds(FAILURE);
        let fails = |need: u32, repair: u32| {
            let sent = Outstanding { need, in_flight: need + repair, intact: repair == 0, k: need, code: ODDS_OF };
            sent.undecodable(odds) > FAILURE
        };
        let need =
            u32::try_from(lacking).unwrap_or(u32::MAX).saturating_mul(self.shape.per_block).min(self.shape.symbols);
        let wanted = need > 0 && (fails(need, self.in_flight) || fails(1, self.since_source));
        self.content = !wanted;
        let due = self.sent_at + path.rtt.unwrap_or_default() / IDLE_PER_RTT;
        self.idle_at = Some(due).filter(|due| wanted && *due > now);
        if wanted && due <= now { self.make(flow, base) } else { None }
    }

    /// Returns when to ask the stream again if nothing is received or written.
    pub(in crate::flow) const fn idle_at(&self) -> Option<Time> {
        self.idle_at
    }

    /// Makes one more repair symbol over all symbols sent of the stream that may be missing.
    fn make(&mut self, flow: FlowId, base: u32) -> Option<SymbolId> {
        let (first, per_block) = (self.first_of(base), u64::from(self.shape.per_block));
        let encoder = self.encoder.as_mut()?;
        encoder.forget_below(first);
        // Its header names the last block, which is wholly in the window.
        let end = encoder.window().end;
        if !end.is_multiple_of(per_block) {
            return None;
        }
        self.key = (self.key + 1) % WINDOW_REPAIR as u16;
        self.symbol.resize(self.shape.symbol_size, 0);
        let Some(repair) = encoder.repair(self.key, Density::FULL, &mut self.symbol) else {
            // All of it has arrived.
            (self.owed, self.content) = (0.0, true);
            return None;
        };
        let covered = self.unpadded.iter().filter(|(number, _)| *number >= repair.first);
        self.longest = covered.map(|(_, unpadded)| *unpadded).max().unwrap_or(self.shape.symbol_size);
        self.owed = (self.owed - 1.0).max(0.0);
        self.in_flight += 1;
        self.since_source += 1;
        let esi = u32::from(repair.symbols) * WINDOW_REPAIR + u32::from(self.key);
        Some(SymbolId { flow, block: (end / per_block - 1) as u32, esi })
    }

    /// Returns the bytes of the repair symbol just made.
    pub(in crate::flow) fn symbol(&self) -> &[u8] {
        &self.symbol
    }

    /// Returns how many of these bytes are not padding: as many as of the longest symbol of its window.
    pub(in crate::flow) const fn unpadded(&self) -> usize {
        self.longest
    }

    /// Notes that a repair symbol arrived or was declared lost.
    pub(in crate::flow) const fn on_settled(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// Notes that something new is known of the path or of the receiver.
    pub(in crate::flow) const fn on_report(&mut self) {
        self.share = None;
        self.content = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const FLOW: FlowId = FlowId(3);

    const NOW: Time = Time::ZERO;
    const LATER: Time = Time::from_nanos(7_000_000);

    fn path(loss: f64) -> PathEstimate {
        PathEstimate { rtt: Some(Duration::from_millis(200)), loss, burst: 1.0, window: 100 }
    }

    fn sender(symbols: u32) -> WindowSender {
        WindowSender::new(WindowShape { symbol_size: 8, per_block: 1, symbols })
    }

    /// Sends `blocks` symbols with the due repair between them; returns the ids of the repair.
    fn send(sender: &mut WindowSender, blocks: std::ops::Range<u32>, loss: f64) -> Vec<SymbolId> {
        let mut repairs = Vec::new();
        for block in blocks {
            sender.on_source(NOW, SymbolId { flow: FLOW, block, esi: 0 }, (&[block as u8; 8], 8), &path(loss));
            while let Some(id) = sender.due(FLOW, 0) {
                repairs.push(id);
            }
        }
        repairs
    }

    #[test]
    fn a_path_that_loses_nothing_gets_no_repair() {
        let mut sender = sender(64);
        assert_eq!(send(&mut sender, 0..500, 0.0), []);
        assert_eq!(sender.idle(LATER, FLOW, 0, 500, &path(0.0)), None);
        assert!(sender.encoder.is_none() && sender.symbol.is_empty());
        // The first symbol of a window is followed by the first repair, which covers only it.
        assert_eq!(send(&mut sender, 500..501, 0.01), [SymbolId { flow: FLOW, block: 500, esi: 1 << 12 | 1 }]);
        assert_eq!(send(&mut sender, 501..502, 0.0), []);
        assert!(sender.encoder.is_none(), "its memory is free again");
    }

    /// Enough for all but one window in a thousand, and no more: 64 symbols lose 3.2 at 5 %, and seldom more than 9.
    #[test]
    fn repair_follows_the_loss() {
        for (loss, least, most) in [(0.001, 2.0, 4.0), (0.05, 9.0, 13.0), (0.2, 28.0, 36.0)] {
            let per_window = send(&mut sender(64), 0..6_400, loss).len() as f64 / 100.0;
            assert!((least..=most).contains(&per_window), "{per_window} per window at {loss}");
        }
        let bursts = PathEstimate { burst: 4.0, ..path(0.05) };
        assert!(WindowSender::share(&mut None, 64, &bursts) > 1.5 * WindowSender::share(&mut None, 64, &path(0.05)));
        assert!(WindowSender::share(&mut None, 64, &path(0.9)) <= MOST_SHARE);
    }

    #[test]
    fn windows_begin_with_the_first_missing_symbol() {
        let mut sender = sender(64);
        send(&mut sender, 0..100, 0.05);
        let id = sender.make(FLOW, 0).expect("a window");
        assert_eq!((id.block, id.esi >> 12), (99, 64));
        let id = sender.make(FLOW, 90).expect("a window");
        assert_eq!((id.block, id.esi >> 12), (99, 10));
        assert_eq!(sender.make(FLOW, 100), None, "all has arrived");
        assert_eq!(sender.idle(LATER, FLOW, 100, 0, &path(0.05)), None);
    }

    #[test]
    fn an_idle_stream_sends_repair_until_it_suffices() {
        let count = |sender: &mut WindowSender, now, lacking, loss| {
            std::iter::from_fn(|| sender.idle(now, FLOW, 0, lacking, &path(loss))).take(100).count() as u32
        };
        let mut sender = sender(64);
        send(&mut sender, 0..40, 0.05);
        let before = sender.in_flight;
        assert_eq!(count(&mut sender, NOW, 40, 0.05), 0, "more may be written yet");
        assert_eq!(sender.idle_at(), Some(NOW + Duration::from_micros(6_250)));
        let first = count(&mut sender, LATER, 40, 0.05);
        assert!((8..13).contains(&(before + first)) && first >= 2, "{before} and {first}");
        assert_eq!((count(&mut sender, LATER, 40, 0.05), sender.idle_at()), (0, None));
        // All of it is known to be lost, and no feedback on the blocks has arrived.
        (0..before + first).for_each(|_| sender.on_settled());
        sender.on_report();
        assert!(count(&mut sender, LATER, 40, 0.05) >= 7);
        sender.on_report();
        assert_eq!(count(&mut sender, LATER, 0, 0.05), 0, "all of them are known to have arrived");
        // A single symbol, which is lost with all of its repair once in a thousand times.
        for (loss, least, most) in [(0.05, 2, 3), (0.2, 4, 6)] {
            let mut sender = self::sender(64);
            sender.on_source(NOW, SymbolId { flow: FLOW, block: 0, esi: 0 }, (&[1; 8], 8), &path(loss));
            let count = count(&mut sender, LATER, 1, loss);
            assert!((least..=most).contains(&count), "{count} at {loss}");
        }
    }

    #[test]
    fn window_code_backlogged_no_repair() {
        let mut sender = sender(64);
        assert!(!send(&mut sender, 0..64, 0.05).is_empty());
        sender.set_backlogged(true);
        assert_eq!((send(&mut sender, 64..336, 0.05), sender.encoder.is_none()), (vec![], true));
        assert_eq!(sender.idle(LATER, FLOW, 0, 300, &path(0.05)), None);
        sender.set_backlogged(false);
        let repairs = send(&mut sender, 336..400, 0.05);
        assert_eq!((repairs[0].block, repairs[0].esi >> 12), (336, 1), "a window begins");
        assert!((9..13).contains(&repairs.len()), "{}", repairs.len());
    }

    #[test]
    fn blocks_of_two_symbols_are_covered_whole() {
        let mut sender = WindowSender::new(WindowShape { symbol_size: 8, per_block: 2, symbols: 128 });
        sender.on_source(NOW, SymbolId { flow: FLOW, block: 9, esi: 0 }, (&[1; 8], 8), &path(0.05));
        assert_eq!(sender.due(FLOW, 0), None);
        sender.on_source(NOW, SymbolId { flow: FLOW, block: 9, esi: 1 }, (&[2; 8], 8), &path(0.05));
        assert_eq!(sender.due(FLOW, 0), Some(SymbolId { flow: FLOW, block: 9, esi: 2 << 12 | 1 }));
    }
}
