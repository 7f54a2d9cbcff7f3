//! Each chunk is sent with padding according to the loss estimate, while the next is encoded; if a chunk fails all the
//! same, its lost source is resent (ttp §II).
//!
//! Departs: a chunk's source goes out while its padding is made, and a chunk that needs no padding is not encoded. The
//! document's pipeline, with encoding and transmission one after the other, is [`EncodeOrder::First`].

use crate::first_round::{Rounds, lacking};
use erasure::BlockCode;
use std::fmt;
use std::str::FromStr;
use transport::flow::SendBlock;
use transport::flow::SendBlocks;
use transport::flow::schedule::ScheduleFactory;
use transport::flow::{Odds, Outstanding};
use transport::flow::{PathEstimate, Schedule, ScheduleAction};
use transport::recovery::Report;
use transport::settings::{Itself, Or, Setting, Settings, Share, Switch, field};
use transport::time::Time;

/// Parameters of the chunks schedule.
#[derive(Clone, Debug, PartialEq)]
pub struct ChunksConfig {
    /// Probability with which the padding completes a chunk; `None`: the average loss plus the average need of the
    /// code.
    pub padding: Option<f64>,
    /// Resend lost source of a chunk that cannot be completed; otherwise the transfer fails.
    pub mend: bool,
    /// When a chunk is encoded.
    pub encode: EncodeOrder,
}

/// When a chunk is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EncodeOrder {
    /// During the transmission of its own source, if it needs padding.
    Beside,
    /// Before any of it is sent, and while the chunk before it is sent (ttp §II-C, figure 2). Every chunk is encoded,
    /// with one check symbol at least.
    First,
}

impl fmt::Display for EncodeOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Beside => "beside",
            Self::First => "first",
        })
    }
}

impl FromStr for EncodeOrder {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "beside" => Ok(Self::Beside),
            "first" => Ok(Self::First),
            _ => Err(()),
        }
    }
}

impl Default for ChunksConfig {
    fn default() -> Self {
        // ttp §II-A: "a sufficient number of packets for a successful recovery with high probability", without a
        // number. With the document's 80 chunks of 10 MB, one in twelve transfers then has a chunk that fails.
        Self { padding: Some(0.999), mend: true, encode: EncodeOrder::Beside }
    }
}

impl Settings for ChunksConfig {
    const SETTINGS: &'static [&'static dyn Setting<Self>] = &[
        field!("padding", padding, Or("document", Share(0.5, 0.999_999))),
        field!("mend", mend, Switch),
        field!("encode", encode, Itself("beside or first")),
    ];
}

impl ScheduleFactory for ChunksConfig {
    const NAME: &'static str = "chunks";

    fn build(&self) -> Box<dyn Schedule> {
        Box::new(Chunks::new(self.clone()))
    }
}

impl ChunksConfig {
    /// Returns the number of check symbols sent with a chunk of `k`.
    pub(crate) fn padding(&self, k: u32, code: BlockCode, path: &PathEstimate) -> u32 {
        let least = u32::from(self.encode == EncodeOrder::First);
        self.wanted(k, code, path).max(least)
    }

    fn wanted(&self, k: u32, code: BlockCode, path: &PathEstimate) -> u32 {
        // ttp §II-C: the estimate is the share of packets lost; clustering is ignored.
        let odds = |target: f64| Odds { burst: 1.0, ..path.odds(target) };
        if let Some(completed) = self.padding {
            return Outstanding::whole(k, code).extra(odds(1.0 - completed));
        }
        // The overhead that the code needs in half of all cases without losses; none where nothing is lost.
        let odds = odds(0.5);
        if odds.loss <= 0.0 {
            return 0;
        }
        let needed = k + Outstanding { intact: false, ..Outstanding::whole(k, code) }.extra(Odds { loss: 0.0, ..odds });
        (f64::from(needed) / (1.0 - odds.loss)).ceil() as u32 - k
    }
}

#[derive(Debug)]
pub(super) struct Chunks {
    config: ChunksConfig,
    rounds: Rounds,
}

impl Chunks {
    pub(super) fn new(config: ChunksConfig) -> Self {
        Self { config, rounds: Rounds::default() }
    }
}

/// Returns a lost source symbol, which a failed chunk lacks.
fn mend(flow: &SendBlocks, block: &SendBlock, _missing: u32) -> ScheduleAction {
    flow.first_lost_of(block).map_or(ScheduleAction::Idle, ScheduleAction::Retransmit)
}

/// ttp §I: "the potential cost of failed transfers".
fn abandon(flow: &SendBlocks, block: &SendBlock, _missing: u32) -> ScheduleAction {
    ScheduleAction::GiveUp(flow.id_of(block))
}

impl Schedule for Chunks {
    fn next(&mut self, _now: Time, flow: &SendBlocks, path: &PathEstimate) -> ScheduleAction {
        let Self { config, rounds } = self;
        let padding = |block: &SendBlock| config.padding(block.k(), block.code(), path);
        let supply = if config.mend { mend } else { abandon };
        match config.encode {
            EncodeOrder::Beside => rounds.next(flow, 1, padding, lacking, supply),
            EncodeOrder::First => rounds.next_encoded(flow, padding, supply),
        }
    }

    fn on_report(&mut self, _report: &Report<'_>, _flow: &SendBlocks) {
        self.rounds.on_report();
    }

    fn resends(&self) -> bool {
        self.config.mend
    }

    fn recovers_stalled(&self) -> bool {
        self.config.mend
    }
}
