//! The forwards of a tunnel, in the grammar of ssh's `-L`, `-R` and `-D`.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// An address that a program listens on or connects to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ForwardAddress {
    /// A TCP port. To listen on, `host` is an address of the host, `localhost`, or `*` for all of them; port 0 lets the
    /// system choose.
    Tcp {
        /// A name or an address.
        host: String,
        /// The port.
        port: u16,
    },
    /// A unix socket.
    Unix(PathBuf),
}

/// The target of a forward's connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForwardTarget {
    /// A fixed address.
    Place(ForwardAddress),
    /// The address of each SOCKS request.
    Socks,
}

/// An address to listen on, and the target of its connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forward {
    /// The listening address.
    pub listen: ForwardAddress,
    /// The target of its connections.
    pub to: ForwardTarget,
}

/// Addresses that the peer may request connections to, like `PermitOpen` of sshd.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Permit {
    /// Every address that this host can reach.
    Any,
    /// A port of this host, by the requested name; or all of its ports.
    Tcp {
        /// The name or address, in lower case.
        host: String,
        /// The port.
        port: Option<u16>,
    },
    /// A unix socket.
    Unix(PathBuf),
}

impl Permit {
    /// Reads `any`, HOST:PORT, HOST:*, or the path of a unix socket.
    ///
    /// # Errors
    /// [`ForwardError`], which states the valid forms.
    pub fn read(text: &str) -> Result<Self, ForwardError> {
        let fields = fields(text)?;
        match &fields[..] {
            ["any"] => Ok(Self::Any),
            [path] if path.contains('/') => Ok(Self::Unix(path.into())),
            [host, _] if host.contains(|at: char| at == '*' || at.is_whitespace()) => Err(ForwardError::PermitForm),
            [host, "*"] if !host.is_empty() => Ok(Self::Tcp { host: host.to_ascii_lowercase(), port: None }),
            [host, to] => {
                let port = port(to, 1)?;
                if host.is_empty() {
                    return Err(ForwardError::NoHost(port));
                }
                Ok(Self::Tcp { host: host.to_ascii_lowercase(), port: Some(port) })
            }
            _ => Err(ForwardError::PermitForm),
        }
    }

    /// Returns whether an address is among these. Names are compared as written, and not resolved.
    pub(super) fn covers(&self, place: &ForwardAddress) -> bool {
        match (self, place) {
            (Self::Any, _) => true,
            (Self::Tcp { host, port }, ForwardAddress::Tcp { host: wanted, port: to }) => {
                wanted.eq_ignore_ascii_case(host) && port.is_none_or(|port| port == *to)
            }
            (Self::Unix(path), ForwardAddress::Unix(wanted)) => path == wanted,
            _ => false,
        }
    }
}

/// Why a forward cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ForwardError {
    /// It has too few or too many parts.
    #[error(
        "write [BIND:]PORT:HOST:PORT, or the path of a unix socket, with a '/', in place of a port or of HOST:PORT"
    )]
    Form,
    /// A permission is not an address.
    #[error("write HOST:PORT, HOST:*, the path of a unix socket, or any")]
    PermitForm,
    /// A proxy has only a listening address.
    #[error("write [BIND:]PORT")]
    ProxyForm,
    /// An invalid port.
    #[error("invalid port '{0}': use 1 to 65535")]
    Port(String),
    /// A host without a name.
    #[error("no host before port {0}")]
    NoHost(u16),
    /// Brackets that are not around a whole field.
    #[error("brackets must enclose a whole address, as in [2001:db8::1]")]
    Bracket,
}

impl ForwardAddress {
    /// Returns a port of the loopback addresses.
    fn local(port: u16) -> Self {
        Self::Tcp { host: "localhost".to_owned(), port }
    }

    /// Reads an address to listen on: `[BIND:]PORT`, or the path of a unix socket.
    ///
    /// # Errors
    /// [`ForwardError`], which states the valid forms.
    pub fn read_listening(text: &str) -> Result<Self, ForwardError> {
        match fields(text)?[..] {
            [socket] => one(socket),
            [bind, own] if !bind.contains('/') => listening(bind, own),
            _ => Err(ForwardError::ProxyForm),
        }
    }
}

impl fmt::Display for ForwardAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let field = |f: &mut fmt::Formatter<'_>, text: &str| {
            // Without brackets it would not be read as one field.
            let needs_brackets = text.contains(':') || text.starts_with('[');
            if needs_brackets { write!(f, "[{text}]") } else { f.write_str(text) }
        };
        match self {
            Self::Tcp { host, port } => {
                field(f, host)?;
                write!(f, ":{port}")
            }
            Self::Unix(path) => field(f, &path.to_string_lossy()),
        }
    }
}

