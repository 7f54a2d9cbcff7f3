//! Copies between two remote hosts, which are one here: `there` sends to `b`.

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

/// The hosts, and the ssh of the one that sends.
struct Pair {
    hosts: Hosts,
    /// What that ssh reads.
    _there: Option<Client>,
    bin: TempDir,
}

impl Pair {
    /// Creates two hosts whose ssh knows neither keys nor hosts.
    fn of_strangers() -> Self {
        let bin = tempfile::Builder::new().prefix("downpour-ssh-").tempdir().expect("a directory");
        let path = format!("{}:{}", bin.path().display(), path_with_downpour());
        let network = Network::start();
        let setup = Setup { path: Some(&path), network: Some(&network), ..Setup::default() };
        let sshd = crate::sshd::Sshd::with(setup);
        let mut hosts = Hosts::of(sshd, Some(network));
        hosts.client = Client::of(&[("there", &hosts.sshd), ("b", &hosts.sshd)]);
        Self { hosts, _there: None, bin }
    }

    /// Creates two hosts that can log in to each other.
    fn of_friends() -> Self {
        let mut pair = Self::of_strangers();
        let address = Network::FAR.to_string();
        let client = Client::of(&[(&address, &pair.hosts.sshd)]);
        pair.ssh_there(&format!("echo \"$@\" >>{}; exec {} {} \"$@\"", pair.log().display(), find("ssh").display(), {
            let words = client.words();
            words.strip_prefix("ssh ").expect("ssh").to_owned()
        }));
        pair._there = Some(client);
        pair
    }

    /// Replaces the ssh of the host that sends.
    fn ssh_there(&self, line: &str) {
        let ssh = self.bin.path().join("ssh");
        fs::write(&ssh, format!("#!/bin/sh\n{line}\n")).expect("a script");
        fs::set_permissions(&ssh, fs::Permissions::from_mode(0o700)).expect("a mode");
    }

    /// The arguments of the logins from there.
    fn log(&self) -> PathBuf {
        self.bin.path().join("log")
    }

    fn there(&self, name: impl AsRef<Path>) -> PathBuf {
        self.hosts.there(name)
    }
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn a_host_that_can_log_in_to_the_other_sends_by_itself() {
    let pair = Pair::of_friends();
    let source = tree::directory(&pair.there("tree"));
    let told = pair.hosts.cp(arguments!["-rpv", "there:tree", "b:copy"]).expect(0).stderr;
    assert!(told.contains(&format!("Connected to {}:", Network::FAR)), "{told}");
    assert!(!told.contains("through this machine"), "{told}");
    tree::assert_same(&source, &pair.there("copy"));
    let login = fs::read_to_string(pair.log()).expect("a login");
    assert!(login.contains("-oBatchMode=yes") && login.contains("-p 2222"), "{login}");
    assert!(!login.contains("-A") && !login.contains("ForwardAgent"), "{login}");
    assert!(login.contains(&format!("-- {}@{}", crate::tools::user(), Network::FAR)), "{login}");

    // Names that every shell would mangle, and several sources.
    let odd = tree::file(&pair.there(odd_name()), 1000);
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
    tree::assert_same(&odd, &pair.there(&into).join(odd_name()));
    tree::assert_same(&source, &pair.there(&into).join("tree"));

    // A wildcard is for the host that has the sources.
    for (option, target) in [("-p", "matched"), ("-3", "through")] {
        pair.hosts.cp(arguments![option, "there:tree/on*", format!("b:{target}")]).expect(0);
        tree::assert_same(&source.join("one"), &pair.there(target));
    }
    let again = pair.hosts.run("sync", arguments!["--json", "--delete", "there:tree/", "b:copy"]).expect(0);
    assert_eq!(summary(&again)["unchanged"], summary(&again)["files"], "{}", again.stdout);
    let planned = pair.hosts.cp(arguments!["-rn", "there:tree", "b:not"]).expect(0);
    assert!(planned.stdout.lines().any(|line| line == "create not/in/some"), "{}", planned.stdout);
    pair.hosts.cp(arguments!["there:missing", "b:x"]).expect_line(3, "on there: missing");
    pair.hosts.cp(arguments!["there:tree/one", "b:no/such/directory"]).expect_line(1, "no does not exist");
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn a_host_that_cannot_log_in_to_the_other_sends_through_here() {
    let pair = Pair::of_strangers();
    let source = tree::directory(&pair.there("tree"));
    let told = pair.hosts.cp(arguments!["-rp", "there:tree", "b:copy"]).expect(0).stderr;
    let line = |told: &&str| {
        told.starts_with("there cannot copy to b by itself (")
            && told.ends_with("): the data goes through this machine")
    };
    assert!(told.lines().find(line).is_some_and(|line| line.contains("Host key verification failed")), "{told}");
    tree::assert_same(&source, &pair.there("copy"));
    pair.ssh_there("echo 'Welcome!'; echo 'you@b: Permission denied (publickey).' >&2; exit 255");
    let told = pair.hosts.cp(arguments!["there:tree/one", "b:one"]).expect(0).stderr;
    assert!(told.contains("you@b: Permission denied (publickey)): the data"), "{told}");
    tree::assert_same(&source.join("one"), &pair.there("one"));
    let told = pair.hosts.cp(arguments!["-3", "there:tree/one", "b:one"]).expect(0).stderr;
    assert!(!told.contains("through this machine"), "{told}");
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn a_stopped_copy_between_two_hosts_leaves_nothing_running_and_resumes() {
    let pair = Pair::of_friends();
    let source = large_file(&pair.there("file"));
    for through in [&[][..], &["-3"]] {
        let arguments = [&SLOWLY[..], &["--json", "there:file", "b:copy"], through].concat();
        let mut stopped = pair.hosts.start_cp(&arguments);
        let across = wait_for_bytes(&mut stopped, 3_000_000);
        stopped.signal(Signal::INT);
        stopped.end().expect_line(130, "stopped; run the same command to resume");
        pair.hosts.assert_nothing_runs_there();
        assert!(!pair.there("copy").exists());
        let again = pair.hosts.cp(&arguments).expect(0);
        tree::assert_same(&source, &pair.there("copy"));
        let present = summary(&again)["bytes_present"].as_u64().expect("a number");
        assert!(present > across / 2, "{present} of {across}");
        fs::remove_file(pair.there("copy")).expect("a file");
    }
    assert_holds_only(&pair.hosts.sshd.home(), &["file"]);
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn a_lost_connection_to_either_host_ends_the_copy() {
    let pair = Pair::of_friends();
    large_file(&pair.there("file"));
    for through in [&[][..], &["-3"]] {
        let arguments = [&SLOWLY[..], &["--json", "there:file", "b:copy"], through].concat();
        let mut broken = pair.hosts.start_cp(&arguments);
        wait_for_bytes(&mut broken, 2_000_000);
        pair.hosts.sshd.kill_sessions();
        let ended = broken.end();
        assert!(matches!(ended.status.code(), Some(5 | 8)), "{}", ended.stderr);
        pair.hosts.assert_nothing_runs_there();
        assert!(!pair.there("copy").exists());
    }
}
