//! Listening sockets for programs.

use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs as _};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::task::Poll;
use std::time::Duration;

use tokio::net::{TcpListener, UnixListener};

use super::grammar::ForwardAddress;
use super::relay::Socket;
use crate::home::{self, HomeError};

/// Programs that may wait to be accepted: as many as the system allows. Linux resets those beyond that.
const BACKLOG: i32 = i32::MAX;

/// How long to wait when the system has no descriptor for another socket.
const PAUSE: Duration = Duration::from_millis(100);

/// Raises the number of descriptors of this process to the limit of its user: each connection of a tunnel takes one.
pub(crate) fn raise_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // If this fails, fewer connections are possible.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// A listening address: several for `localhost` and `*`.
#[derive(Debug)]
pub(crate) enum Listener {
    Tcp(Vec<TcpListener>),
    Unix {
        listener: UnixListener,
        /// Removes its path when dropped.
        _path: Owned,
    },
}

/// The path of a unix socket, which is removed when dropped if it is still the same.
#[derive(Debug)]
pub(crate) struct Owned {
    path: PathBuf,
    inode: Option<(u64, u64)>,
}

impl Owned {
    fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), inode: inode_of(path) }
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        if self.inode.is_some() && inode_of(&self.path) == self.inode {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn inode_of(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::symlink_metadata(path).ok().map(|data| (data.dev(), data.ino()))
}

impl Listener {
    /// Listens on an address.
    ///
    /// # Errors
    /// Errors of the system.
    pub(crate) fn bind(place: &ForwardAddress) -> io::Result<Self> {
        match place {
            ForwardAddress::Tcp { host, port } => Self::bind_tcp(host, *port),
            ForwardAddress::Unix(path) => {
                let path = &home::expand(path).map_err(no_home)?;
                remove_stale(path)?;
                bind_unix(path).map(|(listener, owned)| Self::Unix { listener, _path: owned })
            }
        }
    }

    fn bind_tcp(host: &str, port: u16) -> io::Result<Self> {
        let addresses: Vec<IpAddr> = match host {
            "localhost" => vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()],
            "*" => vec![Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()],
            host => (host, port).to_socket_addrs()?.map(|address| address.ip()).collect(),
        };
        let is_several = matches!(host, "localhost" | "*");
        let may_choose = port == 0;
        let (mut listeners, mut port) = (Vec::<TcpListener>::new(), port);
        let mut refused = io::Error::new(io::ErrorKind::AddrNotAvailable, "the name has no address");
        for address in addresses {
            match bind_address((address, port).into()) {
                Ok(listener) => {
                    // The port that the system has chosen, for all of them.
                    port = listener.local_addr()?.port();
                    listeners.push(listener);
                }
                // A host without IPv6, or a port that was free for IPv4 alone.
                Err(error) if is_several && (may_choose || error.kind() != io::ErrorKind::AddrInUse) => refused = error,
                Err(error) => return Err(error),
            }
        }
        if listeners.is_empty() { Err(refused) } else { Ok(Self::Tcp(listeners)) }
    }

    /// Returns the port, if it has one.
    pub(crate) fn port(&self) -> Option<u16> {
        match self {
            Self::Tcp(listeners) => listeners.first()?.local_addr().ok().map(|address| address.port()),
            Self::Unix { .. } => None,
        }
    }

    /// Returns the addresses, if it has some.
    pub(super) fn addresses(&self) -> Vec<SocketAddr> {
        match self {
            Self::Tcp(listeners) => listeners.iter().filter_map(|listener| listener.local_addr().ok()).collect(),
            Self::Unix { .. } => Vec::new(),
        }
    }

    /// Waits for the next program.
    pub(super) async fn accept(&self) -> Socket {
        loop {
            let accepted = match self {
                Self::Tcp(listeners) => accept_any(listeners).await,
                Self::Unix { listener, .. } => listener.accept().await.map(|(socket, _)| Socket::Unix(socket)),
            };
            match accepted {
                Ok(socket) => return socket,
                // The program has closed, or descriptors are used up: others will be closed.
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    }
}

async fn accept_any(listeners: &[TcpListener]) -> io::Result<Socket> {
    let accepted = poll_fn(|context| {
        let ready = listeners.iter().map(|listener| listener.poll_accept(context)).find(Poll::is_ready);
        ready.unwrap_or(Poll::Pending)
    });
    accepted.await.map(|(socket, _)| Socket::of_tcp(socket))
}

fn bind_address(address: SocketAddr) -> io::Result<TcpListener> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, ipproto, listen, socket_with, sockopt};
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    if address.is_ipv6() {
        // IPv4 has a socket of its own.
        sockopt::set_ipv6_v6only(&socket, true)?;
    }
    bind(&socket, &address)?;
    listen(&socket, BACKLOG)?;
    TcpListener::from_std(socket.into())
}

/// Returns the error for a unix socket whose path cannot be expanded.
pub(super) fn no_home(error: HomeError) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, error)
}

/// Binds a unix socket that only its user can connect to, as ssh's `StreamLocalBindMask`. The umask, which would have
/// the same effect, applies to all threads.
fn bind_unix(path: &Path) -> io::Result<(UnixListener, Owned)> {
    use rustix::fs::{CWD, FileType, Mode, RawMode, chmodat, fchmod};
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with};
    const OWN: RawMode = 0o600;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    // On Linux the name gets the mode of the socket; other systems refuse this.
    let _ = fchmod(&socket, Mode::from_raw_mode(OWN));
    bind(&socket, &SocketAddrUnix::new(path)?)?;
    let owned = Owned::new(path);
    let bound = rustix::fs::lstat(path)?;
    if FileType::from_raw_mode(bound.st_mode) == FileType::Socket && bound.st_mode & 0o777 & !OWN != 0 {
        // Nothing can connect before it listens.
        chmodat(CWD, path, Mode::from_raw_mode(OWN), rustix::fs::AtFlags::empty())?;
    }
    listen(&socket, BACKLOG)?;
    let listener = std::os::unix::net::UnixListener::from(socket);
    Ok((UnixListener::from_std(listener)?, owned))
}

/// Removes a socket without a listener.
fn remove_stale(path: &Path) -> io::Result<()> {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|data| data.file_type().is_socket());
    let is_refused = || {
        let connected = std::os::unix::net::UnixStream::connect(path);
        connected.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
    };
    if is_socket && is_refused() { std::fs::remove_file(path) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    /// Files that other threads create meanwhile get their requested modes: only the mode of the socket is set
    /// (`clippy.toml` forbids to change the umask).
    #[tokio::test]
    async fn unix_socket_private_and_removed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let listener = Listener::bind(&ForwardAddress::Unix(path.clone())).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let client = tokio::net::UnixStream::connect(&path).await.unwrap();
        let mut accepted = listener.accept().await;
        drop(client);
        assert_eq!(tokio::io::AsyncReadExt::read(&mut accepted, &mut [0]).await.unwrap(), 0);
        let taken = Listener::bind(&ForwardAddress::Unix(path.clone())).unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
        assert!(path.exists(), "a failed bind keeps it");
        drop(listener);
        assert!(!path.exists());
        let long = directory.path().join("s".repeat(200));
        assert!(Listener::bind(&ForwardAddress::Unix(long)).is_err());
    }
}
