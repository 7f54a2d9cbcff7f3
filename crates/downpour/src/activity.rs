//! How a user's transfers are found while they run: each process listens on a unix socket in a directory that only its
//! user can change, and tells whoever of this user connects what it is doing.
//!
//! What a killed process has left is removed by the next search. A process that does not answer, since it is stopped or
//! its machine is busy, is found without what it is doing.

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

/// Searchers that may wait to be answered.
const BACKLOG: i32 = 16;

/// How long a searcher may take to read what it is told.
const TO_READ: Duration = Duration::from_secs(1);

/// What the name of a socket begins with until it listens.
const NEW: &str = "new-";

/// Sources that are named.
const NAMED: usize = 4;

/// The longest answer that is read, in bytes: far more than a path and some numbers.
const MAX_ANSWER: u64 = 1 << 20;

/// What a process is doing.
///
/// It crosses from one release to another: a new field needs a default.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Activity {
    /// The command, such as `cp`.
    pub command: String,
    /// What it moves, as the user has named it. Raw: programs must escape it before display.
    pub from: Vec<String>,
    /// Where to, a path or a host, if that is named.
    pub to: Option<String>,
    /// When it began, in seconds since 1970.
    pub began: u64,
    /// What it is doing now.
    #[serde(default)]
    pub state: State,
    /// How far a transfer is, once it has begun.
    #[serde(default)]
    pub progress: Option<Progress>,
    /// Receivers that are served at present, of a sender whose ticket is for several; each has its own progress.
    #[serde(default)]
    pub receivers: u64,
    /// Bytes of standard input that a pipe has read.
    #[serde(default)]
    pub piped: Option<u64>,
    /// Connections that a tunnel has open, and all since it began.
    #[serde(default)]
    pub connections: Option<(u64, u64)>,
}

/// What a transfer is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It waits for the other side.
    #[default]
    Waiting,
    /// Its user is asked.
    Asking,
    /// It has connected.
    Connected,
    /// It was told to stop.
    Stopping,
}

impl Activity {
    /// Returns what begins now. Of many sources, as a wildcard may have put on a command line, the first few are named,
    /// and how many there are beside them: an answer has a bounded length.
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

/// Shows what this process is doing, for as long as this lives.
#[derive(Debug)]
pub struct Announcement {
    path: PathBuf,
    inode: (u64, u64),
}

impl Announcement {
    /// Begins to answer with what `told` returns.
    ///
    /// # Errors
    /// There is no directory for the socket; the system's.
    pub fn start(told: impl Fn() -> Activity + Send + 'static) -> io::Result<Self> {
        // Where the path of a directory is too long for a socket's, another takes it.
        let hidden = hidden(&name());
        let is_short = |directory: &PathBuf| SocketAddrUnix::new(directory.join(&hidden)).is_ok();
        let directory = directories(true).find(is_short).ok_or(io::ErrorKind::NotFound)?;
        Self::start_in(&directory, told)
    }

    fn start_in(directory: &Path, told: impl Fn() -> Activity + Send + 'static) -> io::Result<Self> {
        let name = name();
        let (path, hidden) = (directory.join(&name), directory.join(hidden(&name)));
        // What a killed process has left that had this number.
        let _ = fs::remove_file(&hidden);
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        bind(&socket, &SocketAddrUnix::new(&hidden)?)?;
        // Nobody can connect before it listens, and nothing takes it for that of a killed process under this name.
        fs::set_permissions(&hidden, fs::Permissions::from_mode(0o600))?;
        listen(&socket, BACKLOG)?;
        fs::rename(&hidden, &path)?;
        let found = path.symlink_metadata()?;
        let this = Self { inode: (found.dev(), found.ino()), path };
        let listener = UnixListener::from(socket);
        // It ends with the process.
        runtime::spawn("downpour-status", move || answer(&listener, &told))?;
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

/// Answers everybody who is this user, or root.
fn answer(listener: &UnixListener, told: &impl Fn() -> Activity) {
    for socket in listener.incoming() {
        let Ok(mut socket) = socket else {
            // For lack of descriptors: others will be closed.
            runtime::sleep(Duration::from_millis(100));
            continue;
        };
        let is_known = |uid: rustix::process::Uid| uid == geteuid() || uid.is_root();
        if !sockopt::socket_peercred(&socket).is_ok_and(|peer| is_known(peer.uid)) {
            continue;
        }
        let text = serde_json::to_vec(&told()).unwrap_or_default();
        // A searcher that does not read gets nothing.
        let _ = socket.set_write_timeout(Some(TO_READ)).and_then(|()| socket.write_all(&text));
    }
}

/// A process that runs.
#[derive(Debug)]
pub struct Running {
    /// Its number.
    pub pid: u32,
    /// What it is doing; `None` if it does not answer.
    pub activity: Option<Activity>,
}

/// Returns what this user has running on this machine, in the order of the processes' numbers. Waits `patience` at most
/// for all of them together. Removes what killed processes have left.
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
                // As many searchers wait as may: it answers none.
                Err(Errno::AGAIN) => asked.push((pid, None)),
                // It has ended just now.
                Err(_) => {}
            }
        }
    }
    let mut found = hear_all(asked, deadline);
    found.sort_by_key(|running| running.pid);
    found
}

