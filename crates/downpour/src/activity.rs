//! Lists a user's running transfers: each process listens on a unix socket in a directory that only its user can
//! change, and reports its state to every connection of this user.
//!
//! A search removes the sockets of killed processes. A process that does not answer, because it is stopped or its host
//! is busy, is listed without its state.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::iter;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with, sockopt,
};
use rustix::process::{Pid, geteuid, test_kill_process};
use serde::{Deserialize, Serialize};

use crate::private_directory::{absolute, own_directory, temporary_directory};
use crate::transfer::Progress;

/// Searchers that may wait for an answer.
const BACKLOG: i32 = 16;

/// Time in which a searcher must read the answer.
const TO_READ: Duration = Duration::from_secs(1);

/// Prefix of the name of a socket until it listens.
const NEW: &str = "new-";

/// Maximum number of named sources.
const NAMED: usize = 4;

/// Maximum length of an answer in bytes: far more than a path and some numbers.
const MAX_ANSWER: u64 = 1 << 20;

/// The state of a running process.
///
/// Read by other releases: a new field needs a default.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Activity {
    /// The command, such as `cp`.
    pub command: String,
    /// Its sources as the user named them. Raw: programs must escape them before display.
    pub from: Vec<String>,
    /// The destination, a path or a host, if the command has one.
    pub to: Option<String>,
    /// When it began, in seconds since 1970.
    pub began: u64,
    /// Its current state.
    #[serde(default)]
    pub state: State,
    /// The progress of a transfer, once it has begun.
    #[serde(default)]
    pub progress: Option<Progress>,
    /// Receivers that are currently served, by a sender whose ticket is for several; each has its own progress.
    #[serde(default)]
    pub receivers: u64,
    /// Bytes of standard input that a pipe has read.
    #[serde(default)]
    pub piped: Option<u64>,
    /// Open connections of a tunnel, and all since it began.
    #[serde(default)]
    pub connections: Option<(u64, u64)>,
}

/// The state of a transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Waiting for the peer.
    #[default]
    Waiting,
    /// Waiting for an answer of its user.
    Asking,
    /// Connected.
    Connected,
    /// Stopping on request.
    Stopping,
}

impl Activity {
    /// Returns the state of a command that begins now. Of many sources only the first few are named, followed by the
    /// number of the others: an answer has a bounded length.
    #[must_use]
    pub fn begun(command: &str, mut from: Vec<String>, to: Option<String>) -> Self {
        if from.len() > NAMED + 1 {
            let more = format!("and {} more", from.len() - NAMED);
            from.truncate(NAMED);
            from.push(more);
        }
        let now = runtime::system_time().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self { command: command.to_owned(), from, to, began: now.as_secs(), ..Self::default() }
    }

    /// Returns the time since it began.
    #[must_use]
    pub fn age(&self) -> Duration {
        let began = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(self.began));
        began.and_then(|began| runtime::system_time().duration_since(began).ok()).unwrap_or_default()
    }
}

/// Publishes the state of this process until it is dropped.
#[derive(Debug)]
pub struct Announcement {
    path: PathBuf,
    inode: (u64, u64),
}

impl Announcement {
    /// Starts to answer with the result of `activity`.
    ///
    /// # Errors
    /// There is no directory for the socket; errors of the system.
    pub fn start(activity: impl Fn() -> Activity + Send + 'static) -> io::Result<Self> {
        // Where the path of a directory is too long for a socket, another directory is used.
        let hidden = hidden(&name());
        let is_short = |directory: &PathBuf| SocketAddrUnix::new(directory.join(&hidden)).is_ok();
        let directory = directories(true).find(is_short).ok_or(io::ErrorKind::NotFound)?;
        Self::start_in(&directory, activity)
    }

