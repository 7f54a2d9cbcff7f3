//! Lists of names to send.

use std::fs;
use std::os::unix::fs::{lchown, symlink};
use std::path::Path;
use std::sync::Arc;

use downpour_store::{EntryKind, FilesError, Filter, LinkPolicy, SkipReason, SourceItem, SourceOptions};
use rustix::process::geteuid;

use crate::common::quick_dir;
use crate::options::{paths, refused, scan, skipped, tree};

fn list(names: &[&str]) -> SourceOptions {
    let names = names.iter().map(|name| name.as_bytes().to_vec()).collect();
    SourceOptions { files_from: Some(names), ..SourceOptions::default() }
}

fn contents(dir: &Path) -> Vec<SourceItem> {
    vec![SourceItem::contents(dir)]
}

const TREE: [&str; 9] = ["a/b/1", "a/b/2", "a/b!", "a/c/3", "a/4", "d/e/5", "d/e/6", "7", "8"];

#[test]
fn files_from_name_follows_its_parents() {
    let from = tree(&TREE);
    let options = list(&["d/e/6", "a/b/2", "8", "/a/b/1", "./a//b!", "a/b/1"]);
    let sent = ["8", "a", "a/b", "a/b/1", "a/b/2", "a/b!", "d", "d/e", "d/e/6"];
    assert_eq!(paths(&scan(contents(from.path()), &options)), sent);
    let named = SourceItem { path: from.path().to_owned(), name: Some(b"top".to_vec()) };
    let sent: Vec<_> = ["top".to_owned()].into_iter().chain(sent.iter().map(|path| format!("top/{path}"))).collect();
    assert_eq!(paths(&scan(vec![named], &options)), sent);
}

#[test]
fn files_from_directory_walked_only_if_recursive() {
    let from = tree(&TREE);
    let mut options = list(&["a/b/", "a/b/2", "a", "d/e"]);
    let walked = ["a", "a/4", "a/b", "a/b/1", "a/b/2", "a/b!", "a/c", "a/c/3", "d", "d/e", "d/e/5", "d/e/6"];
    assert_eq!(paths(&scan(contents(from.path()), &options)), walked);
    options.recursive = false;
    let batches = scan(contents(from.path()), &options);
    assert_eq!(paths(&batches), ["a", "a/b", "a/b/2", "d", "d/e"]);
    // This is reported for a directory with contents, and is no failure.
    let bare = ["a", "a/b", "d/e"].map(|path| (path.to_owned(), SkipReason::Contents));
    assert_eq!(skipped(&batches), bare);
    assert!(!SkipReason::Contents.is_failure());
    fs::create_dir(from.path().join("empty")).unwrap();
    options.files_from = list(&["empty", "8"]).files_from;
    let batches = scan(contents(from.path()), &options);
    assert_eq!((paths(&batches).len(), skipped(&batches).len()), (2, 0));
}

#[test]
fn files_from_may_list_the_item_itself() {
    let from = tree(&["d/f", "d/e/g"]);
    let dir = from.path().join("d");
    let mut options = list(&["e/g", "."]);
    assert_eq!(paths(&scan(contents(&dir), &options)), ["e", "e/g", "f"]);
    assert_eq!(paths(&scan(vec![SourceItem::new(&dir)], &options)), ["d", "d/e", "d/e/g", "d/f"]);
    options.recursive = false;
    for (roots, sent, bare) in
        [(contents(&dir), &["e", "e/g"][..], "."), (vec![SourceItem::new(&dir)], &["d", "d/e", "d/e/g"], "d")]
    {
        let batches = scan(roots, &options);
        assert_eq!(paths(&batches), sent);
        assert_eq!(skipped(&batches), [(bare.to_owned(), SkipReason::Contents)]);
    }
}

