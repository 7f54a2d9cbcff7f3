//! Signals that end a copy, and signals that do not.

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::{Signal, kill_process};

use crate::hosts::{
    GONE, Hosts, SLOWLY, assert_holds_only, at, large_file, path_with_downpour, summary, wait_for_bytes,
};
use crate::program::{Program, arguments, wait_until};
use crate::sshd::{Setup, at_home};
use crate::tree;

/// A process ends within this time after SIGTERM. Includes one second for a busy host.
const SOON: Duration = Duration::from_secs(3);

#[test]
#[ignore = "cargo xtask test-ssh"]
fn signalled_copy_resumes() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 75)] {
        for via in ["udp", "ssh"] {
            let hosts = Hosts::start();
            let source = large_file(&hosts.local("file"));
            tree::assert_untouched(&hosts.sshd.home());
            for (from, to) in [("file", "there:copy"), ("there:copy", "back")] {
                let arguments = [&SLOWLY[..], &["--json", "--via", via, from, to]].concat();
                let mut transfer = hosts.start_cp(&arguments);
                let across = wait_for_bytes(&mut transfer, 6_000_000);
                let asked = Instant::now();
                transfer.signal(signal);
                transfer.end().expect_error(code);
                assert!(asked.elapsed() < SOON, "{:?}", asked.elapsed());
                hosts.assert_remote_idle();
                assert!(asked.elapsed() < SOON + GONE, "{:?}", asked.elapsed());
                let again = hosts.cp(&arguments).expect(0);
                let sent = summary(&again)["wire_bytes"].as_u64().expect("a number");
                assert!(sent < (24_000_000 - across) * 11 / 10 + 3_000_000, "{sent} after {across}, {from} by {via}");
            }
            tree::assert_same(&source, &hosts.remote("copy"));
            tree::assert_same(&source, &hosts.local("back"));
            assert_holds_only(&hosts.sshd.home(), &["copy"]);
            assert_holds_only(&hosts.local(""), &["back", "file"]);
        }
    }
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn sighup_during_copy_ignored() {
    for via in ["udp", "ssh"] {
        let hosts = Hosts::start();
        let source = large_file(&hosts.local("file"));
        let mut transfer = hosts.start_cp([&SLOWLY[..], &["--json", "--via", via, "file", "there:copy"]].concat());
        wait_for_bytes(&mut transfer, 6_000_000);
        // ssh gets the signal too, as from a terminal.
        signal_all(&hosts, Signal::HUP);
        transfer.end().expect(0);
        tree::assert_same(&source, &hosts.remote("copy"));
    }
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn signal_while_ssh_connects() {
    let hosts = Hosts::start();
    // A server that never answers: a socket that listens and never reads.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a socket");
    let port = silent.local_addr().expect("an address").port().to_string();
    let source = tree::file(&hosts.local("file"), 10);
    let copy = at("copy");
    for (command, rest) in [("cp", arguments![source, copy]), ("pipe", arguments!["there", "cat"])] {
        for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 75)] {
            let mut line = hosts.command(command);
            line.args(["-P", &port]).args(rest);
            let program = Program::start(line);
            // ssh has connected.
            let (connection, _) = silent.accept().expect("ssh");
            let asked = Instant::now();
            program.signal(signal);
            // Ends when all processes that it started have closed its stderr.
            program.end().expect(code);
            assert!(asked.elapsed() < SOON, "{command}: {:?}", asked.elapsed());
            drop(connection);
        }
    }
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn signal_without_network_leaves_no_ssh() {
    for (command, rest) in [("cp", ["file", "there:copy"]), ("pipe", ["there", "cat >copy"])] {
        for via in ["udp", "ssh"] {
            // Once, or twice for signals that allow the program to finish.
            for signals in [&[Signal::TERM][..], &[Signal::INT, Signal::INT]] {
                let hosts = Hosts::with_cable();
                large_file(&hosts.local("file"));
                let mut line = hosts.command(command);
                line.args(SLOWLY).args(["--timeout", "2", "--via", via]).args(rest);
                line.stdin(fs::File::open(hosts.local("file")).expect("a file"));
                let program = Program::start(line);
                wait_until("something arrives", || !tree::names(&hosts.sshd.home()).is_empty());
                hosts.network.as_ref().expect("a network").cut();
                let asked = Instant::now();
                for signal in signals {
                    program.signal(*signal);
                    // Two pending signals of the same kind would merge into one.
                    wait_until("the signal is delivered", || !is_pending(program.id(), *signal));
                }
                // ssh shares its stderr.
                program.end();
                assert!(asked.elapsed() < SOON, "{command} by {via}, {signals:?}: {:?}", asked.elapsed());
                // sshd does not notice that the connection is lost.
                hosts.network.as_ref().expect("a network").pass_udp();
                wait_until("the remote processes have ended", || hosts.remote_processes().is_empty());
            }
        }
    }
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn signal_while_login_hangs() {
    let path = path_with_downpour();
    // The login reads all input and ends with ssh.
    let hosts = Hosts::with(Setup { path: Some(&path), at_login: "cat >/dev/null", ..Setup::default() }, None);
    let source = tree::file(&hosts.local("file"), 10);
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 75)] {
        let transfer = hosts.start_cp(arguments![source, at("copy")]);
        wait_until("the login runs", || !at_home(&hosts.sshd.home()).is_empty());
        let asked = Instant::now();
        transfer.signal(signal);
        transfer.end().expect(code);
        assert!(asked.elapsed() < SOON, "{:?}", asked.elapsed());
        hosts.assert_remote_idle();
    }
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn signal_to_remote_process_reported() {
    for (number, signal) in [Signal::TERM, Signal::INT, Signal::HUP].into_iter().enumerate() {
        for via in ["udp", "ssh"] {
            let hosts = Hosts::start();
            let source = large_file(&hosts.local("file"));
            let (from, to) = if number % 2 == 0 { ("file", "there:copy") } else { ("there:file", "copy") };
            let (source, copy) = match number % 2 {
                0 => (source, hosts.remote("copy")),
                _ => (large_file(&hosts.remote("file")), hosts.local("copy")),
            };
            let arguments = [&SLOWLY[..], &["--json", "--via", via, from, to]].concat();
            let mut transfer = hosts.start_cp(&arguments);
            wait_for_bytes(&mut transfer, 6_000_000);
            let asked = Instant::now();
            hosts.signal_remote(signal);
            transfer.end().expect_error(75);
            assert!(asked.elapsed() < SOON, "{signal:?} by {via}: {:?}", asked.elapsed());
            hosts.assert_remote_idle();
            hosts.cp(&arguments).expect(0);
            tree::assert_same(&source, &copy);
        }
    }
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn sigint_to_foreground_stops_remote() {
    let hosts = Hosts::start();
    large_file(&hosts.local("file"));
    let mut transfer = hosts.start_cp([&SLOWLY[..], &["--json", "--via", "ssh", "file", "there:copy"]].concat());
    wait_for_bytes(&mut transfer, 6_000_000);
    signal_all(&hosts, Signal::INT);
    transfer.end().expect_error(130);
    hosts.assert_remote_idle();
    hosts.cp(arguments!["file", "there:copy"]).expect(0);
    tree::assert_same(&hosts.local("file"), &hosts.remote("copy"));
    assert_holds_only(&hosts.sshd.home(), &["copy"]);
}

/// Whether a signal was sent to a process and not delivered yet (proc_pid_status(5)).
fn is_pending(process: u32, signal: Signal) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let pending = status.lines().find_map(|line| line.strip_prefix("ShdPnd:")).unwrap_or_default();
    u64::from_str_radix(pending.trim(), 16).is_ok_and(|pending| pending >> (signal.as_raw() - 1) & 1 == 1)
}

/// Signals every process in the foreground, as a terminal does.
#[track_caller]
fn signal_all(hosts: &Hosts, signal: Signal) {
    let processes = hosts.local_processes();
    assert!(processes.len() > 1, "downpour and ssh: {processes:?}");
    for process in processes {
        kill_process(process, signal).expect("a process");
    }
}
