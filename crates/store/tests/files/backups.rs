//! Backups of replaced and deleted files.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use downpour_store::{Backup, Filter, NoticeKind, ReceiveRequest, RequestedItems, Scanner, SourceItem, SourceOptions};
use tempfile::{TempDir, tempdir};

use super::common::{Done, transfer_from};

/// A source and a target.
struct Trees {
    here: TempDir,
}

impl Trees {
    fn new() -> Self {
        let trees = Self { here: tempdir().unwrap() };
        fs::create_dir(trees.source("")).unwrap();
        fs::create_dir(trees.target("")).unwrap();
        trees
    }

    fn source(&self, path: &str) -> PathBuf {
        self.here.path().join("source").join(path)
    }

    fn target(&self, path: &str) -> PathBuf {
        self.here.path().join("target").join(path)
    }

    /// Writes files in the target, and others of the same names in the source.
    fn replace(&self, names: &[&str]) {
        for name in names {
            write(&self.source(name), &format!("new {name}"));
            write(&self.target(name), &format!("old content of {name}"));
        }
    }

    fn sync(&self, backup: &Backup, delete: bool) -> Done {
        let requested = RequestedItems { many: true, contents: true, ..RequestedItems::default() };
        let spec = ReceiveRequest {
            requested,
            existing: downpour_store::Existing::Replace,
            delete: delete.then(Filter::default),
            backup: Some(backup.clone()),
            ..ReceiveRequest::into_directory(self.target(""))
        };
        let options = SourceOptions { hard_links: true, ..SourceOptions::default() };
        let scanner = Scanner::new(vec![SourceItem::contents(self.source(""))], options).unwrap();
        transfer_from(scanner, spec, 1, &mut |_| {}).unwrap()
    }

    /// Asserts the contents of the target: paths of files with their content, of links with their targets.
    #[track_caller]
    fn assert(&self, wanted: &[(&str, &str)]) {
        let mut found = Vec::new();
        collect(&self.target(""), "", &mut found);
        let wanted: Vec<_> = wanted.iter().map(|(path, content)| (path.to_string(), content.to_string())).collect();
        assert_eq!(found, wanted);
    }
}