impl fmt::Display for ForwardTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Place(place) => place.fmt(f),
            Self::Socks => f.write_str("any address requested by SOCKS"),
        }
    }
}

impl fmt::Display for Forward {
    /// Writes text that is read as the same forward.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.to {
            ForwardTarget::Place(to) => write!(f, "{}:{to}", self.listen),
            ForwardTarget::Socks => self.listen.fmt(f),
        }
    }
}

impl Forward {
    /// Reads the argument of `-L`, or of `-R`, which may also be that of `-D`.
    ///
    /// # Errors
    /// [`ForwardError`], which states the valid forms.
    pub fn read(text: &str, may_be_proxy: bool) -> Result<Self, ForwardError> {
        let fields = fields(text)?;
        let is_path = |field: &str| field.contains('/');
        let (listen, to) = match fields[..] {
            [_] if may_be_proxy => return Self::read_proxy(text),
            [socket, to] if is_path(to) => (one(socket)?, ForwardAddress::Unix(to.into())),
            [_, _] if may_be_proxy => return Self::read_proxy(text),
            [socket, host, to] if is_path(socket) => (ForwardAddress::Unix(socket.into()), tcp(host, to)?),
            [bind, own, to] if is_path(to) => (listening(bind, own)?, ForwardAddress::Unix(to.into())),
            [own, host, to] => (ForwardAddress::local(port(own, 0)?), tcp(host, to)?),
            [bind, own, host, to] => (listening(bind, own)?, tcp(host, to)?),
            _ => return Err(ForwardError::Form),
        };
        Ok(Self { listen, to: ForwardTarget::Place(to) })
    }

    /// Reads the argument of `-D`.
    ///
    /// # Errors
    /// [`ForwardError`], which states the valid forms.
    pub fn read_proxy(text: &str) -> Result<Self, ForwardError> {
        let listen = ForwardAddress::read_listening(text)?;
        Ok(Self { listen, to: ForwardTarget::Socks })
    }
}

/// Splits at colons. As for ssh, a field in brackets may contain them.
fn fields(text: &str) -> Result<Vec<&str>, ForwardError> {
    let (mut fields, mut rest) = (Vec::new(), text);
    loop {
        let (field, after) = match rest.strip_prefix('[') {
            Some(inside) => inside.split_once(']').ok_or(ForwardError::Bracket)?,
            None => rest.split_at(rest.find(':').unwrap_or(rest.len())),
        };
        fields.push(field);
        match after.strip_prefix(':') {
            Some(next) => rest = next,
            None if after.is_empty() => return Ok(fields),
            None => return Err(ForwardError::Bracket),
        }
    }
}

/// Reads a port of the loopback addresses, or a unix socket, to listen on.
fn one(field: &str) -> Result<ForwardAddress, ForwardError> {
    if field.contains('/') {
        Ok(ForwardAddress::Unix(field.into()))
    } else {
        Ok(ForwardAddress::local(port(field, 0)?))
    }
}

/// Reads an address and a port to listen on. No address is all of them, as for ssh.
fn listening(bind: &str, own: &str) -> Result<ForwardAddress, ForwardError> {
    let host = if bind.is_empty() { "*" } else { bind };
    Ok(ForwardAddress::Tcp { host: host.to_owned(), port: port(own, 0)? })
}

/// Reads a host and a port to connect to.
fn tcp(host: &str, to: &str) -> Result<ForwardAddress, ForwardError> {
    let port = port(to, 1)?;
    if host.is_empty() {
        Err(ForwardError::NoHost(port))
    } else {
        Ok(ForwardAddress::Tcp { host: host.to_owned(), port })
    }
}