/// The name of this process's socket.
fn name() -> String {
    format!("{}{}", prefix(), std::process::id())
}

/// The name of a socket until it listens.
fn hidden(name: &str) -> String {
    format!("{NEW}{name}")
}

/// Whether a name is that of a socket whose process was killed before it listened.
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

/// A process that was asked, and the part of its answer that has come.
struct Asked {
    pid: u32,
    /// `None` once it says no more.
    socket: Option<UnixStream>,
    text: Vec<u8>,
    activity: Option<Activity>,
}

impl Asked {
    /// Reads what has come, without waiting.
    fn hear(&mut self) {
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

/// Waits until `deadline` for the answers, in the order in which they come: one process that does not answer takes no
/// time from the others.
fn hear_all(asked: Vec<(u32, Option<UnixStream>)>, deadline: Instant) -> Vec<Running> {
    let asked = asked.into_iter().map(|(pid, socket)| Asked { pid, socket, text: Vec::new(), activity: None });
    let mut asked: Vec<Asked> = asked.collect();
    loop {
        asked.iter_mut().for_each(Asked::hear);
        let sockets = asked.iter().filter_map(|asked| asked.socket.as_ref());
        let mut awaited: Vec<PollFd<'_>> = sockets.map(|socket| PollFd::new(socket, PollFlags::IN)).collect();
        let left = deadline.saturating_duration_since(runtime::now());
        if awaited.is_empty() || left.is_zero() {
            break;
        }
        // A signal only makes it look once more.
        let _ = poll(&mut awaited, Timespec::try_from(left).ok().as_ref());
    }
    asked.into_iter().map(|Asked { pid, activity, .. }| Running { pid, activity }).collect()
}

/// Returns the directories in which this user's processes may be found, the one for a new process first. A second
/// terminal may have another environment than the first, as one of cron or `sudo` has.
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

/// What the names of sockets of this machine begin with. A home may be shared between machines, and between containers
/// whose processes have numbers of their own.
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

    /// A directory of one's own, as [`own_directory`] makes it.
    fn directory() -> (TempDir, PathBuf) {
        let base = tempdir().expect("a directory");
        let own = own_directory(base.path(), true).expect("a directory of one's own");
        (base, own)
    }

    #[test]
    fn a_process_is_found_with_what_it_does_while_it_is_announced() {
        let (_base, own) = directory();
        let find = || running_in(std::slice::from_ref(&own), PATIENCE);
        assert!(find().is_empty());
        let told = Arc::new(Mutex::new(copying()));
        let now = Arc::clone(&told);
        let tell = move || now.lock().expect("no panic").clone();
        let announced = Announcement::start_in(&own, tell).expect("a socket");
        let [Running { pid, activity: Some(activity) }] = &find()[..] else { panic!("{:?}", find()) };
        assert_eq!((*pid, activity.command.as_str(), activity.state), (std::process::id(), "cp", State::Waiting));
        told.lock().expect("no panic").state = State::Connected;
        assert_eq!(find()[0].activity.as_ref().expect("an answer").state, State::Connected);
        let mode = fs::read_dir(&own).expect("a directory").map(|entry| {
            let found = entry.expect("an entry").metadata().expect("a socket");
            found.permissions().mode() & 0o777
        });
        assert_eq!(mode.collect::<Vec<_>>(), [0o600], "whatever the umask, and nothing beside it");
        drop(announced);
        assert_eq!(fs::read_dir(&own).expect("a directory").count(), 0);
    }

    #[test]
    fn what_a_killed_process_has_left_is_removed_and_what_is_no_socket_of_this_machine_stays() {
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
    fn of_many_sources_a_few_are_named() {
        let names = |count: u32| Activity::begun("cp", (0..count).map(|name| name.to_string()).collect(), None).from;
        assert_eq!(names(0), [] as [&str; 0]);
        assert_eq!(names(5), ["0", "1", "2", "3", "4"]);
        assert_eq!(names(20_000), ["0", "1", "2", "3", "and 19996 more"]);
    }

    /// Some that have stopped, one whose queue is full, one that says nonsense, and one that never ends. Of those that
    /// answer, none is missed, in whatever order a directory lists them.
    #[test]
    fn a_process_that_does_not_answer_takes_nothing_from_the_others() {
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
