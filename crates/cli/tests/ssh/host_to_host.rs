//! Copies between two remote hosts, which are the same host in these tests: `there` sends to `b`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use rustix::process::Signal;
use tempfile::TempDir;

use crate::client::Client;
use crate::hosts::{
    Hosts, SLOWLY, assert_holds_only, large_file, odd_name, path_with_downpour, summary, wait_for_bytes,
};
use crate::network::Network;
use crate::program::arguments;
use crate::sshd::Setup;
use crate::tools::find;
use crate::tree;

/// The hosts, and the ssh of the sending host.
struct Pair {
    hosts: Hosts,
    /// The configuration of that ssh.
    _client: Option<Client>,
    bin: TempDir,
}

impl Pair {
    /// Creates two hosts whose ssh knows neither keys nor hosts.
    fn without_keys() -> Self {
        let bin = tempfile::Builder::new().prefix("downpour-ssh-").tempdir().expect("a directory");
        let path = format!("{}:{}", bin.path().display(), path_with_downpour());
        let network = Network::start();
        let setup = Setup { path: Some(&path), network: Some(&network), ..Setup::default() };
        let sshd = crate::sshd::Sshd::with(setup);
        let mut hosts = Hosts::of(sshd, Some(network));
        hosts.client = Client::of(&[("there", &hosts.sshd), ("b", &hosts.sshd)]);
        Self { hosts, _client: None, bin }
    }

    /// Creates two hosts that can log in to each other.
    fn with_keys() -> Self {
        let mut pair = Self::without_keys();
        let address = Network::FAR.to_string();
        let client = Client::of(&[(&address, &pair.hosts.sshd)]);
        pair.replace_remote_ssh(&format!(
            "echo \"$@\" >>{}; exec {} {} \"$@\"",
            pair.log().display(),
            find("ssh").display(),
            {
                let words = client.words();
                words.strip_prefix("ssh ").expect("ssh").to_owned()
            }
        ));
        pair._client = Some(client);
        pair
    }

    /// Replaces the ssh of the host that sends.
    fn replace_remote_ssh(&self, line: &str) {
        let ssh = self.bin.path().join("ssh");
        fs::write(&ssh, format!("#!/bin/sh\n{line}\n")).expect("a script");
        fs::set_permissions(&ssh, fs::Permissions::from_mode(0o700)).expect("a mode");
    }

    /// The log of arguments of logins from the sending host.
    fn log(&self) -> PathBuf {
        self.bin.path().join("log")
    }