#[test]
fn files_from_missing_name_skipped() {
    let from = tree(&TREE);
    symlink("a", from.path().join("link")).unwrap();
    let mut options = list(&["a/x", "nothing/at/all", "nothing/here", "7/inside", "link/4", "8"]);
    let batches = scan(contents(from.path()), &options);
    assert_eq!(paths(&batches), ["8", "a", "link", "link/4"]);
    let absent = ["7/inside", "a/x", "nothing/at/all", "nothing/here"];
    assert_eq!(skipped(&batches), absent.map(|path| (path.to_owned(), SkipReason::Absent)));
    assert!(SkipReason::Absent.is_failure());
    options.links = LinkPolicy::Follow;
    assert_eq!(paths(&scan(contents(from.path()), &options)), ["8", "a", "link", "link/4"]);
    options = SourceOptions { follow_parent_links: false, links: LinkPolicy::Copy, ..options };
    let batches = scan(contents(from.path()), &options);
    assert_eq!(paths(&batches), ["8", "a"]);
    let absent = ["7/inside", "a/x", "link/4", "nothing/at/all", "nothing/here"];
    assert_eq!(skipped(&batches), absent.map(|path| (path.to_owned(), SkipReason::Absent)));
}

#[test]
fn files_from_follows_own_parent_links() {
    let (from, other) = (tree(&TREE), tree(&["in/deep"]));
    symlink(other.path(), from.path().join("out")).unwrap();
    symlink("7", from.path().join("file")).unwrap();
    symlink("nowhere", from.path().join("dangling")).unwrap();
    let names = list(&["out/in/deep", "file/x", "dangling/x"]);
    let batches = scan(contents(from.path()), &names);
    assert_eq!(paths(&batches), ["out", "out/in", "out/in/deep"]);
    let absent = ["dangling/x", "file/x"].map(|path| (path.to_owned(), SkipReason::Absent));
    assert_eq!(skipped(&batches), absent);
    let kind = |at: usize| batches[0].entries[at].kind.clone();
    assert!(kind(0) == EntryKind::Directory && matches!(kind(2), EntryKind::File { .. }));

    // A link that is listed itself is a link, unless a listed name is behind it.
    let kind = |names: &[&str]| scan(contents(from.path()), &list(names))[0].entries[0].kind.clone();
    assert!(
        matches!(kind(&["out"]), EntryKind::Symlink { .. }) && kind(&["out/in/deep", "out"]) == EntryKind::Directory
    );
    assert_eq!(paths(&scan(contents(from.path()), &list(&["out", "out/in"]))), ["out", "out/in", "out/in/deep"]);
    let batches = scan(contents(from.path()), &list(&["file", "file/x"]));
    assert!(matches!(batches[0].entries[0].kind, EntryKind::Symlink { .. }));
    assert_eq!(skipped(&batches), [("file/x".to_owned(), SkipReason::Absent)]);

    // Another user's.
    if geteuid().is_root() {
        lchown(from.path().join("out"), Some(65534), None).unwrap();
        let batches = scan(contents(from.path()), &names);
        assert!(paths(&batches).is_empty());
        assert_eq!(skipped(&batches).len(), 3);
    }
}

#[test]
fn files_from_filter_ignores_parents() {
    let from = tree(&TREE);
    let mut options = list(&["a/b/1", "a/b/2", "d"]);
    options.filter = Arc::new(Filter::parse(b"+ d/***\n+ 2\n- *").unwrap());
    assert_eq!(paths(&scan(contents(from.path()), &options)), ["a", "a/b", "a/b/2", "d", "d/e", "d/e/5", "d/e/6"]);
}

#[test]
fn files_from_invalid_list_is_refused() {
    let from = tree(&["d/f", "e"]);
    let at = |name: &str| SourceItem::new(from.path().join(name));
    for names in [["../e", "f"], ["f", "a/../f"], ["f", "a\0b"]] {
        let error = refused(vec![at("d")], &list(&names));
        assert!(matches!(error, FilesError::SourceUnusable { .. }), "{error}");
    }
    for roots in [vec![at("e")], vec![at("d"), at("e")], vec![]] {
        refused(roots, &list(&["f"]));
    }
}

#[test]
fn files_from_long_path_stays_in_one_batch() {
    let from = quick_dir();
    let names: Vec<_> = (0..300).map(|n| format!("{n}/{}f", "x/".repeat(5))).collect();
    for name in &names {
        fs::create_dir_all(from.path().join(name).parent().unwrap()).unwrap();
        fs::write(from.path().join(name), b"").unwrap();
    }
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let batches = scan(contents(from.path()), &list(&names));
    let sizes: Vec<_> = batches.iter().map(|batch| batch.entries.len()).collect();
    assert_eq!(sizes, [256, 1024, 300 * 7 - 256 - 1024]);
    assert_eq!(batches.iter().map(|batch| batch.is_last).collect::<Vec<_>>(), [false, false, true]);
}
