//! What the arguments mean.

use std::net::SocketAddr;
use std::time::Duration;

use downpour::remote::{self, SshOptions};
use downpour::{Family, ListenOptions, Peer, Profile};

use crate::args::{NetworkArgs, ProfileArgs, SpeedArgs, SshArgs, Via};
use crate::exit::{Code, Failure};
use crate::limit::Limit;

/// How long a ticket is good.
const TICKET_LIFETIME: Duration = Duration::from_secs(3600);

/// The profile with what is changed of it, and its rates.
///
/// # Errors
/// A key or a value that there is not.
pub(crate) fn profile(speed: &SpeedArgs) -> Result<Profile, Failure> {
    let ProfileArgs { profile, set } = &speed.profile;
    let mut profile = profile.clone();
    if let Some(rate) = speed.rate {
        profile = profile.with_told_rate(rate);
    }
    // What is set in particular counts more than the rate.
    profile = changed(profile, set)?;
    if let Some(limit) = speed.limit.as_ref().and_then(Limit::now) {
        profile = profile.with_limit(limit);
    }
    Ok(profile)
}

/// A profile of which something is changed.
///
/// # Errors
/// A key or a value that there is not.
pub(crate) fn changed(mut profile: Profile, set: &[(String, String)]) -> Result<Profile, Failure> {
    for (key, value) in set {
        profile.set(key, value).map_err(|error| Failure::new(Code::Usage, format!("--set {key}={value}: {error}")))?;
    }
    Ok(profile)
}

/// How ssh is called.
pub(crate) fn ssh(args: &SshArgs) -> SshOptions {
    let plain = SshOptions::default();
    SshOptions {
        command: args.ssh.as_ref().map_or(plain.command, |command| command.0.clone()),
        port: args.ssh_port,
        identity: args.identity.clone(),
        jump: args.jump.clone(),
        remote_program: args.remote_bin.clone(),
    }
}

/// What carries the data.
pub(crate) const fn via(via: Via) -> remote::Via {
    match via {
        Via::Auto => remote::Via::Auto,
        Via::Udp => remote::Via::Udp,
        Via::Ssh => remote::Via::Ssh,
    }
}

/// Which addresses may be used.
pub(crate) const fn family(network: &NetworkArgs) -> Family {
    match (network.ipv4, network.ipv6) {
        (true, _) => Family::V4,
        (_, true) => Family::V6,
        _ => Family::Any,
    }
}

/// Waits there for the other side.
pub(crate) fn listen(address: Option<SocketAddr>, keep: bool) -> Peer {
    Peer::Listen(ListenOptions { bind: address.into(), valid_for: TICKET_LIFETIME, keep, once: false })
}
