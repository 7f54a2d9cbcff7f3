//! The carrier of the data: UDP, or ssh if UDP is blocked.

use std::fs;
use std::time::{Duration, Instant, SystemTime};

use crate::hosts::{Hosts, SLOWLY, assert_holds_only, at, large_file, make, summary, wait_for_bytes};
use crate::network::Network;
use crate::program::{Ended, Program, arguments, copy_program};
use crate::tree;

/// The program reports within this time that UDP is blocked. Includes one second for a busy machine.
const HEARD: Duration = Duration::from_secs(6);

#[test]
#[ignore = "cargo xtask test-ssh"]
fn ssh_alone_carries_a_tree_both_ways() {
    let hosts = Hosts::start();
    let source = tree::directory(&hosts.here("tree"));
    hosts.cp(arguments!["-rp", "--via", "ssh", source, at("copy")]).expect(0);
    tree::assert_same(&source, &hosts.there("copy"));
    let back = hosts.cp(arguments!["-rpv", "--via", "ssh", at("copy"), hosts.here("back")]).expect(0);
    tree::assert_same(&source, &hosts.here("back"));
    assert!(!back.stderr.contains("no UDP answer"), "{}", back.stderr);
    assert_holds_only(&hosts.sshd.home(), &["copy"]);
    assert_holds_only(&hosts.here(""), &["back", "tree"]);
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn ssh_alone_carries_what_is_large() {
    let hosts = Hosts::start();
    let source = tree::file(&hosts.here("file"), 100_000_000);
    hosts.cp(arguments!["--via", "ssh", source, at("copy")]).expect(0);
    tree::assert_same(&source, &hosts.there("copy"));
    hosts.cp(arguments!["--via", "ssh", at("copy"), hosts.here("back")]).expect(0);
    tree::assert_same(&source, &hosts.here("back"));
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn a_port_that_a_firewall_lets_through_is_used() {
    let hosts = Hosts::with_cable();
    let source = tree::file(&hosts.here("file"), 100_000);
    let told = hosts.cp(arguments!["-v", "--port", "61001:61009", source, at("copy")]).expect(0).stderr;
    let at_port = |line: &str| line.contains(&format!("Connected to {}:6100", Network::FAR));
    assert!(told.lines().any(at_port), "{told}");
    tree::assert_same(&source, &hosts.there("copy"));
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn where_udp_is_closed_it_is_said_soon_and_ssh_carries_on() {
    let hosts = Hosts::with_cable();
    let network = hosts.network.as_ref().expect("a network");
    let source = tree::directory(&hosts.here("tree"));
    let (there, here) = (make(&hosts.there("up")), make(&hosts.here("down")));
    network.drop_udp();
    falls_back(hosts.start_cp(arguments!["-rp", source, at("up")]), &hosts).expect(0);
    tree::assert_same(&source, &there.join("tree"));
    falls_back(hosts.start_cp(arguments!["-rp", at("up/tree"), here]), &hosts).expect(0);
    tree::assert_same(&source, &here.join("tree"));
    assert_holds_only(&there, &["tree"]);
    assert_holds_only(&here, &["tree"]);
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn closed_udp_is_remembered_until_it_is_open() {
    let hosts = Hosts::with_cable();
    let network = hosts.network.as_ref().expect("a network");
    let source = tree::file(&hosts.here("file"), 500_000);
    let still = "(as last time): using ssh, which is slower";
    let told = |more: &[&str]| {
        let arguments = [more, &["-v", "file", "there:copy"]].concat();
        let ended = hosts.cp(arguments).expect(0);
        tree::assert_same(&source, &hosts.there("copy"));
        fs::remove_file(hosts.there("copy")).expect("a file");
        ended.stderr
    };
    network.drop_udp();
    let first = told(&[]);
    assert!(first.contains(": using ssh, which is slower"), "{first}");
    // Half a second, where the first one waits for four; the login counts.
    let begun = Instant::now();
    let second = told(&[]);
    assert!(second.contains(still) && begun.elapsed() < Duration::from_secs(4), "{:?}: {second}", begun.elapsed());
    let without = told(&["--no-memory"]);
    assert!(without.contains(": using ssh, which is slower"), "{without}");
    network.pass_udp();
    let open = told(&[]);
    assert!(open.contains(&format!("Connected to {}:", Network::FAR)) && !open.contains("over ssh"), "{open}");
    network.drop_udp();
    let again = told(&[]);
    assert!(again.contains(": using ssh, which is slower"), "{again}");
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn udp_in_one_direction_is_closed_as_well() {
    let hosts = Hosts::with_cable();
    let network = hosts.network.as_ref().expect("a network");
    let source = tree::file(&hosts.here("file"), 500_000);
    network.drop_udp_there();
    falls_back(hosts.start_cp(arguments![source, at("there dropped")]), &hosts).expect(0);
    network.pass_udp();
    // The other side receives datagrams, but its answers are dropped.
    network.drop_udp_back();
    falls_back(hosts.start_cp(arguments![source, at("back dropped")]), &hosts).expect(0);
    falls_back(hosts.start_cp(arguments![at("back dropped"), hosts.here("back")]), &hosts).expect(0);
    tree::assert_same(&source, &hosts.there("there dropped"));
    tree::assert_same(&source, &hosts.there("back dropped"));
    tree::assert_same(&source, &hosts.here("back"));
    assert_holds_only(&hosts.sshd.home(), &["back dropped", "there dropped"]);
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn without_ssh_to_fall_back_on_closed_udp_is_the_end() {
    let hosts = Hosts::with_cable();
    let source = tree::file(&hosts.here("file"), 1000);
    hosts.network.as_ref().expect("a network").drop_udp();
    let begun = Instant::now();
    let ended = hosts.cp(arguments!["--via", "udp", source, at("copy")]);
    let ended = ended.expect_line(5, "check that no firewall blocks UDP");
    assert!(!ended.stderr.contains("ticket"), "{}", ended.stderr);
    assert!(begun.elapsed() < 2 * HEARD, "{:?}", begun.elapsed());
    hosts.assert_nothing_runs_there();
    tree::assert_untouched(&hosts.sshd.home());
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn udp_that_closes_midway_ends_the_transfer_and_the_same_command_goes_on_over_ssh() {
    let hosts = Hosts::with_cable();
    let network = hosts.network.as_ref().expect("a network");
    let source = large_file(&hosts.here("file"));
    let arguments = [&SLOWLY[..], &["--json", "--timeout", "2", "file", "there:copy"]].concat();
    let mut broken = hosts.start_cp(&arguments);
    let across = wait_for_bytes(&mut broken, 6_000_000);
    network.drop_udp();
    broken.end().expect_line(8, "has vanished");
    hosts.assert_nothing_runs_there();
    assert!(!hosts.there("copy").exists());
    let again = hosts.cp(&arguments).expect(0);
    tree::assert_same(&source, &hosts.there("copy"));
    assert_holds_only(&hosts.sshd.home(), &["copy"]);
    let sent = summary(&again)["wire_bytes"].as_u64().expect("a number");
    assert!(sent < (24_000_000 - across) * 11 / 10 + 3_000_000, "{sent} bytes after {across}");
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn udp_that_closes_midway_leaves_ssh_to_those_with_patience() {
    let hosts = Hosts::with_cable();
    let network = hosts.network.as_ref().expect("a network");
    let source = large_file(&hosts.here("file"));
    hosts.cp(arguments![source, at("source")]).expect(0);
    for (from, to) in [("file", "there:copy"), ("there:source", "copy")] {
        // Nor does the sender there keep what it learns of the path.
        let options = ["--json", "--timeout", "2", "--retry-for", "60", "--no-memory", from, to];
        let mut transfer = hosts.start_cp([&SLOWLY[..], &options].concat());
        wait_for_bytes(&mut transfer, 6_000_000);
        network.drop_udp();
        transfer.end().expect(0);
        network.pass_udp();
    }
    tree::assert_same(&source, &hosts.there("copy"));
    tree::assert_same(&source, &hosts.here("copy"));
    assert_holds_only(&hosts.sshd.home(), &["copy", "source"]);
    assert_holds_only(&hosts.here(""), &["copy", "file"]);
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn a_path_for_small_packets_alone_carries_all() {
    let hosts = Hosts::with_cable();
    let source = tree::file(&hosts.here("file"), 3_000_000);
    hosts.network.as_ref().expect("a network").drop_udp_above(1300);
    hosts.cp(arguments!["--via", "udp", source, at("copy")]).expect(0);
    tree::assert_same(&source, &hosts.there("copy"));
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn the_program_is_found_by_a_path_that_is_named() {
    let hosts = Hosts::start();
    let source = tree::file(&hosts.here("file"), 1000);
    fs::create_dir(hosts.there("my bin")).expect("a directory");
    copy_program(&hosts.there("my bin/dp"));
    hosts.cp(arguments!["--remote-bin", "~/'my bin'/dp", source, at("copy")]).expect(0);
    tree::assert_same(&source, &hosts.there("copy"));
}

/// Waits for the report that UDP is blocked, which must come soon after the login; then for the end.
#[track_caller]
fn falls_back(mut transfer: Program, hosts: &Hosts) -> Ended {
    transfer.wait_for_words("using ssh, which is slower");
    let heard = SystemTime::now().duration_since(hosts.sshd.last_login()).expect("a login before that");
    assert!(heard < HEARD, "{heard:?} after the login");
    transfer.end()
}