fn write(path: &Path, content: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

fn collect(directory: &Path, prefix: &str, found: &mut Vec<(String, String)>) {
    let mut items: Vec<_> = fs::read_dir(directory).unwrap().map(|item| item.unwrap().path()).collect();
    items.sort();
    for item in items {
        let path = format!("{prefix}{}", item.file_name().unwrap().to_str().unwrap());
        if item.is_symlink() {
            found.push((path, fs::read_link(&item).unwrap().to_str().unwrap().to_owned()));
        } else if item.is_dir() {
            collect(&item, &format!("{path}/"), found);
        } else {
            found.push((path, fs::read_to_string(&item).unwrap()));
        }
    }
}

fn beside() -> Backup {
    Backup::new(None, None).unwrap()
}

fn below(directory: &str) -> Backup {
    Backup::new(Some(directory.as_bytes()), None).unwrap()
}

#[test]
fn backup_suffix_keeps_replaced_and_deleted() {
    let trees = Trees::new();
    trees.replace(&["a", "in/b"]);
    write(&trees.target("a~"), "older");
    write(&trees.target("gone"), "gone");
    write(&trees.target("in/gone~"), "kept as a backup");
    write(&trees.target("left/gone"), "gone too");
    symlink("new", trees.source("link")).unwrap();
    symlink("old", trees.target("link")).unwrap();
    fs::create_dir(trees.source("directory")).unwrap();
    fs::write(trees.source("directory/c"), "c").unwrap();
    fs::write(trees.target("directory"), "a file").unwrap();
    let inode = fs::metadata(trees.target("a")).unwrap().ino();
    let done = trees.sync(&beside(), true);
    assert_eq!((done.outcome.failed_count, done.outcome.deleted), (0, 2));
    trees.assert(&[
        ("a", "new a"),
        ("a~", "old content of a"),
        ("directory/c", "c"),
        ("directory~", "a file"),
        ("gone~", "gone"),
        ("in/b", "new in/b"),
        ("in/b~", "old content of in/b"),
        ("in/gone~", "kept as a backup"),
        ("left/gone~", "gone too"),
        ("link", "new"),
        ("link~", "old"),
    ]);
    assert_eq!(fs::metadata(trees.target("a~")).unwrap().ino(), inode, "it was renamed, not copied");
    // Nothing is replaced or deleted.
    let done = trees.sync(&beside(), true);
    assert_eq!((done.wanted, done.outcome.deleted, done.outcome.unchanged), (0, 0, 3));
}

#[test]
fn backup_dir_keeps_replaced_and_deleted() {
    let trees = Trees::new();
    trees.replace(&["a", "in/deep/b"]);
    for directory in ["in", "in/deep"] {
        fs::set_permissions(trees.target(directory), fs::Permissions::from_mode(0o750)).unwrap();
    }
    write(&trees.target("old/way/a"), "older");
    write(&trees.target("old/other"), "not in the directory of the backups");
    write(&trees.target("left/gone"), "gone");
    write(&trees.source("file"), "file");
    write(&trees.target("file/was/a directory"), "with this");
    let done = trees.sync(&below("old/way"), true);
    assert_eq!(done.outcome.failed_count, 0, "{:?}", done.outcome.listed);
    trees.assert(&[
        ("a", "new a"),
        ("file", "file"),
        ("in/deep/b", "new in/deep/b"),
        ("old/way/a", "old content of a"),
        ("old/way/file/was/a directory", "with this"),
        ("old/way/in/deep/b", "old content of in/deep/b"),
        ("old/way/left/gone", "gone"),
        ("old/way/old/other", "not in the directory of the backups"),
    ]);
    let mode = |path| fs::metadata(trees.target(path)).unwrap().mode() & 0o777;
    assert_eq!((mode("old/way/in"), mode("old/way/in/deep")), (0o750, 0o750), "others still may not enter");
    assert!(!trees.target("left").exists());
}

#[test]
fn backup_avoids_names_of_the_transfer() {
    let trees = Trees::new();
    trees.replace(&["a", "b", "b~", "c"]);
    // At the sender, and existing at the target.
    fs::copy(trees.source("c"), trees.source("c~")).unwrap();
    fs::copy(trees.source("c"), trees.target("c~")).unwrap();
    let time = fs::metadata(trees.source("c~")).unwrap().modified().unwrap();
    fs::File::options().write(true).open(trees.target("c~")).unwrap().set_modified(time).unwrap();
    fs::remove_file(trees.source("c")).unwrap();
    let done = trees.sync(&beside(), true);
    assert_eq!(done.outcome.failed_count, 0);
    trees.assert(&[
        ("a", "new a"),
        ("a~", "old content of a"),
        ("b", "new b"),
        ("b~", "new b~"),
        ("b~~", "old content of b"),
        ("b~~~", "old content of b~"),
        ("c~", "new c"),
        ("c~~", "old content of c"),
    ]);
}

#[test]
fn backup_impossible_keeps_original() {
    let trees = Trees::new();
    let outside = tempdir().unwrap();
    trees.replace(&["a", "b"]);
    write(&trees.target("gone"), "gone");
    symlink(outside.path(), trees.target("old")).unwrap();
    let done = trees.sync(&below("old"), true);
    let kept = [NoticeKind::NoBackup; 3];
    assert_eq!(done.notices.iter().map(|notice| notice.kind).collect::<Vec<_>>(), kept, "{:?}", done.notices);
    assert_eq!((done.outcome.failed_count, fs::read_dir(outside.path()).unwrap().count()), (3, 0));
    trees.assert(&[
        ("a", "old content of a"),
        ("b", "old content of b"),
        ("gone", "gone"),
        ("old", outside.path().to_str().unwrap()),
    ]);
    // A directory that is not empty.
    let trees = Trees::new();
    trees.replace(&["a"]);
    write(&trees.target("a~/in"), "in");
    let done = trees.sync(&beside(), false);
    assert_eq!(done.notices.last().map(|notice| notice.kind), Some(NoticeKind::NoBackup));
    trees.assert(&[("a", "old content of a"), ("a~/in", "in")]);
}

#[test]
fn interrupted_backup_keeps_both_names() {
    let trees = Trees::new();
    trees.replace(&["a", "b"]);
    // As left by a run that was killed between the two steps.
    for name in ["a", "b"] {
        fs::hard_link(trees.target(name), trees.target(&format!("{name}~"))).unwrap();
    }
    fs::remove_file(trees.source("b")).unwrap();
    let done = trees.sync(&beside(), true);
    assert_eq!(done.outcome.failed_count, 0);
    trees.assert(&[("a", "new a"), ("a~", "old content of a"), ("b~", "old content of b")]);
    assert_eq!(fs::metadata(trees.target("a~")).unwrap().nlink(), 1);
}
