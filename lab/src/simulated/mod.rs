//! Plans with `flow`s that share a link. Profiles of the engine run in the simulator, in virtual time; programs run
//! over an emulated network, by [`crate::trial`]. Both are stored, drawn and reported like other plans.
//!
//! A [`Scenario`] is a network and its traffic, all as text. A plan changes its values by path, one at a time along an
//! axis, and others for each line of the picture.

mod places;
mod plan;
mod programs;
mod quantity;
mod record;
mod run;
mod scenario;
mod show;
mod text;
mod topology;

pub use plan::{Series, SimPicture, SimPlan, SimPoint, SimSweep, Vary};
pub use programs::{ProgramCase, ProgramFlow};
pub use quantity::SimQuantity;
pub use record::{EmulationRecord, FlowRecord, ProgramRecord, SimCase, SimEnding, SimRecord, SimStore};
pub(crate) use record::{drops, rounded, wait_p95};
pub(crate) use run::{ended, now, outlook, reasons, run};
pub use scenario::{BackgroundText, FlowText, Scenario, Text};
pub(crate) use show::{PlotSeries, body, csv, found, lines, picture};
pub use topology::TopologyText;