    fn start_in(directory: &Path, activity: impl Fn() -> Activity + Send + 'static) -> io::Result<Self> {
        let name = name();
        let (path, hidden) = (directory.join(&name), directory.join(hidden(&name)));
        // Left by a killed process with the same number.
        let _ = fs::remove_file(&hidden);
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        bind(&socket, &SocketAddrUnix::new(&hidden)?)?;
        // Nothing can connect before it listens, and no search takes this name for that of a killed process.
        fs::set_permissions(&hidden, fs::Permissions::from_mode(0o600))?;
        listen(&socket, BACKLOG)?;
        fs::rename(&hidden, &path)?;
        let found = path.symlink_metadata()?;
        let this = Self { inode: (found.dev(), found.ino()), path };
        let listener = UnixListener::from(socket);
        // The thread ends with the process.
        runtime::spawn("downpour-status", move || answer(&listener, &activity))?;
        Ok(this)
    }
}

impl Drop for Announcement {
    fn drop(&mut self) {
        let is_own = |found: fs::Metadata| (found.dev(), found.ino()) == self.inode;
        if self.path.symlink_metadata().is_ok_and(is_own) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Answers every connection of this user, or of root.
fn answer(listener: &UnixListener, activity: &impl Fn() -> Activity) {
    for socket in listener.incoming() {
        let Ok(mut socket) = socket else {
            // Out of descriptors: others will be closed.
            runtime::sleep(Duration::from_millis(100));
            continue;
        };
        let is_known = |uid: rustix::process::Uid| uid == geteuid() || uid.is_root();
        if !sockopt::socket_peercred(&socket).is_ok_and(|peer| is_known(peer.uid)) {
            continue;
        }
        let text = serde_json::to_vec(&activity()).unwrap_or_default();
        // A searcher that does not read gets nothing.
        let _ = socket.set_write_timeout(Some(TO_READ)).and_then(|()| socket.write_all(&text));
    }
}

/// A running process.
#[derive(Debug)]
pub struct Running {
    /// Its process number.
    pub pid: u32,
    /// Its state; `None` if it does not answer.
    pub activity: Option<Activity>,
}

/// Returns this user's processes on this host in the order of their numbers. Waits at most `patience` for all of them
/// together. Removes the sockets of killed processes.
#[must_use]
pub fn running(patience: Duration) -> Vec<Running> {
    running_in(&directories(false).collect::<Vec<_>>(), patience)
}

fn running_in(directories: &[PathBuf], patience: Duration) -> Vec<Running> {
    let deadline = runtime::now() + patience;
    let prefix = prefix();
    let mut asked = Vec::new();
    for directory in directories {
        for entry in directory.read_dir().into_iter().flatten().flatten() {
            let name = entry.file_name();
            if name.to_str().is_some_and(|name| is_abandoned(name, &prefix)) {
                let _ = fs::remove_file(entry.path());
            }
            let pid = name.to_str().and_then(|name| name.strip_prefix(&prefix)?.parse().ok());
            let Some(pid) = pid else { continue };
            match dial(&entry.path()) {
                Ok(socket) => asked.push((pid, Some(socket))),
                Err(Errno::CONNREFUSED) => drop(fs::remove_file(entry.path())),
                // Its queue of searchers is full: it does not answer.
                Err(Errno::AGAIN) => asked.push((pid, None)),
                // It has just exited.
                Err(_) => {}
            }
        }
    }
    let mut found = collect_answers(asked, deadline);
    found.sort_by_key(|running| running.pid);
    found
}

/// Returns the name of this process's socket.
fn name() -> String {
    format!("{}{}", prefix(), std::process::id())
}

/// Returns the name of a socket until it listens.
fn hidden(name: &str) -> String {
    format!("{NEW}{name}")
}

/// Returns whether a name is that of a socket whose process was killed before it listened.
fn is_abandoned(name: &str, prefix: &str) -> bool {
    let pid = name.strip_prefix(NEW).and_then(|name| name.strip_prefix(prefix)?.parse().ok()).and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid) == Err(Errno::SRCH))
}

/// Connects without waiting.
fn dial(path: &Path) -> Result<UnixStream, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket: OwnedFd = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket.into())
}

