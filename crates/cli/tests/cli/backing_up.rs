//! `--backup`: replaced and deleted files keep their content.

use std::fs;
use std::path::Path;

use tempfile::tempdir;

use crate::fake_ssh::FakeHost;
use crate::program::{arguments, downpour};
use crate::tree;

fn read(path: &Path) -> String {
    fs::read_to_string(path).expect("a file")
}

#[test]
fn backup_keeps_replaced_and_deleted_files() {
    let far = FakeHost::new();
    let local = tempdir().expect("a directory");
    let (source, copy) = (local.path().join("source"), local.path().join("copy"));
    for directory in [&source, &copy, &far.remote("copy")] {
        fs::create_dir(directory).expect("a directory");
    }
    fs::write(source.join("file"), "new").expect("a file");
    for directory in [&copy, &far.remote("copy")] {
        fs::write(directory.join("file"), "replaced").expect("a file");
        fs::write(directory.join("gone"), "deleted").expect("a file");
    }
    let dry = far.run("sync", arguments!["-n", "-b", "--delete", source.join(""), "far:copy"]).expect(0);
    assert_eq!(dry.stdout.lines().filter(|line| line.starts_with("delete")).collect::<Vec<_>>(), ["delete gone"]);
    assert_eq!(tree::names(&far.remote("copy")).len(), 2);
    far.run("sync", arguments!["-b", "--suffix", ".old", "--delete", source.join(""), "far:copy"]).expect(0);
    assert_eq!(read(&far.remote("copy/file")), "new");
    assert_eq!(
        (read(&far.remote("copy/file.old")), read(&far.remote("copy/gone.old"))),
        ("replaced".into(), "deleted".into())
    );

    far.run("sync", arguments!["--backup-dir", "old", "--delete", "far:copy/", &copy]).expect(0);
    assert_eq!((read(&copy.join("file")), read(&copy.join("old/file"))), ("new".into(), "replaced".into()));
    assert_eq!(read(&copy.join("old/gone")), "deleted");

    // A file under another name, on the local host.
    downpour(arguments!["cp", "--backup", copy.join("file.old"), copy.join("file")]).end().expect(0);
    assert_eq!((read(&copy.join("file")), read(&copy.join("file~"))), ("replaced".into(), "new".into()));
}

#[test]
fn backup_options_invalid_exit_2() {
    let local = tempdir().expect("a directory");
    let (file, copy) = (tree::file(&local.path().join("file"), 1), tree::file(&local.path().join("copy"), 2));
    for (options, expected) in [
        (&["--backup-dir", "/var/backups"][..], "the backup directory must be a relative path inside the destination"),
        (&["--backup-dir=../old"], "the backup directory must be a relative path inside the destination"),
        (&["--backup", "--suffix="], "an empty suffix needs a backup directory"),
        (&["-b", "--suffix", "a/b"], "without slashes"),
        (&["--suffix", ".old"], "use it with --backup or --backup-dir"),
    ] {
        let options = options.iter().map(AsRef::as_ref).chain(arguments![file, copy]);
        downpour(std::iter::once("cp".as_ref()).chain(options)).end().expect_line(2, expected);
        assert_eq!(fs::read(&copy).expect("a file").len(), 2);
    }
}
