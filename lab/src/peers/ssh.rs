//! scp, rsync, `downpour cp` and forwarded connections over ssh, through an sshd of their own, whose keys and
//! configuration are removed after the run.
//!
//! None of these programs can choose a congestion control of TCP, so the hosts' routes do.

use std::fs;
use std::io;
use std::net::SocketAddrV4;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rustix::process::getuid;

use super::carrier::Carrier;
use super::downpour::DOWNPOUR;
use super::error::PeerError;
use super::peer::{Need, Peer, PeerKind};
use super::process::Process;
use super::run::{TransferRun, Unfinished};
use crate::testbed::Protocol;

pub(super) const SSHD: Need = Need::Program { name: "sshd", install: "apt-get install openssh-server", version: &[] };
pub(super) const SSH: Need = Need::Program { name: "ssh", install: "apt-get install openssh-client", version: &["-V"] };
pub(super) const KEYGEN: Need =
    Need::Program { name: "ssh-keygen", install: "apt-get install openssh-client", version: &[] };
const SCP: Need = Need::Program { name: "scp", install: "apt-get install openssh-client", version: &[] };
const RSYNC: Need = Need::Program { name: "rsync", install: "apt-get install rsync", version: &["--version"] };
/// The time limit of a login: a dozen round trips with losses.
pub(super) const LOGIN: Duration = Duration::from_secs(60);
/// For [`Identity::Alone`].
pub(super) const UNSHARE: Need = Need::Program { name: "unshare", install: "apt-get install util-linux", version: &[] };

/// scp, encrypted, with ssh's default ciphers.
const OVER_SSH: Peer = Peer {
    name: "",
    needs: &[SSHD, SSH, KEYGEN, UNSHARE, SCP],
    encrypted: true,
    route_congestion: Some("cubic"),
    ecn: false,
    fixed_rate: false,
    clock: ["scp is started, and has yet to log in", "the received file has its full length"],
    play: PeerKind::File(scp),
};

/// rsync, likewise.
const RSYNCED: Peer = Peer {
    needs: &[SSHD, SSH, KEYGEN, UNSHARE, RSYNC],
    clock: ["rsync is started, and has yet to log in", "the received file has its name and full length"],
    play: PeerKind::File(rsync),
    ..OVER_SSH
};

/// `downpour cp`, with the clock of scp, from the login to the arrival of the file.
const DOWNPOUR_CP: Peer = Peer {
    needs: &[SSHD, SSH, KEYGEN, UNSHARE, DOWNPOUR],
    clock: ["downpour is started, and has yet to log in", "the received file has its name and full length"],
    play: PeerKind::File(downpour_cp),
    ..OVER_SSH
};

/// Connections that ssh forwards (`-L`).
const FORWARDED: Peer = Peer {
    needs: &[SSHD, SSH, KEYGEN, UNSHARE],
    clock: [
        "a TCP sender is started at ssh's near end, which has logged in",
        "the stamp of the TCP receiver at the far end when the last byte is in its file",
    ],
    play: PeerKind::Connections(forward),
    ..OVER_SSH
};

pub(super) const PEERS: &[Peer] = &[
    Peer { name: "scp-cubic", ..OVER_SSH },
    Peer { name: "scp-bbr", route_congestion: Some("bbr"), ..OVER_SSH },
    Peer { name: "rsync-cubic", ..RSYNCED },
    Peer { name: "rsync-bbr", route_congestion: Some("bbr"), ..RSYNCED },
    Peer { name: "downpour-cp", ..DOWNPOUR_CP },
    Peer { name: "ssh-forward-cubic", ..FORWARDED },
    Peer { name: "ssh-forward-bbr", route_congestion: Some("bbr"), ..FORWARDED },
];

fn scp(run: &mut TransferRun<'_>) -> Result<Duration, Unfinished> {
    let server = Server::start(run)?;
    let mut scp = run.program("scp");
    scp.arg("-q").args(server.options()).arg(run.stage.source()).arg(server.target(run));
    server.timed(run, scp)
}

fn rsync(run: &mut TransferRun<'_>) -> Result<Duration, Unfinished> {
    let server = Server::start(run)?;
    let mut rsync = run.program("rsync");
    // There is no previous file to compare with.
    rsync.args(["--whole-file", "-e", &format!("ssh {}", server.options().join(" "))]);
    rsync.arg(run.stage.source()).arg(server.target(run));
    server.timed(run, rsync)
}

fn downpour_cp(run: &mut TransferRun<'_>) -> Result<Duration, Unfinished> {
    let server = Server::start(run)?;
    let program = run.program("downpour").get_program().to_owned();
    let mut copy = run.downpour("cp");
    // Without the path cache: each run is the first over its path.
    copy.args(["--quiet", "--no-path-cache", "--bootstrap", "never", "--ssh"]);
    copy.arg(format!("ssh {}", server.options().join(" "))).arg("--remote-bin").arg(program);
    for (key, value) in &run.job.choices {
        copy.arg("--set").arg(format!("{key}={value}"));
    }
    copy.arg(run.stage.source()).arg(server.target(run));
    server.timed(run, copy)
}

fn forward(run: &mut TransferRun<'_>, target: SocketAddrV4) -> Result<Carrier, Unfinished> {
    let server = Server::start(run)?;
    let entry = SocketAddrV4::new(run.from.address(), TransferRun::free_port(run.from)?);
    let mut ssh = run.program("ssh");
    ssh.args(["-o", "ExitOnForwardFailure=yes", "-L", &format!("{entry}:{target}")]).args(server.options());
    // Without a command (-N) sshd leaves Nagle's algorithm on, and an echo waits for the acknowledgement of the last.
    ssh.arg(server.place(run)).arg("sleep infinity");
    run.patience = LOGIN;
    let mut client = run.start(run.from, ssh)?;
    // It does not listen before it has logged in.
    run.listens(&mut client, run.from, Protocol::Tcp, entry.port())?;
    Ok(Carrier { entry, congestion: None, processes: vec![client, server.process] })
}

