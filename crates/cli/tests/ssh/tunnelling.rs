//! `tunnel` with a real login, and real ssh and curl through it.

use std::fs;
use std::process::Command;

use rustix::process::Signal;

use crate::hosts::Hosts;
use crate::program::Program;
use crate::tools::{DOWNPOUR, find, output_of, words as words_of};
use crate::tree;

/// Opens a tunnel whose first forward has port 0; returns the port that it got.
fn open(hosts: &Hosts, arguments: &[&str]) -> (Program, u16) {
    let mut command = hosts.command("tunnel");
    command.args(arguments).arg("there");
    let mut tunnel = Program::start(command);
    let line = tunnel.wait_for_words("localhost:");
    let port = line.split_once("localhost:").and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
    tunnel.wait_for_words("The tunnel to there is open");
    (tunnel, port.expect("a port"))
}

/// ssh logs in through the tunnel, before and after the login that began it is killed, and carries a file.
#[test]
#[ignore = "cargo xtask test-ssh"]
fn tunnel_carries_ssh_after_login_killed() {
    let hosts = Hosts::start();
    let (address, port) = hosts.sshd.address();
    let (tunnel, through) = open(&hosts, &["-L", &format!("0:{address}:{port}")]);
    let input = tree::file(&hosts.local("input"), 20_000_000);
    let login = |command: &str| {
        let mut ssh = hosts.client.ssh();
        ssh.args(["-o", "HostName=127.0.0.1", "-p", &through.to_string(), "there", command]);
        ssh.stdin(fs::File::open(&input).expect("a file"));
        output_of(&mut ssh)
    };
    let sent = login("cat");
    assert!(sent.status.success() && sent.stdout == fs::read(&input).expect("a file"), "{}", words_of(&sent.stderr));
    hosts.sshd.kill_sessions();
    let sent = login("cat");
    assert!(sent.status.success() && sent.stdout == fs::read(&input).expect("a file"), "{}", words_of(&sent.stderr));
    tunnel.signal(Signal::TERM);
    assert_eq!(tunnel.end().status.code(), Some(75));
    hosts.assert_remote_idle();
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn socks_proxy_every_version_with_curl() {
    let hosts = Hosts::start();
    // sshd is a server that certainly runs, and it greets every client.
    let (address, port) = hosts.sshd.address();
    let (tunnel, proxy) = open(&hosts, &["-D", "0"]);
    for version in ["socks4", "socks4a", "socks5", "socks5h"] {
        let mut curl = Command::new(find("curl"));
        curl.args(["-s", "-m", "5", "-x", &format!("{version}://127.0.0.1:{proxy}")]);
        let greeted = output_of(curl.arg(format!("telnet://{address}:{port}")).stdin(std::process::Stdio::null()));
        assert!(greeted.stdout.starts_with(b"SSH-2.0"), "{version}: {greeted:?}");
    }
    tunnel.signal(Signal::INT);
    assert_eq!(tunnel.end().status.code(), Some(130));
    hosts.assert_remote_idle();
}

/// ssh uses it as ProxyCommand: later logins reuse its connection, and a file arrives complete.
#[test]
#[ignore = "cargo xtask test-ssh"]
fn proxy_persist_as_ssh_proxy_command() {
    let hosts = Hosts::start();
    let (runtime, input) = (hosts.local("run"), tree::file(&hosts.local("input"), 5_000_000));
    fs::create_dir(&runtime).expect("a directory");
    let words = hosts.client.words();
    let proxy = format!("ProxyCommand={} proxy --no-config --persist 1m --ssh '{words}' %n %p", DOWNPOUR);
    let mut processes = Vec::new();
    for _ in 0..3 {
        let mut ssh = hosts.client.ssh();
        ssh.args(["-o", &proxy, "there", "cat; echo $PPID >&2"]).env("XDG_RUNTIME_DIR", &runtime);
        let sent = output_of(ssh.stdin(fs::File::open(&input).expect("a file")));
        assert!(sent.status.success(), "{}", words_of(&sent.stderr));
        assert_eq!(sent.stdout, fs::read(&input).expect("a file"));
        let check = hosts.command("tunnel").args(["-O", "check", "there"]).env("XDG_RUNTIME_DIR", &runtime).output();
        processes.push(check.expect("a process").stdout);
    }
    assert!(
        processes[0].starts_with(b"tunnel to there: running, process ")
            && processes.iter().all(|one| *one == processes[0])
    );
    let exit = hosts.command("tunnel").args(["-O", "exit", "there"]).env("XDG_RUNTIME_DIR", &runtime).status();
    assert!(exit.expect("a process").success());
    hosts.assert_remote_idle();
}
