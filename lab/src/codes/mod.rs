//! Plans that time erasure codes in this process, instead of moving files over links.
//!
//! Codes alternate at each point of a sweep, so that changes on the machine affect all alike. Times are processor time
//! of the one working thread, which excludes other load on the machine.

mod plan;
mod record;
mod run;
mod show;
mod trial;

pub use plan::{CodePlan, CodeQuantity, CodeSweep, Measured, Setting, Vary};
pub use record::{CodeCase, CodeRecord, CodeStore};
pub(crate) use run::{ended, outlook, run};
pub(crate) use show::{body, csv, found, picture};
pub use trial::timed;
