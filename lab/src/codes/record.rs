//! The record of the runs at one point.

use serde::{Deserialize, Serialize};

use super::{CodePlan, CodeSweep, Measured, Setting};
use crate::results::{Engine, Origin, StoreOf, is_stale};

/// The records of timed codes in one directory.
pub type CodeStore = StoreOf<CodeRecord>;

/// One code at one point of a sweep, and the times of all its runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CodeRecord {
    /// Version of this form: [`crate::results::SCHEMA`].
    pub schema: u32,
    /// [`CodeCase::id`].
    pub id: String,
    /// The case.
    pub case: CodeCase,
    /// When the last run ended, in UTC, in the format of RFC 3339.
    pub date: String,
    /// Release of the kernel.
    pub kernel: String,
    /// The processor's name, as the kernel reports it.
    pub processor: String,
    /// Its origin; absent from older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made: Option<Origin>,
    /// Nanoseconds of processor time of each run, in order.
    pub nanoseconds: Vec<u64>,
}

/// The common properties of the runs of one record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CodeCase {
    /// Name of the plan.
    pub experiment: String,
    /// The sweep.
    pub sweep: String,
    /// Name of the code; a block of one symbol is uncoded in any case.
    pub code: String,
    /// The timed half.
    pub measured: Measured,
    /// The file, and how it is coded.
    pub setting: Setting,
    /// Number of runs requested.
    pub runs: u32,
    /// Seed of contents and drops.
    pub seed: u64,
}

impl CodeCase {
    /// Returns 16 hexadecimal digits that identify the runs.
    pub fn id(&self) -> String {
        let content = (&self.code, self.measured, &self.setting, self.runs, self.seed);
        let content = serde_json::to_vec(&content).expect("plain values have a JSON form");
        blake3::hash(&content).to_hex()[..16].to_owned()
    }

    /// Returns one line for lists, in which `--only` searches.
    pub fn label(&self) -> String {
        let Self { experiment, sweep, code, setting, .. } = self;
        let block = setting.block.map_or_else(String::new, |block| format!(", blocks up to {block} B"));
        format!("{experiment}/{sweep} {code} {} B in symbols of {} B{block}", setting.size, setting.symbol)
    }
}

impl CodeSweep {
    /// Returns the cases of one point, one for each code.
    pub(crate) fn cases(&self, plan: &CodePlan, setting: &Setting) -> Vec<CodeCase> {
        let case = |code: &erasure::BlockCode| CodeCase {
            experiment: plan.name.clone(),
            sweep: self.name.clone(),
            code: code.to_string(),
            measured: self.measured,
            setting: setting.clone(),
            runs: self.runs,
            seed: plan.seed,
        };
        self.codes.iter().map(case).collect()
    }
}

impl CodeRecord {
    /// Returns whether another build made it.
    pub fn is_stale(&self) -> bool {
        is_stale(self.made.as_ref(), Engine::Codes)
    }

    /// Returns the time, in nanoseconds, below which this share of the runs lies.
    pub(super) fn quantile(&self, share: f64) -> f64 {
        let mut sorted = self.nanoseconds.clone();
        sorted.sort_unstable();
        let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
        let place = share * last as f64;
        let (lower, upper) = (sorted[place.floor() as usize] as f64, sorted[place.ceil() as usize] as f64);
        lower + (upper - lower) * place.fract()
    }
}
