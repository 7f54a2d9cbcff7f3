//! Options that everything which opens a connection has.

use std::time::Duration;

use net::EndpointOptions;
use transport::Profile;

/// How long a peer may be silent unless the caller says otherwise. See docs/design/recovery.md.
const DEAD_AFTER: Duration = Duration::from_secs(30);

/// How this side sends, and what its endpoint takes.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// Profile of the engine.
    pub profile: Profile,
    /// How long the other side may be silent, and what this side may buffer.
    pub endpoint: EndpointOptions,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self { profile: Profile::auto(), endpoint: EndpointOptions::new(DEAD_AFTER) }
    }
}
