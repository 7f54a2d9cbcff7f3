//! The carrier of the data of a login, and its network.

use std::ops::RangeInclusive;

use net::Family;
use serde::{Deserialize, Serialize};

/// The carrier of the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CarrierChoice {
    /// UDP, or ssh if UDP is blocked.
    #[default]
    Auto,
    /// UDP only.
    Udp,
    /// Only ssh's own connection.
    Ssh,
}

/// The allowed paths of the data of a login.
#[derive(Clone, Debug, Default)]
pub struct PathOptions {
    /// Carrier of the data.
    pub via: CarrierChoice,
    /// IP versions that may be used.
    pub family: Family,
    /// UDP ports that the remote side may use.
    pub ports: Option<RangeInclusive<u16>>,
}
