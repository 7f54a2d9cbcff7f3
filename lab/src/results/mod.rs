//! Results: one record for each run, an immutable line of JSON, and their statistics.

mod csv;
mod directory;
mod made;
mod packed;
mod record;
mod statistics;
mod store;

pub use csv::csv;
pub(crate) use directory::{PLAN, keep, open, write};
pub(crate) use made::{COMMIT, OriginBuilder, is_stale, of_one_build, processor};
pub use made::{Engine, Origin};
pub(crate) use packed::pack;
pub use packed::{PACKED, has_records};
pub use record::{Ending, Environment, Lateness, Record, RecordedVerdict, RunOutcome, SCHEMA, TRIES, WriteResults};
pub(crate) use statistics::line_through_origin;
pub use statistics::{Bound, Mean, PointSummary, Times};
pub(crate) use store::RecordReader;
pub use store::{RECORDS, Store, StoreError, StoreOf};

#[cfg(test)]
pub(crate) use record::tests;
