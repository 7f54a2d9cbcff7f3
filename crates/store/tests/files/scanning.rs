//! The interpretation of the paths named by a user.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use downpour_store::{
    Batch, EntryKind, FilesError, LinkPolicy, MAX_BATCH_NAMES, Scanner, SkipReason, SourceItem, SourceOptions,
};
use tempfile::tempdir;

use crate::common::quick_dir;

fn scan(paths: &[PathBuf]) -> Vec<Batch> {
    Scanner::new(paths.iter().map(SourceItem::new).collect(), SourceOptions::default()).unwrap().collect()
}

fn paths(batches: &[Batch]) -> Vec<String> {
    batches.iter().flat_map(|b| &b.entries).map(|e| String::from_utf8_lossy(&e.path).into_owned()).collect()
}

#[test]
fn directories_precede_sorted_contents() {
    let from = tempdir().unwrap();
    let dir = from.path().join("d");
    fs::create_dir_all(dir.join("b/x")).unwrap();
    for name in ["c", "a", "b/z", "b/x/y"] {
        fs::write(dir.join(name), b"12").unwrap();
    }
    let batches = scan(std::slice::from_ref(&dir));
    assert_eq!(paths(&batches), ["d", "d/a", "d/b", "d/b/x", "d/b/x/y", "d/b/z", "d/c"]);
    assert_eq!(batches.len(), 1);
    assert_eq!(batches[0].length, 8);
}

#[test]
fn batches_grow_fourfold_by_entries() {
    let from = tempdir().unwrap();
    let dir = from.path().join("d");
    fs::create_dir(&dir).unwrap();
    for file in 0..1500 {
        fs::write(dir.join(format!("{file}")), b"").unwrap();
    }
    let batches = scan(&[dir]);
    let sizes: Vec<_> = batches.iter().map(|b| (b.number, b.entries.len())).collect();
    assert_eq!(sizes, [(0, 256), (1, 1024), (2, 221)]);
}

#[test]
fn batches_grow_fourfold_by_bytes_without_splits() {
    let from = tempdir().unwrap();
    let dir = from.path().join("d");
    fs::create_dir(&dir).unwrap();
    for file in 0..20 {
        fs::File::create(dir.join(format!("{file:02}"))).unwrap().set_len(40 << 20).unwrap();
    }
    let lengths: Vec<_> = scan(&[dir]).iter().map(|b| b.length >> 20).collect();
    assert_eq!(lengths, [80, 280, 440]);
}

#[test]
fn long_names_close_a_batch_too() {
    let from = quick_dir();
    let deep = from.path().join("d").join(vec!["x".repeat(250); 12].join("/"));
    fs::create_dir_all(&deep).unwrap();
    for file in 0..6000 {
        symlink(format!("{file:0>200}"), deep.join(format!("{file:0>200}"))).unwrap();
    }
    let batches = scan(&[from.path().join("d")]);
    assert_eq!(paths(&batches).len(), 6013);
    for batch in &batches {
        assert!(batch.entries.iter().map(downpour_store::Entry::name_bytes).sum::<usize>() <= MAX_BATCH_NAMES);
    }
}

#[test]
fn absent_sources_are_named() {
    let from = tempdir().unwrap();
    let path = from.path().join("nothing");
    let error = Scanner::new(
        vec![SourceItem::new(from.path().to_owned()), SourceItem::new(path.clone())],
        SourceOptions::default(),
    )
    .unwrap_err();
    assert!(matches!(&error, FilesError::SourceAbsent { path: named } if *named == path), "{error}");
}

#[test]
fn two_sources_with_one_final_name_are_refused() {
    let from = tempdir().unwrap();
    fs::create_dir_all(from.path().join("x/same")).unwrap();
    fs::create_dir_all(from.path().join("y/same")).unwrap();
    let error = Scanner::new(
        vec![SourceItem::new(from.path().join("x/same")), SourceItem::new(from.path().join("y/same/"))],
        SourceOptions::default(),
    )
    .unwrap_err();
    assert!(matches!(&error, FilesError::SameName { name, .. } if name == b"same"), "{error}");
}

#[test]
fn final_names_are_the_last_component_or_the_resolved_one() {
    let from = tempdir().unwrap();
    let dir = from.path().join("dir");
    fs::create_dir_all(dir.join("inner")).unwrap();
    fs::write(dir.join("f"), b"").unwrap();
    for form in ["dir", "dir/", "dir//", "dir/.", "dir/inner/.."] {
        assert_eq!(paths(&scan(&[from.path().join(form)])), ["dir", "dir/f", "dir/inner"], "{form}");
    }
    let error = Scanner::new(vec![SourceItem::new("/")], SourceOptions::default()).unwrap_err();
    assert!(matches!(error, FilesError::SourceUnusable { .. }), "{error}");
    let here = std::env::current_dir().unwrap();
    let first = Scanner::new(vec![SourceItem::new(".")], SourceOptions::default()).unwrap().next().unwrap();
    assert_eq!(first.entries[0].path, here.file_name().unwrap().as_encoded_bytes());
}

