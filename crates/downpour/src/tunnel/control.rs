//! The control sockets of a user's running tunnels, in a directory that only the user can change.
//!
//! The owner of such a socket answers with its process number, and exits on request.

use std::fmt;
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::task::JoinSet;

use super::grammar::ForwardAddress;
use super::listener::Listener;
use crate::private_directory::{absolute, cache_home, own_directory};

/// The maximum time that a tunnel takes to exit.
const GRACE: Duration = Duration::from_secs(10);

/// The byte that requests a tunnel to exit.
const END: u8 = b'e';

/// The directory of this user's sockets.
#[derive(Clone, Debug)]
pub struct ControlDirectory(PathBuf);

impl ControlDirectory {
    /// Opens the directory, in `$XDG_RUNTIME_DIR` or the user's cache, and creates it where it is missing.
    ///
    /// # Errors
    /// There is no such directory, or it belongs to another user; errors of the system.
    pub fn of_user() -> io::Result<Self> {
        let mut found = Err(io::ErrorKind::NotFound.into());
        // `sudo` may set the first to another user's.
        for base in absolute("XDG_RUNTIME_DIR").into_iter().chain(cache_home()) {
            let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", base.display()));
            found = Self::in_directory(&base).map_err(named);
            if found.is_ok() {
                break;
            }
        }
        found
    }

    fn in_directory(base: &Path) -> io::Result<Self> {
        own_directory(base, true).map(Self)
    }

    /// Returns the path of the socket that these words identify. It is short: the path of a socket has at most 107
    /// bytes.
    pub fn socket(&self, words: &impl fmt::Debug) -> PathBuf {
        self.0.join(format!("s-{}", digest(words)))
    }

    /// Announces that this process has a tunnel to `host`, until the result is dropped.
    ///
    /// # Errors
    /// Errors of the system.
    pub(crate) fn hold(&self, host: &str) -> io::Result<Listener> {
        Listener::bind(&ForwardAddress::Unix(self.0.join(format!("{}{}", prefix(host), std::process::id()))))
    }

    /// Returns the running tunnels to `host`.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn tunnels_to(&self, host: &str) -> io::Result<Vec<Running>> {
        let prefix = prefix(host);
        let mut found = Vec::new();
        for entry in self.0.read_dir()? {
            let entry = entry?;
            let name = entry.file_name();
            let Some(pid) = name.to_str().and_then(|name| name.strip_prefix(&prefix)) else { continue };
            match Running::ask(&entry.path()) {
                Ok(running) => found.push(running),
                // It was killed.
                Err(_) if !Path::new("/proc").join(pid).exists() => drop(std::fs::remove_file(entry.path())),
                Err(_) => {}
            }
        }
        found.sort_by_key(Running::pid);
        Ok(found)
    }
}

/// A running tunnel.
#[derive(Debug)]
pub struct Running {
    pid: u32,
    socket: UnixStream,
}

impl Running {
    fn ask(path: &Path) -> io::Result<Self> {
        let socket = UnixStream::connect(path)?;
        socket.set_read_timeout(Some(GRACE))?;
        let mut pid = [0; 4];
        (&socket).read_exact(&mut pid)?;
        Ok(Self { pid: u32::from_be_bytes(pid), socket })
    }

    /// Returns the number of its process.
    pub const fn pid(&self) -> u32 {
        self.pid
    }

    /// Ends the tunnel, and waits until it has exited.
    ///
    /// # Errors
    /// It does not exit.
    pub fn end(mut self) -> io::Result<()> {
        // Fails if it has exited.
        let _ = self.socket.write_all(&[END]);
        match self.socket.read(&mut [0]) {
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => Err(error),
            // Its socket is closed with it.
            _ => Ok(()),
        }
    }
}

/// Answers processes that search this tunnel; returns when one of them requests it to exit.
pub(crate) async fn answer(held: Listener) {
    let mut lookers = JoinSet::new();
    loop {
        tokio::select! {
            mut socket = held.accept() => {
                lookers.spawn(async move {
                    let pid = std::process::id().to_be_bytes();
                    let asks = socket.write_all(&pid).await.is_ok() && matches!(socket.read_u8().await, Ok(END));
                    (asks, socket)
                });
            }
            Some(asked) = lookers.join_next() => {
                if let Ok((true, socket)) = asked {
                    // The requesting process waits until the exit of this process closes it.
                    std::mem::forget(socket);
                    return;
                }
            }
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

    fn pids(directory: &ControlDirectory, host: &str) -> Vec<u32> {
        directory.tunnels_to(host).expect("a directory").iter().map(Running::pid).collect()
    }

    #[tokio::test]
    async fn control_socket_found_by_host_ends_tunnel() {
        let base = tempdir().expect("a directory");
        let directory = ControlDirectory::in_directory(base.path()).expect("a directory of one's own");
        assert!(pids(&directory, "far").is_empty());
        let answers = tokio::spawn(answer(directory.hold("far").expect("a socket")));
        let look = |directory: ControlDirectory, host| tokio::task::spawn_blocking(move || pids(&directory, host));
        assert_eq!(look(directory.clone(), "far").await.expect("no panic"), [std::process::id()]);
        assert!(look(directory.clone(), "me@far").await.expect("no panic").is_empty());
        let asked = directory.clone();
        tokio::task::spawn_blocking(move || {
            let running = asked.tunnels_to("far").expect("a directory").pop().expect("it runs");
            (&running.socket).write_all(&[END]).expect("it listens");
        });
        answers.await.expect("it was asked");
        // The socket of a killed process is removed. No process has this number.
        drop(
            std::os::unix::net::UnixListener::bind(directory.0.join(format!("{}99999999", prefix("far"))))
                .expect("a socket"),
        );
        assert!(pids(&directory, "far").is_empty());
        assert_eq!(fs::read_dir(&directory.0).expect("a directory").count(), 0);
    }

    #[test]
    fn sockets_have_short_names_of_their_own() {
        let base = tempdir().expect("a directory");
        let directory = ControlDirectory::in_directory(base.path()).expect("a directory of one's own");
        let [one, other] = [("far", 22), ("far", 23)].map(|words| directory.socket(&words));
        assert!(one != other && one.starts_with(&directory.0), "{one:?} {other:?}");
        assert_eq!(one.file_name().map(std::ffi::OsStr::len), Some(18));
    }

    #[test]
    fn control_directory_writable_by_others_refused() {
        let base = tempdir().expect("a directory");
        let directory = ControlDirectory::in_directory(base.path()).expect("a directory of one's own");
        let mode = fs::metadata(&directory.0).expect("a directory").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        fs::set_permissions(&directory.0, Permissions::from_mode(0o770)).expect("a mode");
        let error = ControlDirectory::in_directory(base.path()).expect_err("others can write");
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        fs::remove_dir(&directory.0).expect("a directory");
        std::os::unix::fs::symlink(base.path(), base.path().join("downpour")).expect("a link");
        assert!(ControlDirectory::in_directory(base.path()).is_err(), "a link is not a private directory");
    }
}
