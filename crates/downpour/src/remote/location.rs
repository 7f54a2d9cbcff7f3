//! Locations: `[user@]host:path`, interpreted like scp does.

use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;

/// The location of a file or folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// On this machine.
    Local(PathBuf),
    /// On a machine reached through ssh.
    Remote {
        /// Argument for ssh: `[user@]host`.
        host: String,
        /// The path there, relative to the user's home unless it begins with `/`; empty for the home itself. Any bytes.
        path: Vec<u8>,
    },
}

/// An invalid location.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LocationError {
    /// Empty text, as from a variable that is not set.
    #[error("an empty path names nothing: write . for the current folder")]
    Empty,
    /// `:path`.
    #[error("{0:?} names no host: write host:path, or ./:path for a file of that name")]
    NoHost(String),
    /// A host that ssh would take for an option.
    #[error("a host does not begin with -: {0:?}")]
    Option(String),
    /// A host that is not valid UTF-8.
    #[error("the host in {0:?} is not valid UTF-8")]
    NotText(String),
}

impl Location {
    /// Parses a user's argument. A colon before the first slash ends a host; `[2001:db8::1]:path` contains an IPv6
    /// address, and `./a:b` is a file.
    ///
    /// # Errors
    /// See [`LocationError`].
    pub fn parse(text: &OsStr) -> Result<Self, LocationError> {
        let bytes = text.as_bytes();
        if bytes.is_empty() {
            return Err(LocationError::Empty);
        }
        let local = || Ok(Self::Local(PathBuf::from(text)));
        let shown = || text.to_string_lossy().into_owned();
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
        if host.starts_with('-') {
            return Err(LocationError::Option(shown()));
        }
        // ssh takes the address without the brackets.
        let host = host.replace(['[', ']'], "");
        Ok(Self::Remote { host, path: bytes[colon + 1..].to_vec() })
    }

    /// Returns the host, if the location is on another machine, and the path.
    #[must_use]
    pub fn into_parts(self) -> (Option<String>, PathBuf) {
        match self {
            Self::Local(path) => (None, path),
            Self::Remote { host, path } => (Some(host), PathBuf::from(std::ffi::OsString::from_vec(path))),
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
    fn as_scp_reads_it() {
        assert_eq!(parse("host:"), remote("host", ""));
        assert_eq!(parse("me@host:dir/a:b"), remote("me@host", "dir/a:b"));
        assert_eq!(parse("[2001:db8::1]:/x"), remote("2001:db8::1", "/x"));
        assert_eq!(parse("me@[::1]:x"), remote("me@::1", "x"));
        for local in ["a", "./a:b", "/a:b", "dir/a:b", "[odd", "[odd]"] {
            assert_eq!(parse(local), Ok(Location::Local(PathBuf::from(local))), "{local}");
        }
    }

    #[test]
    fn what_cannot_be_meant() {
        assert_eq!(parse(""), Err(LocationError::Empty));
        assert!(matches!(parse(":x"), Err(LocationError::NoHost(_))));
        assert!(matches!(parse("me@:x"), Err(LocationError::NoHost(_))));
        assert!(matches!(parse("-oProxyCommand=x:y"), Err(LocationError::Option(_))));
    }
}
