//! Parsers of option values.

use std::ffi::{OsStr, OsString};
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::builder::{
    NonEmptyStringValueParser, OsStringValueParser, PossibleValue, PossibleValuesParser, StringValueParser,
    TypedValueParser as _, ValueParser,
};
use clap::value_parser;
use clap_complete::Shell;
use downpour::files::Chmod;
use downpour::files::base64::Bytes;
use downpour::home;
use downpour::remote::Location;
use downpour::tunnel::{Forward, ForwardAddress, ForwardError, Permit};
use downpour::{MIN_MEMORY, Profile};

use netsim::Duplex;

use crate::rate_timetable::Limit;
use crate::{names, rate};

const EMPTY_PATH: &str = "empty path: use . for the current directory";

/// A command as words, split as a shell splits them.
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

/// One of some words, each with its line of help and its value.
pub(super) fn choice<T: Clone + Send + Sync + 'static>(
    words: &'static [(&'static str, &'static str, T)],
) -> ValueParser {
    let possible = words.iter().map(|(word, help, _)| PossibleValue::new(*word).help(*help));
    let parser = PossibleValuesParser::new(possible).try_map(|typed| {
        let found = words.iter().find(|(word, ..)| *word == typed);
        found.map(|(.., value)| value.clone()).ok_or("not one of these words")
    });
    ValueParser::new(parser)
}

/// A whole number.
pub(super) fn number<T: std::str::FromStr + Clone + Send + Sync + 'static>() -> ValueParser {
    ValueParser::new(|text: &str| text.parse::<T>().map_err(|_| no_number(text, "such as 10")))
}

/// The port of a server.
pub(super) fn port() -> ValueParser {
    ValueParser::new(|text: &str| {
        let port = text.parse::<u16>().ok().filter(|port| *port > 0);
        port.ok_or_else(|| no_number(text, "from 1 to 65535"))
    })
}

/// Returns why the text is no such number.
fn no_number(text: &str, example: &str) -> String {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let why = if is_number { "out of range" } else { "not a whole number" };
    format!("{why}: write one {example}")
}

/// Any text.
pub(super) fn text() -> ValueParser {
    ValueParser::new(StringValueParser::new())
}

/// A non-empty text.
pub(super) fn filled_text() -> ValueParser {
    ValueParser::new(NonEmptyStringValueParser::new())
}

/// Any bytes.
pub(super) fn os_text() -> ValueParser {
    ValueParser::new(OsStringValueParser::new())
}

/// A remote path.
pub(super) fn remote_path() -> ValueParser {
    value_parser!(PathBuf)
}

/// A shell.
pub(super) fn shell() -> ValueParser {
    value_parser!(Shell).into()
}

/// A pattern; `None` for the empty one.
pub(super) fn pattern() -> ValueParser {
    ValueParser::new(OsStringValueParser::new().try_map(|text| super::rules::pattern(&text)))
}

/// A rule in rsync's form.
pub(super) fn filter_rule() -> ValueParser {
    ValueParser::new(OsStringValueParser::new().try_map(|text| super::rules::filter_rule(&text)))
}

/// A directory on the destination host, where `~` is not expanded.
pub(super) fn reference() -> ValueParser {
    ValueParser::new(OsStringValueParser::new().try_map(|text| match text.as_bytes() {
        b"" => Err(EMPTY_PATH.to_owned()),
        [b'~', ..] => Err("~ is not expanded: write the path relative to the destination or from /".to_owned()),
        path => Ok(Bytes(path.to_vec())),
    }))
}

/// Changes of modes.
pub(super) fn chmod() -> ValueParser {
    ValueParser::new(|text: &str| text.parse::<Chmod>())
}

/// Seconds by which two times may differ.
pub(super) fn window() -> ValueParser {
    ValueParser::new(|text: &str| {
        let refused = || match text {
            "-1" => "-1 is not supported: times are compared at the resolution of both file systems; omit the option"
                .to_owned(),
            _ => format!("{text:?} is not a whole number of seconds: write one, such as 2"),
        };
        text.parse::<u32>().map_err(|_| refused())
    })
}

/// A size in rsync's form.
pub(super) fn size_of_rsync() -> ValueParser {
    ValueParser::new(read_size_of_rsync)
}