    fn remote(&self, name: impl AsRef<Path>) -> PathBuf {
        self.hosts.remote(name)
    }
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn direct_copy_between_hosts() {
    let pair = Pair::with_keys();
    let source = tree::directory(&pair.remote("tree"));
    let stderr = pair.hosts.cp(arguments!["-rpv", "there:tree", "b:copy"]).expect(0).stderr;
    assert!(stderr.contains(&format!("Connected to {}:", Network::FAR)), "{stderr}");
    assert!(!stderr.contains("through this host"), "{stderr}");
    tree::assert_same(&source, &pair.remote("copy"));
    let login = fs::read_to_string(pair.log()).expect("a login");
    assert!(login.contains("-oBatchMode=yes") && login.contains("-p 2222"), "{login}");
    assert!(!login.contains("-A") && !login.contains("ForwardAgent"), "{login}");
    assert!(login.contains(&format!("-- {}@{}", crate::tools::user(), Network::FAR)), "{login}");

    // Names that every shell would mangle, and several sources.
    let odd = tree::file(&pair.remote(odd_name()), 1000);
    let from = |name: &Path| {
        let mut location = std::ffi::OsString::from("there:");
        location.push(name);
        location
    };
    let mut to = std::ffi::OsString::from("b:into ");
    to.push(odd_name());
    pair.hosts.cp(arguments!["-r", from(odd_name()), from(Path::new("tree")), to]).expect(0);
    let mut into = std::ffi::OsString::from("into ");
    into.push(odd_name());
    tree::assert_same(&odd, &pair.remote(&into).join(odd_name()));
    tree::assert_same(&source, &pair.remote(&into).join("tree"));

    // The host with the sources expands a wildcard.
    for (option, target) in [("-p", "matched"), ("-3", "through")] {
        pair.hosts.cp(arguments![option, "there:tree/on*", format!("b:{target}")]).expect(0);
        tree::assert_same(&source.join("one"), &pair.remote(target));
    }
    let again = pair.hosts.run("sync", arguments!["--json", "--delete", "there:tree/", "b:copy"]).expect(0);
    assert_eq!(summary(&again)["unchanged"], summary(&again)["files"], "{}", again.stdout);
    let planned = pair.hosts.cp(arguments!["-rn", "there:tree", "b:not"]).expect(0);
    assert!(planned.stdout.lines().any(|line| line == "create not/in/some"), "{}", planned.stdout);
    pair.hosts.cp(arguments!["there:missing", "b:x"]).expect_line(3, "there: missing");
    pair.hosts.cp(arguments!["there:tree/one", "b:no/such/directory"]).expect_line(1, "no does not exist");
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn direct_login_failure_relays_copy() {
    let pair = Pair::without_keys();
    let source = tree::directory(&pair.remote("tree"));
    let stderr = pair.hosts.cp(arguments!["-rp", "there:tree", "b:copy"]).expect(0).stderr;
    let line = |stderr: &&str| {
        stderr.starts_with("there cannot copy to b directly (") && stderr.ends_with("): relaying through this host")
    };
    assert!(stderr.lines().find(line).is_some_and(|line| line.contains("Host key verification failed")), "{stderr}");
    tree::assert_same(&source, &pair.remote("copy"));
    pair.replace_remote_ssh("echo 'Welcome!'; echo 'you@b: Permission denied (publickey).' >&2; exit 255");
    let stderr = pair.hosts.cp(arguments!["there:tree/one", "b:one"]).expect(0).stderr;
    assert!(stderr.contains("you@b: Permission denied (publickey)): relaying"), "{stderr}");
    tree::assert_same(&source.join("one"), &pair.remote("one"));
    let stderr = pair.hosts.cp(arguments!["-3", "there:tree/one", "b:one"]).expect(0).stderr;
    assert!(!stderr.contains("through this host"), "{stderr}");
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn stopped_host_to_host_copy_resumes() {
    let pair = Pair::with_keys();
    let source = large_file(&pair.remote("file"));
    for through in [&[][..], &["-3"]] {
        let arguments = [&SLOWLY[..], &["--json", "there:file", "b:copy"], through].concat();
        let mut stopped = pair.hosts.start_cp(&arguments);
        let across = wait_for_bytes(&mut stopped, 3_000_000);
        stopped.signal(Signal::INT);
        stopped.end().expect_error(130);
        pair.hosts.assert_remote_idle();
        assert!(!pair.remote("copy").exists());
        let again = pair.hosts.cp(&arguments).expect(0);
        tree::assert_same(&source, &pair.remote("copy"));
        let present = summary(&again)["bytes_present"].as_u64().expect("a number");
        assert!(present > across / 2, "{present} of {across}");
        fs::remove_file(pair.remote("copy")).expect("a file");
    }
    assert_holds_only(&pair.hosts.sshd.home(), &["file"]);
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn killed_session_ends_host_to_host_copy() {
    let pair = Pair::with_keys();
    large_file(&pair.remote("file"));
    for through in [&[][..], &["-3"]] {
        let arguments = [&SLOWLY[..], &["--json", "there:file", "b:copy"], through].concat();
        let mut broken = pair.hosts.start_cp(&arguments);
        wait_for_bytes(&mut broken, 2_000_000);
        pair.hosts.sshd.kill_sessions();
        let ended = broken.end();
        assert!(matches!(ended.status.code(), Some(5 | 8)), "{}", ended.stderr);
        pair.hosts.assert_remote_idle();
        assert!(!pair.remote("copy").exists());
    }
}
