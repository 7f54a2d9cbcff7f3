//! What is forwarded where, in the grammar of ssh's `-L`, `-R` and `-D`.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A place that a program listens on or connects to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Place {
    /// A TCP port. To listen on, `host` is an address of the machine, `localhost`, or `*` for all of them; port 0 lets the
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

/// Where the connections to a place go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// Always there.
    Place(Place),
    /// Where each asks to, by SOCKS.
    Socks,
}

/// A place to listen on, and where its connections go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forward {
    /// Where it listens.
    pub listen: Place,
    /// Where its connections go.
    pub to: Destination,
}

/// The reason why a forward cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ForwardError {
    /// It has too few parts or too many.
    #[error(
        "write [BIND:]PORT:HOST:PORT, or the path of a unix socket, with a '/', in place of a port or of HOST:PORT"
    )]
    Form,
    /// A proxy has a place of its own only.
    #[error("write [BIND:]PORT")]
    ProxyForm,
    /// A port that is none.
    #[error("'{0}' is not a port from 1 to 65535")]
    Port(String),
    /// A host without a name.
    #[error("there is no host before port {0}")]
    NoHost(u16),
    /// An address in brackets that does not end.
    #[error("the '[' of an IPv6 address has no ']'")]
    Bracket,
}

impl Place {
    /// A port of this machine alone.
    fn local(port: u16) -> Self {
        Self::Tcp { host: "localhost".to_owned(), port }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
            Self::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Place(place) => place.fmt(f),
            Self::Socks => f.write_str("wherever SOCKS asks to"),
        }
    }
}

impl Forward {
    /// Reads the argument of `-L`, or of `-R`, which may also be that of `-D`.
    ///
    /// # Errors
    /// [`ForwardError`] says what to write.
    pub fn read(text: &str, may_be_proxy: bool) -> Result<Self, ForwardError> {
        let fields = fields(text)?;
        let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
        let is_path = |field: &str| field.contains('/');
        let (listen, to) = match fields[..] {
            [_] if may_be_proxy => return Self::read_proxy(text),
            [socket, to] if is_path(to) => (one(socket)?, Place::Unix(to.into())),
            [_, _] if may_be_proxy => return Self::read_proxy(text),
            [socket, host, to] if is_path(socket) => (Place::Unix(socket.into()), tcp(host, to)?),
            [bind, own, to] if is_path(to) => (listening(bind, own)?, Place::Unix(to.into())),
            [own, host, to] => (Place::local(port(own, 0)?), tcp(host, to)?),
            [bind, own, host, to] => (listening(bind, own)?, tcp(host, to)?),
            _ => return Err(ForwardError::Form),
        };
        Ok(Self { listen, to: Destination::Place(to) })
    }

    /// Reads the argument of `-D`.
    ///
    /// # Errors
    /// [`ForwardError`] says what to write.
    pub fn read_proxy(text: &str) -> Result<Self, ForwardError> {
        let fields = fields(text)?;
        let listen = match &fields[..] {
            [socket] => one(socket)?,
            [bind, own] if !bind.contains('/') => listening(bind, own)?,
            _ => return Err(ForwardError::ProxyForm),
        };
        Ok(Self { listen, to: Destination::Socks })
    }
}

/// Splits at the colons outside of brackets, and leaves the brackets out.
fn fields(text: &str) -> Result<Vec<String>, ForwardError> {
    let (mut fields, mut depth) = (vec![String::new()], 0_u32);
    for character in text.chars() {
        match character {
            '[' if depth == 0 => depth = 1,
            ']' if depth == 1 => depth = 0,
            ':' if depth == 0 => fields.push(String::new()),
            _ => fields.last_mut().into_iter().for_each(|field| field.push(character)),
        }
    }
    if depth == 0 { Ok(fields) } else { Err(ForwardError::Bracket) }
}

/// Reads a port of this machine alone, or a unix socket, to listen on.
fn one(field: &str) -> Result<Place, ForwardError> {
    if field.contains('/') { Ok(Place::Unix(field.into())) } else { Ok(Place::local(port(field, 0)?)) }
}

/// Reads an address and a port to listen on. No address is all of them, as for ssh.
fn listening(bind: &str, own: &str) -> Result<Place, ForwardError> {
    let host = if bind.is_empty() { "*" } else { bind };
    Ok(Place::Tcp { host: host.to_owned(), port: port(own, 0)? })
}

/// Reads a host and a port to connect to.
fn tcp(host: &str, to: &str) -> Result<Place, ForwardError> {
    let port = port(to, 1)?;
    if host.is_empty() { Err(ForwardError::NoHost(port)) } else { Ok(Place::Tcp { host: host.to_owned(), port }) }
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

    fn tcp_at(host: &str, port: u16) -> Place {
        Place::Tcp { host: host.into(), port }
    }

    fn forward(listen: Place, to: Place) -> Result<Forward, ForwardError> {
        Ok(Forward { listen, to: Destination::Place(to) })
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
            ("/tmp/own:web:80", forward(Place::Unix("/tmp/own".into()), web)),
            ("/tmp/own:/run/far", forward(Place::Unix("/tmp/own".into()), Place::Unix("/run/far".into()))),
            ("8080:/run/far", forward(local, Place::Unix("/run/far".into()))),
            ("::1:8080:web:80", Err(ForwardError::Form)),
            ("127.0.0.2:8080:/run/far", forward(tcp_at("127.0.0.2", 8080), Place::Unix("/run/far".into()))),
            ("8080", Err(ForwardError::Form)),
            ("8080:80", Err(ForwardError::Form)),
            ("", Err(ForwardError::Form)),
            ("8080::80", Err(ForwardError::NoHost(80))),
            ("8080:web:0", Err(ForwardError::Port("0".into()))),
            ("8080:web:65536", Err(ForwardError::Port("65536".into()))),
            ("+80:web:80", Err(ForwardError::Port("+80".into()))),
            ("8080:web:http", Err(ForwardError::Port("http".into()))),
            ("[::1:8080:web:80", Err(ForwardError::Bracket)),
        ] {
            assert_eq!(Forward::read(text, false), expected, "{text}");
        }
        for (text, listen) in [
            ("1080", Ok(tcp_at("localhost", 1080))),
            ("*:1080", Ok(tcp_at("*", 1080))),
            ("[::1]:1080", Ok(tcp_at("::1", 1080))),
            ("/tmp/socks", Ok(Place::Unix("/tmp/socks".into()))),
            ("a:b:c", Err(ForwardError::ProxyForm)),
            ("/tmp/socks:1080", Err(ForwardError::ProxyForm)),
            ("proxy", Err(ForwardError::Port("proxy".into()))),
        ] {
            let expected = listen.map(|listen| Forward { listen, to: Destination::Socks });
            assert_eq!(Forward::read_proxy(text), expected, "{text}");
            if expected.is_ok() {
                assert_eq!(Forward::read(text, true), expected, "-R {text}");
            }
        }
    }

    proptest! {
        #[test]
        fn whatever_is_written_is_read_or_refused(text in r"[\[\]:/*0-9a-z.]{0,24}", proxy in any::<bool>()) {
            drop(Forward::read_proxy(&text));
            if let Ok(Forward { to: Destination::Place(Place::Tcp { host, port }), .. }) = Forward::read(&text, proxy) {
                prop_assert!(port > 0 && !host.is_empty());
            }
        }
    }
}
