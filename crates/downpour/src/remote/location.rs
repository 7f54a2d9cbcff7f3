//! Locations: `[user@]host:path` and `scp://[user@]host[:port]/path`, interpreted as by scp.

use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;

use crate::files::permitted::stands_for_contents;

/// The location of a file or directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// On the local host.
    Local(PathBuf),
    /// On a host reached through ssh.
    Remote {
        /// Argument for ssh: `[user@]host`, or `ssh://[user@]host:port`.
        host: String,
        /// The remote path, relative to the user's home unless it begins with `/`; empty for the home itself. Any
        /// bytes.
        path: Vec<u8>,
    },
}

/// An invalid location.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LocationError {
    /// Empty text, as from a variable that is not set.
    #[error("empty path: use . for the current directory")]
    Empty,
    /// `:path`.
    #[error("no host in {0:?}: write host:path, or ./:path for a file of that name")]
    NoHost(String),
    /// A host that ssh would take for an option.
    #[error("invalid host {0:?}: begins with -")]
    Option(String),
    /// `s3://bucket/path` and the like.
    #[error("{0:?} is a URL: write host:path for a host that ssh can reach, or ./{0} for a file of that name")]
    Url(String),
    /// `host::module`.
    #[error(
        "{0:?} is a module of an rsync daemon, which downpour does not support: write host:path for a host that ssh can reach, or host:./:path for a file of that name"
    )]
    Module(String),
    /// A host that is not valid UTF-8.
    #[error("invalid host in {0:?}: not UTF-8")]
    NotText(String),
    /// A malformed URL.
    #[error("invalid scp URL {0:?}: write scp://[user@]host[:port]/path")]
    NotAUrl(String),
    /// The URL of an rsync daemon.
    #[error(
        "{0:?} is an rsync daemon, which downpour does not support: write host:path for a host that ssh can reach, or use rsync"
    )]
    Daemon(String),
}

impl Location {
    /// Parses a user's argument. A colon before the first slash ends a host; `[2001:db8::1]:path` contains an IPv6
    /// address, and `./a:b` is a file. In `scp://host/path` the path is relative to the user's home, too; an absolute
    /// one follows two slashes.
    ///
    /// # Errors
    /// See [`LocationError`].
    pub fn parse(text: &OsStr) -> Result<Self, LocationError> {
        let bytes = text.as_bytes();
        if bytes.is_empty() {
            return Err(LocationError::Empty);
        }
        if let Some(url) = bytes.strip_prefix(b"scp://") {
            return Self::of_url(url).ok_or_else(|| LocationError::NotAUrl(text.to_string_lossy().into_owned()));
        }
        if bytes.starts_with(b"rsync://") {
            return Err(LocationError::Daemon(text.to_string_lossy().into_owned()));
        }
        let local = || Ok(Self::Local(PathBuf::from(text)));
        let shown = || text.to_string_lossy().into_owned();
        if is_url(bytes) {
            return Err(LocationError::Url(shown()));
        }
        let at = bytes.iter().position(|byte| *byte == b'@').map_or(0, |at| at + 1);
        let colon = if bytes[at..].starts_with(b"[") {
            let Some(close) = bytes.windows(2).position(|two| two == b"]:") else { return local() };
            close + 1
        } else {
            let Some(colon) = bytes.iter().position(|byte| *byte == b':') else { return local() };
            colon
        };
        if bytes[..colon].contains(&b'/') {
            return local();
        }
        let host = std::str::from_utf8(&bytes[..colon]).map_err(|_| LocationError::NotText(shown()))?;
        if host.is_empty() || host.ends_with('@') {
            return Err(LocationError::NoHost(shown()));
        }
        if bytes[colon + 1..].starts_with(b":") {
            return Err(LocationError::Module(shown()));
        }
        if host.starts_with('-') {
            return Err(LocationError::Option(shown()));
        }
        // ssh takes the address without the brackets.
        let host = host.replace(['[', ']'], "");
        Ok(Self::Remote { host, path: bytes[colon + 1..].to_vec() })
    }

