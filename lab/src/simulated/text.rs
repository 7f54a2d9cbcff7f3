//! The text of a plan with `flow`s.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

use super::SimQuantity;
use super::scenario::{BackgroundText, FlowText, Text};
use super::topology::TopologyText;
use crate::plan::{Claim, LineText, PublishedText, Scale, Spread};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct PlanText {
    pub(super) name: String,
    pub(super) title: String,
    #[serde(default)]
    pub(super) claim: Vec<Claim>,
    pub(super) link: String,
    pub(super) topology: Option<TopologyText>,
    #[serde(default = "perfect")]
    pub(super) access: String,
    pub(super) flow: Vec<FlowText>,
    #[serde(default)]
    pub(super) background: Vec<BackgroundText>,
    #[serde(default)]
    pub(super) series: Vec<SeriesText>,
    pub(super) repeats: Option<u32>,
    pub(super) seeds: Option<Vec<u64>>,
    pub(super) cap: String,
    pub(super) span: Option<String>,
    pub(super) warm_up: Option<Text>,
    #[serde(default)]
    pub(super) picture: PictureText,
    pub(super) sweep: Vec<Spanned<SweepText>>,
    #[serde(default)]
    pub(super) published: Vec<Spanned<PublishedText>>,
    #[serde(default)]
    pub(super) line: Vec<Spanned<LineText>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(super) struct PictureText {
    pub(super) y: SimQuantity,
    pub(super) y_scale: Scale,
    pub(super) spread: Spread,
    /// The series by whose median others are divided.
    pub(super) against: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SeriesText {
    pub(super) name: String,
    #[serde(default)]
    pub(super) set: BTreeMap<String, Text>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct SweepText {
    pub(super) name: String,
    pub(super) title: Option<String>,
    pub(super) vary: String,
    #[serde(default)]
    pub(super) values: Vec<Text>,
    /// Positions of the values on the axis, if given.
    pub(super) at: Option<Vec<f64>>,
    #[serde(default)]
    pub(super) fit: bool,
    pub(super) x: Option<String>,
    #[serde(default)]
    pub(super) scale: Scale,
    pub(super) y: Option<SimQuantity>,
    pub(super) flows: Option<Vec<String>>,
    #[serde(default)]
    pub(super) set: BTreeMap<String, Text>,
}

fn perfect() -> String {
    "perfect".to_owned()
}
