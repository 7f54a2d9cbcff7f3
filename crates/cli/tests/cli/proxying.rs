//! `proxy`, and tunnels in the background.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::process::{Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use crate::fake_ssh::FakeHost;
use crate::program::{Program, downpour, wait_until};
use crate::tunnelling::{PATIENCE, echo_server, exchange, free_port};

/// A line of shell that notes each login, which is a process of its own and can end before the command, as with ssh.
pub(crate) const NOTED: &str = r#"echo >> logins; sh -c "$command" 2>/dev/null"#;

fn logins(far: &FakeHost) -> usize {
    fs::read_to_string(far.remote("logins")).unwrap_or_default().lines().count()
}

/// Runs a proxy with this input and returns its output.
fn carry(far: &FakeHost, arguments: &[&str], input: &[u8]) -> Output {
    let mut child = far.command("proxy", arguments).stdin(Stdio::piped()).spawn().expect("a process");
    let mut stdin = child.stdin.take().expect("a pipe");
    let input = input.to_vec();
    let writer = thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().expect("an end");
    writer.join().expect("no panic").expect("a proxy that reads");
    output
}

#[test]
fn proxy_joins_stdio_to_host() {
    let server = echo_server().to_string();
    let bytes: Vec<u8> = (0..2_000_000_u32).map(|at| (at % 251) as u8).collect();
    for via in ["udp", "ssh"] {
        let far = FakeHost::new();
        let ended = carry(&far, &["--via", via, "far", &server], &bytes);
        let words = String::from_utf8_lossy(&ended.stderr);
        // The server answers once stdin has ended.
        assert!(ended.status.success() && ended.stdout == bytes && words.is_empty(), "{via}: {words}");
        wait_until("gone", || far.processes("remote").is_empty());
    }
}

#[test]
fn proxy_refused_port_reported() {
    let far = FakeHost::new();
    let ended = carry(&far, &["far", &free_port().to_string()], b"");
    let words = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.stdout.is_empty() && words.contains("Connection refused"), "{words}");
    assert_eq!(ended.status.code(), Some(1), "{words}");
}

#[test]
fn proxy_sighup_ends_at_once() {
    let (far, server) = (FakeHost::new(), TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port"));
    let port = server.local_addr().expect("an address").port().to_string();
    let mut command = far.command("proxy", ["far", &port]);
    command.stdin(Stdio::piped());
    let proxy = Program::start(command);
    let (mut socket, _) = server.accept().expect("a connection");
    let before = Instant::now();
    proxy.signal(Signal::HUP);
    wait_until("ended", || !proxy.is_running());
    assert!(before.elapsed() < Duration::from_secs(1), "{:?}", before.elapsed());
    socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    drop(socket.read(&mut [0]));
    wait_until("gone", || far.processes("remote").is_empty());
    proxy.end().expect(0);
}

#[test]
fn proxy_persist_shares_one_login() {
    let (far, server) = (FakeHost::with_login(NOTED), echo_server().to_string());
    for word in ["one", "two", "three"] {
        let ended = carry(&far, &["--persist", "1m", "far", &server], word.as_bytes());
        assert_eq!(ended.stdout, word.as_bytes(), "{}", String::from_utf8_lossy(&ended.stderr));
    }
    assert_eq!(logins(&far), 1);
    // Another port is another connection.
    let other = carry(&far, &["--persist", "1m", "far", &echo_server().to_string()], b"four");
    assert_eq!((other.stdout.as_slice(), logins(&far)), (&b"four"[..], 2));
    let shown = far.run("tunnel", ["-O", "check", "far"]).expect(0).stdout;
    assert_eq!(shown.lines().filter(|line| line.starts_with("tunnel to far: running, process ")).count(), 2, "{shown}");
    assert_eq!(far.run("tunnel", ["-O", "exit", "far"]).expect(0).stdout.lines().count(), 2);
    far.run("tunnel", ["-O", "check", "far"]).expect_line(1, "no running tunnel to far");
    far.assert_empty("the proxy");
}

#[test]
fn proxy_persist_ends_when_idle() {
    let (far, server) = (FakeHost::with_login(NOTED), echo_server().to_string());
    let ended = carry(&far, &["--persist", "0.2", "--", "far", &server], b"one");
    assert_eq!(ended.stdout, b"one", "{}", String::from_utf8_lossy(&ended.stderr));
    far.assert_empty("the proxy");
    far.run("tunnel", ["-O", "check", "far"]).expect_line(1, "no running tunnel to far");
}

/// The socket of a killed process does not block a new connection.
#[test]
fn proxy_persist_reopens_after_kill() {
    let (far, server) = (FakeHost::with_login(NOTED), echo_server().to_string());
    let proxy = ["--persist", "1m", "far", &server];
    assert_eq!(carry(&far, &proxy, b"one").stdout, b"one");
    let shown = far.run("tunnel", ["-O", "check", "far"]).expect(0).stdout;
    let process: i32 = shown.trim().rsplit(' ').next().and_then(|word| word.parse().ok()).expect("a number");
    let process = Pid::from_raw(process).expect("a process");
    kill_process(process, Signal::KILL).expect("it runs");
    wait_until("killed", || test_kill_process(process).is_err());
    assert_eq!((carry(&far, &proxy, b"two").stdout.as_slice(), logins(&far)), (&b"two"[..], 2));
    far.run("tunnel", ["-O", "exit", "far"]).expect(0);
    far.assert_empty("the proxy");
}

#[test]
fn proxy_login_failure_reported_once() {
    let far = FakeHost::with_login("echo no such user >&2; exit 255");
    for arguments in [&["far"][..], &["--persist", "1m", "far"]] {
        let ended = far.run("proxy", arguments);
        assert!(ended.status.code().is_some_and(|code| code > 0), "{}", ended.stderr);
        assert_eq!(ended.stderr.matches("no such user").count(), 1, "{}", ended.stderr);
        assert_eq!(ended.stderr.matches("downpour: ").count(), 1, "{}", ended.stderr);
    }
}

#[test]
fn proxy_shell_characters_in_host_refused() {
    for host in ["-oProxyCommand=x", "me@-x", "a;b", "$(id)", "a b", "`id`", "a|b", "a\nb", "a/b", "a'b", "a*"] {
        downpour(["proxy", "--", host]).end().expect(2);
    }
}

#[test]
fn tunnel_background_runs_until_exit() {
    let (far, server, port) = (FakeHost::with_login(NOTED), echo_server(), free_port());
    let forward = format!("{port}:localhost:{server}");
    let started = far.run("tunnel", ["-f", "-L", &forward, "far"]).expect(0);
    assert!(started.stderr.contains("The tunnel to far is open"), "{}", started.stderr);
    assert_eq!(exchange(port, b"hello").expect("an answer"), b"hello");
    // The waiting process reports why the second tunnel does not open.
    let second = far.run("tunnel", ["-f", "-L", &forward, "far"]);
    second.expect_line(1, "Address already in use");
    far.run("tunnel", ["-O", "exit", "far"]).expect(0);
    far.assert_empty("the proxy");
    assert!(std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err());
}

#[test]
fn tunnel_control_arguments_invalid_exit_2() {
    downpour(["tunnel", "far"]).end().expect(2);
    downpour(["tunnel", "-O", "check", "-L", "80:far:80", "far"]).end().expect(2);
    downpour(["tunnel", "-O", "stop", "far"]).end().expect(2);
}