    /// Parses the part after `scp://`. A port is left to ssh, which accepts such URLs itself.
    fn of_url(url: &[u8]) -> Option<Self> {
        let end = url.iter().position(|byte| *byte == b'/').unwrap_or(url.len());
        let path = url.get(end + 1..).map_or(Some(Vec::new()), decoded)?;
        let authority = std::str::from_utf8(&url[..end]).ok()?;
        let (user, address) = authority.rsplit_once('@').map_or((None, authority), |(user, rest)| (Some(user), rest));
        let (name, port) = match address.strip_prefix('[') {
            Some(rest) => rest.split_once(']').map(|(name, port)| (name, (!port.is_empty()).then_some(port)))?,
            None => address.find(':').map_or((address, None), |at| (&address[..at], Some(&address[at..]))),
        };
        let is_plain = |text: &str| !text.is_empty() && !text.starts_with('-') && !text.contains([' ', '[', ']', '%']);
        if !is_plain(name) || user.is_some_and(|user| !is_plain(user)) {
            return None;
        }
        let user = user.map_or_else(String::new, |user| format!("{user}@"));
        let host = match port {
            Some(port) => {
                let port = port.strip_prefix(':')?.parse::<u16>().ok().filter(|port| *port != 0)?;
                format!("ssh://{user}{}:{port}", address.strip_suffix(&format!(":{port}"))?)
            }
            None => format!("{user}{name}"),
        };
        Some(Self::Remote { host, path })
    }

    /// Returns the host, if the location is remote, and the path.
    #[must_use]
    pub fn into_parts(self) -> (Option<String>, PathBuf) {
        match self {
            Self::Local(path) => (None, path),
            Self::Remote { host, path } => (Some(host), PathBuf::from(std::ffi::OsString::from_vec(path))),
        }
    }

    /// Makes the path name the contents of a directory, like a trailing slash.
    pub(super) fn name_contents(&mut self) {
        match self {
            Self::Local(path) if !stands_for_contents(path.as_os_str().as_bytes()) => path.push(""),
            Self::Remote { path, .. } if !stands_for_contents(path) => path.push(b'/'),
            Self::Local(_) | Self::Remote { .. } => {}
        }
    }

    /// Returns only the path.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        match self {
            Self::Local(path) => path.clone(),
            Self::Remote { path, .. } => PathBuf::from(std::ffi::OsString::from_vec(path.clone())),
        }
    }
}

/// Returns the name in an argument for ssh, without its user and its port.
#[must_use]
pub fn host_name(host: &str) -> &str {
    let url = host.strip_prefix("ssh://");
    let name = url.unwrap_or(host);
    let name = name.rsplit_once('@').map_or(name, |(_, name)| name);
    let name = if url.is_some() { name.rsplit_once(':').map_or(name, |(name, _)| name) } else { name };
    name.trim_start_matches('[').trim_end_matches(']')
}

/// Decodes `%20` and the like (RFC 3986 section 2.1); `None` if a digit is missing, or for a byte that no path has.
fn decoded(text: &[u8]) -> Option<Vec<u8>> {
    let mut parts = text.split(|byte| *byte == b'%');
    let mut out = parts.next()?.to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        let byte = data_encoding::HEXUPPER_PERMISSIVE.decode(digits).ok()?;
        out.extend(byte.iter().chain(rest));
    }
    (!out.contains(&0)).then_some(out)
}

