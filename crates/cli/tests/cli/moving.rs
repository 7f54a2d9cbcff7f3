//! `--remove-source-files`: files stored at the target are removed from the source.

use std::fs;
use std::os::unix::fs::symlink;

use tempfile::tempdir;

use crate::fake_ssh::FakeHost;
use crate::program::{arguments, downpour, json};
use crate::tree;

#[test]
fn remove_source_files_moves_both_directions() {
    let far = FakeHost::new();
    let local = tempdir().expect("a directory");
    let (source, model) = (tree::directory(&local.path().join("photos")), tree::directory(&local.path().join("model")));
    let directories = tree::names(&source).len() - 3;

    far.run("sync", arguments!["--remove-source-files", source, "far:"]).expect(0);
    tree::assert_same(&model, &far.remote("photos"));
    assert_eq!(tree::files(&source), [""; 0]);
    assert_eq!(tree::names(&source).len(), directories, "directories stay");

    let back = local.path().join("back");
    let ended = far.run("cp", arguments!["-r", "-p", "--json", "--remove-source-files", "far:photos", back]).expect(0);
    tree::assert_same(&model, &back);
    assert_eq!(tree::files(&far.remote("photos")), [""; 0]);
    let summary = json(&ended.stdout).into_iter().find(|line| line["type"] == "summary").expect("a summary");
    assert_eq!(summary["removed"], 5);

    // One file under another name, on the local host.
    let ended = downpour(arguments!["cp", "-v", "--remove-source-files", back.join("one"), local.path().join("moved")]);
    assert!(ended.end().expect(0).stderr.contains("removed from the source: one"));
    assert_eq!(fs::read(local.path().join("moved")).expect("a file"), fs::read(model.join("one")).expect("a file"));
    assert!(!back.join("one").exists());
}

#[test]
fn remove_source_files_dry_run_removes_nothing() {
    let far = FakeHost::new();
    let local = tempdir().expect("a directory");
    let source = tree::directory(&local.path().join("photos"));
    let before = tree::files(&source);
    let wanted = "remove from the source photos/one\n";
    for target in ["far:copy", "copy"] {
        let ended = far.run("sync", arguments!["-n", "--remove-source-files", source, target]).expect(0);
        assert!(ended.stdout.contains(wanted), "{}", ended.stdout);
    }
    fs::rename(&source, far.remote("photos")).expect("a move");
    let ended = far.run("sync", arguments!["-n", "--remove-source-files", "far:photos", "copy"]).expect(0);
    assert!(ended.stdout.contains(wanted), "{}", ended.stdout);
    assert_eq!(tree::files(&far.remote("photos")), before);
}

#[test]
fn remove_source_files_keeps_identical_target() {
    let far = FakeHost::new();
    let source = tree::directory(&far.remote("photos"));
    let before = tree::files(&source);
    // Sender and receiver do not know that they run on the same host.
    let ended = far.run("sync", arguments!["--remove-source-files", source.join(""), "far:photos"]).expect(23);
    assert!(ended.stderr.contains("one: not removed: source and destination are the same file"), "{}", ended.stderr);
    assert_eq!(tree::files(&source), before);
    let ended = far.run("sync", arguments!["--remove-source-files", "far:photos/", &source]).expect(23);
    assert!(ended.stderr.contains("link: not removed: source and destination are the same file"), "{}", ended.stderr);
    assert_eq!(tree::files(&source), before);
    downpour(arguments!["sync", "--remove-source-files", source.join(""), &source]).end().expect_line(2, "into itself");
    let link = far.remote("to one");
    symlink(source.join("one"), &link).expect("a link");
    downpour(arguments!["cp", "--remove-source-files", &link, far.remote("copy")])
        .end()
        .expect_line(3, "sources cannot be removed through symbolic links; name the file itself");
    assert_eq!(tree::files(&source), before);
}
