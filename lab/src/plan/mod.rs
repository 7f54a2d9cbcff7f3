//! Plans of measurements, read from a `PLAN.toml` and checked before the first run.
//!
//! A plan varies one quantity at a time around a base link (`[[sweep]]`), or all combinations (`[ranges]`, which
//! becomes one sweep along the axis of the picture for each combination of the others). Drawing and reporting use only
//! sweeps.

mod axis;
mod build;
mod case;
mod error;
mod link;
mod overlay;
mod text;
mod writes;

use std::path::{Path, PathBuf};
use std::time::Duration;

use netsim::Duplex;

pub use axis::bytes as parse_bytes;
pub use axis::{Axis, Scale};
pub(crate) use axis::{share as parse_share, time as parse_time};
pub(crate) use case::work;
pub use case::{LinkCase, PlacedLink};
pub use error::PlanError;
pub(crate) use error::{PlanFile, read as read_text};
pub(crate) use link::put as put_parts;
pub(crate) use overlay::{LineText, Overlays, PublishedText};
pub use overlay::{Published, PublishedPoint, ReferenceCurve};
pub(crate) use text::is_name;
pub use text::{Claim, Floor, Quantity, Spread};
pub use writes::Writes;

/// A plan that has been checked.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkPlan {
    /// Its name, as in `downpour-lab reproduce NAME`: words of lower-case letters, digits and `-`, joined by `/`.
    pub name: String,
    /// Description of the measurement in one line.
    pub title: String,
    /// The document's claims.
    pub claims: Vec<Claim>,
    /// The sweeps, each around its base. There is at least one, and no two have the same name.
    pub sweeps: Vec<Sweep>,
    /// The peers, in the order of the legend.
    pub peers: Vec<String>,
    /// Seeds of the links, each used in every repeat of a sweep. If empty, every repeat has a seed of its own, from 1.
    pub seeds: Vec<u64>,
    /// Whether packets pass in the large frames of the hosts' kernels, for fast links.
    pub fast: bool,
    /// The writes instead of a file.
    pub writes: Option<Writes>,
    /// Runs of each peer at the start whose results are discarded.
    pub warm_up: u32,
    /// Seed of the order in which the cases run.
    pub shuffle: u64,
    /// The rate of peers with a fixed rate, as a share of the link's.
    pub rate_share: f64,
    /// The drawing of results.
    pub picture: Picture,
    /// Published values, drawn beside the measurements.
    pub published: Vec<Published>,
    /// Lines to compare them with.
    pub lines: Vec<ReferenceCurve>,
    /// The position of the plan's link in a topology, if there is one.
    pub topology: Option<PlacedLink>,
    /// The file it was read from.
    pub file: PathBuf,
}

/// One axis, varied around a base.
#[derive(Clone, Debug, PartialEq)]
pub struct Sweep {
    /// Its name: that of the picture's file.
    pub name: String,
    /// Title of the picture.
    pub title: String,
    /// The varied quantity.
    pub axis: Axis,
    /// The scale of the axis.
    pub scale: Scale,
    /// The values, in the order of the plan.
    pub points: Vec<Point>,
    /// The measured peers.
    pub peers: Vec<String>,
    /// Runs of each case with each seed.
    pub repeats: u32,
    /// The time after which a run counts as not finished.
    pub cap: Duration,
}

/// One value of a sweep's axis, and its consequences.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// As the plan writes it: `1%`.
    pub label: String,
    /// Position on the axis, in the unit of [`Axis::unit`].
    pub x: f64,
    /// The link, still without a seed.
    pub link: LinkText,
    /// Bytes to move, or of each write.
    pub size: u64,
}

/// A link as text, which cases and records store, and as numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkText {
    /// The text, with the values of the sweep inserted.
    pub text: String,
    /// Its meaning.
    pub duplex: Duplex,
}

/// The drawing of results.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Picture {
    /// The quantity on the vertical axis.
    pub y: Quantity,
    /// The scale of that axis.
    pub y_scale: Scale,
    /// The meaning of the error bars.
    pub spread: Spread,
    /// The floor, unless the plan disables it.
    pub floor: Option<Floor>,
}

impl LinkPlan {
    /// Reads and checks a plan. `peers` are the known names.
    ///
    /// # Errors
    /// One line with the file, the line in it, the error, and advice.
    pub fn read(file: &Path, peers: &[String]) -> Result<Self, PlanError> {
        Self::parse(file, &read_text(file)?, peers)
    }

    /// Parses a plan from the text of its file; see [`LinkPlan::read`]. Topologies are searched for beside the file.
    ///
    /// # Errors
    /// Those of [`LinkPlan::read`].
    pub fn parse(file: &Path, text: &str, peers: &[String]) -> Result<Self, PlanError> {
        build::plan(file, text, Some(peers))
    }

    /// Parses the plan of existing results from the text of its file, with any peers.
    ///
    /// # Errors
    /// Those of [`LinkPlan::read`].
    pub fn of_results(file: &Path, text: &str) -> Result<Self, PlanError> {
        build::plan(file, text, None)
    }

    /// Returns every case once, in the order of the plan. Sweeps that share a point share its cases, which belong to
    /// the first sweep.
    pub fn cases(&self) -> Vec<LinkCase> {
        let mut seen = std::collections::HashSet::new();
        let mut cases = Vec::new();
        for sweep in &self.sweeps {
            for point in &sweep.points {
                for peer in &sweep.peers {
                    cases.extend(self.cases_at(sweep, point, peer).filter(|case| seen.insert(case.id())));
                }
            }
        }
        cases
    }

    /// Iterates over the cases of one peer at one point: one for each seed and repeat.
    pub fn cases_at(&self, sweep: &Sweep, point: &Point, peer: &str) -> impl Iterator<Item = LinkCase> {
        let fixed_rate =
            point.link.duplex.forward.rate.map(|rate| (rate.bits_per_second() as f64 * self.rate_share).round() as u64);
        let given = self.seeds.iter().flat_map(|seed| (0..sweep.repeats).map(move |repeat| (*seed, repeat)));
        let own = (0..sweep.repeats).filter(|_| self.seeds.is_empty()).map(|repeat| (1 + u64::from(repeat), repeat));
        let runs = given.chain(own);
        runs.map(move |(seed, repeat)| LinkCase {
            experiment: self.name.clone(),
            sweep: sweep.name.clone(),
            link: link::seeded(&point.link.text, seed),
            topology: self.topology.clone(),
            peer: peer.to_owned(),
            size: point.size,
            writes: self.writes,
            seed,
            repeat,
            fixed_rate,
            cap_seconds: sweep.cap.as_secs_f64(),
            fast: self.fast,
        })
    }

    /// Returns the least seconds that a run at a point takes.
    pub(crate) fn least(&self, point: &Point) -> f64 {
        match &self.writes {
            // An upload beside them may end before.
            Some(writes) if writes.beside.is_some() => 0.0,
            Some(writes) => writes.seconds,
            None => point.floor(Floor { round_trips: 1.0 }).unwrap_or(0.0),
        }
    }
}

impl Point {
    /// Returns the least time that any protocol over IPv4 needs for it, in seconds; `None` without a rate, or if all
    /// packets are lost.
    pub fn floor(&self, floor: Floor) -> Option<f64> {
        floor.seconds(self.size, &self.link.duplex)
    }
}

#[cfg(test)]
mod tests;
