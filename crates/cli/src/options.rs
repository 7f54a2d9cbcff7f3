//! Conversion of arguments into the library's options.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, Read as _};
use std::net::SocketAddr;
use std::time::Duration;

use downpour::remote::{self, Hearer, PathOptions, Reach, SshOptions};
use downpour::{EndpointOptions, EngineOptions, Family, ListenOptions, PathCache, Peer, Profile};
use serde::de::DeserializeSeed as _;

use crate::args::{MemoryArgs, NetworkArgs, Policy, ProfileArgs, ProfileChoice, ReachArgs, SpeedArgs, SshArgs, Via};
use crate::exit::{Code, Failure};
use crate::limit::Limit;
use crate::{names, print};

/// Maximum size of a profile in bytes; all keys with their longest values take a hundredth.
const LONGEST_PROFILE: u64 = 1_000_000;

/// How long a ticket is valid.
pub(crate) const TICKET_LIFETIME: Duration = Duration::from_secs(3600);

/// Returns the profile with its changes and rates.
///
/// # Errors
/// An unknown key or value; options that contradict each other.
pub(crate) fn profile(speed: &SpeedArgs) -> Result<Profile, Failure> {
    let ProfileArgs { profile, set } = &speed.profile;
    let mut profile = chosen(profile)?;
    if let Some(rate) = speed.rate {
        profile = profile.with_fixed_rate(rate);
    }
    if let Some(rate) = speed.min_rate {
        profile
            .set("congestion.min-rate", &rate.bits_per_second().to_string())
            .map_err(|_| Failure::new(Code::Usage, "--min-rate is of the profile 'auto': leave --profile out"))?;
    }
    if let Some(policy) = speed.policy {
        profile = with_policy(profile, policy)?;
    }
    // After the rate, since settings of a fixed rate may be changed.
    profile = changed(profile, set)?;
    let set = |key: &str| set.iter().rev().find(|(set, _)| set == key || set.starts_with(&format!("{key}.")));
    let is_kept = |policy| with_policy(profile.clone(), policy).ok().as_ref() == Some(&profile);
    let undone = [
        ("--rate", "congestion", speed.rate.is_some_and(|rate| profile.fixed_rate() != Some(rate))),
        ("--min-rate", "congestion", speed.min_rate.is_some_and(|rate| profile.min_rate() != Some(rate))),
        ("--policy", "congestion", speed.policy.is_some_and(|policy| policy != Policy::Fair && !is_kept(policy))),
        ("--limit", "limit", speed.limit.is_some()),
    ];
    for (option, key, is_undone) in undone {
        if let Some((key, value)) = set(key).filter(|_| is_undone) {
            let message = format!("{option} and --set {key}={value} exclude each other: leave one of them out");
            return Err(Failure::new(Code::Usage, message));
        }
    }
    if let Some(limit) = speed.limit.as_ref().and_then(Limit::now) {
        profile = profile.with_limit(limit);
    }
    Ok(profile)
}

/// Returns how `host` is reached to which streams go, with the bound on their repair.
///
/// # Errors
/// Those of [`profile`]; a share that is none.
pub(crate) fn reach(args: &ReachArgs, host: &str) -> Result<Reach, Failure> {
    let mut profile = profile(&args.speed)?;
    if let Some(share) = &args.overhead.max_overhead {
        let refused = |error| Failure::new(Code::Usage, format!("--max-overhead: {error}"));
        profile.set("streams.overhead", share).map_err(refused)?;
    }
    let endpoint = endpoint(args.network.timeout, args.speed.memory);
    Ok(Reach {
        host: host.to_owned(),
        ssh: ssh(&args.ssh),
        path: path(args.via, &args.network),
        engine: EngineOptions { profile, endpoint },
    })
}

/// Same as [`reach`], for connections of which most write a little at a time.
///
/// # Errors
/// Those of [`reach`].
pub(crate) fn reach_by_tunnel(args: &mut ReachArgs, host: &str) -> Result<Reach, Failure> {
    args.speed.profile.set.insert(0, ("streams".to_owned(), "window".to_owned()));
    reach(args, host)
}

/// Returns the profile with a policy.
///
/// # Errors
/// A policy that the profile's controller does not have.
fn with_policy(mut profile: Profile, policy: Policy) -> Result<Profile, Failure> {
    let (name, key, value) = match policy {
        Policy::Fair => {
            // What other controllers do anyway: it takes back what a configuration says.
            drop(profile.set("congestion.policy", "fair"));
            return Ok(profile);
        }
        Policy::Low => ("low", "congestion.policy", "low"),
        Policy::Fixed => ("fixed", "congestion.insist", "on"),
    };
    profile.set(key, value).map_err(|_| {
        let why = match policy {
            Policy::Fixed => "needs a rate: add --rate",
            _ if profile.fixed_rate().is_some() => "and a fixed rate exclude each other: leave one of them out",
            _ => "is of the profile 'auto': leave --profile out",
        };
        Failure::new(Code::Usage, format!("--policy {name} {why}"))
    })?;
    Ok(profile)
}