/// Returns whether a text begins as a URL does (RFC 3986 section 3.1).
fn is_url(text: &[u8]) -> bool {
    let scheme = text.windows(3).position(|three| three == b"://").map(|end| &text[..end]);
    scheme.is_some_and(|scheme| {
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"+.-".contains(byte);
        scheme.first().is_some_and(u8::is_ascii_alphabetic) && scheme.iter().all(is_part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remote(host: &str, path: &str) -> Result<Location, LocationError> {
        Ok(Location::Remote { host: host.to_owned(), path: path.into() })
    }

    fn parse(text: &str) -> Result<Location, LocationError> {
        Location::parse(OsStr::new(text))
    }

    #[test]
    fn location_parsed_as_by_scp() {
        assert_eq!(parse("host:"), remote("host", ""));
        assert_eq!(parse("me@host:dir/a:b"), remote("me@host", "dir/a:b"));
        assert_eq!(parse("[2001:db8::1]:/x"), remote("2001:db8::1", "/x"));
        assert_eq!(parse("me@[::1]:x"), remote("me@::1", "x"));
        for local in ["a", "./a:b", "/a:b", "dir/a:b", "[odd", "[odd]"] {
            assert_eq!(parse(local), Ok(Location::Local(PathBuf::from(local))), "{local}");
        }
    }

    #[test]
    fn a_url_of_scp_is_a_location() {
        for (url, host, path) in [
            ("scp://host", "host", ""),
            ("scp://host/", "host", ""),
            ("scp://host/dir/a:b", "host", "dir/a:b"),
            ("scp://me@host//etc/x", "me@host", "/etc/x"),
            ("scp://me@host:2222/a%20b%2Fc", "ssh://me@host:2222", "a b/c"),
            ("scp://host:22", "ssh://host:22", ""),
            ("scp://[2001:db8::1]/x", "2001:db8::1", "x"),
            ("scp://me@[::1]:7/x@y", "ssh://me@[::1]:7", "x@y"),
        ] {
            assert_eq!(parse(url), remote(host, path), "{url}");
            assert!(["host", "2001:db8::1", "::1"].contains(&host_name(host)), "{host}");
        }
        for odd in [
            "scp://",
            "scp:///x",
            "scp://@host/x",
            "scp://me@/x",
            "scp://host:/x",
            "scp://host:0/x",
            "scp://host:66000/x",
            "scp://host:+22/x",
            "scp://host:022/x",
            "scp://-oProxyCommand=x/y",
            "scp://-l@host/y",
            "scp://[::1/x",
            "scp://[::1]7/x",
            "scp://host/%",
            "scp://host/%zz",
            "scp://host/a%00b",
            "scp://a b/x",
        ] {
            assert_eq!(parse(odd), Err(LocationError::NotAUrl(odd.to_owned())), "{odd}");
        }
        assert_eq!(parse("rsync://host/module"), Err(LocationError::Daemon("rsync://host/module".to_owned())));
        for (host, name) in [("me@far", "far"), ("far", "far"), ("me@::1", "::1"), ("a@b@far", "far")] {
            assert_eq!(host_name(host), name);
        }
    }

    #[test]
    fn location_unsupported_urls_refused() {
        for url in ["s3://bucket/key", "sftp://far/x", "http://far/x", "https://far/", "file:///x", "git+ssh://far/x"] {
            assert_eq!(parse(url), Err(LocationError::Url(url.to_owned())), "{url}");
        }
        for module in ["far::module", "me@far::module/dir", "far::", "[::1]::module"] {
            assert_eq!(parse(module), Err(LocationError::Module(module.to_owned())), "{module}");
        }
        for text in ["far:/x", "far:dir//x", "far:./:module", "a@b:c://d"] {
            assert!(matches!(parse(text), Ok(Location::Remote { .. })), "{text}");
        }
        assert!(matches!(parse("./s3://x"), Ok(Location::Local(_))));
    }

    #[test]
    fn location_invalid_refused() {
        assert_eq!(parse(""), Err(LocationError::Empty));
        assert!(matches!(parse(":x"), Err(LocationError::NoHost(_))));
        assert!(matches!(parse("me@:x"), Err(LocationError::NoHost(_))));
        assert!(matches!(parse("-oProxyCommand=x:y"), Err(LocationError::Option(_))));
    }
}
