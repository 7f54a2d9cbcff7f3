//! A separate sshd whose keys, port and home are removed with it.

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
use crate::tools::{find, stdout_of, words};

/// Time limit for sshd to start listening.
const PATIENCE: Duration = Duration::from_secs(10);
/// Another process may take the free port first.
const ATTEMPTS: usize = 5;

/// Runs at every login: changes to the home of the test and records the time.
const LOGIN: &str = r#"cd && : >../logged-in"#;
/// Runs the requested command as sshd itself would.
const COMMAND: &str = r#"exec "$SHELL" -c "$SSH_ORIGINAL_COMMAND""#;

/// Settings that differ between tests.
#[derive(Clone, Copy, Default)]
pub(crate) struct Setup<'a> {
    /// PATH of remote commands; sshd's default if `None`.
    pub(crate) path: Option<&'a str>,
    /// Listen in the far namespace of this network instead of the loopback interface.
    pub(crate) network: Option<&'a Network>,
    /// Shell lines that run at every login, like those of a start-up file.
    pub(crate) at_login: &'a str,
}

/// A running sshd. Dropping it ends it and every process that was started through it.
///
/// It also ends if the thread that started it ends for any other reason: it belongs to one test.
pub(crate) struct Sshd {
    directory: TempDir,
    address: Ipv4Addr,
    port: u16,
    process: Child,
}

impl Sshd {
    /// Starts an sshd on a free local port.
    pub(crate) fn start() -> Self {
        Self::with(Setup::default())
    }

    /// Starts an sshd with this setup.
    pub(crate) fn with(setup: Setup<'_>) -> Self {
        let directory = tempfile::Builder::new().prefix("downpour-ssh-").tempdir().expect("a directory");
        fs::create_dir(directory.path().join("home")).expect("a home");
        fs::write(directory.path().join("login"), format!("{LOGIN}\n{}\n{COMMAND}\n", setup.at_login))
            .expect("a script");
        for key in ["host", "user"] {
            let mut make = Command::new(find("ssh-keygen"));
            stdout_of(make.args(["-q", "-t", "ed25519", "-N", "", "-C", "", "-f"]).arg(directory.path().join(key)));
        }
        let address = setup.network.map_or(Ipv4Addr::LOCALHOST, |_| Network::FAR);
        let mut complaint = String::new();
        for _ in 0..ATTEMPTS {
            let port = if setup.network.is_some() { 2222 } else { free_port() };
            write_config(directory.path(), address, port, setup.path);
            match launch(directory.path(), setup.network) {
                Ok(process) => return Self { directory, address, port, process },
                Err(log) => complaint = log,
            }
            // Systems that start sshd at boot create this directory then. On others it is missing, and an sshd run by
            // root requires it.
            if let Some((_, missing)) = complaint.rsplit_once("Missing privilege separation directory: ") {
                fs::create_dir_all(missing.trim()).expect("a directory for sshd");
            }
        }
        panic!("sshd does not start: {complaint}");
    }

    /// Returns the address on which it listens.
    pub(crate) fn address(&self) -> (Ipv4Addr, u16) {
        (self.address, self.port)
    }

    /// Returns the path of the private key that it accepts.
    pub(crate) fn key(&self) -> PathBuf {
        self.directory.path().join("user")
    }

    /// Returns the public half of its host key.
    pub(crate) fn host_key(&self) -> String {
        fs::read_to_string(self.directory.path().join("host.pub")).expect("a host key").trim().to_owned()
    }

    /// Returns the remote home directory, where commands start.
    pub(crate) fn home(&self) -> PathBuf {
        self.directory.path().join("home")
    }

    /// Returns the time of the last login.
    pub(crate) fn last_login(&self) -> SystemTime {
        let stamp = fs::metadata(self.directory.path().join("logged-in")).expect("a login");
        stamp.modified().expect("a time")
    }

    /// Kills sshd and its sessions, like a crash. The commands they started live on.
    pub(crate) fn kill(&mut self) {
        self.end(|name| name.starts_with("sshd"));
    }

