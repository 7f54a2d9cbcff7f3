//! The carrier of the data: UDP, or ssh if UDP is blocked.

use std::fs;
use std::time::{Duration, Instant, SystemTime};

use crate::hosts::{Hosts, SLOWLY, assert_holds_only, at, large_file, make, summary, wait_for_bytes};
use crate::network::Network;
use crate::program::{Ended, Program, arguments, copy_program};
use crate::tree;

/// The program reports within this time that UDP is blocked. Includes one second for a busy host.
const REPORTED: Duration = Duration::from_secs(6);

#[test]
#[ignore = "cargo xtask test-ssh"]
fn via_ssh_copies_tree_both_directions() {
    let hosts = Hosts::start();
    let source = tree::directory(&hosts.local("tree"));
    hosts.cp(arguments!["-rp", "--via", "ssh", source, at("copy")]).expect(0);
    tree::assert_same(&source, &hosts.remote("copy"));
    let back = hosts.cp(arguments!["-rpv", "--via", "ssh", at("copy"), hosts.local("back")]).expect(0);
    tree::assert_same(&source, &hosts.local("back"));
    assert!(!back.stderr.contains("no UDP answer"), "{}", back.stderr);
    assert_holds_only(&hosts.sshd.home(), &["copy"]);
    assert_holds_only(&hosts.local(""), &["back", "tree"]);
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn via_ssh_copies_large_file() {
    let hosts = Hosts::start();
    let source = tree::file(&hosts.local("file"), 100_000_000);
    hosts.cp(arguments!["--via", "ssh", source, at("copy")]).expect(0);
    tree::assert_same(&source, &hosts.remote("copy"));
    hosts.cp(arguments!["--via", "ssh", at("copy"), hosts.local("back")]).expect(0);
    tree::assert_same(&source, &hosts.local("back"));
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn port_option_chooses_udp_port() {
    let hosts = Hosts::with_cable();
    let source = tree::file(&hosts.local("file"), 100_000);
    let stderr = hosts.cp(arguments!["-v", "--port", "61001:61009", source, at("copy")]).expect(0).stderr;
    let at_port = |line: &str| line.contains(&format!("Connected to {}:6100", Network::FAR));
    assert!(stderr.lines().any(at_port), "{stderr}");
    tree::assert_same(&source, &hosts.remote("copy"));
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn udp_blocked_falls_back_to_ssh() {
    let hosts = Hosts::with_cable();
    let network = hosts.network.as_ref().expect("a network");
    let source = tree::directory(&hosts.local("tree"));
    let (remote, local) = (make(&hosts.remote("up")), make(&hosts.local("down")));
    network.drop_udp();
    falls_back(hosts.start_cp(arguments!["-rp", source, at("up")]), &hosts).expect(0);
    tree::assert_same(&source, &remote.join("tree"));
    falls_back(hosts.start_cp(arguments!["-rp", at("up/tree"), local]), &hosts).expect(0);
    tree::assert_same(&source, &local.join("tree"));
    assert_holds_only(&remote, &["tree"]);
    assert_holds_only(&local, &["tree"]);
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn udp_blocked_remembered_until_open() {
    let hosts = Hosts::with_cable();
    let network = hosts.network.as_ref().expect("a network");
    let source = tree::file(&hosts.local("file"), 500_000);
    let still = "(as last time): using ssh, which is slower";
    let stderr_of = |more: &[&str]| {
        let arguments = [more, &["-v", "file", "there:copy"]].concat();
        let ended = hosts.cp(arguments).expect(0);
        tree::assert_same(&source, &hosts.remote("copy"));
        fs::remove_file(hosts.remote("copy")).expect("a file");
        ended.stderr
    };
    network.drop_udp();
    let first = stderr_of(&[]);
    assert!(first.contains(": using ssh, which is slower"), "{first}");
    // It waits half a second, after four the first time; the login counts.
    let begun = Instant::now();
    let second = stderr_of(&[]);
    assert!(second.contains(still) && begun.elapsed() < Duration::from_secs(4), "{:?}: {second}", begun.elapsed());
    let without = stderr_of(&["--no-path-cache"]);
    assert!(without.contains(": using ssh, which is slower"), "{without}");
    network.pass_udp();
    let open = stderr_of(&[]);
    assert!(open.contains(&format!("Connected to {}:", Network::FAR)) && !open.contains("over ssh"), "{open}");
    network.drop_udp();
    let again = stderr_of(&[]);
    assert!(again.contains(": using ssh, which is slower"), "{again}");
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn udp_blocked_one_way_falls_back_to_ssh() {
    let hosts = Hosts::with_cable();
    let network = hosts.network.as_ref().expect("a network");
    let source = tree::file(&hosts.local("file"), 500_000);
    network.drop_udp_to_remote();
    falls_back(hosts.start_cp(arguments![source, at("there dropped")]), &hosts).expect(0);
    network.pass_udp();
    // The remote host receives datagrams, but its answers are dropped.
    network.drop_udp_from_remote();
    falls_back(hosts.start_cp(arguments![source, at("back dropped")]), &hosts).expect(0);
    falls_back(hosts.start_cp(arguments![at("back dropped"), hosts.local("back")]), &hosts).expect(0);
    tree::assert_same(&source, &hosts.remote("there dropped"));
    tree::assert_same(&source, &hosts.remote("back dropped"));
    tree::assert_same(&source, &hosts.local("back"));
    assert_holds_only(&hosts.sshd.home(), &["back dropped", "there dropped"]);
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn via_udp_blocked_exit_5() {
    let hosts = Hosts::with_cable();
    let source = tree::file(&hosts.local("file"), 1000);
    hosts.network.as_ref().expect("a network").drop_udp();
    let begun = Instant::now();
    let ended = hosts.cp(arguments!["--via", "udp", source, at("copy")]);
    let ended = ended.expect_error(5);
    assert!(!ended.stderr.contains("ticket"), "{}", ended.stderr);
    assert!(begun.elapsed() < 2 * REPORTED, "{:?}", begun.elapsed());
    hosts.assert_remote_idle();
    tree::assert_untouched(&hosts.sshd.home());
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn udp_lost_midway_exit_8_and_resumes_over_ssh() {
    let hosts = Hosts::with_cable();
    let network = hosts.network.as_ref().expect("a network");
    let source = large_file(&hosts.local("file"));
    let arguments = [&SLOWLY[..], &["--json", "--timeout", "2", "file", "there:copy"]].concat();
    let mut broken = hosts.start_cp(&arguments);
    let across = wait_for_bytes(&mut broken, 6_000_000);
    network.drop_udp();
    broken.end().expect_error(8);
    hosts.assert_remote_idle();
    assert!(!hosts.remote("copy").exists());
    let again = hosts.cp(&arguments).expect(0);
    tree::assert_same(&source, &hosts.remote("copy"));
    assert_holds_only(&hosts.sshd.home(), &["copy"]);
    let sent = summary(&again)["wire_bytes"].as_u64().expect("a number");
    assert!(sent < (24_000_000 - across) * 11 / 10 + 3_000_000, "{sent} bytes after {across}");
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn udp_lost_midway_retry_for_uses_ssh() {
    let hosts = Hosts::with_cable();
    let network = hosts.network.as_ref().expect("a network");
    let source = large_file(&hosts.local("file"));
    hosts.cp(arguments![source, at("source")]).expect(0);
    for (from, to) in [("file", "there:copy"), ("there:source", "copy")] {
        // The remote sender does not save the path either.
        let options = ["--json", "--timeout", "2", "--retry-for", "60", "--no-path-cache", from, to];
        let mut transfer = hosts.start_cp([&SLOWLY[..], &options].concat());
        wait_for_bytes(&mut transfer, 6_000_000);
        network.drop_udp();
        transfer.end().expect(0);
        network.pass_udp();
    }
    tree::assert_same(&source, &hosts.remote("copy"));
    tree::assert_same(&source, &hosts.local("copy"));
    assert_holds_only(&hosts.sshd.home(), &["copy", "source"]);
    assert_holds_only(&hosts.local(""), &["copy", "file"]);
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn small_path_mtu_copies_file() {
    let hosts = Hosts::with_cable();
    let source = tree::file(&hosts.local("file"), 3_000_000);
    hosts.network.as_ref().expect("a network").drop_udp_above(1300);
    hosts.cp(arguments!["--via", "udp", source, at("copy")]).expect(0);
    tree::assert_same(&source, &hosts.remote("copy"));
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn remote_bin_path_used() {
    let hosts = Hosts::start();
    let source = tree::file(&hosts.local("file"), 1000);
    fs::create_dir(hosts.remote("my bin")).expect("a directory");
    copy_program(&hosts.remote("my bin/dp"));
    hosts.cp(arguments!["--remote-bin", "~/'my bin'/dp", source, at("copy")]).expect(0);
    tree::assert_same(&source, &hosts.remote("copy"));
}

/// Waits for the report that UDP is blocked, which must follow the login soon; then for the end.
#[track_caller]
fn falls_back(mut transfer: Program, hosts: &Hosts) -> Ended {
    transfer.wait_for_words("using ssh, which is slower");
    let delay = SystemTime::now().duration_since(hosts.sshd.last_login()).expect("a login before that");
    assert!(delay < REPORTED, "{delay:?} after the login");
    transfer.end()
}
