//! Parsers of option values.

use std::ffi::{OsStr, OsString};
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::builder::{OsStringValueParser, TypedValueParser};
use downpour::home;
use downpour::remote::Location;
use downpour::tunnel::{Forward, ForwardError, Permit, Place};
use downpour::{MIN_MEMORY, Profile};

use crate::names;

/// A command as words, split like by a shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SshCommand(pub(crate) Vec<OsString>);

/// A profile, by name or file.
#[derive(Clone, Debug)]
pub(crate) enum ProfileChoice {
    /// A built-in profile.
    Named(Box<Profile>),
    /// A profile in a file.
    File(PathBuf),
}

/// Parses `path` or `[user@]host:path`.
pub(super) fn location() -> impl TypedValueParser<Value = Location> {
    OsStringValueParser::new().try_map(|text| Location::parse(&text))
}

/// Parses a path of this machine. No shell expands `~` after `--option=` or in a configuration.
pub(super) fn path() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().try_map(|text| {
        if text.is_empty() {
            return Err("an empty path names nothing".to_owned());
        }
        home::expand_typed(Path::new(&text)).map_err(|error| error.to_string())
    })
}

/// Parses the path of a directory of this machine that is made if it does not exist: one on another machine, and a URL, are
/// refused before a directory of that name is made here.
pub(super) fn directory() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().try_map(|text| match Location::parse(&text) {
        Ok(Location::Local(path)) => home::expand_typed(&path).map_err(|error| error.to_string()),
        Ok(Location::Remote { .. }) => Err(format!(
            "{} is on another machine: name a directory of this one, or write ./{} if that is its name",
            text.display(),
            text.display()
        )),
        Err(error) => Err(error.to_string()),
    })
}

/// Parses `[user@]host`, for ssh.
pub(super) fn host(text: &str) -> Result<String, String> {
    let colon = || {
        let as_location = OsString::from(format!("{text}:"));
        Location::parse(OsStr::new(&as_location)).map_err(|error| error.to_string())
    };
    match colon()? {
        Location::Remote { host, path } if path.is_empty() => Ok(host),
        _ => Err(format!("{text:?} is not a host: write host, user@host or [2001:db8::1]")),
    }
}

/// Parses `[user@]host` that another program has filled in: nothing in it may mean anything to a shell, since ssh passes
/// hosts to the commands of its configuration.
pub(super) fn plain_host(text: &str) -> Result<String, String> {
    let host = host(text)?;
    let is_plain = |part: &str| {
        !part.starts_with('-') && part.chars().all(|c| c.is_ascii_alphanumeric() || ".-_:%+[]".contains(c))
    };
    if host.split('@').all(is_plain) {
        Ok(host)
    } else {
        Err(format!("{text:?} is refused: a host has letters, digits, and .-_:%+ only"))
    }
}

/// Splits words, with the quotes and backslashes of a shell and none of its other features.
pub(super) fn command(text: &str) -> Result<SshCommand, String> {
    match shlex::split(text) {
        Some(words) if !words.is_empty() => Ok(SshCommand(words.into_iter().map(OsString::from).collect())),
        Some(_) => Err("an empty command: write one such as 'ssh -o Compression=no'".to_owned()),
        None => Err(format!("{text:?} has a quote without its other half")),
    }
}

/// Parses `60001` or `60001:60010`.
pub(super) fn ports(text: &str) -> Result<RangeInclusive<u16>, String> {
    let (first, last) = text.split_once(':').unwrap_or((text, text));
    match (first.parse::<u16>(), last.parse::<u16>()) {
        (Ok(first), Ok(last)) if 0 < first && first <= last => Ok(first..=last),
        _ => Err(format!("{text:?} is not a range of ports: write one such as 60001, or 60001:60010")),
    }
}

/// Parses `192.0.2.1:4000`, `[2001:db8::1]:4000`, or `:4000` for every address.
pub(super) fn listen_address(text: &str) -> Result<SocketAddr, String> {
    let whole = if text.starts_with(':') { format!("[::]{text}") } else { text.to_owned() };
    whole
        .parse()
        .map_err(|_| format!("{text:?} is not an address: write one such as 192.0.2.1:4000, [2001:db8::1]:4000, or :4000 for every address"))
}

