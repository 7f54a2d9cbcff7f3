//! Symbolic links named as sources.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use tempfile::tempdir;

use crate::far::Far;
use crate::program::{arguments, downpour, json, receiver, sender};
use crate::tree;

/// Creates a file and a directory in `elsewhere`, and links to them: `latest` and `photos`. Returns the links.
fn linked(here: &Path) -> (PathBuf, PathBuf) {
    fs::create_dir_all(here.join("elsewhere")).expect("a directory");
    tree::file(&here.join("elsewhere/run 7"), 1000);
    tree::directory(&here.join("elsewhere/all photos"));
    symlink("elsewhere/run 7", here.join("latest")).expect("a link");
    symlink(here.join("elsewhere/all photos"), here.join("photos")).expect("a link");
    (here.join("latest"), here.join("photos"))
}

#[track_caller]
fn assert_followed(here: &Path, into: &Path) {
    tree::assert_same(&here.join("elsewhere/run 7"), &into.join("latest"));
    assert_eq!(tree::names(&into.join("photos")), tree::names(&here.join("elsewhere/all photos")));
    let inner = fs::symlink_metadata(into.join("photos/link")).expect("the link in the directory");
    assert!(inner.is_symlink(), "links in a directory stay links");
}

#[test]
fn cp_named_link_followed_and_counted() {
    let here = tempdir().expect("a directory");
    let (file, directory) = linked(here.path());
    let into = here.path().join("into");
    let ended = downpour(arguments!["cp", "-r", file, directory, into]).end().expect(0);
    assert_followed(here.path(), &into);
    assert!(ended.stderr.contains(", 2 links followed"), "{}", ended.stderr);
    let ended = downpour(arguments!["cp", "--json", file, here.path().join("name")]).end().expect(0);
    tree::assert_same(&here.path().join("elsewhere/run 7"), &here.path().join("name"));
    let summary = json(&ended.stdout).pop().expect("a summary");
    assert_eq!((&summary["files"], &summary["links_followed"]), (&1.into(), &1.into()));
    downpour(arguments!["verify", file, into.join("latest")]).end().expect(0);
    downpour(arguments!["cp", directory, into]).end().expect_line(2, "is a directory");
}

#[test]
fn cp_named_link_followed_both_directions() {
    let (here, far) = (tempdir().expect("a directory"), Far::new());
    let (file, directory) = linked(here.path());
    let up = far.run("cp", arguments!["-r", "--via=ssh", file, directory, "far:up"]).expect(0);
    assert_followed(here.path(), &far.there("up"));
    assert!(up.stderr.contains(", 2 links followed"), "{}", up.stderr);
    linked(&far.home());
    let down = here.path().join("down");
    let said = far.run("cp", arguments!["-r", "--via=ssh", "far:latest", "far:photos", down]).expect(0);
    assert_followed(&far.home(), &down);
    assert!(said.stderr.contains(", 2 links followed"), "{}", said.stderr);
    let wild = here.path().join("wild");
    far.run("cp", arguments!["--via=ssh", "far:lat*", wild]).expect(0);
    tree::assert_same(&far.there("elsewhere/run 7"), &wild);
}

#[test]
fn send_named_link_followed() {
    let here = tempdir().expect("a directory");
    let (file, directory) = linked(here.path());
    let (ticket, into) = (here.path().join("ticket"), here.path().join("into"));
    let sender = sender(&[&file, &directory], &ticket, &[]);
    receiver(&ticket, &into, &[]).end().expect(0);
    assert!(sender.end().expect(0).stderr.contains(", 2 links followed"));
    assert_followed(here.path(), &into);
}

#[test]
fn sync_named_link_copied_unless_links_option() {
    let here = tempdir().expect("a directory");
    let (file, directory) = linked(here.path());
    for arguments in
        [arguments!["sync", file, directory].to_vec(), arguments!["cp", "-r", "--links=copy", file, directory].to_vec()]
    {
        let into = tempdir().expect("a directory");
        let ended = downpour(arguments.into_iter().chain([into.path().as_os_str()])).end().expect(0);
        assert_eq!(fs::read_link(into.path().join("latest")).expect("a link"), Path::new("elsewhere/run 7"));
        assert_eq!(
            fs::read_link(into.path().join("photos")).expect("a link"),
            here.path().join("elsewhere/all photos")
        );
        assert!(!ended.stderr.contains("followed"), "{}", ended.stderr);
    }
    let into = here.path().join("into");
    downpour(arguments!["sync", directory.join(""), into]).end().expect(0);
    tree::assert_same(&here.path().join("elsewhere/all photos"), &into);
    downpour(arguments!["cp", "--links=skip", file, into]).end().expect_line(3, "links are left out");
}

#[test]
fn cp_dangling_link_fails() {
    let (here, far) = (tempdir().expect("a directory"), Far::new());
    for (target, reason) in [("nothing", "leads nowhere"), ("link", "leads back to where it is")] {
        for directory in [here.path(), &far.home()] {
            let _ = fs::remove_file(directory.join("link"));
            symlink(target, directory.join("link")).expect("a link");
        }
        downpour(arguments!["cp", here.path().join("link"), here.path().join("copy")]).end().expect_line(3, reason);
        far.run("cp", arguments!["--via=ssh", "far:link", here.path().join("copy")]).expect_line(3, reason);
        assert!(here.path().join("copy").symlink_metadata().is_err());
    }
}
