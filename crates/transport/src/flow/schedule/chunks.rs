//! Each chunk goes out with padding by the loss estimate, and the next is encoded meanwhile; of a chunk that fails all the same, lost
//! source goes again (ttp §II).

use super::first_round::Rounds;
use super::{Next, PathEstimate, Schedule};
use crate::flow::SendBlock;
use crate::flow::SendBlocks;
use crate::flow::tail::{Odds, Outstanding};
use crate::recovery::Report;
use crate::settings::{Or, Setting, Settings, Share, Switch, field};
use crate::time::Time;
use erasure::BlockCode;

/// Numbers of the chunks schedule.
#[derive(Clone, Debug, PartialEq)]
pub struct ChunksConfig {
    /// Chance with which the padding completes a chunk; `None`: as much as is lost on average and the code needs on average.
    pub padding: Option<f64>,
    /// Of a chunk that cannot be completed, lost source is sent again; otherwise the transfer fails.
    pub mend: bool,
}

impl Default for ChunksConfig {
    fn default() -> Self {
        // ttp §II-A: "a sufficient number of packets for a successful recovery with high probability", without a number. Of the
        // document's 80 chunks of 10 MB, one in twelve transfers then has one that fails.
        Self { padding: Some(0.999), mend: true }
    }
}

impl Settings for ChunksConfig {
    const SETTINGS: &'static [&'static dyn Setting<Self>] =
        &[field!("padding", padding, Or("document", Share(0.5, 0.999_999))), field!("mend", mend, Switch)];
}

impl ChunksConfig {
    /// Check symbols that a chunk of `k` goes out with.
    pub(in crate::flow) fn padding(&self, k: u32, code: BlockCode, path: &PathEstimate) -> u32 {
        // ttp §II-C: the estimate is the share of packets lost, and nothing is made of how they cluster.
        let odds = |target: f64| Odds { burst: 1.0, ..path.odds(target) };
        if let Some(completed) = self.padding {
            return Outstanding::whole(k, code).extra(odds(1.0 - completed));
        }
        // What the code needs in half of all cases, if nothing were lost; none of it where nothing is.
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

/// What serves a chunk that has failed: its lost source, which is what it lacks.
fn mend(flow: &SendBlocks, block: &SendBlock, _missing: u32) -> Next {
    flow.first_lost_of(block).map_or(Next::Idle, Next::Resend)
}

/// ttp §I: "the potential cost of failed transfers".
fn give_up(flow: &SendBlocks, block: &SendBlock, _missing: u32) -> Next {
    Next::GiveUp(flow.id_of(block))
}

impl Schedule for Chunks {
    fn next(&mut self, _now: Time, flow: &SendBlocks, path: &PathEstimate) -> Next {
        let Self { config, rounds } = self;
        let padding = |block: &SendBlock| config.padding(block.k(), block.code(), path);
        // ttp §II-C: while a chunk is sent the next one is encoded.
        rounds.next(flow, 1, padding, if config.mend { mend } else { give_up })
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
