//! Two network namespaces joined by a cable with a firewall. No privileges are needed if users may create namespaces.

use std::io::{BufRead, BufReader, Write};
use std::net::Ipv4Addr;
use std::process::{Child, Command, Stdio};

use rustix::process::{getegid, geteuid};

use crate::tools::{find, stdout_of};

/// The near namespace, of the caller, and the far one, of sshd. Removed on drop, and when the creating process ends.
pub(crate) struct Network {
    near: Holder,
    far: Holder,
}

impl Network {
    /// Address of the near namespace.
    pub(crate) const NEAR: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 1);
    /// Address of the far namespace.
    pub(crate) const FAR: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 2);

    /// Creates both namespaces and the cable.
    pub(crate) fn start() -> Self {
        let mut unshare = Command::new(find("unshare"));
        if !geteuid().is_root() {
            unshare.args(["--user", "--map-root-user"]);
        }
        let near = Holder::start(unshare);
        let far = Holder::start(near.enter("unshare"));
        let network = Self { near, far };
        let far_process = network.far.process.id().to_string();
        for arguments in [
            "link add name near type veth peer name far",
            &format!("link set far netns {far_process}"),
            &format!("address add {}/24 dev near", Self::NEAR),
            "link set near up",
            "link set lo up",
        ] {
            stdout_of(network.near("ip").args(arguments.split(' ')));
        }
        for arguments in [&format!("address add {}/24 dev far", Self::FAR), "link set far up", "link set lo up"] {
            stdout_of(network.far("ip").args(arguments.split(' ')));
        }
        network
    }

    /// Returns a command that runs in the near namespace.
    pub(crate) fn near(&self, program: &str) -> Command {
        self.near.enter(program)
    }

    /// Returns a command that runs in the far namespace.
    pub(crate) fn far(&self, program: &str) -> Command {
        self.far.enter(program)
    }

    /// Same as [`Self::far`] for a program that must not see itself as root. Without privileges, the user is root
    /// inside the namespaces, but cannot become another user, which sshd would try.
    pub(crate) fn far_login(&self, program: &str) -> Command {
        if geteuid().is_root() {
            return self.far(program);
        }
        let mut command = self.far("unshare");
        command.arg(format!("--map-user={}", geteuid())).arg(format!("--map-group={}", getegid())).arg(find(program));
        command
    }

    /// Makes the far namespace silently drop all UDP packets in both directions.
    pub(crate) fn drop_udp(&self) {
        self.drop(&["input", "output"], "meta l4proto udp");
    }

    /// Makes the far namespace silently drop incoming UDP packets.
    pub(crate) fn drop_udp_to_remote(&self) {
        self.drop(&["input"], "meta l4proto udp");
    }

    /// Makes the far namespace silently drop outgoing UDP packets.
    pub(crate) fn drop_udp_from_remote(&self) {
        self.drop(&["output"], "meta l4proto udp");
    }

    /// Makes the far namespace drop all UDP packets in both directions that exceed this size, including the IP header.
    pub(crate) fn drop_udp_above(&self, bytes: u32) {
        self.drop(&["input", "output"], &format!("meta l4proto udp meta length > {bytes}"));
    }

    /// Makes the far namespace drop all packets.
    pub(crate) fn cut(&self) {
        self.drop(&["input", "output"], "");
    }

    /// Stops dropping packets.
    pub(crate) fn pass_udp(&self) {
        stdout_of(self.far("nft").args(["delete", "table", "inet", "firewall"]));
    }

    fn drop(&self, hooks: &[&str], which: &str) {
        let mut rules = "table inet firewall {\n".to_owned();
        for hook in hooks {
            rules +=
                &format!("chain {hook} {{ type filter hook {hook} priority filter; policy accept; {which} drop; }}\n");
        }
        rules += "}\n";
        let mut nft = self.far("nft");
        let mut process = nft.args(["-f", "-"]).stdin(Stdio::piped()).spawn().expect("nft");
        process.stdin.take().expect("a piped stdin").write_all(rules.as_bytes()).expect("rules");
        assert!(process.wait().expect("nft").success(), "{nft:?} refuses {rules}");
    }
}

/// An idle process that keeps a namespace alive until its stdin is closed.
struct Holder {
    process: Child,
}

impl Holder {
    /// Creates a network namespace. `unshare` is the program of that name with options for further namespaces.
    fn start(mut unshare: Command) -> Self {
        unshare.args(["--net", "sh", "-c", "echo ready; exec cat"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = unshare.spawn().unwrap_or_else(|error| panic!("{unshare:?}: {error}"));
        let mut line = String::new();
        let mut output = BufReader::new(process.stdout.take().expect("a piped stdout"));
        output.read_line(&mut line).expect("a line");
        assert_eq!(line, "ready\n", "{unshare:?} makes no namespace: does this system allow users to?");
        Self { process }
    }

    /// Returns a command that runs in the namespace.
    fn enter(&self, program: &str) -> Command {
        let mut nsenter = Command::new(find("nsenter"));
        if !geteuid().is_root() {
            nsenter.args(["--user", "--preserve-credentials"]);
        }
        nsenter.arg("--net").arg(format!("--target={}", self.process.id())).arg(find(program));
        nsenter
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
