//! An sshd of a test's own: keys, a port and a home that go away with it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, SystemTime};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::network::Network;
use crate::tools::{find, said, words};

/// For sshd to begin to listen.
const PATIENCE: Duration = Duration::from_secs(10);
/// Somebody else may take a free port first.
const ATTEMPTS: usize = 5;

/// Every login goes through this: commands start in the home of the test, and the time is put down.
const LOGIN: &str = r#"cd && : >../logged-in"#;
/// What was asked for, as sshd itself runs it.
const COMMAND: &str = r#"exec "$SHELL" -c "$SSH_ORIGINAL_COMMAND""#;

/// What is not the same for every test.
#[derive(Clone, Copy, Default)]
pub(crate) struct Setup<'a> {
    /// PATH over there; by default that of sshd.
    pub(crate) path: Option<&'a str>,
    /// Listen on the far side of this network instead of the loopback interface.
    pub(crate) network: Option<&'a Network>,
    /// Lines of shell that run at every login, as those in a start-up file do.
    pub(crate) at_login: &'a str,
}

/// A running sshd. When it is dropped, it ends with every process that was started through it.
///
/// It also ends when the thread that started it does, however that comes about: it belongs to one test.
pub(crate) struct Sshd {
    folder: TempDir,
    address: Ipv4Addr,
    port: u16,
    process: Child,
}

impl Sshd {
    /// Starts one on a free port of this machine.
    pub(crate) fn start() -> Self {
        Self::with(Setup::default())
    }

    /// Starts one.
    pub(crate) fn with(setup: Setup<'_>) -> Self {
        let folder = tempfile::Builder::new().prefix("downpour-ssh-").tempdir().expect("a folder");
        fs::create_dir(folder.path().join("home")).expect("a home");
        fs::write(folder.path().join("login"), format!("{LOGIN}\n{}\n{COMMAND}\n", setup.at_login)).expect("a script");
        for key in ["host", "user"] {
            let mut make = Command::new(find("ssh-keygen"));
            said(make.args(["-q", "-t", "ed25519", "-N", "", "-C", "", "-f"]).arg(folder.path().join(key)));
        }
        let address = setup.network.map_or(Ipv4Addr::LOCALHOST, |_| Network::FAR);
        let mut complaint = String::new();
        for _ in 0..ATTEMPTS {
            let port = if setup.network.is_some() { 2222 } else { free_port() };
            write_config(folder.path(), address, port, setup.path);
            match launch(folder.path(), setup.network) {
                Ok(process) => return Self { folder, address, port, process },
                Err(log) => complaint = log,
            }
            // Systems that start sshd at boot make this folder then; others have none, and the administrator's sshd insists on it.
            if let Some((_, missing)) = complaint.rsplit_once("Missing privilege separation directory: ") {
                fs::create_dir_all(missing.trim()).expect("a folder for sshd");
            }
        }
        panic!("sshd does not start: {complaint}");
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> (Ipv4Addr, u16) {
        (self.address, self.port)
    }

    /// The private key that it lets in.
    pub(crate) fn key(&self) -> PathBuf {
        self.folder.path().join("user")
    }

    /// The public half of its own key.
    pub(crate) fn host_key(&self) -> String {
        fs::read_to_string(self.folder.path().join("host.pub")).expect("a host key").trim().to_owned()
    }

    /// The home folder over there, where commands start.
    pub(crate) fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// When somebody last logged in.
    pub(crate) fn last_login(&self) -> SystemTime {
        let stamp = fs::metadata(self.folder.path().join("logged-in")).expect("somebody who has logged in");
        stamp.modified().expect("a time")
    }

    /// Kills sshd and its sessions, as a crash would; the commands over there live on.
    pub(crate) fn kill(&mut self) {
        self.end(|name| name.starts_with("sshd"));
    }

    /// Kills the sessions alone: others may log in again. The commands over there live on.
    pub(crate) fn kill_sessions(&self) {
        let below = descendants(self.process.id());
        let sessions: Vec<_> = below.iter().filter(|(_, name)| name.starts_with("sshd")).collect();
        assert!(!sessions.is_empty(), "nobody is logged in");
        for (process, _) in sessions {
            // A session is two processes: the second may have ended with the first.
            let _ = kill_process(*process, Signal::KILL);
        }
    }

    fn end(&mut self, dies: impl Fn(&str) -> bool) {
        // Before sshd itself: its children have another parent then.
        let below = descendants(self.process.id());
        // What fails here has ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
        for (process, _) in below.iter().filter(|(_, name)| dies(name)) {
            let _ = kill_process(*process, Signal::KILL);
        }
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        self.end(|_| true);
        // Commands whose session has ended are nobody's children; they still have the home that only this sshd gives.
        for (process, _) in at_home(&self.home()) {
            let _ = kill_process(process, Signal::KILL);
        }
    }
}

/// The processes whose home this is, with their arguments.
pub(crate) fn at_home(home: &Path) -> Vec<(Pid, Vec<String>)> {
    let home = [b"HOME=", home.as_os_str().as_bytes()].concat();
    // A process may end while it is looked at.
    let parts = |path: PathBuf| fs::read(path).unwrap_or_default();
    let live_here = |entry: fs::DirEntry| {
        let process = Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)?;
        let environment = parts(entry.path().join("environ"));
        environment.split(|byte| *byte == 0).any(|variable| variable == home).then_some(())?;
        let arguments = parts(entry.path().join("cmdline"));
        Some((process, arguments.split(|byte| *byte == 0).map(words).collect()))
    };
    fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(live_here).collect()
}

