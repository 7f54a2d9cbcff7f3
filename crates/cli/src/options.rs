//! Conversion of arguments into the library's options.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, Read as _};
use std::net::SocketAddr;
use std::time::Duration;

use downpour::remote::{HostOptions, SshOptions, StderrHandler};
use downpour::{EngineOptions, ListenOptions, PathCache, Profile, Rendezvous, TransferOptions};
use serde::de::DeserializeSeed as _;

use crate::args::{Args, Policy, ProfileChoice, SpeedArgs};
use crate::exit::{Code, Failure};
use crate::rate_timetable::Limit;
use crate::{names, print};

/// Maximum size of a profile in bytes; all keys with their longest values take a hundredth of it.
const LONGEST_PROFILE: u64 = 1_000_000;

/// How long a ticket is valid.
pub(crate) const TICKET_LIFETIME: Duration = Duration::from_secs(3600);

/// Returns the profile with its changes and rates.
///
/// # Errors
/// An unknown key or value; options that contradict each other.
pub(crate) fn profile(speed: &SpeedArgs) -> Result<Profile, Failure> {
    let set = &speed.set;
    let mut profile = chosen(speed.profile.as_ref())?;
    if let Some(rate) = speed.rate {
        profile = profile.with_fixed_rate(rate);
    }
    if let Some(rate) = speed.min_rate {
        profile
            .set("congestion.min-rate", &rate.bits_per_second().to_string())
            .map_err(|_| Failure::new(Code::Usage, "--min-rate needs profile 'auto': omit --profile"))?;
    }
    if let Some(policy) = speed.policy {
        profile = with_policy(profile, policy)?;
    }
    // After the rate, since --set may change settings of a fixed rate.
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
            let message = format!("{option} and --set {key}={value} exclude each other: omit one");
            return Err(Failure::new(Code::Usage, message));
        }
    }
    if let Some(limit) = speed.limit.as_ref().and_then(Limit::now) {
        profile = profile.with_limit(limit);
    }
    Ok(profile)
}

/// Returns how to reach the host of a stream, with the limit on its repair.
///
/// # Errors
/// Those of [`profile`]; an invalid share.
pub(crate) fn reach(args: &Args) -> Result<HostOptions, Failure> {
    let mut engine = engine(args)?;
    if let Some(share) = &args.speed.max_overhead {
        let refused = |error| Failure::new(Code::Usage, format!("--max-overhead: {error}"));
        engine.profile.set("streams.overhead", share).map_err(refused)?;
    }
    Ok(HostOptions { host: args.host.clone().unwrap_or_default(), ssh: ssh(args), path: args.path.clone(), engine })
}

/// Same as [`reach`], for connections that mostly write little at a time.
///
/// # Errors
/// Those of [`reach`].
pub(crate) fn reach_by_tunnel(args: &mut Args) -> Result<HostOptions, Failure> {
    args.speed.set.insert(0, ("streams".to_owned(), "window".to_owned()));
    reach(args)
}

/// Returns the profile and the endpoint options of this side.
///
/// # Errors
/// Those of [`profile`].
pub(crate) fn engine(args: &Args) -> Result<EngineOptions, Failure> {
    Ok(EngineOptions::default().profile(profile(&args.speed)?).endpoint(args.options.engine.endpoint))
}

/// Returns the options of a sender.
///
/// # Errors
/// Those of [`profile`].
pub(crate) fn sender(args: &Args) -> Result<TransferOptions, Failure> {
    let paths = if args.speed.no_path_cache { None } else { PathCache::of_user() };
    Ok(args.options.clone().engine(engine(args)?).paths(paths))
}

/// Returns the profile with a policy.
///
/// # Errors
/// A policy that the profile's controller does not have.
fn with_policy(mut profile: Profile, policy: Policy) -> Result<Profile, Failure> {
    let (name, key, value) = match policy {
        Policy::Fair => {
            // The default of other controllers too; it overrides the configuration.
            drop(profile.set("congestion.policy", "fair"));
            return Ok(profile);
        }
        Policy::Low => ("low", "congestion.policy", "low"),
        Policy::Fixed => ("fixed", "congestion.insist", "on"),
    };
    profile.set(key, value).map_err(|_| {
        let why = match policy {
            Policy::Fixed => "needs a rate: add --rate",
            _ if profile.fixed_rate().is_some() => "and --rate exclude each other: omit one",
            _ => "needs profile 'auto': omit --profile",
        };
        Failure::new(Code::Usage, format!("--policy {name} {why}"))
    })?;
    Ok(profile)
}

/// Returns the profile with a name, or from a file.
///
/// # Errors
/// A file that cannot be read or is not a profile.
pub(crate) fn chosen(choice: Option<&ProfileChoice>) -> Result<Profile, Failure> {
    let path = match choice {
        None => return Ok(names().profile("auto").unwrap_or_else(|_| Profile::auto())),
        Some(ProfileChoice::Named(profile)) => return Ok(Profile::clone(profile)),
        Some(ProfileChoice::File(path)) => path,
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
        return Err(refused(&format_args!(": invalid profile: longer than {}", units::bytes(LONGEST_PROFILE))));
    }
    let text = str::from_utf8(&bytes).map_err(|_| refused(&": invalid profile: not UTF-8"))?;
    toml::Deserializer::parse(text).and_then(|file| names().deserialize(file)).map_err(|error| {
        // An error in the whole text has no line.
        let at = error.span().filter(|span| span.len() < text.trim().len()).map(|span| span.start);
        let line = at.map(|at| text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count() + 1);
        let line = line.map_or_else(String::new, |line| format!(":{line}"));
        refused(&format_args!("{line}: invalid profile: {}", error.message()))
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

/// Returns how to call ssh.
pub(crate) fn ssh(args: &Args) -> SshOptions {
    SshOptions { stderr_handler: Some(StderrHandler::new(print::remote_message)), ..args.ssh.clone() }
}

/// Returns how to call ssh for a host whose ProxyCommand may be `downpour proxy`, which would start itself endlessly. With
/// a jump host ssh ignores ProxyCommand.
pub(crate) fn direct_ssh(args: &Args) -> SshOptions {
    let mut ssh = ssh(args);
    ssh.command.extend(["-o", "ControlPath=none"].map(Into::into));
    if ssh.jump.is_none() {
        ssh.command.extend(["-o", "ProxyCommand=none"].map(Into::into));
    }
    ssh.port = ssh.port.or(args.server_port);
    ssh
}

/// Returns the options of a listener at `address`.
pub(crate) fn listen(address: Option<SocketAddr>, keep: bool) -> Rendezvous {
    ListenOptions::default().bind(address).valid_for(TICKET_LIFETIME).keep(keep).into()
}