/// A process that was queried, and the bytes of its answer so far.
struct Query {
    pid: u32,
    /// `None` once the answer is complete.
    socket: Option<UnixStream>,
    text: Vec<u8>,
    activity: Option<Activity>,
}

impl Query {
    /// Reads the available bytes without waiting.
    fn read_available(&mut self) {
        let mut buffer = [0; 16 << 10];
        while let Some(socket) = &mut self.socket {
            match socket.read(&mut buffer) {
                Ok(0) => {
                    self.activity = serde_json::from_slice(&self.text).ok();
                    self.socket = None;
                }
                Ok(count) if (self.text.len() + count) as u64 <= MAX_ANSWER => {
                    self.text.extend_from_slice(&buffer[..count]);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Ok(_) | Err(_) => self.socket = None,
            }
        }
    }
}

/// Waits until `deadline` for the answers in any order: a process that does not answer takes no time from the others.
fn collect_answers(asked: Vec<(u32, Option<UnixStream>)>, deadline: Instant) -> Vec<Running> {
    let asked = asked.into_iter().map(|(pid, socket)| Query { pid, socket, text: Vec::new(), activity: None });
    let mut asked: Vec<Query> = asked.collect();
    loop {
        asked.iter_mut().for_each(Query::read_available);
        let sockets = asked.iter().filter_map(|asked| asked.socket.as_ref());
        let mut awaited: Vec<PollFd<'_>> = sockets.map(|socket| PollFd::new(socket, PollFlags::IN)).collect();
        let left = deadline.saturating_duration_since(runtime::now());
        if awaited.is_empty() || left.is_zero() {
            break;
        }
        // A signal only causes another round.
        let _ = poll(&mut awaited, Timespec::try_from(left).ok().as_ref());
    }
    asked.into_iter().map(|Query { pid, activity, .. }| Running { pid, activity }).collect()
}

/// Returns the directories in which this user's processes may be found, the one for a new process first. Two terminals
/// may have different environments, such as those of cron or `sudo`.
fn directories(create: bool) -> impl Iterator<Item = PathBuf> {
    let by_login = PathBuf::from(format!("/run/user/{}", geteuid().as_raw()));
    let bases = absolute("XDG_RUNTIME_DIR").into_iter().chain(by_login.is_dir().then_some(by_login));
    let in_bases = bases.map(move |base| own_directory(&base, create));
    let mut found: Vec<PathBuf> = Vec::new();
    in_bases.chain(iter::once_with(move || temporary_directory(create))).filter_map(Result::ok).filter(
        move |directory| {
            let is_new = !found.contains(directory);
            found.push(directory.clone());
            is_new
        },
    )
}

/// Returns the prefix of the socket names of this host. A home may be shared between hosts, and between containers with
/// process numbers of their own.
fn prefix() -> String {
    let uname = rustix::system::uname();
    let machine = fs::read("/etc/machine-id").unwrap_or_default();
    let processes = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    let words = format!("{:?} {machine:?} {processes:?}", uname.nodename());
    format!("a-{}-", &blake3::hash(words.as_bytes()).to_hex()[..8])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};
    use std::thread;
    use tempfile::{TempDir, tempdir};

    const PATIENCE: Duration = Duration::from_secs(20);

    fn copying() -> Activity {
        Activity::begun("cp", vec!["a".to_owned()], Some("far:b".to_owned()))
    }

    /// Returns a private directory, as [`own_directory`] makes it.
    fn directory() -> (TempDir, PathBuf) {
        let base = tempdir().expect("a directory");
        let own = own_directory(base.path(), true).expect("a directory of one's own");
        (base, own)
    }