/// Parses a profile's name, or the path of a file with a profile, which is read when it is needed.
pub(super) fn profile(text: &str) -> Result<ProfileChoice, String> {
    if text.contains(['/', '.']) {
        let path = home::expand_typed(Path::new(text)).map_err(|error| error.to_string())?;
        return Ok(ProfileChoice::File(path));
    }
    let named = names().profile(text).map_err(|error| format!("{error}; a file is written with a / or a dot"))?;
    Ok(ProfileChoice::Named(Box::new(named)))
}

/// Parses `KEY=VALUE`; whether the key exists is checked with the profile.
pub(super) fn setting(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or_else(|| "write KEY=VALUE, such as congestion=cubic".to_owned())?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}

/// Parses seconds, with or without a fraction, or another unit: `0.5`, `90s`, `10m`, `1h`, `2d`.
pub(super) fn time(text: &str) -> Result<Duration, String> {
    let unit_at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let scale = match text[unit_at..].trim() {
        "" | "s" => Some(1.0),
        "m" | "min" => Some(60.0),
        "h" => Some(3600.0),
        "d" => Some(86_400.0),
        _ => None,
    };
    let number = text[..unit_at].trim().parse::<f64>().ok();
    number
        .zip(scale)
        .map(|(number, scale)| number * scale)
        .filter(|seconds| *seconds > 0.0)
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| format!("{text:?} is not a time: write seconds above 0, such as 10 or 0.5, or 90s, 10m, 1h, 2d"))
}

/// Parses the argument of `-L`.
pub(super) fn local_forward(text: &str) -> Result<Forward, ForwardError> {
    Forward::read(text, false)
}

/// Parses the argument of `-R`.
pub(super) fn remote_forward(text: &str) -> Result<Forward, String> {
    let forward = Forward::read(text, true).map_err(|error| error.to_string())?;
    match forward.listen {
        Place::Tcp { port: 0, .. } => Err("the remote host has to be told a port: write one in place of 0".to_owned()),
        _ => Ok(forward),
    }
}

/// Parses the argument of `-D`.
pub(super) fn proxy_forward(text: &str) -> Result<Forward, ForwardError> {
    Forward::read_proxy(text)
}

/// Parses the argument of `--permit`.
pub(super) fn permit(text: &str) -> Result<Permit, ForwardError> {
    Permit::read(text)
}

/// Parses the argument of `--metrics`.
pub(super) fn listening(text: &str) -> Result<Place, ForwardError> {
    Place::read_listening(text)
}

/// Parses a bound on memory.
pub(super) fn memory(text: &str) -> Result<u64, String> {
    let bytes = size(text)?;
    if bytes < MIN_MEMORY && text.ends_with(|last: char| last.is_ascii_digit()) {
        return Err(format!("{text} is a size in bytes, for want of a unit: write one, such as 32MB"));
    }
    if bytes < MIN_MEMORY {
        return Err(format!("{text} is too little: the largest blocks need {}", units::bytes(MIN_MEMORY)));
    }
    Ok(bytes)
}

/// Parses `10MB`, `1.5 GB`, `2T`, `64KiB` or bytes. The prefixes are those of rates.
pub(super) fn size(text: &str) -> Result<u64, String> {
    let refused = || format!("{text:?} is not a size: write one such as 10MB, 1.5GB, 1TB or 64KiB");
    let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..unit_at].parse().map_err(|_| refused())?;
    let unit = text[unit_at..].trim();
    let unit = unit.strip_suffix('B').unwrap_or(unit);
    let (prefix, binary) = unit.strip_suffix('i').map_or((unit, false), |prefix| (prefix, true));
    let power = match prefix {
        "" if !binary => 0,
        "k" | "K" => 1,
        "M" => 2,
        "G" => 3,
        "T" => 4,
        _ => return Err(refused()),
    };
    let base: f64 = if binary { 1024.0 } else { 1000.0 };
    Ok((number * base.powi(power)) as u64)
}
