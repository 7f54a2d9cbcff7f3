//! Options that all functions with connections share.

use std::time::Duration;

use net::EndpointOptions;
use transport::Profile;

/// The default time without a packet after which a connection is lost. See docs/design/recovery.md.
const DEAD_AFTER: Duration = Duration::from_secs(30);

/// The sending profile and the limits of the endpoint.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EngineOptions {
    /// Profile of the engine.
    pub profile: Profile,
    /// How long the peer may be silent, and how much may be buffered.
    pub endpoint: EndpointOptions,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self { profile: Profile::auto(), endpoint: EndpointOptions::new(DEAD_AFTER) }
    }
}

impl EngineOptions {
    /// Sends by this profile.
    #[must_use]
    pub fn profile(self, profile: Profile) -> Self {
        Self { profile, ..self }
    }

    /// Sets how long the peer may be silent, and how much may be buffered.
    #[must_use]
    pub fn endpoint(self, endpoint: EndpointOptions) -> Self {
        Self { endpoint, ..self }
    }
}
