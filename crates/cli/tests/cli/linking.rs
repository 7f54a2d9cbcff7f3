//! Symbolic links named as sources.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use tempfile::tempdir;

use crate::fake_ssh::FakeHost;
use crate::program::{arguments, downpour, json, receiver, sender};
use crate::tree;

/// Creates a file and a directory in `outside`, and links to them: `latest` and `photos`. Returns the links.
fn linked(local: &Path) -> (PathBuf, PathBuf) {
    fs::create_dir_all(local.join("outside")).expect("a directory");
    tree::file(&local.join("outside/run 7"), 1000);
    tree::directory(&local.join("outside/all photos"));
    symlink("outside/run 7", local.join("latest")).expect("a link");
    symlink(local.join("outside/all photos"), local.join("photos")).expect("a link");
    (local.join("latest"), local.join("photos"))
}

#[track_caller]
fn assert_followed(local: &Path, into: &Path) {
    tree::assert_same(&local.join("outside/run 7"), &into.join("latest"));
    assert_eq!(tree::names(&into.join("photos")), tree::names(&local.join("outside/all photos")));
    let inner = fs::symlink_metadata(into.join("photos/link")).expect("the link in the directory");
    assert!(inner.is_symlink(), "links in a directory stay links");
}

#[test]
fn cp_named_link_followed_and_counted() {
    let local = tempdir().expect("a directory");
    let (file, directory) = linked(local.path());
    let into = local.path().join("into");
    let ended = downpour(arguments!["cp", "-r", file, directory, into]).end().expect(0);
    assert_followed(local.path(), &into);
    assert!(ended.stderr.contains(", 2 links followed"), "{}", ended.stderr);
    let ended = downpour(arguments!["cp", "--json", file, local.path().join("name")]).end().expect(0);
    tree::assert_same(&local.path().join("outside/run 7"), &local.path().join("name"));
    let summary = json(&ended.stdout).pop().expect("a summary");
    assert_eq!((&summary["files"], &summary["links_followed"]), (&1.into(), &1.into()));
    downpour(arguments!["verify", file, into.join("latest")]).end().expect(0);
    downpour(arguments!["cp", directory, into]).end().expect_line(2, "is a directory");
}

#[test]
fn cp_named_link_followed_both_directions() {
    let (local, far) = (tempdir().expect("a directory"), FakeHost::new());
    let (file, directory) = linked(local.path());
    let up = far.run("cp", arguments!["-r", "--via=ssh", file, directory, "far:up"]).expect(0);
    assert_followed(local.path(), &far.remote("up"));
    assert!(up.stderr.contains(", 2 links followed"), "{}", up.stderr);
    linked(&far.home());
    let down = local.path().join("down");
    let ended = far.run("cp", arguments!["-r", "--via=ssh", "far:latest", "far:photos", down]).expect(0);
    assert_followed(&far.home(), &down);
    assert!(ended.stderr.contains(", 2 links followed"), "{}", ended.stderr);
    let wild = local.path().join("wild");
    far.run("cp", arguments!["--via=ssh", "far:lat*", wild]).expect(0);
    tree::assert_same(&far.remote("outside/run 7"), &wild);
}

#[test]
fn send_named_link_followed() {
    let local = tempdir().expect("a directory");
    let (file, directory) = linked(local.path());
    let (ticket, into) = (local.path().join("ticket"), local.path().join("into"));
    let sender = sender(&[&file, &directory], &ticket, &[]);
    receiver(&ticket, &into, &[]).end().expect(0);
    assert!(sender.end().expect(0).stderr.contains(", 2 links followed"));
    assert_followed(local.path(), &into);
}

#[test]
fn sync_named_link_copied_unless_links_option() {
    let local = tempdir().expect("a directory");
    let (file, directory) = linked(local.path());
    for arguments in
        [arguments!["sync", file, directory].to_vec(), arguments!["cp", "-r", "--links=copy", file, directory].to_vec()]
    {
        let into = tempdir().expect("a directory");
        let ended = downpour(arguments.into_iter().chain([into.path().as_os_str()])).end().expect(0);
        assert_eq!(fs::read_link(into.path().join("latest")).expect("a link"), Path::new("outside/run 7"));
        assert_eq!(fs::read_link(into.path().join("photos")).expect("a link"), local.path().join("outside/all photos"));
        assert!(!ended.stderr.contains("followed"), "{}", ended.stderr);
    }
    let into = local.path().join("into");
    downpour(arguments!["sync", directory.join(""), into]).end().expect(0);
    tree::assert_same(&local.path().join("outside/all photos"), &into);
    downpour(arguments!["cp", "--links=skip", file, into]).end().expect_line(3, "symbolic link, and links are skipped");
}

#[test]
fn cp_dangling_link_fails() {
    let (local, far) = (tempdir().expect("a directory"), FakeHost::new());
    for (target, reason) in [("nothing", "dangling symbolic link"), ("link", "symbolic link that forms a loop")] {
        for directory in [local.path(), &far.home()] {
            let _ = fs::remove_file(directory.join("link"));
            symlink(target, directory.join("link")).expect("a link");
        }
        downpour(arguments!["cp", local.path().join("link"), local.path().join("copy")]).end().expect_line(3, reason);
        far.run("cp", arguments!["--via=ssh", "far:link", local.path().join("copy")]).expect_line(3, reason);
        assert!(local.path().join("copy").symlink_metadata().is_err());
    }
}
