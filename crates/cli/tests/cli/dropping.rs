//! Drop boxes: directories that may be written and searched, and not read. Root may read everything, so the program
//! runs as another user where the test is run by root.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::geteuid;
use tempfile::{TempDir, tempdir};

use crate::fake_ssh::FakeHost;
use crate::program::{Ended, Program, arguments, command, copy_program, program_with};
use crate::tree;

const USER: u32 = 61_200;

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("a mode");
}

/// Gives a file or a tree to the user of the program.
fn give(path: &Path) {
    if geteuid().is_root() {
        chown(path, Some(USER), Some(USER)).expect("an owner");
        if path.is_dir() {
            fs::read_dir(path).expect("names").for_each(|item| give(&item.expect("a name").path()));
        }
    }
}

/// A directory that any user may enter, with a copy of the program.
fn home() -> (TempDir, PathBuf) {
    let home = tempdir().expect("a directory");
    mode(home.path(), 0o755);
    let program = home.path().join("downpour");
    copy_program(&program);
    (home, program)
}

fn as_user(home: &Path, words: &[&std::ffi::OsStr]) -> Command {
    let mut command = program_with(&home.join("downpour"), words);
    command.current_dir(home).env("HOME", home).env_remove("XDG_CACHE_HOME");
    if geteuid().is_root() {
        command.uid(USER).gid(USER);
    }
    command
}

fn run(home: &Path, words: &[&std::ffi::OsStr]) -> Ended {
    Program::start(as_user(home, words)).end()
}

#[test]
fn drop_box_is_target_and_named_source() {
    let (home, _program) = home();
    let at = |name: &str| home.path().join(name);
    fs::create_dir_all(at("box")).expect("a box");
    let (file, directory) = (tree::file(&at("file"), 300_000), tree::directory(&at("photos")));
    [&file, &directory, &at("box")].iter().for_each(|path| give(path));
    // The directory belongs to the user who runs the test.
    mode(&at("box"), 0o333);
    run(home.path(), &arguments!["cp", file, at("box/")]).expect(0);
    run(home.path(), &arguments!["cp", "-r", directory, at("box")]).expect(0);
    run(home.path(), &arguments!["cp", file, at("box/renamed")]).expect(0);
    run(home.path(), &arguments!["verify", file, at("box/file")]).expect(0);
    run(home.path(), &arguments!["verify", file, at("box/")]).expect(0);
    give(home.path());
    run(home.path(), &arguments!["cp", "--remove-source-files", at("box/renamed"), at("back")]).expect(0);
    tree::assert_same(&file, &at("back"));
    let listed = at("list");
    fs::write(&listed, "file\n").expect("a list");
    run(home.path(), &arguments!["cp", "--files-from", listed, at("box/"), at("into/")]).expect(0);
    tree::assert_same(&file, &at("into/file"));
    mode(&at("box"), 0o755);
    assert_eq!(fs::read_dir(at("box")).expect("names").count(), 2, "the file and the directory");
    tree::assert_same(&directory, &at("box/photos"));
}

/// Some changes of user leave HOME set to that of another user. The user's own configuration is never skipped.
#[test]
fn config_unreadable_in_foreign_home_skipped() {
    let (home, _program) = home();
    let file = tree::file(&home.path().join("file"), 10);
    let config = home.path().join(".config");
    fs::create_dir_all(config.join("downpour")).expect("a directory");
    fs::write(config.join("downpour/config.toml"), "nonsense").expect("a file");
    [&file, &config].iter().for_each(|path| give(path));
    mode(&config, 0);
    let copy = |option: &[&std::ffi::OsStr]| {
        let words = [option, &arguments!["cp", "-n", file, "copy"][..]].concat();
        let mut command = as_user(home.path(), &words);
        command.env_remove("DOWNPOUR_CONFIG").env_remove("XDG_CONFIG_HOME");
        Program::start(command).end()
    };
    let refused = "cannot read the configuration";
    if geteuid().is_root() {
        let ended = copy(&[]).expect(0);
        assert!(ended.stderr.contains("config.toml ignored: Permission denied"), "{}", ended.stderr);
        chown(home.path(), Some(USER), Some(USER)).expect("an owner");
    } else {
        eprintln!("NOT RUN: the home of another user, for which this must run as root");
    }
    copy(&[]).expect_line(2, refused);
    let named = config.join("downpour/config.toml");
    copy(&arguments!["--config", named]).expect_line(2, refused);
    mode(&config, 0o755);
}

#[test]
fn restricted_key_uses_drop_box() {
    let (home, program) = home();
    let user = if geteuid().is_root() {
        format!("setpriv --reuid={USER} --regid={USER} --clear-groups ")
    } else {
        String::new()
    };
    let only = format!("exec {user}{} remote --only \"$FAR_HOME/limit\"", program.display());
    let far = FakeHost::with_login(&only);
    mode(far.home().parent().expect("a directory"), 0o755);
    let drop_box = far.remote("limit/box");
    fs::create_dir_all(&drop_box).expect("a box");
    give(&far.remote("limit"));
    mode(&drop_box, 0o333);
    mode(&far.remote("limit"), 0o311);
    let file = tree::file(&home.path().join("file"), 300_000);
    far.run("cp", arguments!["--via=ssh", file, "far:box/"]).expect(0);
    far.run("cp", arguments!["--via=ssh", file, "far:box/renamed"]).expect(0);
    far.run("verify", arguments!["--via=ssh", file, "far:box/file"]).expect(0);
    let back = home.path().join("back");
    far.run("cp", arguments!["--via=ssh", "far:box/renamed", back]).expect(0);
    tree::assert_same(&file, &back);
    mode(&far.remote("limit"), 0o755);
    mode(&drop_box, 0o755);
    assert_eq!(tree::names(&drop_box), [Path::new("file"), Path::new("renamed")]);
}

/// The staging directory cannot be removed from an append-only directory; the copy succeeds nevertheless.
#[test]
fn append_only_target_succeeds() {
    let (home, _program) = home();
    let script = "truncate -s 32M image && mkfs.ext4 -q image && mkdir mnt && mount -o loop image mnt && \
                  mkdir mnt/into && chattr +a mnt/into";
    let made = Command::new("sh").args(["-c", script]).current_dir(home.path()).output().expect("a shell");
    let unmounted = Unmounted(home.path().join("mnt"));
    if !made.status.success() {
        return eprintln!(
            "NOT RUN: this file system has no append-only directories: {}",
            String::from_utf8_lossy(&made.stderr)
        );
    }
    let file = tree::file(&home.path().join("file"), 300_000);
    let into = unmounted.0.join("into");
    let ended = Program::start(command(arguments!["cp", file, into.join("")])).end();
    assert!(ended.stderr.contains(": staging directory of an interrupted transfer; "), "{}", ended.stderr);
    ended.expect(0);
    tree::assert_same(&file, &into.join("file"));
}

/// A file system that is unmounted when this is dropped.
struct Unmounted(PathBuf);

impl Drop for Unmounted {
    fn drop(&mut self) {
        drop(Command::new("umount").arg(&self.0).output());
    }
}