/// Parses `100`, `1.5m`, `10MB` or `1GiB-1`: `M` and `MiB` are 1024 times 1024, `MB` is 1000 times 1000.
fn read_size_of_rsync(text: &str) -> Result<u64, String> {
    let refused = || format!("{text:?} is not a size: write one, such as 500k, 1.5M, 10MB or 1GiB-1");
    let (number, change) = match (text.strip_suffix("+1"), text.strip_suffix("-1")) {
        (Some(rest), _) => (rest, 1),
        (_, Some(rest)) => (rest, -1),
        _ => (text, 0),
    };
    let unit_at = number.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(number.len());
    let (digits, unit) = number.split_at(unit_at);
    let value: f64 = digits.parse().map_err(|_| refused())?;
    let unit = unit.to_ascii_lowercase();
    let (prefix, base) = match unit.as_str() {
        "" | "b" => ("", 1.0),
        unit => match unit.strip_suffix('b').filter(|unit| !unit.ends_with('i')) {
            Some(prefix) => (prefix, 1000.0_f64),
            None => (unit.strip_suffix("ib").unwrap_or(unit), 1024.0),
        },
    };
    let power = match prefix {
        "" if base == 1.0 => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        "p" => 5,
        _ => return Err(refused()),
    };
    ((value * base.powi(power)) as u64).checked_add_signed(change).ok_or_else(refused)
}

/// Returns the time so long ago, in seconds since the epoch.
pub(super) fn seconds_ago(age: Duration) -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    i64::try_from(now).unwrap_or(i64::MAX).saturating_sub(i64::try_from(age.as_secs()).unwrap_or(i64::MAX))
}

/// A rate.
pub(super) fn rate() -> ValueParser {
    ValueParser::new(rate::parse)
}

/// A rate limit, or a timetable of limits.
pub(super) fn limit() -> ValueParser {
    ValueParser::new(|text: &str| text.parse::<Limit>())
}

/// An emulated link.
pub(super) fn link() -> ValueParser {
    ValueParser::new(|text: &str| text.parse::<Duplex>())
}

/// See [`read_host`].
pub(super) fn host() -> ValueParser {
    ValueParser::new(read_host)
}

/// See [`read_plain_host`].
pub(super) fn plain_host() -> ValueParser {
    ValueParser::new(read_plain_host)
}

/// See [`read_command`].
pub(super) fn command() -> ValueParser {
    ValueParser::new(read_command)
}

/// See [`read_ports`].
pub(super) fn ports() -> ValueParser {
    ValueParser::new(read_ports)
}

/// See [`read_listen_address`].
pub(super) fn listen_address() -> ValueParser {
    ValueParser::new(read_listen_address)
}

/// See [`read_profile`].
pub(super) fn profile() -> ValueParser {
    ValueParser::new(read_profile)
}

/// See [`read_setting`].
pub(super) fn setting() -> ValueParser {
    ValueParser::new(read_setting)
}

/// See [`read_time`].
pub(super) fn time() -> ValueParser {
    ValueParser::new(read_time)
}

/// See [`read_local_forward`].
pub(super) fn local_forward() -> ValueParser {
    ValueParser::new(read_local_forward)
}

/// See [`read_remote_forward`].
pub(super) fn remote_forward() -> ValueParser {
    ValueParser::new(read_remote_forward)
}

/// See [`read_proxy_forward`].
pub(super) fn proxy_forward() -> ValueParser {
    ValueParser::new(read_proxy_forward)
}

/// See [`read_permit`].
pub(super) fn permit() -> ValueParser {
    ValueParser::new(read_permit)
}

/// See [`read_listening`].
pub(super) fn listening() -> ValueParser {
    ValueParser::new(read_listening)
}

/// See [`read_memory`].
pub(super) fn memory() -> ValueParser {
    ValueParser::new(read_memory)
}

/// See [`read_size`].
pub(super) fn size() -> ValueParser {
    ValueParser::new(read_size)
}

/// Parses `path` or `[user@]host:path`.
pub(super) fn location() -> ValueParser {
    ValueParser::new(OsStringValueParser::new().try_map(|text| Location::parse(&text)))
}

/// Parses a local path. No shell expands `~` after `--option=` or in a configuration.
pub(super) fn path() -> ValueParser {
    ValueParser::new(OsStringValueParser::new().try_map(|text| {
        if text.is_empty() {
            return Err(EMPTY_PATH.to_owned());
        }
        home::expand_typed(Path::new(&text)).map_err(|error| error.to_string())
    }))
}

/// Parses the path of a local directory, which is created if it does not exist. Remote paths and URLs are refused, instead
/// of creating a directory of that name.
pub(super) fn directory() -> ValueParser {
    ValueParser::new(OsStringValueParser::new().try_map(|text| match Location::parse(&text) {
        Ok(Location::Local(path)) => home::expand_typed(&path).map_err(|error| error.to_string()),
        Ok(Location::Remote { .. }) => Err(format!(
            "{} is on a remote host: name a local directory, or write ./{} for a directory of that name",
            text.display(),
            text.display()
        )),
        Err(error) => Err(error.to_string()),
    }))
}

/// Parses `[user@]host`, for ssh.
fn read_host(text: &str) -> Result<String, String> {
    let colon = || {
        let as_location = OsString::from(format!("{text}:"));
        Location::parse(OsStr::new(&as_location)).map_err(|error| error.to_string())
    };
    match colon()? {
        Location::Remote { host, path } if path.is_empty() => Ok(host),
        _ => Err(format!("{text:?} is not a host: write host, user@host or [2001:db8::1]")),
    }
}

