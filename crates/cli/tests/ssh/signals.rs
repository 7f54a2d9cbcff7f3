//! Signals that end a copy, and signals that do not.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Signal, kill_process};

use crate::hosts::{
    GONE, Hosts, SLOWLY, assert_holds_only, at, large_file, path_with_downpour, summary, wait_for_bytes,
};
use crate::program::{Program, arguments};
use crate::sshd::{Setup, at_home};
use crate::tree;

/// A process ends within this time after SIGTERM. Includes one second for a busy machine.
const SOON: Duration = Duration::from_secs(3);

#[test]
#[ignore = "cargo xtask test-ssh"]
fn a_copy_that_is_asked_to_end_goes_on_another_time() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 75)] {
        for via in ["udp", "ssh"] {
            let hosts = Hosts::start();
            let source = large_file(&hosts.here("file"));
            tree::assert_untouched(&hosts.sshd.home());
            for (from, to) in [("file", "there:copy"), ("there:copy", "back")] {
                let arguments = [&SLOWLY[..], &["--json", "--via", via, from, to]].concat();
                let mut transfer = hosts.start_cp(&arguments);
                let across = wait_for_bytes(&mut transfer, 6_000_000);
                let asked = Instant::now();
                transfer.signal(signal);
                transfer.end().expect_line(code, "run the same command to resume");
                assert!(asked.elapsed() < SOON, "{:?}", asked.elapsed());
                hosts.assert_nothing_runs_there();
                assert!(asked.elapsed() < SOON + GONE, "{:?}", asked.elapsed());
                let again = hosts.cp(&arguments).expect(0);
                let sent = summary(&again)["wire_bytes"].as_u64().expect("a number");
                assert!(sent < (24_000_000 - across) * 11 / 10 + 3_000_000, "{sent} after {across}, {from} by {via}");
            }
            tree::assert_same(&source, &hosts.there("copy"));
            tree::assert_same(&source, &hosts.here("back"));
            assert_holds_only(&hosts.sshd.home(), &["copy"]);
            assert_holds_only(&hosts.here(""), &["back", "file"]);
        }
    }
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn a_terminal_that_goes_away_ends_nothing() {
    for via in ["udp", "ssh"] {
        let hosts = Hosts::start();
        let source = large_file(&hosts.here("file"));
        let mut transfer = hosts.start_cp([&SLOWLY[..], &["--json", "--via", via, "file", "there:copy"]].concat());
        wait_for_bytes(&mut transfer, 6_000_000);
        // ssh gets the signal too, as from a terminal.
        signal_all(&hosts, Signal::HUP);
        transfer.end().expect(0);
        tree::assert_same(&source, &hosts.there("copy"));
    }
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn ctrl_c_while_ssh_waits_to_log_in() {
    let hosts = Hosts::start();
    // A server that never answers: a socket that listens and never reads.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a socket");
    let port = silent.local_addr().expect("an address").port().to_string();
    let source = tree::file(&hosts.here("file"), 10);
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
fn no_ssh_outlives_a_program_that_ends_without_a_network() {
    for (command, rest) in [("cp", ["file", "there:copy"]), ("pipe", ["there", "cat >copy"])] {
        for via in ["udp", "ssh"] {
            // Once, or twice for signals that allow the program to finish.
            for signals in [&[Signal::TERM][..], &[Signal::INT, Signal::INT]] {
                let hosts = Hosts::with_cable();
                large_file(&hosts.here("file"));
                let mut line = hosts.command(command);
                line.args(SLOWLY).args(["--timeout", "2", "--via", via]).args(rest);
                line.stdin(fs::File::open(hosts.here("file")).expect("a file"));
                let program = Program::start(line);
                wait_until("something arrives", || !tree::names(&hosts.sshd.home()).is_empty());
                hosts.network.as_ref().expect("a network").cut();
                let asked = Instant::now();
                for signal in signals {
                    program.signal(*signal);
                    // Two pending signals of the same kind would merge into one.
                    thread::sleep(Duration::from_millis(100));
                }
                // ssh shares its stderr.
                program.end();
                assert!(asked.elapsed() < SOON, "{command} by {via}, {signals:?}: {:?}", asked.elapsed());
                // sshd is not told that the connection is gone.
                hosts.network.as_ref().expect("a network").pass_udp();
                wait_until("all is over there", || hosts.remote_processes().is_empty());
            }
        }
    }
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn ctrl_c_while_the_login_hangs_over_there() {
    let path = path_with_downpour();
    // The login reads all input and ends with ssh.
    let hosts = Hosts::with(Setup { path: Some(&path), at_login: "cat >/dev/null", ..Setup::default() }, None);
    let source = tree::file(&hosts.here("file"), 10);
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 75)] {
        let transfer = hosts.start_cp(arguments![source, at("copy")]);
        while at_home(&hosts.sshd.home()).is_empty() {
            thread::sleep(Duration::from_millis(10));
        }
        let asked = Instant::now();
        transfer.signal(signal);
        transfer.end().expect(code);
        assert!(asked.elapsed() < SOON, "{:?}", asked.elapsed());
        hosts.assert_nothing_runs_there();
    }
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn a_signal_to_the_program_over_there_is_told_here_at_once() {
    for (number, signal) in [Signal::TERM, Signal::INT, Signal::HUP].into_iter().enumerate() {
        for via in ["udp", "ssh"] {
            let hosts = Hosts::start();
            let source = large_file(&hosts.here("file"));
            let (from, to) = if number % 2 == 0 { ("file", "there:copy") } else { ("there:file", "copy") };
            let (source, copy) = match number % 2 {
                0 => (source, hosts.there("copy")),
                _ => (large_file(&hosts.there("file")), hosts.here("copy")),
            };
            let arguments = [&SLOWLY[..], &["--json", "--via", via, from, to]].concat();
            let mut transfer = hosts.start_cp(&arguments);
            wait_for_bytes(&mut transfer, 6_000_000);
            let asked = Instant::now();
            hosts.signal_remote(signal);
            transfer.end().expect_line(75, "on the other machine: stopped by a signal");
            assert!(asked.elapsed() < SOON, "{signal:?} by {via}: {:?}", asked.elapsed());
            hosts.assert_nothing_runs_there();
            hosts.cp(&arguments).expect(0);
            tree::assert_same(&source, &copy);
        }
    }
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn ctrl_c_typed_at_a_terminal_reaches_ssh_too_and_is_still_told_over_there() {
    let hosts = Hosts::start();
    large_file(&hosts.here("file"));
    let mut transfer = hosts.start_cp([&SLOWLY[..], &["--json", "--via", "ssh", "file", "there:copy"]].concat());
    wait_for_bytes(&mut transfer, 6_000_000);
    signal_all(&hosts, Signal::INT);
    transfer.end().expect_line(130, "run the same command to resume");
    hosts.assert_nothing_runs_there();
    hosts.cp(arguments!["file", "there:copy"]).expect(0);
    tree::assert_same(&hosts.here("file"), &hosts.there("copy"));
    assert_holds_only(&hosts.sshd.home(), &["copy"]);
}

#[track_caller]
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < deadline, "never: {what}");
        thread::sleep(Duration::from_millis(10));
    }
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
