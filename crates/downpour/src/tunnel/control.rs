//! Where a user's tunnels are found while they run: unix sockets in a folder that only the user can change.
//!
//! Whoever holds such a socket listens on it, so that it is known to run, and the system says which process it is. Nothing
//! is ever said over it.

use std::fmt;
use std::io::{self, Read as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::net::sockopt::socket_peercred;
use rustix::process::{Pid, Signal, geteuid, kill_process};
use tokio::io::AsyncReadExt as _;
use tokio::task::JoinSet;

use super::grammar::Place;
use super::listener::Listener;
use crate::own_folder::{absolute, own_folder};

/// The longest time that a tunnel takes to end.
const GRACE: Duration = Duration::from_secs(10);

/// The folder of this user's sockets.
#[derive(Clone, Debug)]
pub struct ControlFolder(PathBuf);

impl ControlFolder {
    /// Opens the folder, in `$XDG_RUNTIME_DIR` or the user's cache, and creates it where it is missing.
    ///
    /// # Errors
    /// There is no such place, or it belongs to somebody else; the system's.
    pub fn of_user() -> io::Result<Self> {
        let cache = || absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")));
        let base = absolute("XDG_RUNTIME_DIR").or_else(cache).ok_or(io::ErrorKind::NotFound)?;
        Self::in_folder(&base)
    }

    fn in_folder(base: &Path) -> io::Result<Self> {
        own_folder(base, true).map(Self)
    }

    /// Returns the path of the socket for what these words tell apart. It is short: the path of a socket has at most 107
    /// bytes.
    pub fn socket(&self, words: &impl fmt::Debug) -> PathBuf {
        self.0.join(format!("s-{}", digest(words)))
    }

    /// Shows that this process has a tunnel to `host`, for as long as the result lives.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn hold(&self, host: &str) -> io::Result<Listener> {
        Listener::bind(&Place::Unix(self.0.join(format!("{}{}", prefix(host), std::process::id()))))
    }

    /// Returns the tunnels to `host` that run.
    ///
    /// # Errors
    /// The system's.
    pub fn tunnels_to(&self, host: &str) -> io::Result<Vec<Running>> {
        let prefix = prefix(host);
        let mut found = Vec::new();
        for entry in self.0.read_dir()? {
            let entry = entry?;
            if entry.file_name().as_encoded_bytes().starts_with(prefix.as_bytes()) {
                // Those that refuse were killed.
                found.extend(connect(&entry.path()).ok());
            }
        }
        found.sort_by_key(Running::pid);
        Ok(found)
    }
}

/// A process that listens on one of the sockets.
#[derive(Debug)]
pub struct Running {
    pid: Pid,
    socket: UnixStream,
}

impl Running {
    /// Returns the number of the process.
    pub const fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Ends the tunnel, and waits until it has ended.
    ///
    /// # Errors
    /// It does not end; the system's.
    pub fn end(mut self) -> io::Result<()> {
        kill_process(self.pid, Signal::TERM)?;
        self.socket.set_read_timeout(Some(GRACE))?;
        match self.socket.read(&mut [0]) {
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => Err(error),
            // Its socket is closed with it.
            _ => Ok(()),
        }
    }

    /// Returns the connection to it.
    pub fn into_socket(self) -> UnixStream {
        self.socket
    }
}

/// Connects to the process of this user that listens on `path`.
///
/// # Errors
/// [`io::ErrorKind::PermissionDenied`] if it is somebody else's; the system's: nobody listens, or there is no socket.
pub fn connect(path: &Path) -> io::Result<Running> {
    let socket = UnixStream::connect(path)?;
    let peer = socket_peercred(&socket)?;
    if peer.uid != geteuid() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    Ok(Running { pid: peer.pid, socket })
}

/// Keeps the connections of those who look for this tunnel until they go.
pub(crate) async fn keep(held: Listener) {
    let mut lookers = JoinSet::new();
    loop {
        tokio::select! {
            mut socket = held.accept() => drop(lookers.spawn(async move { drop(socket.read(&mut [0]).await) })),
            Some(_) = lookers.join_next() => {}
        }
    }
}

fn prefix(host: &str) -> String {
    format!("t-{}-", digest(&host))
}

fn digest(words: &impl fmt::Debug) -> String {
    blake3::hash(format!("{words:?}").as_bytes()).to_hex()[..16].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;
    use tempfile::tempdir;

    fn pids(folder: &ControlFolder, host: &str) -> Vec<i32> {
        folder.tunnels_to(host).expect("a folder").iter().map(Running::pid).collect()
    }

    #[tokio::test]
    async fn a_tunnel_is_found_by_its_host_while_it_is_held() {
        let base = tempdir().expect("a folder");
        let folder = ControlFolder::in_folder(base.path()).expect("a folder of one's own");
        let me = std::process::id().cast_signed();
        assert!(pids(&folder, "far").is_empty());
        let held = folder.hold("far").expect("a socket");
        assert_eq!((pids(&folder, "far"), pids(&folder, "me@far")), (vec![me], vec![]));
        assert_eq!(fs::read_dir(&folder.0).expect("a folder").count(), 1);
        drop(held);
        assert!(pids(&folder, "far").is_empty());
        assert_eq!(fs::read_dir(&folder.0).expect("a folder").count(), 0);
    }

    #[test]
    fn sockets_have_short_names_of_their_own() {
        let base = tempdir().expect("a folder");
        let folder = ControlFolder::in_folder(base.path()).expect("a folder of one's own");
        let [one, other] = [("far", 22), ("far", 23)].map(|words| folder.socket(&words));
        assert!(one != other && one.starts_with(&folder.0), "{one:?} {other:?}");
        assert_eq!(one.file_name().map(std::ffi::OsStr::len), Some(18));
        let error = connect(&one).expect_err("nobody listens");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_folder_that_others_can_write_is_refused() {
        let base = tempdir().expect("a folder");
        let folder = ControlFolder::in_folder(base.path()).expect("a folder of one's own");
        let mode = fs::metadata(&folder.0).expect("a folder").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        fs::set_permissions(&folder.0, Permissions::from_mode(0o770)).expect("a mode");
        let error = ControlFolder::in_folder(base.path()).expect_err("others can write");
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        std::os::unix::fs::symlink("/tmp", base.path().join("link")).expect("a link");
        fs::remove_dir(&folder.0).expect("a folder");
        std::os::unix::fs::symlink(base.path(), base.path().join("downpour")).expect("a link");
        assert!(ControlFolder::in_folder(base.path()).is_err(), "a link is nobody's folder");
    }
}
