//! Options that all functions with connections share.

use net::EndpointOptions;
use transport::Profile;

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
        Self { profile: Profile::auto(), endpoint: EndpointOptions::default() }
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