    /// Kills the sessions only: new logins work. The commands they started live on.
    pub(crate) fn kill_sessions(&self) {
        let below = descendants(self.process.id());
        let sessions: Vec<_> = below.iter().filter(|(_, name)| name.starts_with("sshd")).collect();
        assert!(!sessions.is_empty(), "there is no session");
        for (process, _) in sessions {
            // A session has two processes: the second may have ended with the first.
            let _ = kill_process(*process, Signal::KILL);
        }
    }

    fn end(&mut self, dies: impl Fn(&str) -> bool) {
        // Before sshd is killed, since its children get another parent then.
        let below = descendants(self.process.id());
        // An error means that the process has ended.
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
        // Commands whose session has ended have lost their parent, but their home still identifies them.
        for (process, _) in at_home(&self.home()) {
            let _ = kill_process(process, Signal::KILL);
        }
    }
}

/// Returns the processes with this home, and their arguments.
pub(crate) fn at_home(home: &Path) -> Vec<(Pid, Vec<String>)> {
    let home = [b"HOME=", home.as_os_str().as_bytes()].concat();
    // A process may end while it is examined.
    let parts = |path: PathBuf| fs::read(path).unwrap_or_default();
    let belongs = |entry: fs::DirEntry| {
        let process = Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)?;
        let environment = parts(entry.path().join("environ"));
        environment.split(|byte| *byte == 0).any(|variable| variable == home).then_some(())?;
        let arguments = parts(entry.path().join("cmdline"));
        Some((process, arguments.split(|byte| *byte == 0).map(words).collect()))
    };
    fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(belongs).collect()
}

/// Returns a port that was just free, since sshd cannot choose one itself.
fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    listener.local_addr().expect("an address").port()
}

/// Writes a configuration with the default ciphers that accepts only the key created here.
fn write_config(directory: &Path, address: Ipv4Addr, port: u16, path: Option<&str>) {
    let file = |name: &str| directory.join(name).display().to_string();
    let path = path.map_or(String::new(), |path| format!(" PATH={path}"));
    let config = [
        format!("ListenAddress {address}:{port}"),
        format!("HostKey {}", file("host")),
        format!("AuthorizedKeysFile {}", file("user.pub")),
        "AuthenticationMethods publickey".to_owned(),
        "PermitRootLogin yes".to_owned(),
        // The keys lie in a temporary directory, whose parent is writable by all users.
        "StrictModes no".to_owned(),
        "UsePAM no".to_owned(),
        "PidFile none".to_owned(),
        "MaxStartups 100".to_owned(),
        // A home without shell start-up files, and a cache outside it: whether a transfer writes the path cache depends
        // on its duration.
        format!("SetEnv HOME={} XDG_CACHE_HOME={}{path}", file("home"), file("cache")),
        format!("ForceCommand exec /bin/sh {}", file("login")),
    ];
    fs::write(directory.join("config"), config.join("\n") + "\n").expect("sshd's configuration");
}

/// Starts sshd and waits until it listens. Otherwise returns its error output.
fn launch(directory: &Path, network: Option<&Network>) -> Result<Child, String> {
    let mut command = network.map_or_else(|| Command::new(find("setpriv")), |network| network.far_login("setpriv"));
    command.args(["--pdeathsig", "KILL"]).arg(find("sshd")).args(["-D", "-e", "-f"]).arg(directory.join("config"));
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

/// Forwards the lines from a pipe. Drains the pipe until it is closed, even if there is no receiver.
fn lines(pipe: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            let _ = sender.send(line);
        }
    });
    receiver
}

/// Returns the descendants of a process and their names.
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

/// Returns id, parent and name of a process: `12 (name) S 1 ...` (proc_pid_stat(5)).
fn stat(path: &Path) -> Option<(u32, u32, String)> {
    let text = fs::read_to_string(path).ok()?;
    let (process, rest) = text.split_once(" (")?;
    let (name, rest) = rest.rsplit_once(") ")?;
    Some((process.parse().ok()?, rest.split(' ').nth(1)?.parse().ok()?, name.to_owned()))
}
