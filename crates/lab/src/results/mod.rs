//! Results: one record for each run, as a line of JSON that is never changed again, and what they say together.

mod csv;
mod record;
mod statistics;
mod store;

pub use csv::csv;
pub use record::{Ending, Environment, Lateness, Outcome, Record, SCHEMA, TRIES, Verdict};
pub use statistics::{Bound, Summary, Times};
pub use store::{RECORDS, Store, StoreError, StoreOf};

#[cfg(test)]
pub(crate) use record::tests;
