//! Carriers.

use serde::{Deserialize, Serialize};

/// The carrier of the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Via {
    /// UDP, or ssh if UDP is blocked.
    #[default]
    Auto,
    /// UDP only.
    Udp,
    /// Only ssh's own connection.
    Ssh,
}
