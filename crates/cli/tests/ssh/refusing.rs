//! Refused copies, and their error messages.

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
fn cp_missing_source_exit_3() {
    let hosts = Hosts::start();
    hosts.cp(arguments![at("absent"), hosts.local("copy")]).expect_line(3, "absent");
    hosts.cp(arguments![hosts.local("absent"), at("copy")]).expect_line(3, "absent");
    // If one of two sources is absent, nothing is copied: the user may have mistyped it.
    tree::file(&hosts.remote("present"), 10);
    hosts.cp(arguments![at("present"), at("absent"), hosts.local("both")]).expect_line(3, "absent");
    assert_holds_only(&hosts.local(""), &[]);
    // A directory without -r.
    fs::create_dir(hosts.remote("directory")).expect("a directory");
    hosts.cp(arguments![at("directory"), hosts.local("copy")]).expect_line(2, "-r");
    assert_holds_only(&hosts.local(""), &[]);
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn cp_unwritable_target_exit_7() {
    let hosts = Hosts::start();
    let source = tree::file(&hosts.local("file"), 10);
    // Root can write to all other directories.
    let target = if geteuid().is_root() { "/sys/copy".into() } else { hosts.remote("closed/copy") };
    let closed = hosts.remote("closed");
    fs::create_dir(&closed).expect("a directory");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o500)).expect("a mode");
    let refused = hosts.cp(arguments![source, at(target)]);
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).expect("a mode");
    refused.expect_error(7);
    // The target's parent is a file.
    fs::write(hosts.remote("no directory"), "").expect("a file");
    let refused = hosts.cp(arguments![source, at("no directory/copy")]);
    assert!(matches!(refused.status.code(), Some(1 | 7)), "{} {}", refused.status, refused.stderr);
    assert_holds_only(&hosts.sshd.home(), &["closed", "no directory"]);
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn cp_changed_host_key_exit_4() {
    let (hosts, other) = (Hosts::start(), Sshd::start());
    let source = tree::file(&hosts.local("file"), 10);
    hosts.client.know(&[("there", other.host_key())]);
    let begun = Instant::now();
    let up = hosts.cp(arguments![source, at("copy")]).expect_error(4);
    let down = hosts.cp(arguments![at("file"), hosts.local("copy")]).expect_error(4);
    assert!(begun.elapsed() < 2 * AT_ONCE, "{:?}", begun.elapsed());
    for ended in [up, down] {
        assert!(ended.stderr.contains("Host key verification failed"), "{}", ended.stderr);
    }
    tree::assert_untouched(&hosts.sshd.home());
    assert_holds_only(&hosts.local(""), &["file"]);
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn cp_no_sshd_exit_5() {
    let mut hosts = Hosts::start();
    hosts.sshd.kill();
    let begun = Instant::now();
    let refused = hosts.cp(arguments!["--retry-for", "1h", at("file"), "."]).expect_error(5);
    assert!(refused.stderr.contains("Connection refused"), "{}", refused.stderr);
    assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
}

/// sshd forwards the message of nologin.
#[test]
#[ignore = "cargo xtask test-ssh"]
fn login_nologin_message_quoted() {
    let nologin = format!("exec {}", find("nologin").display());
    let hosts = Hosts::with(Setup { at_login: &nologin, ..Setup::default() }, None);
    let source = tree::file(&hosts.local("file"), 10);
    let words = "cannot log in to there: This account is currently not available.";
    hosts.cp(arguments![source, at("copy")]).expect_line(4, words);
    hosts.run("bootstrap", ["there"]).expect_line(4, words);
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn bootstrap_auto_installs_program() {
    // Its start-up file greets without the end of a line.
    let setup = Setup { path: Some("/usr/bin:/bin"), at_login: "printf 'Welcome to there. '", ..Setup::default() };
    let hosts = Hosts::with(setup, None);
    assert!(!Path::new("/usr/bin/downpour").exists() && !Path::new("/usr/local/bin/downpour").exists());
    let (source, program) = (tree::file(&hosts.local("file"), 100_000), hosts.remote(".local/bin/downpour"));
    let target = at("copy");
    let copy = arguments![source, target];
    // Without a terminal there is no prompt.
    hosts.cp(copy).expect_line(3, "downpour not found on there; install it with `downpour bootstrap there`");
    hosts.cp(arguments!["--bootstrap", "never", source, target]).expect(3);
    tree::assert_untouched(&hosts.sshd.home());

    let stderr = hosts.cp(arguments!["--bootstrap", "auto", source, target]).expect(0).stderr;
    assert!(stderr.contains("downpour not found on there. It can be installed in ~/.local/bin."), "{stderr}");
    assert!(stderr.contains("Copying downpour (") && stderr.contains("Installed "), "{stderr}");
    assert!(fs::read(&program).expect("a program") == fs::read(DOWNPOUR).expect("a program"));
    tree::assert_same(&source, &hosts.remote("copy"));
    fs::remove_file(&program).expect("a program");
    let mut bootstrap = hosts.command("bootstrap");
    assert!(bootstrap.arg("there").status().expect("a process").success() && program.exists());
    hosts.cp(copy).expect(0);
    hosts.cp(arguments!["--remote-bin", "~/bin/other", source, at("copy")]).expect_line(3, "~/bin/other");
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn ssh_program_missing_exit_1() {
    let hosts = Hosts::start();
    let source = tree::file(&hosts.local("file"), 10);
    let mut command = hosts.command_by("cp", "/nonexist");
    command.args(arguments![source, at("copy")]);
    Program::start(command).end().expect_line(1, "cannot start /nonexist: ");
    tree::assert_untouched(&hosts.sshd.home());
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn login_greetings_ignored() {
    let path = path_with_downpour();
    let greetings = [
        "echo Welcome; echo DOWNPOUR; echo 'news: none' >&2",
        "printf 'Welcome, this line does not end'",
        "i=0; while [ $i -lt 900 ]; do printf '%01000d\\n' $i; i=$((i + 1)); done",
        "head -c 10000 /dev/zero; echo; printf '\\377\\376\\n'",
    ];
    for greeting in greetings {
        let hosts = Hosts::with(Setup { path: Some(&path), at_login: greeting, ..Setup::default() }, None);
        let source = tree::file(&hosts.local("file"), 100_000);
        for via in ["udp", "ssh"] {
            let target = at(format!("by {via}"));
            hosts.cp(arguments!["--via", via, source, target]).expect(0);
            tree::assert_same(&source, &hosts.remote(format!("by {via}")));
            hosts.cp(arguments!["--via", via, target, hosts.local(via)]).expect(0);
            tree::assert_same(&source, &hosts.local(via));
        }
    }
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn login_endless_or_failing_exit_5() {
    for (login, words) in
        [("yes", "endless login output"), ("exit 7", "ssh exited with code 7 before downpour started on")]
    {
        let hosts = Hosts::with(Setup { at_login: login, ..Setup::default() }, None);
        let source = tree::file(&hosts.local("file"), 10);
        hosts.cp(arguments![source, at("copy")]).expect_line(5, words);
        tree::assert_untouched(&hosts.sshd.home());
    }
}
