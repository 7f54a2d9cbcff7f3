//! An sshd of our own: a free port, keys of its own, a directory that goes away; and the programs that copy through it.

use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::program::{Guard, start};
use xtask::failure::Failure;
use xtask::tools;

const PATIENCE: Duration = Duration::from_secs(10);

/// A running sshd and the files of a client.
pub(super) struct Server {
    directory: TempDir,
    port: u16,
    user: String,
    _process: Guard,
}

impl Server {
    /// Starts one.
    pub(super) fn start() -> Result<Self, Failure> {
        let sshd = tools::find("sshd").ok_or_else(|| Failure::new("sshd is not installed"))?;
        let keygen = tools::find("ssh-keygen").ok_or_else(|| Failure::new("ssh-keygen is not installed"))?;
        tools::find("scp").ok_or_else(|| Failure::new("scp is not installed"))?;
        let directory =
            tempfile::Builder::new().prefix("downpour-bench-ssh-").tempdir().map_err(Failure::at("a directory"))?;
        for key in ["host", "user"] {
            let mut make = Command::new(&keygen);
            tools::run(make.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(directory.path().join(key)))?;
        }
        let user = Command::new("id").arg("-un").output().map_err(Failure::at("id -un"))?;
        let user = String::from_utf8_lossy(&user.stdout).trim().to_owned();
        let port = free_port()?;
        write_config(directory.path(), port)?;
        let process = match launch(&sshd, directory.path(), port) {
            // Systems that start sshd at boot make this directory then; others have none, and the administrator's sshd
            // insists on it.
            Err(complaint) => match complaint.rsplit_once("Missing privilege separation directory: ") {
                Some((_, missing)) => {
                    fs::create_dir_all(missing.trim()).map_err(Failure::at(missing.trim()))?;
                    launch(&sshd, directory.path(), port)
                }
                None => Err(complaint),
            },
            process => process,
        };
        let process =
            process.map_err(|complaint| Failure::new(format_args!("sshd does not start: {}", complaint.trim())))?;
        Ok(Self { directory, port, user, _process: process })
    }

    /// The options that lead ssh, and scp, to it.
    pub(super) fn options(&self) -> Vec<String> {
        let mut options = vec!["-F".to_owned(), "none".to_owned()];
        for option in [
            "BatchMode=yes",
            "IdentitiesOnly=yes",
            "LogLevel=ERROR",
            "StrictHostKeyChecking=no",
            "UserKnownHostsFile=/dev/null",
            &format!("Port={}", self.port),
        ] {
            options.extend(["-o".to_owned(), option.to_owned()]);
        }
        options.extend(["-i".to_owned(), self.directory.path().join("user").display().to_string()]);
        options
    }

    /// A remote path in the form of scp.
    pub(super) fn there(&self, path: &Path) -> String {
        format!("{}@127.0.0.1:{}", self.user, path.display())
    }

    /// Copies a file or a directory through it with scp; the time that took.
    pub(super) fn copy(&self, source: &Path, target: &Path) -> Result<Duration, Failure> {
        let mut scp = Command::new("scp");
        scp.args(["-q", "-r"]).args(self.options()).arg(source).arg(self.there(target));
        timed(&mut scp)
    }

    /// The same with rsync.
    pub(super) fn rsync(&self, rsync: &Path, source: &Path, target: &Path) -> Result<Duration, Failure> {
        let mut command = Command::new(rsync);
        command.args(["-a", "-e", &format!("ssh {}", self.options().join(" "))]).arg(source).arg(self.there(target));
        timed(&mut command)
    }
}

fn timed(command: &mut Command) -> Result<Duration, Failure> {
    let started = Instant::now();
    tools::run(command)?;
    Ok(started.elapsed())
}

/// A recently free port: sshd cannot choose one itself.
fn free_port() -> Result<u16, Failure> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(Failure::at("127.0.0.1"))?;
    listener.local_addr().map(|address| address.port()).map_err(Failure::at("127.0.0.1"))
}

/// The system's defaults decide about ciphers; only the key made here can log in.
fn write_config(directory: &Path, port: u16) -> Result<(), Failure> {
    let path = |name: &str| directory.join(name).display().to_string();
    let config = [
        format!("Port {port}"),
        "ListenAddress 127.0.0.1".into(),
        format!("HostKey {}", path("host")),
        format!("AuthorizedKeysFile {}", path("user.pub")),
        "AuthenticationMethods publickey".into(),
        "PermitRootLogin prohibit-password".into(),
        // The keys are in a temporary directory with a world-writable parent.
        "StrictModes no".into(),
        "UsePAM no".into(),
        "PidFile none".into(),
        "Subsystem sftp internal-sftp".into(),
    ];
    fs::write(directory.join("config"), config.join("\n") + "\n").map_err(Failure::at("sshd's configuration"))
}

/// Starts sshd and waits for its port; the error has its output.
fn launch(sshd: &Path, directory: &Path, port: u16) -> Result<Guard, String> {
    let log: PathBuf = directory.join("log");
    let file = File::create(&log).map_err(|error| error.to_string())?;
    let mut command = Command::new(sshd);
    command.args(["-D", "-e", "-f"]).arg(directory.join("config")).stderr(file);
    let mut process = Guard(start(&mut command).map_err(|failure| failure.to_string())?);
    let started = Instant::now();
    while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
        let over = process.0.try_wait().map_err(|error| error.to_string())?.is_some();
        if over || started.elapsed() > PATIENCE {
            return Err(fs::read_to_string(&log).unwrap_or_else(|error| error.to_string()));
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(process)
}
