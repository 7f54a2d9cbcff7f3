//! Results: one record for each run, as a line of JSON that is never changed, and their statistics.

mod csv;
mod folder;
mod record;
mod statistics;
mod store;

pub use csv::csv;
pub(crate) use folder::{PLAN, keep, open, write};
pub use record::{Ending, Environment, Lateness, Record, RecordedVerdict, RunOutcome, SCHEMA, TRIES, Written};
pub use statistics::{Bound, PointSummary, Times};
pub use store::{RECORDS, Store, StoreError, StoreOf};

#[cfg(test)]
pub(crate) use record::tests;