fn port(text: &str, least: u16) -> Result<u16, ForwardError> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|number| is_number && *number >= least);
    number.ok_or_else(|| ForwardError::Port(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tcp_at(host: &str, port: u16) -> ForwardAddress {
        ForwardAddress::Tcp { host: host.into(), port }
    }

    fn forward(listen: ForwardAddress, to: ForwardAddress) -> Result<Forward, ForwardError> {
        Ok(Forward { listen, to: ForwardTarget::Place(to) })
    }

    #[test]
    fn every_form_of_ssh_is_read() {
        let (local, web) = (tcp_at("localhost", 8080), tcp_at("web", 80));
        for (text, expected) in [
            ("8080:web:80", forward(local.clone(), web.clone())),
            (":8080:web:80", forward(tcp_at("*", 8080), web.clone())),
            ("*:8080:web:80", forward(tcp_at("*", 8080), web.clone())),
            ("127.0.0.2:8080:web:80", forward(tcp_at("127.0.0.2", 8080), web.clone())),
            ("[::1]:8080:[2001:db8::7]:80", forward(tcp_at("::1", 8080), tcp_at("2001:db8::7", 80))),
            ("0:web:80", forward(tcp_at("localhost", 0), web.clone())),
            ("/tmp/own:web:80", forward(ForwardAddress::Unix("/tmp/own".into()), web)),
            (
                "/tmp/own:/run/far",
                forward(ForwardAddress::Unix("/tmp/own".into()), ForwardAddress::Unix("/run/far".into())),
            ),
            ("8080:/run/far", forward(local, ForwardAddress::Unix("/run/far".into()))),
            ("::1:8080:web:80", Err(ForwardError::Form)),
            ("127.0.0.2:8080:/run/far", forward(tcp_at("127.0.0.2", 8080), ForwardAddress::Unix("/run/far".into()))),
            ("8080", Err(ForwardError::Form)),
            ("8080:80", Err(ForwardError::Form)),
            ("", Err(ForwardError::Form)),
            ("8080::80", Err(ForwardError::NoHost(80))),
            ("8080:web:0", Err(ForwardError::Port("0".into()))),
            ("8080:web:65536", Err(ForwardError::Port("65536".into()))),
            ("+80:web:80", Err(ForwardError::Port("+80".into()))),
            ("8080:web:http", Err(ForwardError::Port("http".into()))),
            ("[::1:8080:web:80", Err(ForwardError::Bracket)),
            ("[::1]8080:web:80", Err(ForwardError::Bracket)),
            (
                "[/tmp/a:b]:/run/[x]",
                forward(ForwardAddress::Unix("/tmp/a:b".into()), ForwardAddress::Unix("/run/[x]".into())),
            ),
        ] {
            assert_eq!(Forward::read(text, false), expected, "{text}");
            if let Ok(forward) = expected {
                assert_eq!(Forward::read(&forward.to_string(), false), Ok(forward), "{text}");
            }
        }
        for (text, listen) in [
            ("1080", Ok(tcp_at("localhost", 1080))),
            ("*:1080", Ok(tcp_at("*", 1080))),
            ("[::1]:1080", Ok(tcp_at("::1", 1080))),
            ("/tmp/socks", Ok(ForwardAddress::Unix("/tmp/socks".into()))),
            ("a:b:c", Err(ForwardError::ProxyForm)),
            ("/tmp/socks:1080", Err(ForwardError::ProxyForm)),
            ("proxy", Err(ForwardError::Port("proxy".into()))),
        ] {
            let expected = listen.map(|listen| Forward { listen, to: ForwardTarget::Socks });
            assert_eq!(Forward::read_proxy(text), expected, "{text}");
            if let Ok(forward) = &expected {
                assert_eq!(Forward::read(text, true), expected, "-R {text}");
                assert_eq!(Forward::read_proxy(&forward.to_string()), expected, "{text}");
            }
        }
    }

    #[test]
    fn permit_compares_names_as_written() {
        let read = |text: &str| Permit::read(text).expect("a place");
        let path = |path: &str| ForwardAddress::Unix(path.into());
        for (permit, place, is_covered) in [
            ("localhost:80", tcp_at("localhost", 80), true),
            ("LocalHost:80", tcp_at("LOCALHOST", 80), true),
            ("localhost:80", tcp_at("localhost", 81), false),
            ("localhost:80", tcp_at("127.0.0.1", 80), false),
            ("localhost:80", tcp_at("localhost.", 80), false),
            ("localhost:*", tcp_at("localhost", 22), true),
            ("localhost:*", tcp_at("other", 22), false),
            ("[::1]:80", tcp_at("::1", 80), true),
            ("/run/x", path("/run/x"), true),
            ("/run/x", path("/run/x/../y"), false),
            ("/run/x", tcp_at("/run/x", 80), false),
            ("any", path("/run/x"), true),
            ("any", tcp_at("web", 1), true),
            ("any:1", tcp_at("web", 1), false),
        ] {
            assert_eq!(read(permit).covers(&place), is_covered, "{permit} and {place}");
        }
        for text in ["", "web", ":80", ":*", "*:80", "w b:80", "web:0", "web:http", "a:b:c", "80"] {
            assert!(Permit::read(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn forward_any_text_read_or_refused(text in r"[\[\]:/*0-9a-z.]{0,24}", proxy in any::<bool>()) {
            drop(Forward::read_proxy(&text));
            if let Ok(Forward { to: ForwardTarget::Place(ForwardAddress::Tcp { host, port }), .. }) = Forward::read(&text, proxy) {
                prop_assert!(port > 0 && !host.is_empty());
            }
        }
    }
}