#[test]
fn links_are_sent_as_links_unless_the_name_ends_in_a_slash() {
    let from = tempdir().unwrap();
    fs::create_dir(from.path().join("dir")).unwrap();
    fs::write(from.path().join("dir/f"), b"abc").unwrap();
    symlink("dir", from.path().join("link")).unwrap();
    let batches = scan(&[from.path().join("link")]);
    assert_eq!(batches[0].entries[0].kind, EntryKind::Symlink { target: b"dir".to_vec() });
    let batches = scan(&[from.path().join("link/")]);
    assert_eq!(paths(&batches), ["link", "link/f"]);
    assert_eq!(batches[0].entries[0].kind, EntryKind::Directory);
}

#[test]
fn sockets_and_fifos_are_reported_and_skipped() {
    let from = tempdir().unwrap();
    let dir = from.path().join("d");
    fs::create_dir(&dir).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(dir.join("socket")).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, dir.join("pipe"), rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0)
        .unwrap();
    fs::write(dir.join("f"), b"").unwrap();
    let batches = scan(std::slice::from_ref(&dir));
    assert_eq!(paths(&batches), ["d", "d/f"]);
    let skipped: Vec<_> = batches[0].skipped.iter().map(|s| (s.path.as_slice(), s.reason)).collect();
    assert_eq!(skipped, [(&b"d/pipe"[..], SkipReason::SpecialFile), (b"d/socket", SkipReason::SpecialFile)]);
    assert!(!SkipReason::SpecialFile.is_failure());
    let error = Scanner::new(vec![SourceItem::new(dir.join("pipe"))], SourceOptions::default()).unwrap_err();
    assert!(matches!(error, FilesError::SourceUnusable { .. }), "{error}");
}

/// A file whose content the kernel generates on reading has size 0.
#[test]
#[cfg(target_os = "linux")]
fn file_with_content_but_size_0_is_reported() {
    let from = tempdir().unwrap();
    fs::write(from.path().join("empty"), b"").unwrap();
    let options = || [SourceOptions::default(), SourceOptions { hash: true, ..SourceOptions::default() }];
    for options in options() {
        let roots = vec![SourceItem::new("/proc/version"), SourceItem::new(from.path().join("empty"))];
        let batches: Vec<Batch> = Scanner::new(roots, options).unwrap().collect();
        assert_eq!(paths(&batches), ["empty"]);
        let skipped: Vec<_> = batches[0].skipped.iter().map(|s| (&s.path[..], s.reason)).collect();
        assert_eq!(skipped, [(&b"version"[..], SkipReason::Unsized)]);
    }
    assert!(SkipReason::Unsized.is_failure());
}

#[test]
fn name_vanished_after_listing_is_reported() {
    let from = tempdir().unwrap();
    let dir = from.path().join("d");
    fs::create_dir(&dir).unwrap();
    for file in 0..300 {
        fs::write(dir.join(format!("{file:03}")), b"").unwrap();
    }
    let mut scanner = Scanner::new(vec![SourceItem::new(dir.clone())], SourceOptions::default()).unwrap();
    assert_eq!(scanner.next().unwrap().entries.len(), 256);
    fs::remove_dir_all(&dir).unwrap();
    let rest = scanner.next().unwrap();
    assert_eq!((rest.entries.len(), rest.skipped.len()), (0, 45));
    assert!(rest.skipped.iter().all(|s| s.reason == SkipReason::Vanished));
    assert!(scanner.next().is_none());
}

/// `/proc` is another file system on every Linux; a followed link enters it without a mount.
#[cfg(target_os = "linux")]
#[test]
fn one_file_system_does_not_enter_mounts() {
    let dir = tempdir().unwrap();
    let tree = dir.path().join("tree");
    fs::create_dir_all(tree.join("own")).unwrap();
    fs::write(tree.join("own/file"), b"bytes").unwrap();
    symlink("/proc/sys/fs", tree.join("elsewhere")).unwrap();
    let found = |one_file_system, item: &Path| {
        let options = SourceOptions { one_file_system, links: LinkPolicy::Follow, ..SourceOptions::default() };
        paths(&Scanner::new(vec![SourceItem::new(item)], options).unwrap().collect::<Vec<_>>())
    };
    assert!(found(false, &tree).len() > 4);
    assert_eq!(found(true, &tree), ["tree", "tree/elsewhere", "tree/own", "tree/own/file"]);
    assert!(found(true, &tree.join("elsewhere")).len() > 1, "an item determines its own file system");
}
