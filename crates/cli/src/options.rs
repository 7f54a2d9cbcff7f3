//! What the arguments mean.

use std::net::SocketAddr;
use std::time::Duration;

use downpour::{ListenOptions, Peer, Profile};

use crate::args::SpeedArgs;
use crate::limit::Limit;

/// How long a ticket is good.
const TICKET_LIFETIME: Duration = Duration::from_secs(3600);

/// The profile with its rates.
pub(crate) fn profile(speed: &SpeedArgs) -> Profile {
    let mut profile = speed.profile.clone();
    if let Some(rate) = speed.rate {
        profile = profile.with_told_rate(rate);
    }
    if let Some(limit) = speed.limit.as_ref().and_then(Limit::now) {
        profile = profile.with_limit(limit);
    }
    profile
}

/// Waits there for the other side.
pub(crate) fn listen(address: Option<SocketAddr>, keep: bool) -> Peer {
    Peer::Listen(ListenOptions { bind: address.into(), valid_for: TICKET_LIFETIME, keep })
}