/// A running sshd on the receiving host.
pub(super) struct Server {
    port: u16,
    user: String,
    pub(super) process: Process,
}

/// The user that runs sshd and may log in.
enum Identity {
    /// The user who runs the lab, who is not root.
    Own(String),
    /// A user that exists only for sshd and its children, in a user namespace below the lab's.
    Alone,
}

/// The user of [`Identity::Alone`], and its number in that namespace.
const ALONE: (&str, u32) = ("lab", 1000);

impl Server {
    pub(super) fn start(run: &mut TransferRun<'_>) -> Result<Self, Unfinished> {
        for key in ["host", "user"] {
            let mut make = run.program("ssh-keygen");
            make.args(["-q", "-t", "ed25519", "-N", "", "-C", "", "-f"]).arg(run.stage.own(key));
            run.complete(run.to, make)?;
        }
        let port = TransferRun::free_port(run.to)?;
        let config = run.stage.own("sshd_config");
        write_config(run, &config, port).map_err(PeerError::at("sshd's configuration"))?;
        let sshd = run.program("sshd");
        let sshd = Path::new(sshd.get_program()).to_owned();
        let (user, mut command) = match identity().map_err(PeerError::at("id -un"))? {
            Identity::Own(user) => (user, Command::new(&sshd)),
            Identity::Alone => {
                let command = alone(run, &sshd).map_err(PeerError::at("a user for sshd"))?;
                (ALONE.0.to_owned(), command)
            }
        };
        command.args(["-D", "-e", "-f"]).arg(config);
        let mut process = run.start(run.to, command)?;
        run.listens(&mut process, run.to, Protocol::Tcp, port)?;
        Ok(Self { port, user, process })
    }

    /// Returns options that direct ssh, scp and rsync to it, regardless of the user's own configuration: words without
    /// spaces, at which rsync would split them. File names are relative to the working directory of the programs.
    pub(super) fn options(&self) -> Vec<String> {
        let mut options = vec!["-F".to_owned(), "none".to_owned()];
        for option in [
            "BatchMode=yes",
            "IdentitiesOnly=yes",
            "IdentityAgent=none",
            "LogLevel=ERROR",
            "StrictHostKeyChecking=no",
            "GlobalKnownHostsFile=/dev/null",
            "UserKnownHostsFile=known_hosts",
            "IdentityFile=user",
            &format!("Port={}", self.port),
        ] {
            options.extend(["-o".to_owned(), option.to_owned()]);
        }
        options
    }

    /// Returns the user and the host.
    pub(super) fn place(&self, run: &TransferRun<'_>) -> String {
        format!("{}@{}", self.user, run.to.address())
    }

    /// Returns the remote file.
    fn target(&self, run: &TransferRun<'_>) -> String {
        format!("{}:{}", self.place(run), run.stage.target().display())
    }

    /// Runs the copying program to its end; returns the time at which the file had arrived, since ssh takes further
    /// round trips to disconnect.
    fn timed(mut self, run: &mut TransferRun<'_>, command: Command) -> Result<Duration, Unfinished> {
        run.start_clock();
        let mut copy = run.start(run.from, command)?;
        let arrived = run.full(&mut copy, &mut [&mut self.process])?;
        run.exit(&mut copy, &mut [&mut self.process])?;
        Ok(arrived)
    }
}

/// Writes a configuration that accepts only the key made for this run; ciphers are the system's defaults.
fn write_config(run: &TransferRun<'_>, path: &Path, port: u16) -> io::Result<()> {
    let own = |name: &str| run.stage.own(name).display().to_string();
    let config = [
        format!("Port {port}"),
        format!("ListenAddress {}", run.to.address()),
        format!("HostKey {}", own("host")),
        format!("AuthorizedKeysFile {}", own("user.pub")),
        "AuthenticationMethods publickey".into(),
        "PermitRootLogin prohibit-password".into(),
        // The keys are in a temporary directory, whose parent is world-writable.
        "StrictModes no".into(),
        "UsePAM no".into(),
        // Names are not looked up on a host without a resolver.
        "UseDNS no".into(),
        "PidFile none".into(),
        "Subsystem sftp internal-sftp".into(),
    ];
    fs::write(path, config.join("\n") + "\n")
}

/// Chooses the identity. As root, sshd switches to other users, of which a user namespace has none. It also requires a
/// directory that only the system's own sshd creates. So it must not run as root.
fn identity() -> io::Result<Identity> {
    if getuid().is_root() {
        return Ok(Identity::Alone);
    }
    let name = Command::new("id").arg("-un").output()?.stdout;
    Ok(Identity::Own(String::from_utf8_lossy(&name).trim().to_owned()))
}

/// Returns a command for sshd as a user from its own list of users.
fn alone(run: &TransferRun<'_>, sshd: &Path) -> io::Result<Command> {
    let (name, number) = ALONE;
    let users = run.stage.own("passwd");
    let home = run.stage.own("");
    fs::write(&users, format!("{name}:x:{number}:{number}::{}:/bin/sh\n", home.display()))?;
    let script = format!(
        "users=$1; shift; mount --bind \"$users\" /etc/passwd && \
         exec unshare --user --map-user={number} --map-group={number} -- \"$@\""
    );
    let mut command = run.program("unshare");
    command.args(["--user", "--map-root-user", "--mount", "--", "sh", "-c", &script, "sh"]).arg(users).arg(sshd);
    Ok(command)
}