/// Returns the profile with a name, or from a file.
///
/// # Errors
/// A file that cannot be read, or is not a profile.
pub(crate) fn chosen(choice: &ProfileChoice) -> Result<Profile, Failure> {
    let path = match choice {
        ProfileChoice::Named(profile) => return Ok(Profile::clone(profile)),
        ProfileChoice::File(path) => path,
    };
    let shown = path.display();
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(LONGEST_PROFILE + 1).read_to_end(&mut bytes));
    read.map_err(|error| {
        let code = if error.kind() == io::ErrorKind::NotFound { Code::SourceAbsent } else { Code::Disk };
        Failure::new(code, format!("cannot read the profile {shown}: {error}"))
    })?;
    let refused = |why: &dyn Display| Failure::new(Code::Usage, format!("{shown}{why}"));
    if bytes.len() as u64 > LONGEST_PROFILE {
        return Err(refused(&format_args!(" is no profile: it is longer than {}", units::bytes(LONGEST_PROFILE))));
    }
    let text = str::from_utf8(&bytes).map_err(|_| refused(&" is no profile: it is no text"))?;
    toml::Deserializer::parse(text).and_then(|file| names().deserialize(file)).map_err(|error| {
        // An error in the whole text has no line.
        let at = error.span().filter(|span| span.len() < text.trim().len()).map(|span| span.start);
        let line = at.map(|at| text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count() + 1);
        let line = line.map_or_else(String::new, |line| format!(":{line}"));
        refused(&format_args!("{line}: this is no profile: {}", error.message()))
    })
}

/// Changes settings of a profile.
///
/// # Errors
/// An unknown key or value.
pub(crate) fn changed(mut profile: Profile, set: &[(String, String)]) -> Result<Profile, Failure> {
    let set = set.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    profile.set_all(set).map_err(|error| Failure::new(Code::Usage, format!("--set {error}")))?;
    Ok(profile)
}

/// Returns where what is known of paths is kept, if it may be used.
pub(crate) fn paths(speed: &SpeedArgs) -> Option<PathCache> {
    if speed.no_memory { None } else { PathCache::of_user() }
}

/// Returns how to call ssh.
pub(crate) fn ssh(args: &SshArgs) -> SshOptions {
    let plain = SshOptions::default();
    SshOptions {
        command: args.ssh.as_ref().map_or(plain.command, |command| command.0.clone()),
        port: args.ssh_port,
        identity: args.identity.clone(),
        jump: args.jump.clone(),
        remote_program: args.remote_bin.clone(),
        asks: true,
        hearer: Some(Hearer::new(print::said)),
    }
}

/// Returns how to call ssh for a host whose ProxyCommand may be `downpour proxy`, which would start itself again and again.
/// A jump host excludes it by itself.
pub(crate) fn direct_ssh(args: &SshArgs, port: Option<u16>) -> SshOptions {
    let mut ssh = ssh(args);
    ssh.command.extend(["-o", "ControlPath=none"].map(Into::into));
    if ssh.jump.is_none() {
        ssh.command.extend(["-o", "ProxyCommand=none"].map(Into::into));
    }
    ssh.port = ssh.port.or(port);
    ssh
}

/// Returns where the data of a login may go.
pub(crate) fn path(via: Via, network: &NetworkArgs) -> PathOptions {
    let via = match via {
        Via::Auto => remote::Via::Auto,
        Via::Udp => remote::Via::Udp,
        Via::Ssh => remote::Via::Ssh,
    };
    PathOptions { via, family: family(network), ports: network.port.clone() }
}

/// Returns how this side sends, and what its endpoint takes.
///
/// # Errors
/// Those of [`profile`].
pub(crate) fn engine(speed: &SpeedArgs, dead_after: Duration) -> Result<EngineOptions, Failure> {
    Ok(EngineOptions { profile: profile(speed)?, endpoint: endpoint(dead_after, speed.memory) })
}

/// Returns the options of an endpoint.
pub(crate) const fn endpoint(dead_after: Duration, memory: MemoryArgs) -> EndpointOptions {
    EndpointOptions { dead_after, max_memory: memory.max_memory }
}

/// Converts the options for the IP version.
pub(crate) const fn family(network: &NetworkArgs) -> Family {
    only(network.ipv4, network.ipv6)
}

/// Returns the IP versions that may be used where one may be the only one.
pub(crate) const fn only(ipv4: bool, ipv6: bool) -> Family {
    match (ipv4, ipv6) {
        (true, _) => Family::V4,
        (_, true) => Family::V6,
        _ => Family::Any,
    }
}

/// Listens for the other side at `address`.
pub(crate) fn listen(address: Option<SocketAddr>, keep: bool) -> Peer {
    Peer::Listen(ListenOptions { bind: address.into(), valid_for: TICKET_LIFETIME, keep, once: false })
}
