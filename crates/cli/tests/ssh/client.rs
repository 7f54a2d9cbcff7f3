//! ssh with a separate configuration.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

use crate::sshd::Sshd;
use crate::tools::user;

/// An ssh configuration for the hosts of a test.
pub(crate) struct Client {
    directory: TempDir,
}

impl Client {
    /// Creates a configuration with these hosts, their names and their keys.
    pub(crate) fn of(hosts: &[(&str, &Sshd)]) -> Self {
        let client =
            Self { directory: tempfile::Builder::new().prefix("downpour-ssh-").tempdir().expect("a directory") };
        let user = user();
        let mut config = String::new();
        for (name, host) in hosts {
            let (address, port) = host.address();
            let key = host.key();
            config += &format!("Host {name}\n  HostName {address}\n  Port {port}\n  User {user}\n");
            config += &format!("  HostKeyAlias {name}\n  IdentityFile {}\n", key.display());
        }
        config += &format!(
            "Host *\n  UserKnownHostsFile {}\n  GlobalKnownHostsFile /dev/null\n  StrictHostKeyChecking yes\n  \
             IdentitiesOnly yes\n  IdentityAgent none\n  BatchMode yes\n  ConnectTimeout 10\n  LogLevel ERROR\n",
            client.known_hosts().display()
        );
        fs::write(client.config(), config).expect("ssh's configuration");
        let keys: Vec<(&str, String)> = hosts.iter().map(|(name, host)| (*name, host.host_key())).collect();
        client.know(&keys);
        client
    }

    /// Replaces the expected keys of the hosts.
    pub(crate) fn know(&self, keys: &[(&str, String)]) {
        let lines: String = keys.iter().map(|(name, key)| format!("{name} {key}\n")).collect();
        fs::write(self.known_hosts(), lines).expect("known hosts");
    }

    /// Returns the ssh command, without options, host and command.
    pub(crate) fn ssh(&self) -> Command {
        let mut ssh = Command::new("ssh");
        ssh.arg("-F").arg(self.config());
        ssh
    }

    /// Returns the same command as the text for `--ssh`.
    pub(crate) fn words(&self) -> String {
        format!("ssh -F {}", self.config().display())
    }

    fn config(&self) -> PathBuf {
        self.directory.path().join("config")
    }

    fn known_hosts(&self) -> PathBuf {
        self.directory.path().join("known_hosts")
    }
}