/// A port that was free a moment ago: sshd cannot be asked to choose one.
fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    listener.local_addr().expect("an address").port()
}

/// The system's own defaults decide about ciphers; nobody but the key made here gets in.
fn write_config(folder: &Path, address: Ipv4Addr, port: u16, path: Option<&str>) {
    let file = |name: &str| folder.join(name).display().to_string();
    let path = path.map_or(String::new(), |path| format!(" PATH={path}"));
    let config = [
        format!("ListenAddress {address}:{port}"),
        format!("HostKey {}", file("host")),
        format!("AuthorizedKeysFile {}", file("user.pub")),
        "AuthenticationMethods publickey".to_owned(),
        "PermitRootLogin yes".to_owned(),
        // The keys lie in a temporary folder, whose parent everybody may write to.
        "StrictModes no".to_owned(),
        "UsePAM no".to_owned(),
        "PidFile none".to_owned(),
        "MaxStartups 100".to_owned(),
        // A home without a shell's start files.
        format!("SetEnv HOME={}{path}", file("home")),
        format!("ForceCommand exec /bin/sh {}", file("login")),
    ];
    fs::write(folder.join("config"), config.join("\n") + "\n").expect("sshd's configuration");
}

/// Starts sshd and waits until it listens; what it said where it does not.
fn launch(folder: &Path, network: Option<&Network>) -> Result<Child, String> {
    let mut command = network.map_or_else(|| Command::new(find("setpriv")), |network| network.far_login("setpriv"));
    command.args(["--pdeathsig", "KILL"]).arg(find("sshd")).args(["-D", "-e", "-f"]).arg(folder.join("config"));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut process = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let lines = lines(process.stderr.take().expect("a piped stderr"));
    let mut log = String::new();
    loop {
        match lines.recv_timeout(PATIENCE) {
            Ok(line) if line.starts_with("Server listening on ") => return Ok(process),
            Ok(line) => log += &format!("{line}\n"),
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => log += "nothing for 10 s",
        }
    }
    let _ = process.kill();
    let _ = process.wait();
    Err(log)
}

/// What comes out of a pipe. The pipe is emptied until it is closed, whether somebody listens or not.
fn lines(pipe: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            let _ = sender.send(line);
        }
    });
    receiver
}

/// The processes below one, with their names.
fn descendants(of: u32) -> Vec<(Pid, String)> {
    let processes: Vec<(u32, u32, String)> =
        fs::read_dir("/proc").expect("/proc").filter_map(|entry| stat(&entry.ok()?.path().join("stat"))).collect();
    let (mut below, mut parents) = (Vec::new(), vec![of]);
    while let Some(parent) = parents.pop() {
        for (process, _, name) in processes.iter().filter(|(_, its, _)| *its == parent) {
            parents.push(*process);
            below.extend(Pid::from_raw(process.cast_signed()).map(|pid| (pid, name.clone())));
        }
    }
    below
}

/// Number, parent and name of a process: `12 (name) S 1 ...` (proc_pid_stat(5)).
fn stat(path: &Path) -> Option<(u32, u32, String)> {
    let text = fs::read_to_string(path).ok()?;
    let (process, rest) = text.split_once(" (")?;
    let (name, rest) = rest.rsplit_once(") ")?;
    Some((process.parse().ok()?, rest.split(' ').nth(1)?.parse().ok()?, name.to_owned()))
}
