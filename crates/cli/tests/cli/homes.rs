//! Paths that begin with `~`: a shell has not expanded them, so the program does, or refuses them.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::tempdir;

use crate::fake_ssh::FakeHost;
use crate::program::{Program, arguments, command};
use crate::tree;

const UNKNOWN_USER: &str = "no such user";

/// Returns `~` and the name of this user, and the path from that home to `directory`.
fn by_name(directory: &Path) -> Option<(String, PathBuf)> {
    let stdout_of = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output().ok().filter(|output| output.status.success())?;
        String::from_utf8(output.stdout).ok()
    };
    let name = stdout_of("id", &["-un"])?.trim().to_owned();
    let home = PathBuf::from(stdout_of("getent", &["passwd", &name])?.split(':').nth(5)?).canonicalize().ok()?;
    let up: PathBuf = home.components().skip(1).map(|_| "..").collect();
    Some((format!("~{name}"), up.join(directory.canonicalize().ok()?.strip_prefix("/").ok()?)))
}

#[test]
fn tilde_user_expanded_by_remote_host() {
    let (far, local) = (FakeHost::new(), tempdir().expect("a directory"));
    let Some((user, way)) = by_name(&far.home()) else {
        eprintln!("NOT RUN: this user has no home that getent knows");
        return;
    };
    let remote = |name: &str| format!("far:{user}/{}/{name}", way.display());
    let source = tree::file(&local.path().join("file"), 1000);
    far.run("cp", arguments![source, remote("copy")]).expect(0);
    assert_eq!(tree::names(&far.home()), [Path::new("copy")]);
    far.run("cp", arguments![remote("c*"), local.path().join("back")]).expect(0);
    tree::assert_same(&source, &local.path().join("back"));
    far.run("verify", arguments![source, remote("copy")]).expect(0);
    far.run("sync", arguments!["-n", source, format!("far:{user}")]).expect(0);
    // As `host:~`, it is sent under its own name, which only the host knows.
    let into = local.path().join("into");
    fs::create_dir(&into).expect("a directory");
    far.run("cp", arguments!["-rn", "--exclude", "/*/*", format!("far:{user}"), into]).expect(0);
    assert_eq!(tree::names(&far.home()), [Path::new("copy")]);
}

#[test]
fn tilde_unknown_user_refused() {
    let (far, local) = (FakeHost::new(), tempdir().expect("a directory"));
    let source = tree::file(&local.path().join("file"), 1000);
    for path in ["~no-such-user/x", "~no-such-user", "~0/x", "~+/x", "~-/x", "~$file"] {
        let remote = format!("far:{path}");
        far.run("cp", arguments![source, remote]).expect_line(2, UNKNOWN_USER);
        far.run("cp", arguments!["-r", remote, local.path().join("back")]).expect_line(2, UNKNOWN_USER);
        far.run("cp", arguments![remote, "far:outside"]).expect(2);
        far.run("verify", arguments![source, remote]).expect_line(2, UNKNOWN_USER);
    }
    far.run("doctor", ["far", "~no-such-user"]).expect_line(2, UNKNOWN_USER);
    far.run("bootstrap", ["--to", "~no-such-user/x", "far"]).expect_line(1, UNKNOWN_USER);
    far.run("bootstrap", ["--to", "~", "far"]).expect_line(1, "is a directory: name a file in it");
    far.run("tunnel", ["-R~no-such-user/socket:localhost:80", "far"]).expect_line(1, UNKNOWN_USER);
    let program = env!("CARGO_BIN_EXE_downpour");
    let limited = FakeHost::with_login(&format!(r#"exec {program} remote --only "$FAR_HOME""#));
    for path in ["far:~root/x", "far:~no-such-user/x"] {
        limited.run("cp", arguments![source, path]).expect_line(7, "is in the home of another user; write ./~");
        limited
            .run("cp", arguments![path, local.path().join("back")])
            .expect_line(7, "is in the home of another user; write ./~");
    }
    for home in [far.home(), limited.home()] {
        assert!(tree::names(&home).is_empty(), "{:?}", tree::names(&home));
    }
    // A file with such a name is written with `./`.
    far.run("cp", arguments![source, "far:./~no-such-user"]).expect(0);
    tree::assert_same(&source, &far.remote("~no-such-user"));
    far.run("cp", arguments!["far:./~no-such-user", local.path().join("back")]).expect(0);
}

#[test]
fn tilde_in_option_value_expanded() {
    let local = tempdir().expect("a directory");
    let home = local.path().join("home");
    fs::create_dir(&home).expect("a directory");
    let run = |arguments: &[&OsStr]| {
        let mut command = command(arguments);
        command.current_dir(local.path()).env("HOME", &home);
        Program::start(command).end()
    };
    let list = home.join("list");
    fs::write(&list, "one\n").expect("a list");
    fs::write(home.join("rules"), "*.tmp\n").expect("rules");
    let source = local.path().join("source");
    fs::create_dir(&source).expect("a directory");
    fs::write(source.join("one"), "1").expect("a file");
    run(&arguments!["sync", "--files-from=~/list", "--exclude-from=~/rules", "source/", "~/copy"]).expect(0);
    assert_eq!(fs::read(home.join("copy/one")).expect("a file"), b"1");
    run(&arguments!["cp", "--checksums=~/sums", "--qlog=~/trace", "~/copy/one", "back"]).expect(0);
    assert!(home.join("sums").is_file() && home.join("trace").is_file());
    run(&arguments!["clean", "~/copy"]).expect(0);
    assert_eq!(tree::names(local.path()), ["back", "home", "source"].map(PathBuf::from), "and no ~");

    for refused in [
        arguments!["cp", "source/one", "~no-such-user/x"].to_vec(),
        arguments!["cp", "source/one", "~no-such-user"].to_vec(),
        arguments!["cp", "~no-such-user/x", "x"].to_vec(),
        arguments!["cp", "--files-from=~no-such-user/x", "source", "x"].to_vec(),
        arguments!["recv", "--into=~no-such-user"].to_vec(),
        arguments!["send", "~no-such-user/x"].to_vec(),
        arguments!["cp", "--profile=~no-such-user/x", "source/one", "x"].to_vec(),
        arguments!["cp", "--config=~no-such-user/x", "source/one", "x"].to_vec(),
        arguments!["cp", "--exclude-from=~no-such-user/x", "source/one", "x"].to_vec(),
    ] {
        let stderr = run(&refused).expect(2).stderr;
        assert!(stderr.contains(UNKNOWN_USER), "{refused:?}: {stderr}");
    }
    let ended = run(&arguments!["sync", "--backup-dir=~/old", "source", "copy"]);
    ended.expect_line(2, "must be a path relative to the destination");
    assert_eq!(tree::names(local.path()), ["back", "home", "source"].map(PathBuf::from));

    // Wildcards of a shell have such names in their place.
    fs::write(local.path().join("~$report.docx"), "lock").expect("a file");
    run(&arguments!["cp", "~$report.docx", "locked"]).expect(0);
    assert_eq!(fs::read(local.path().join("locked")).expect("a file"), b"lock");
}