/// Parses `[user@]host` from another program. It must not contain characters with a meaning to a shell, since ssh passes
/// hosts to the commands of its configuration.
fn read_plain_host(text: &str) -> Result<String, String> {
    let host = read_host(text)?;
    let is_plain = |part: &str| {
        !part.starts_with('-') && part.chars().all(|c| c.is_ascii_alphanumeric() || ".-_:%+[]".contains(c))
    };
    if host.split('@').all(is_plain) {
        Ok(host)
    } else {
        Err(format!("{text:?} is not a host: only letters, digits and .-_:%+ are allowed"))
    }
}

/// Splits words, with the quotes and backslashes of a shell and none of its other features.
fn read_command(text: &str) -> Result<SshCommand, String> {
    match shlex::split(text) {
        Some(words) if !words.is_empty() => Ok(SshCommand(words.into_iter().map(OsString::from).collect())),
        Some(_) => Err("empty command: write one, such as 'ssh -o Compression=no'".to_owned()),
        None => Err(format!("{text:?} has an unclosed quote")),
    }
}

/// Parses `60001` or `60001:60010`.
fn read_ports(text: &str) -> Result<RangeInclusive<u16>, String> {
    let (first, last) = text.split_once(':').unwrap_or((text, text));
    match (first.parse::<u16>(), last.parse::<u16>()) {
        (Ok(first), Ok(last)) if 0 < first && first <= last => Ok(first..=last),
        _ => Err(format!("{text:?} is not a port or a range of ports: write one, such as 60001 or 60001:60010")),
    }
}

/// Parses `192.0.2.1:4000`, `[2001:db8::1]:4000`, or `:4000` for every address.
fn read_listen_address(text: &str) -> Result<SocketAddr, String> {
    let whole = if text.starts_with(':') { format!("[::]{text}") } else { text.to_owned() };
    whole
        .parse()
        .map_err(|_| format!("{text:?} is not an address: write one, such as 192.0.2.1:4000, [2001:db8::1]:4000, or :4000 for all addresses"))
}

/// Parses the name of a profile, or the path of a file with one, which is read later.
fn read_profile(text: &str) -> Result<ProfileChoice, String> {
    if text.contains(['/', '.']) {
        let path = home::expand_typed(Path::new(text)).map_err(|error| error.to_string())?;
        return Ok(ProfileChoice::File(path));
    }
    let named = names().profile(text).map_err(|error| format!("{error}; the path of a file needs a / or a dot"))?;
    Ok(ProfileChoice::Named(Box::new(named)))
}

/// Parses `KEY=VALUE`; whether the key exists is checked with the profile.
fn read_setting(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or_else(|| "write KEY=VALUE, such as congestion=cubic".to_owned())?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}

/// Parses seconds, with or without a fraction, or another unit: `0.5`, `90s`, `10m`, `1h`, `2d`.
pub(super) fn read_time(text: &str) -> Result<Duration, String> {
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
        .ok_or_else(|| format!("{text:?} is not a time: write one above 0, such as 0.5s, 90s, 10m, 1h or 2d"))
}

/// Parses the argument of `-L`.
fn read_local_forward(text: &str) -> Result<Forward, ForwardError> {
    Forward::read(text, false)
}

/// Parses the argument of `-R`.
fn read_remote_forward(text: &str) -> Result<Forward, String> {
    let forward = Forward::read(text, true).map_err(|error| error.to_string())?;
    match forward.listen {
        ForwardAddress::Tcp { port: 0, .. } => Err("port 0 is not allowed with -R: write another port".to_owned()),
        _ => Ok(forward),
    }
}

/// Parses the argument of `-D`.
fn read_proxy_forward(text: &str) -> Result<Forward, ForwardError> {
    Forward::read_proxy(text)
}

/// Parses the argument of `--permit`.
fn read_permit(text: &str) -> Result<Permit, ForwardError> {
    Permit::read(text)
}

/// Parses the argument of `--metrics`.
fn read_listening(text: &str) -> Result<ForwardAddress, ForwardError> {
    ForwardAddress::read_listening(text)
}

/// Parses a limit on memory.
fn read_memory(text: &str) -> Result<u64, String> {
    let bytes = read_size(text)?;
    if bytes < MIN_MEMORY && text.ends_with(|last: char| last.is_ascii_digit()) {
        return Err(format!("{text} means {text} bytes: add a unit, such as 32MB"));
    }
    if bytes < MIN_MEMORY {
        return Err(format!("{text} is too small: the minimum is {}", units::bytes(MIN_MEMORY)));
    }
    Ok(bytes)
}

/// Parses `10MB`, `1.5 GB`, `2T`, `64KiB` or bytes. The prefixes are those of rates.
pub(super) fn read_size(text: &str) -> Result<u64, String> {
    let refused = || format!("{text:?} is not a size: write one, such as 10MB, 1.5GB, 1TB or 64KiB");
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
