//! Copies that are refused, and their error messages.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::geteuid;

use crate::hosts::{Hosts, assert_holds_only, at, path_with_downpour};
use crate::program::{Program, arguments};
use crate::sshd::{Setup, Sshd};
use crate::tools::{DOWNPOUR, find};
use crate::tree;

/// Time limit for a refusal.
const AT_ONCE: Duration = Duration::from_secs(10);

#[test]
#[ignore = "cargo xtask test-ssh"]
fn a_source_that_is_not_there() {
    let hosts = Hosts::start();
    hosts.cp(arguments![at("absent"), hosts.here("copy")]).expect_line(3, "absent");
    hosts.cp(arguments![hosts.here("absent"), at("copy")]).expect_line(3, "absent");
    // If one of two sources is absent nothing is copied, since the user may have meant another.
    tree::file(&hosts.there("present"), 10);
    hosts.cp(arguments![at("present"), at("absent"), hosts.here("both")]).expect_line(3, "absent");
    assert_holds_only(&hosts.here(""), &[]);
    // A directory without -r.
    fs::create_dir(hosts.there("directory")).expect("a directory");
    hosts.cp(arguments![at("directory"), hosts.here("copy")]).expect_line(2, "-r");
    assert_holds_only(&hosts.here(""), &[]);
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn a_target_that_cannot_be_written() {
    let hosts = Hosts::start();
    let source = tree::file(&hosts.here("file"), 10);
    // Root can write everywhere but here.
    let target = if geteuid().is_root() { "/sys/copy".into() } else { hosts.there("closed/copy") };
    let closed = hosts.there("closed");
    fs::create_dir(&closed).expect("a directory");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o500)).expect("a mode");
    let refused = hosts.cp(arguments![source, at(target)]);
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).expect("a mode");
    refused.expect_line(7, "the receiver said: ");
    // The target's parent is a file.
    fs::write(hosts.there("no directory"), "").expect("a file");
    let refused = hosts.cp(arguments![source, at("no directory/copy")]);
    assert!(matches!(refused.status.code(), Some(1 | 7)), "{} {}", refused.status, refused.stderr);
    assert_holds_only(&hosts.sshd.home(), &["closed", "no directory"]);
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn a_host_with_another_key() {
    let (hosts, other) = (Hosts::start(), Sshd::start());
    let source = tree::file(&hosts.here("file"), 10);
    hosts.client.know(&[("there", other.host_key())]);
    let begun = Instant::now();
    let up =
        hosts.cp(arguments![source, at("copy")]).expect_line(4, "cannot log in to there: Host key verification failed");
    let down = hosts
        .cp(arguments![at("file"), hosts.here("copy")])
        .expect_line(4, "cannot log in to there: Host key verification failed");
    assert!(begun.elapsed() < 2 * AT_ONCE, "{:?}", begun.elapsed());
    for ended in [up, down] {
        assert!(ended.stderr.contains("Host key verification failed"), "{}", ended.stderr);
    }
    tree::assert_untouched(&hosts.sshd.home());
    assert_holds_only(&hosts.here(""), &["file"]);
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn a_host_that_nobody_answers_for() {
    let mut hosts = Hosts::start();
    hosts.sshd.kill();
    let begun = Instant::now();
    let refused =
        hosts.cp(arguments!["--retry-for", "1h", at("file"), "."]).expect_line(5, "ssh could not reach there");
    assert!(refused.stderr.contains("Connection refused"), "{}", refused.stderr);
    assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
}

/// What nologin says, as sshd passes it on.
#[test]
#[ignore = "cargo xtask test-ssh"]
fn an_account_without_a_shell_is_quoted() {
    let nologin = format!("exec {}", find("nologin").display());
    let hosts = Hosts::with(Setup { at_login: &nologin, ..Setup::default() }, None);
    let source = tree::file(&hosts.here("file"), 10);
    let words = "cannot log in to there: This account is currently not available.";
    hosts.cp(arguments![source, at("copy")]).expect_line(4, words);
    hosts.run("bootstrap", ["there"]).expect_line(4, words);
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn a_host_without_the_program_is_given_it() {
    // Its start-up file greets without the end of a line.
    let setup = Setup { path: Some("/usr/bin:/bin"), at_login: "printf 'Welcome to there. '", ..Setup::default() };
    let hosts = Hosts::with(setup, None);
    assert!(!Path::new("/usr/bin/downpour").exists() && !Path::new("/usr/local/bin/downpour").exists());
    let (source, program) = (tree::file(&hosts.here("file"), 100_000), hosts.there(".local/bin/downpour"));
    let target = at("copy");
    let copy = arguments![source, target];
    // Nobody is asked where there is no terminal.
    hosts.cp(copy).expect_line(3, "there has no program downpour; `downpour bootstrap there` copies this one there");
    hosts.cp(arguments!["--bootstrap", "never", source, target]).expect(3);
    tree::assert_untouched(&hosts.sshd.home());

    let said = hosts.cp(arguments!["--bootstrap", "auto", source, target]).expect(0).stderr;
    assert!(said.contains("downpour not found on there. It can be installed in ~/.local/bin."), "{said}");
    assert!(said.contains("Copying downpour (") && said.contains("Installed "), "{said}");
    assert!(fs::read(&program).expect("a program") == fs::read(DOWNPOUR).expect("a program"));
    tree::assert_same(&source, &hosts.there("copy"));
    fs::remove_file(&program).expect("a program");
    let mut bootstrap = hosts.command("bootstrap");
    assert!(bootstrap.arg("there").status().expect("a process").success() && program.exists());
    hosts.cp(copy).expect(0);
    hosts.cp(arguments!["--remote-bin", "~/bin/other", source, at("copy")]).expect_line(3, "~/bin/other");
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn an_ssh_that_is_not_there() {
    let hosts = Hosts::start();
    let source = tree::file(&hosts.here("file"), 10);
    let mut command = hosts.command_by("cp", "/nonexist");
    command.args(arguments![source, at("copy")]);
    Program::start(command).end().expect_line(1, "/nonexist cannot be started: ");
    tree::assert_untouched(&hosts.sshd.home());
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn a_login_that_says_much() {
    let path = path_with_downpour();
    let greetings = [
        "echo Welcome; echo DOWNPOUR; echo 'news: none' >&2",
        "printf 'Welcome, this line does not end'",
        "i=0; while [ $i -lt 900 ]; do printf '%01000d\\n' $i; i=$((i + 1)); done",
        "head -c 10000 /dev/zero; echo; printf '\\377\\376\\n'",
    ];
    for greeting in greetings {
        let hosts = Hosts::with(Setup { path: Some(&path), at_login: greeting, ..Setup::default() }, None);
        let source = tree::file(&hosts.here("file"), 100_000);
        for via in ["udp", "ssh"] {
            let target = at(format!("by {via}"));
            hosts.cp(arguments!["--via", via, source, target]).expect(0);
            tree::assert_same(&source, &hosts.there(format!("by {via}")));
            hosts.cp(arguments!["--via", via, target, hosts.here(via)]).expect(0);
            tree::assert_same(&source, &hosts.here(via));
        }
    }
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn a_login_that_never_ends_its_speech_or_fails() {
    for (login, words) in [("yes", "does not understand"), ("exit 7", "ended with 7 before downpour ran there")] {
        let hosts = Hosts::with(Setup { at_login: login, ..Setup::default() }, None);
        let source = tree::file(&hosts.here("file"), 10);
        hosts.cp(arguments![source, at("copy")]).expect_line(5, words);
        tree::assert_untouched(&hosts.sshd.home());
    }
}
