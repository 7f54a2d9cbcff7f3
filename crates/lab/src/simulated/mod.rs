//! Plans with `flow`s: they are run in the simulator, in virtual time, and stored, drawn and reported like the rest.
//!
//! A [`Scenario`] is a network and its traffic, all as text. A plan changes values of it by their paths, one at a time
//! along an axis, and others for each line of the picture.

mod places;
mod plan;
mod quantity;
mod record;
mod run;
mod scenario;
mod show;
mod text;

pub use plan::{Series, SimPicture, SimPlan, SimPoint, SimSweep, Vary};
pub use quantity::SimQuantity;
pub use record::{FlowRecord, SimCase, SimEnding, SimRecord, SimStore};
pub(crate) use run::run;
pub use scenario::{BackgroundText, FlowText, Scenario, Text};
pub(crate) use show::{body, csv, picture};
