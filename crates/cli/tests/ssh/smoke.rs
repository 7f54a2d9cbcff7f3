//! Tests of the fixtures themselves.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::client::Client;
use crate::network::Network;
use crate::sshd::{Setup, Sshd};
use crate::tools::{DOWNPOUR, output_of, stdout_of, words, xtask};

#[test]
#[ignore = "cargo xtask test-ssh"]
fn sshd_has_separate_home() {
    let sshd = Sshd::start();
    let client = Client::of(&[("there", &sshd)]);
    let home = stdout_of(client.ssh().args(["there", "pwd; echo $HOME; ls -A"]));
    let expected = sshd.home().display().to_string();
    assert_eq!(home, format!("{expected}\n{expected}"));
    assert_eq!(stdout_of(client.ssh().args(["there", "ls -A ~"])), "");
    assert_eq!(client.words().split(' ').next(), Some("ssh"));
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn sshd_reached_through_jump_host() {
    let (jump, sshd) = (Sshd::start(), Sshd::with(Setup { path: Some("/usr/bin:/bin"), ..Setup::default() }));
    let client = Client::of(&[("there", &sshd), ("jump", &jump)]);
    let port = stdout_of(client.ssh().args(["-J", "jump", "there", "echo ${SSH_CONNECTION##* } $PATH"]));
    assert_eq!(port, format!("{} /usr/bin:/bin", sshd.address().1));
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn sshd_wrong_host_key_refused() {
    let (sshd, other) = (Sshd::start(), Sshd::start());
    let client = Client::of(&[("there", &sshd)]);
    client.know(&[("there", other.host_key())]);
    let refused = output_of(client.ssh().args(["there", "true"]));
    assert_eq!(refused.status.code(), Some(255));
    assert!(words(&refused.stderr).contains("Host key verification failed"), "{}", words(&refused.stderr));
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn sshd_path_decides_program() {
    let without = Sshd::with(Setup { path: Some("/usr/bin:/bin"), ..Setup::default() });
    let directory = Path::new(DOWNPOUR).parent().expect("a directory").display().to_string();
    let with = Sshd::with(Setup { path: Some(&directory), ..Setup::default() });
    let client = Client::of(&[("without", &without), ("with", &with)]);
    let absent = output_of(client.ssh().args(["without", "exec downpour --version"]));
    assert_eq!(absent.status.code(), Some(127), "{}", words(&absent.stderr));
    assert!(stdout_of(client.ssh().args(["with", "exec downpour --version"])).starts_with("downpour "));
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn sshd_ends_with_failed_test() {
    let mut address = None;
    let mut session = None;
    let failed = catch_unwind(AssertUnwindSafe(|| {
        let sshd = Sshd::start();
        address = Some(sshd.address());
        let client = Client::of(&[("there", &sshd)]);
        session = Some(says_first_line(client.ssh().args(["there", "echo begun; sleep 1000"])));
        panic!("a test that fails");
    }));
    assert!(failed.is_err());
    assert!(TcpStream::connect(address.expect("an address")).is_err());
    let (line, mut ssh) = session.expect("a session");
    assert_eq!(line, "begun");
    assert!(!ssh.wait().expect("ssh").success());
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn killed_sshd_closes_stdin_of_commands() {
    let mut sshd = Sshd::start();
    let client = Client::of(&[("there", &sshd)]);
    let left = sshd.home().join("left");
    let pipe = stdout_of(Command::new("mkfifo").arg(&left));
    assert_eq!(pipe, "");
    let command = format!("echo begun; cat; echo end > {}", left.display());
    let (_, mut ssh) = says_first_line(client.ssh().args(["there", &command]).stdin(Stdio::piped()));
    sshd.kill();
    assert_eq!(fs::read_to_string(&left).expect("a pipe"), "end\n");
    assert!(!ssh.wait().expect("ssh").success());
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn firewall_drops_udp_only() {
    let network = Network::start();
    let sshd = Sshd::with(Setup { network: Some(&network), ..Setup::default() });
    let client = Client::of(&[("there", &sshd)]);
    let directory = tempfile::tempdir().expect("a directory");
    fs::write(directory.path().join("file"), "content").expect("a file");
    let through = |into: &str, code: i32| {
        let into = sshd.home().join(into);
        fs::create_dir(&into).expect("a directory");
        let listen = format!("{DOWNPOUR} recv --quiet --yes --listen {}:0 --into {}", Network::FAR, into.display());
        let mut ssh = network.near("ssh");
        ssh.args(client.ssh().get_args()).args(["there", &listen]).stdin(Stdio::piped());
        let (ticket, mut ssh) = says_first_line(&mut ssh);
        let mut send = network.near(DOWNPOUR);
        send.args(["send", "--quiet", "--connect-timeout", "1", "--to"]).arg(directory.path().join("file"));
        let sent = output_of(send.env("DOWNPOUR_TICKET", ticket.trim()));
        assert_eq!(sent.status.code(), Some(code), "{}", words(&sent.stderr));
        let _ = ssh.kill();
        let _ = ssh.wait();
        into.join("file").exists()
    };
    assert!(through("before", 0));
    network.drop_udp();
    assert!(!through("after", 5));
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn relayed_ssh_sends_udp_over_link() {
    let sshd = Sshd::start();
    let client = Client::of(&[("there", &sshd)]);
    let content = vec![7; 1_000_000];
    let directory = tempfile::tempdir().expect("a directory");
    fs::write(directory.path().join("file"), &content).expect("a file");
    let remote = format!(
        "{DOWNPOUR} recv --quiet --yes --listen 127.0.0.1:0 --into {} | sed -u 's/^/DOWNPOUR1 /'",
        sshd.home().display()
    );
    let mut relayed = Command::new(xtask());
    relayed.args(["relayed-ssh", "--link", "rate=100M,delay=60ms,loss=0.1%,queue=2MB", "--"]);
    relayed.args(client.words().split(' ')).args(["there", &remote]).stdin(Stdio::piped());
    let (greeting, mut relayed) = says_first_line(&mut relayed);
    let ticket = greeting.strip_prefix("DOWNPOUR1 ").unwrap_or_else(|| panic!("{greeting:?} is no ticket"));
    let mut send = Command::new(DOWNPOUR);
    send.args(["send", "--quiet", "--rate", "100M", "--to"]).arg(directory.path().join("file"));
    let started = Instant::now();
    stdout_of(send.env("DOWNPOUR_TICKET", ticket));
    let took = started.elapsed();
    // 1.5 round trips until the last byte arrives, half of one until the sender knows it; 80 ms for the bytes.
    assert!(took >= Duration::from_millis(2 * 120 + 80), "{took:?}");
    assert!(relayed.wait().expect("ssh").success());
    assert!(fs::read(sshd.home().join("file")).expect("a file") == content);
}

/// Starts a program and returns its first line of output. Its stdout stays open until it ends.
fn says_first_line(command: &mut Command) -> (String, Child) {
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let mut output = BufReader::new(child.stdout.take().expect("a piped stdout"));
    let mut line = String::new();
    output.read_line(&mut line).expect("a line");
    std::thread::spawn(move || output.read_to_end(&mut Vec::new()));
    (line.trim_end().to_owned(), child)
}
