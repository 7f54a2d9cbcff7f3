//! `cp`, `sync` and `verify` with a remote host.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::client::Client;
use crate::hosts::{Hosts, assert_holds_only, at, make, odd_name, path_with_downpour, summary};
use crate::program::{Program, arguments, poll_within};
use crate::sshd::{Setup, Sshd};
use crate::tools::find;
use crate::tree;

#[test]
#[ignore = "cargo xtask test-ssh"]
fn cp_file_to_name_and_into_directory() {
    let hosts = Hosts::start();
    let source = tree::file(&hosts.local("file"), 300_000);
    make(&hosts.remote("directory"));
    hosts.cp(arguments![source, at("copy")]).expect(0);
    hosts.cp(arguments![source, at("directory")]).expect(0);
    hosts.cp(arguments![source, at("")]).expect(0);
    hosts.cp(arguments![source, at("~/tilde")]).expect(0);
    hosts.cp(arguments![source, at(hosts.remote("absolute"))]).expect(0);
    for name in ["copy", "directory/file", "file", "tilde", "absolute"] {
        tree::assert_same(&source, &hosts.remote(name));
    }
    assert_holds_only(&hosts.sshd.home(), &["absolute", "copy", "directory", "file", "tilde"]);
    make(&hosts.local("directory"));
    hosts.cp(arguments![at("copy"), hosts.local("back")]).expect(0);
    hosts.cp(arguments![at("copy"), hosts.local("directory")]).expect(0);
    hosts.cp(arguments![at("~/copy"), "."]).expect(0);
    hosts.cp(arguments![at(hosts.remote("copy")), hosts.local("absolute")]).expect(0);
    for name in ["back", "directory/copy", "copy", "absolute"] {
        tree::assert_same(&source, &hosts.local(name));
    }
    assert_holds_only(&hosts.local(""), &["absolute", "back", "copy", "directory", "file"]);
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn cp_directory_trailing_slash_copies_contents() {
    let hosts = Hosts::start();
    let source = tree::directory(&hosts.local("tree"));
    make(&hosts.remote("into"));
    hosts.cp(arguments!["-rp", source, at("into")]).expect(0);
    hosts.cp(arguments!["-rp", source, at("named")]).expect(0);
    hosts.cp(arguments!["-rp", source.join(""), at("contents")]).expect(0);
    tree::assert_same(&source, &hosts.remote("into/tree"));
    tree::assert_same(&source, &hosts.remote("named"));
    tree::assert_same(&source, &hosts.remote("contents"));
    make(&hosts.local("into"));
    hosts.cp(arguments!["-rp", at("named"), hosts.local("into")]).expect(0);
    hosts.cp(arguments!["-rp", at("named"), hosts.local("back")]).expect(0);
    hosts.cp(arguments!["-rp", at("named/"), hosts.local("contents")]).expect(0);
    tree::assert_same(&source, &hosts.local("into/named"));
    tree::assert_same(&source, &hosts.local("back"));
    tree::assert_same(&source, &hosts.local("contents"));
    // A second copy sends nothing. Then the home directory, named by an empty path.
    let again = hosts.cp(arguments!["-rp", "--json", at("named/"), hosts.local("contents")]).expect(0);
    assert!(summary(&again)["wire_bytes"].as_u64().expect("a number") < 50_000, "{}", again.stdout);
    hosts.cp(arguments!["-rp", at(""), hosts.local("home")]).expect(0);
    tree::assert_same(&hosts.sshd.home(), &hosts.local("home"));
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn cp_several_sources_into_directory() {
    let hosts = Hosts::start();
    let (one, two) = (tree::file(&hosts.local("one"), 1), tree::directory(&hosts.local("two")));
    hosts.cp(arguments!["-rp", one, two, at("new")]).expect(0);
    tree::assert_same(&one, &hosts.remote("new/one"));
    tree::assert_same(&two, &hosts.remote("new/two"));
    hosts.cp(arguments!["-rp", at("new/one"), at("new/two"), hosts.local("back")]).expect(0);
    tree::assert_same(&hosts.remote("new"), &hosts.local("back"));
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn cp_names_of_any_bytes() {
    let hosts = Hosts::start();
    let source = tree::file(&hosts.local("source"), 1000);
    let remote = at(odd_name());
    hosts.cp(arguments![source, remote]).expect(0);
    tree::assert_same(&source, &hosts.remote(odd_name()));
    hosts.cp(arguments![remote, hosts.local("named")]).expect(0);
    hosts.cp(arguments![remote, make(&hosts.local("directory"))]).expect(0);
    tree::assert_same(&source, &hosts.local("named"));
    tree::assert_same(&source, &hosts.local("directory").join(odd_name()));
    // No part of the name was executed.
    assert_eq!(tree::names(&hosts.sshd.home()), [odd_name()]);
    hosts.cp(arguments!["-r", hosts.local("directory"), at("tree")]).expect(0);
    tree::assert_same(&hosts.local("directory"), &hosts.remote("tree"));
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn cp_remote_wildcards_expanded_remotely() {
    let hosts = Hosts::start();
    for name in ["a 1.txt", "a 2.txt", "b.txt", "literal[1]"] {
        tree::file(&hosts.remote(name), name.len());
    }
    hosts.cp(arguments![at("a*.txt"), hosts.local("some")]).expect(0);
    assert_holds_only(&hosts.local("some"), &["a 1.txt", "a 2.txt"]);
    hosts.cp(arguments![at("literal[1]"), hosts.local("literal")]).expect(0);
    tree::assert_same(&hosts.remote("literal[1]"), &hosts.local("literal"));
    tree::directory(&hosts.remote("tree[1]"));
    for _ in 0..2 {
        hosts.run("sync", arguments![at("tree[1]"), hosts.local("synced")]).expect(0);
        assert_holds_only(&hosts.local("synced"), &["tree[1]"]);
    }
    hosts.cp(arguments![at("c*"), hosts.local("none")]).expect_line(3, "c*");
    assert!(!hosts.local("none").exists());
}

/// Returns the results of a program that copies `pattern` to three targets: a new name, a file and a directory.
fn made_of(hosts: &Hosts, pattern: &str, program: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let directory = make(&hosts.local(program));
    tree::file(&directory.join("file"), 1);
    make(&directory.join("directory"));
    let ssh = hosts.client.words();
    for target in ["new", "file", "directory"] {
        let mut command = match program {
            "ours" => hosts.command("cp"),
            other => Command::new(find(other)),
        };
        match program {
            "ours" => command.arg("-r"),
            // The sshd of a test has no sftp.
            "scp" => command.args(["-Orq", "-F", ssh.strip_prefix("ssh -F ").expect("an ssh with a configuration")]),
            _ => command.args(["-r", "-e", &ssh]),
        };
        // It may fail: a file is in the way of a directory, and of several names.
        command.arg(at(pattern)).arg(directory.join(target)).output().expect("a program");
    }
    let names = tree::names(&directory);
    let found =
        names.into_iter().map(|name| (name.clone(), fs::read(directory.join(name)).unwrap_or_default())).collect();
    fs::remove_dir_all(directory).expect("a directory");
    found
}

/// As if the remote shell had expanded the wildcards.
#[test]
#[ignore = "cargo xtask test-ssh"]
fn cp_single_match_named_like_scp_and_rsync() {
    let hosts = Hosts::start();
    for name in ["one.txt", "two.dat", "three.dat", "dir.d/in"] {
        make(hosts.remote(name).parent().expect("a directory"));
        tree::file(&hosts.remote(name), name.len());
    }
    let made = |pattern| ["ours", "scp", "rsync"].map(|program| made_of(&hosts, pattern, program));
    let [ours, scp, rsync] = made("o*.txt");
    assert_eq!((&ours, &ours), (&scp, &rsync));
    assert!(ours.iter().any(|(name, bytes)| name == Path::new("new") && bytes.len() == "one.txt".len()), "{ours:?}");
    // scp makes no directory for several, and rsync gives a directory no new name.
    let [ours, _, rsync] = made("*.dat");
    assert_eq!(ours, rsync);
    let [ours, scp, _] = made("d*.d");
    assert_eq!(ours, scp);
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn cp_dry_run_changes_nothing() {
    let hosts = Hosts::start();
    let source = tree::directory(&hosts.local("tree"));
    let planned = hosts.cp(arguments!["-rn", source, at("copy")]).expect(0);
    assert!(planned.stdout.lines().any(|line| line == "create copy/in/some"), "{}", planned.stdout);
    tree::assert_untouched(&hosts.sshd.home());
    hosts.cp(arguments!["-rp", source, at("copy")]).expect(0);
    let planned = hosts.cp(arguments!["-rn", at("copy"), hosts.local("back")]).expect(0);
    assert!(planned.stdout.lines().any(|line| line == "create back/in/some"), "{}", planned.stdout);
    assert_holds_only(&hosts.local(""), &["tree"]);
}

/// ssh makes its inherited stderr non-blocking. Stdout and stderr of the program are the same open file.
#[test]
#[ignore = "cargo xtask test-ssh"]
fn cp_slow_reader_gets_every_line() {
    let hosts = Hosts::start();
    let names: Vec<String> = (0..5000).map(|number| format!("a-name-that-fills-the-pipe-{number:04}")).collect();
    fs::create_dir(hosts.local("tree")).expect("a directory");
    names.iter().for_each(|name| drop(fs::File::create(hosts.local("tree").join(name)).expect("a file")));
    let (mut reader, writer) = io::pipe().expect("a pipe");
    let mut command = hosts.command("cp");
    command.args(arguments!["-rnv", hosts.local("tree"), at("copy")]);
    command.stdout(writer.try_clone().expect("the pipe")).stderr(writer.try_clone().expect("the pipe"));
    let mut child = command.spawn().expect("downpour");
    // Nothing is read until the pipe is full.
    let now = Some(&Timespec { tv_sec: 0, tv_nsec: 0 });
    poll_within(Duration::from_secs(50), "the pipe is full", || {
        assert!(child.try_wait().expect("downpour").is_none(), "it has ended, and the pipe is not full");
        (poll(&mut [PollFd::new(&writer, PollFlags::OUT)], now).expect("a pipe") == 0).then_some(())
    });
    // Both would keep the pipe open.
    drop((command, writer));
    let mut output = String::new();
    reader.read_to_string(&mut output).expect("what it said");
    assert_eq!(child.wait().expect("its end").code(), Some(0), "{output}");
    let mut created: Vec<&str> = output.lines().filter_map(|line| line.strip_prefix("create copy/")).collect();
    created.sort_unstable();
    assert_eq!(created, names);
    assert!(output.ends_with(" to transfer; nothing was changed.\n"), "{output}");
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn sync_makes_equal_and_verify_confirms() {
    let hosts = Hosts::start();
    let source = tree::directory(&hosts.local("tree"));
    let slash = source.join("");
    hosts.run("sync", arguments![slash, at("copy")]).expect(0);
    tree::assert_same(&source, &hosts.remote("copy"));
    hosts.run("verify", arguments![source, at("copy")]).expect(0);
    hosts.run("verify", arguments![at("copy"), source]).expect(0);

    tree::file(&hosts.remote("copy/in/more"), 5);
    fs::write(hosts.remote("copy/in/some"), vec![0; 100_000]).expect("other bytes");
    let differs = hosts.run("verify", arguments![source, at("copy")]).expect(1);
    assert!(differs.stdout.lines().any(|line| line == "differs: in/some"), "{}", differs.stdout);
    let kept = hosts.run("sync", arguments![slash, at("copy")]).expect(0);
    assert!(hosts.remote("copy/in/more").exists(), "{}", kept.stderr);
    hosts.run("sync", arguments!["--delete", slash, at("copy")]).expect(0);
    tree::assert_same(&source, &hosts.remote("copy"));

    // A directory keeps its name, in the first and second run and in both directions; a file has none to keep.
    for _ in 0..2 {
        hosts.run("sync", arguments![source, at("new")]).expect(0);
        hosts.run("sync", arguments![at("new/tree"), hosts.local("came")]).expect(0);
        assert_holds_only(&hosts.remote("new"), &["tree"]);
        assert_holds_only(&hosts.local("came"), &["tree"]);
    }
    hosts.run("sync", arguments![at("new/tree/one"), hosts.local("alone")]).expect(0);
    tree::assert_same(&source.join("one"), &hosts.local("alone"));

    tree::file(&make(&hosts.local("back")).join("stray"), 5);
    hosts.run("sync", arguments!["--delete", at("copy/"), hosts.local("back")]).expect(0);
    tree::assert_same(&source, &hosts.local("back"));
    let again = hosts.run("sync", arguments!["--delete", "--json", at("copy/"), hosts.local("back")]).expect(0);
    assert!(summary(&again)["wire_bytes"].as_u64().expect("a number") < 50_000, "{}", again.stdout);
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn verify_trailing_slash_sees_extra_names() {
    let hosts = Hosts::start();
    let source = tree::directory(&hosts.local("tree"));
    hosts.run("sync", arguments![source.join(""), at("copy")]).expect(0);
    let lines = |arguments: [&OsStr; 2], code| {
        let ended = hosts.run("verify", arguments).expect(code);
        ended.stdout.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    tree::file(&source.join("extra"), 5);
    for (remote, local) in [(at("copy"), source.clone()), (at("copy/"), source.clone()), (at("copy"), source.join(""))]
    {
        assert_eq!(lines(arguments![remote, local], 1), ["only in B: extra"]);
        assert_eq!(lines(arguments![local, remote], 1), ["only in A: extra"]);
    }
    // A file compared with a file, and a file where a directory is expected.
    assert!(lines(arguments![at("copy/one"), source.join("one")], 0).is_empty());
    assert!(lines(arguments![source.join("one"), at("copy/one")], 0).is_empty());
    assert_eq!(lines(arguments![at("copy/one"), source.join("extra")], 1), ["differs: extra"]);
    hosts.run("verify", arguments![at("copy"), source.join("one")]).expect_line(1, "is not a directory");
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn cp_modes_follow_umask_unless_preserved() {
    let hosts = Hosts::start();
    let source = tree::file(&hosts.local("file"), 10);
    fs::set_permissions(&source, fs::Permissions::from_mode(0o666)).expect("a mode");
    hosts.cp(arguments![source, at("masked")]).expect(0);
    hosts.cp(arguments!["-p", source, at("kept")]).expect(0);
    let mode = |name| fs::metadata(hosts.remote(name)).expect("a file").permissions().mode() & 0o777;
    let umask = 0o666 & !mode("masked");
    assert_ne!(umask, 0, "this test needs a umask");
    assert_eq!((mode("masked"), mode("kept")), (0o666 & !umask, 0o666));
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn cp_port_identity_and_jump_options() {
    let path = path_with_downpour();
    let (jump, sshd) = (Sshd::start(), Sshd::with(Setup { path: Some(&path), ..Setup::default() }));
    let (address, port) = sshd.address();
    let both = Client::of(&[("there", &sshd), ("jump", &jump)]);
    let hosts = Hosts::start();
    let source = tree::file(&hosts.local("file"), 100_000);
    let run = |client: &Client, more: &[&str], from: &Path, to: &str| {
        let mut command = hosts.command_by("cp", &client.words());
        command.args(more).arg(from).arg(to);
        Program::start(command).end()
    };
    run(&both, &["-J", "jump"], &source, "there:jumped").expect(0);
    tree::assert_same(&source, &sshd.home().join("jumped"));

    // For a host that is not in the ssh configuration, all settings come from options.
    let stranger = Client::of(&[]);
    stranger.know(&[(&format!("[{address}]:{port}"), sshd.host_key())]);
    let (number, key) = (port.to_string(), sshd.key().display().to_string());
    let target = format!("{}@{address}:keyed", crate::tools::user());
    run(&stranger, &["-P", &number, "-i", &key], &source, &target).expect(0);
    tree::assert_same(&source, &sshd.home().join("keyed"));
    run(&stranger, &["-P", &number], &source, &target).expect_error(4);
}
