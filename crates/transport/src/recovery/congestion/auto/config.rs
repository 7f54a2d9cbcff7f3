//! The settings of the controller, and its policy towards other flows.

use crate::settings::{BitRate, Itself, Number, Or, Setting, Settings, field};
use crate::time::Rate;
use std::fmt;
use std::str::FromStr;

/// Numbers of the default profile's controller. None of them is needed: it measures the path itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AutoConfig {
    /// Its claim on a path that others use: `fair`.
    pub policy: Policy,
    /// A rate that the path is known to carry, in IP bits per second: the controller begins with it instead of searching.
    /// None.
    pub min_rate: Option<Rate>,
    /// Its share of the claim of one connection: 1, between 0.01 and 1. Each of n connections that carry one transfer
    /// takes 1/n, so that together they claim about as much as one.
    pub share: f64,
}

impl Default for AutoConfig {
    fn default() -> Self {
        Self { policy: Policy::Fair, min_rate: None, share: 1.0 }
    }
}

/// A controller's claim on a path that others use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// As much as CUBIC would.
    #[default]
    Fair,
    /// Spare capacity only, as LEDBAT++ (draft-irtf-iccrg-ledbat-plus-plus): it yields to half the queue that `fair`
    /// yields to, grows by a packet per round trip at most, and never competes.
    Low,
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fair => "fair",
            Self::Low => "low",
        })
    }
}

impl FromStr for Policy {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "fair" => Ok(Self::Fair),
            "low" => Ok(Self::Low),
            _ => Err(()),
        }
    }
}

impl Settings for AutoConfig {
    const SETTINGS: &'static [&'static dyn Setting<Self>] = &[
        field!("policy", policy, Itself("fair or low")),
        field!("min-rate", min_rate, Or("none", BitRate)),
        field!("share", share, Number(0.01, 1.0)),
    ];
}
