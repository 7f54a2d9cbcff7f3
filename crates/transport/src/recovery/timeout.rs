//! What a sender does when nothing comes back.

use crate::settings::{Setting, Settings, Span, choices, field};
use std::time::Duration;

/// What a sender does when nothing comes back.
#[derive(Clone, Debug, PartialEq)]
pub enum TimeoutConfig {
    /// Asks (RFC 9002 section 6.2): a packet or two go out whatever the window says; nothing is called lost for the silence alone.
    Probe(ProbeConfig),
}

choices! { "timeout", TimeoutConfig { "probe" => Probe(ProbeConfig) } }

impl Default for TimeoutConfig {
    fn default() -> Self {
        Self::Probe(ProbeConfig::default())
    }
}

impl TimeoutConfig {
    /// What it backs off to.
    pub const fn longest(&self) -> Duration {
        match self {
            Self::Probe(probe) => probe.max,
        }
    }
}

/// Numbers of probing.
#[derive(Clone, Debug, PartialEq)]
pub struct ProbeConfig {
    /// Probe timeouts back off to at most this: 1 s (design section 8).
    pub max: Duration,
}

impl Default for ProbeConfig {
    fn default() -> Self {
        Self { max: Duration::from_secs(1) }
    }
}

impl Settings for ProbeConfig {
    const SETTINGS: &'static [&'static dyn Setting<Self>] =
        &[field!("max", max, Span(Duration::from_millis(1), Duration::from_secs(600)))];
}