    #[test]
    fn announced_process_found_with_state() {
        let (_base, own) = directory();
        let find = || running_in(std::slice::from_ref(&own), PATIENCE);
        assert!(find().is_empty());
        let state = Arc::new(Mutex::new(copying()));
        let now = Arc::clone(&state);
        let current = move || now.lock().expect("no panic").clone();
        let announced = Announcement::start_in(&own, current).expect("a socket");
        let [Running { pid, activity: Some(activity) }] = &find()[..] else { panic!("{:?}", find()) };
        assert_eq!((*pid, activity.command.as_str(), activity.state), (std::process::id(), "cp", State::Waiting));
        state.lock().expect("no panic").state = State::Connected;
        assert_eq!(find()[0].activity.as_ref().expect("an answer").state, State::Connected);
        let mode = fs::read_dir(&own).expect("a directory").map(|entry| {
            let found = entry.expect("an entry").metadata().expect("a socket");
            found.permissions().mode() & 0o777
        });
        assert_eq!(mode.collect::<Vec<_>>(), [0o600], "independent of the umask, and the only file");
        drop(announced);
        assert_eq!(fs::read_dir(&own).expect("a directory").count(), 0);
    }

    #[test]
    fn search_removes_only_sockets_of_killed_processes() {
        let (_base, own) = directory();
        let left = own.join(format!("{}99999999", prefix()));
        drop(UnixListener::bind(&left).expect("a socket"));
        let other = own.join("a-00000000-1");
        let begun = [own.join(format!("{NEW}{}99999999", prefix())), own.join(hidden(&name()))];
        begun.iter().for_each(|path| drop(UnixListener::bind(path).expect("a socket")));
        drop(UnixListener::bind(&other).expect("a socket"));
        fs::write(own.join("paths.json"), "{}").expect("a file");
        assert!(running_in(std::slice::from_ref(&own), PATIENCE).is_empty());
        assert!(!begun[0].exists() && begun[1].exists(), "this process may be about to listen");
        assert!(!left.exists() && other.exists() && own.join("paths.json").exists());
    }

    #[test]
    fn activity_names_at_most_four_sources() {
        let names = |count: u32| Activity::begun("cp", (0..count).map(|name| name.to_string()).collect(), None).from;
        assert_eq!(names(0), [] as [&str; 0]);
        assert_eq!(names(5), ["0", "1", "2", "3", "4"]);
        assert_eq!(names(20_000), ["0", "1", "2", "3", "and 19996 more"]);
    }

    /// Some are stopped, one has a full queue, one sends nonsense, and one never ends its answer. Of those that answer,
    /// none is missed, whatever the order in the directory.
    #[test]
    fn unresponsive_process_delays_no_others() {
        let (_base, own) = directory();
        let place = |pid: u32| own.join(format!("{}{pid}", prefix()));
        let listener = |pid: u32| UnixListener::bind(place(pid)).expect("a socket");
        let _stopped: Vec<_> = (11..20).map(listener).collect();
        for pid in 21..30 {
            let listener = listener(pid);
            thread::spawn(move || answer(&listener, &copying));
        }
        let socket =
            socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).expect("a socket");
        bind(&socket, &SocketAddrUnix::new(place(2)).expect("an address")).expect("a name");
        listen(&socket, 0).expect("a listener");
        let waiting: Vec<_> = iter::from_fn(|| dial(&place(2)).ok()).collect();
        assert!(!waiting.is_empty());
        let nonsense = listener(3);
        thread::spawn(move || nonsense.accept().and_then(|(mut socket, _)| socket.write_all(b"{\"command\":7}")));
        let endless = listener(4);
        thread::spawn(move || {
            let (mut socket, _) = endless.accept().expect("a searcher");
            while socket.write_all(&[b' '; 4096]).is_ok() {}
        });
        let found = running_in(std::slice::from_ref(&own), Duration::from_millis(500));
        let answers: Vec<_> = found.iter().map(|running| (running.pid, running.activity.is_some())).collect();
        let expected =
            [2, 3, 4].into_iter().chain(11..20).map(|pid| (pid, false)).chain((21..30).map(|pid| (pid, true)));
        assert_eq!(answers, expected.collect::<Vec<_>>());
    }
}
