//! Options of the scan: names, links, hard links, hashes, filters.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;

use downpour_store::{
    Batch, BatchSource, EntryKind, FilesError, Filter, LinkPolicy, Scanner, SkipReason, Skipped, SourceItem,
    SourceOptions, Wanted,
};
use tempfile::{TempDir, tempdir};

use crate::common::noise;

pub(crate) fn scan(roots: Vec<SourceItem>, options: &SourceOptions) -> Vec<Batch> {
    Scanner::new(roots, options.clone()).unwrap().collect()
}

pub(crate) fn refused(roots: Vec<SourceItem>, options: &SourceOptions) -> FilesError {
    Scanner::new(roots, options.clone()).unwrap_err()
}

pub(crate) fn paths(batches: &[Batch]) -> Vec<String> {
    batches.iter().flat_map(|b| &b.entries).map(|e| String::from_utf8_lossy(&e.path).into_owned()).collect()
}

pub(crate) fn skipped(batches: &[Batch]) -> Vec<(String, SkipReason)> {
    let named = |s: &Skipped| (String::from_utf8_lossy(&s.path).into_owned(), s.reason);
    batches.iter().flat_map(|b| &b.skipped).map(named).collect()
}

/// Creates a directory with these files, each of which contains its path. A path that ends in `/` is a directory.
pub(crate) fn tree(files: &[&str]) -> TempDir {
    let dir = tempdir().unwrap();
    for file in files {
        let path = dir.path().join(file);
        fs::create_dir_all(if file.ends_with('/') { &path } else { path.parent().unwrap() }).unwrap();
        if !file.ends_with('/') {
            fs::write(path, file).unwrap();
        }
    }
    dir
}

fn object(roots: Vec<SourceItem>, options: &SourceOptions) -> String {
    let mut scanner = Scanner::new(roots, options.clone()).unwrap();
    let (batch, roots) = (scanner.next().unwrap(), scanner.roots());
    let source = BatchSource::new(Arc::new(batch), roots, Wanted::all());
    let mut bytes = vec![0; source.length() as usize];
    source.read(0, &mut bytes);
    assert_eq!(source.take_voided(), []);
    String::from_utf8(bytes).unwrap()
}

#[test]
fn trailing_slash_sends_contents() {
    let from = tree(&["dir/f", "dir/inner/g"]);
    let plain = SourceOptions::default();
    let typed = |form: &str| SourceItem::typed(from.path().join(form).as_os_str());
    assert_eq!(paths(&scan(vec![typed("dir")], &plain)), ["dir", "dir/f", "dir/inner", "dir/inner/g"]);
    for form in ["dir/", "dir//", "dir/.", "dir/./", "dir/inner/.."] {
        assert_eq!(paths(&scan(vec![typed(form)], &plain)), ["f", "inner", "inner/g"], "{form}");
        assert_eq!(object(vec![typed(form)], &plain), "dir/fdir/inner/g", "{form}");
    }
    let renamed = SourceItem { path: from.path().join("dir/inner"), name: Some(b"new".to_vec()) };
    assert_eq!(paths(&scan(vec![renamed.clone()], &plain)), ["new", "new/g"]);
    assert_eq!(object(vec![renamed], &plain), "dir/inner/g");
    assert!(matches!(refused(vec![typed("dir/f/.")], &plain), FilesError::SourceAbsent { .. }));
    assert!(matches!(
        refused(vec![SourceItem::contents(from.path().join("dir/f"))], &plain),
        FilesError::SourceUnusable { .. }
    ));
    for name in ["a/b", ".", "..", "a\0b"] {
        let root = SourceItem { path: from.path().join("dir"), name: Some(name.into()) };
        assert!(matches!(refused(vec![root], &plain), FilesError::SourceUnusable { .. }), "{name:?}");
    }
}

#[test]
fn contents_of_several_directories_merge() {
    let from = tree(&["a/1", "a/x/2", "b/3", "b/same", "c/same", "d/4"]);
    let root = |name: &str| SourceItem::contents(from.path().join(name));
    let mut options = SourceOptions::default();
    let roots = vec![root("a"), SourceItem::new(from.path().join("d")), root("b")];
    assert_eq!(paths(&scan(roots.clone(), &options)), ["1", "x", "x/2", "d", "d/4", "3", "same"]);
    assert_eq!(object(roots, &options), "a/1a/x/2d/4b/3b/same");
    let error = refused(vec![root("b"), root("c")], &options);
    assert!(matches!(&error, FilesError::SameName { name, .. } if name == b"same"), "{error}");
    let error = refused(vec![root("b"), SourceItem::new(from.path().join("c/same"))], &options);
    assert!(matches!(&error, FilesError::SameName { name, .. } if name == b"same"), "{error}");
    options.filter = Arc::new(Filter::parse(b"- same").unwrap());
    assert_eq!(paths(&scan(vec![root("b"), root("c")], &options)), ["3"]);
}

#[test]
fn directory_without_recursive_is_refused() {
    let from = tree(&["dir/f"]);
    symlink("dir", from.path().join("link")).unwrap();
    let mut options = SourceOptions { recursive: false, ..SourceOptions::default() };
    assert_eq!(paths(&scan(vec![SourceItem::new(from.path().join("dir/f"))], &options)), ["f"]);
    assert_eq!(paths(&scan(vec![SourceItem::new(from.path().join("link"))], &options)), ["link"]);
    for root in [SourceItem::new(from.path().join("dir")), SourceItem::contents(from.path().join("dir"))] {
        let error = refused(vec![root], &options);
        assert!(error.to_string().ends_with("dir is a directory"), "{error}");
        assert_eq!(error.kind(), request::ErrorKind::Usage);
    }
    options.links = LinkPolicy::Follow;
    assert!(matches!(
        refused(vec![SourceItem::new(from.path().join("link"))], &options),
        FilesError::NotRecursive { .. }
    ));
}

fn linked() -> TempDir {
    let from = tree(&["d/f", "d/in/g", "other/h"]);
    for (target, link) in [
        ("f", "d/to-file"),
        ("../other", "d/to-directory"),
        ("nowhere", "d/to-nothing"),
        ("f/x", "d/through-a-file"),
        ("to-itself", "d/to-itself"),
        ("..", "d/in/up"),
        ("../d", "other/back"),
    ] {
        symlink(target, from.path().join(link)).unwrap();
    }
    from
}

#[test]
fn links_follow_ends_at_loops() {
    let from = linked();
    let options = SourceOptions { links: LinkPolicy::Follow, ..SourceOptions::default() };
    let root = vec![SourceItem::new(from.path().join("d"))];
    let batches = scan(root.clone(), &options);
    let sent = ["d", "d/f", "d/in", "d/in/g", "d/to-directory", "d/to-directory/h", "d/to-file"];
    assert_eq!(paths(&batches), sent);
    assert_eq!(
        skipped(&batches),
        [
            ("d/in/up".to_owned(), SkipReason::Loop),
            ("d/through-a-file".to_owned(), SkipReason::Dangling),
            ("d/to-directory/back".to_owned(), SkipReason::Loop),
            ("d/to-itself".to_owned(), SkipReason::Loop),
            ("d/to-nothing".to_owned(), SkipReason::Dangling),
        ]
    );
    assert_eq!(object(root, &options), "d/fd/in/gother/hd/f");
    let item = scan(vec![SourceItem::new(from.path().join("d/to-directory"))], &options);
    assert_eq!(paths(&item)[..2], ["to-directory", "to-directory/back"]);
}

#[test]
fn links_skip_skips_and_refuses_named_link() {
    let from = linked();
    let options = SourceOptions { links: LinkPolicy::Skip, ..SourceOptions::default() };
    let batches = scan(vec![SourceItem::new(from.path().join("d"))], &options);
    assert_eq!(paths(&batches), ["d", "d/f", "d/in", "d/in/g"]);
    let left_out = skipped(&batches);
    assert_eq!(left_out.len(), 6, "{left_out:?}");
    assert!(left_out.iter().all(|(_, reason)| *reason == SkipReason::Link && !reason.is_failure()), "{left_out:?}");
    let error = refused(vec![SourceItem::new(from.path().join("d/to-file"))], &options);
    assert!(matches!(error, FilesError::SourceUnusable { .. }), "{error}");
    assert_eq!(paths(&scan(vec![SourceItem::typed(from.path().join("d/to-directory/").as_os_str())], &options)), ["h"]);
}

#[test]
fn follow_items_follows_named_link() {
    let from = linked();
    let options = SourceOptions { follow_items: true, ..SourceOptions::default() };
    let at = |name: &str| SourceItem::new(from.path().join(name));
    let roots = vec![at("d/to-file"), at("d/to-directory")];
    assert_eq!(Scanner::new(roots.clone(), options.clone()).unwrap().roots().followed(), 2);
    let batches = scan(roots.clone(), &options);
    assert_eq!(paths(&batches), ["to-file", "to-directory", "to-directory/back", "to-directory/h"]);
    assert!(matches!(batches[0].entries[2].kind, EntryKind::Symlink { .. }), "links in directories stay links");
    assert_eq!(object(roots.clone(), &options), "d/fother/h");
    assert_eq!(Scanner::new(roots, SourceOptions::default()).unwrap().roots().followed(), 0);
    let named = SourceItem { name: Some(b"other name".to_vec()), ..at("d/to-file") };
    assert_eq!(paths(&scan(vec![named], &options)), ["other name"]);
    assert_eq!(Scanner::new(vec![at("d")], options.clone()).unwrap().roots().followed(), 0);
    for (link, reason) in [("d/to-nothing", "dangling"), ("d/through-a-file", "dangling"), ("d/to-itself", "loop")] {
        let error = refused(vec![at(link)], &options);
        assert!(matches!(&error, FilesError::SourceUnusable { path, .. } if path.ends_with(link)), "{error}");
        assert!(error.to_string().contains(reason), "{error}");
    }
}

#[test]
fn hard_links_option_sends_links() {
    let from = tree(&["d/a", "d/other", "out"]);
    let at = |name: &str| from.path().join(name);
    fs::create_dir(at("d/e")).unwrap();
    for (file, link) in [("d/a", "d/b"), ("d/a", "d/e/c"), ("out", "d/e/half")] {
        fs::hard_link(at(file), at(link)).unwrap();
    }
    let kinds = |options: &SourceOptions| -> Vec<String> {
        let batches = scan(vec![SourceItem::new(at("d"))], options);
        let kind = |kind: &EntryKind| match kind {
            EntryKind::HardLink { target } => format!("= {}", String::from_utf8_lossy(target)),
            EntryKind::File { size, .. } => size.to_string(),
            _ => "directory".to_owned(),
        };
        assert_eq!(batches[0].length, batches[0].entries.iter().map(downpour_store::Entry::size).sum::<u64>());
        batches[0].entries.iter().map(|entry| kind(&entry.kind)).collect()
    };
    let mut options = SourceOptions::default();
    // d, d/a, d/b, d/e, d/e/c, d/e/half, d/other
    assert_eq!(kinds(&options), ["directory", "3", "3", "directory", "3", "3", "7"]);
    options.hard_links = true;
    assert_eq!(kinds(&options), ["directory", "3", "= d/a", "directory", "= d/a", "3", "7"]);
    options.filter = Arc::new(Filter::parse(b"- a").unwrap());
    assert_eq!(kinds(&options), ["directory", "3", "directory", "= d/b", "3", "7"]);
}

#[test]
fn hash_option_hashes_files() {
    let from = tree(&["d/empty"]);
    let content = noise(3 << 20, 1);
    fs::write(from.path().join("d/big"), &content).unwrap();
    fs::write(from.path().join("d/empty"), b"").unwrap();
    let options = SourceOptions { hash: true, ..SourceOptions::default() };
    let batches = scan(vec![SourceItem::contents(from.path().join("d"))], &options);
    let hash = |at: usize| match batches[0].entries[at].kind {
        EntryKind::File { hash, .. } => hash,
        _ => None,
    };
    assert_eq!(hash(0), Some(*blake3::hash(&content).as_bytes()));
    assert_eq!(hash(1), Some(*blake3::hash(b"").as_bytes()));
}

#[test]
fn filter_excluded_directory_is_not_entered() {
    let from = tree(&["d/a.c", "d/a.o", "d/out/b.c", "d/in/c.c", "d/in/c.o"]);
    // It is not examined at all: otherwise it would be reported as skipped.
    symlink("nowhere", from.path().join("d/out/dangling")).unwrap();
    let filter = Arc::new(Filter::parse(b"- *.o\n- /d/out/\n+ b.c").unwrap());
    let options = SourceOptions { links: LinkPolicy::Follow, filter, ..SourceOptions::default() };
    let batches = scan(vec![SourceItem::new(from.path().join("d"))], &options);
    assert_eq!(paths(&batches), ["d", "d/a.c", "d/in", "d/in/c.c"]);
    assert_eq!(skipped(&batches), []);
    // The contents are at the root of the transfer now.
    let contents = vec![SourceItem::contents(from.path().join("d"))];
    assert!(paths(&scan(contents, &options)).contains(&"out".to_owned()));
    let nothing = SourceOptions { filter: Arc::new(Filter::parse(b"- *").unwrap()), ..options };
    assert_eq!(scan(vec![SourceItem::new(from.path().join("d"))], &nothing), []);
}

#[test]
fn source_id_depends_on_path_and_options() {
    let from = tree(&["d/f", "e/f"]);
    symlink("d", from.path().join("link")).unwrap();
    let id =
        |roots: Vec<SourceItem>, options: &SourceOptions| Scanner::new(roots, options.clone()).unwrap().source_id();
    let at = |name: &str| SourceItem::new(from.path().join(name));
    let plain = SourceOptions::default();
    let d = id(vec![at("d")], &plain);
    assert_eq!(d, id(vec![at("d")], &plain));
    assert_eq!(d, id(vec![at("e/../d")], &plain));
    assert_eq!(d, id(vec![at("d")], &SourceOptions { links: LinkPolicy::Follow, hash: true, ..plain.clone() }));
    let filtered = SourceOptions { filter: Arc::new(Filter::parse(b"- x").unwrap()), ..plain.clone() };
    let included = SourceOptions { filter: Arc::new(Filter::parse(b"+ x").unwrap()), ..plain.clone() };
    let list = |names: &[&str]| SourceOptions {
        files_from: Some(names.iter().map(|name| name.as_bytes().to_vec()).collect()),
        ..plain.clone()
    };
    let contents = |name: &str| SourceItem::contents(from.path().join(name));
    let different = [
        d,
        id(vec![at("e")], &plain),
        id(vec![at("link")], &plain),
        id(vec![contents("d")], &plain),
        id(vec![SourceItem { name: Some(b"x".to_vec()), ..at("d") }], &plain),
        id(vec![at("d"), at("e")], &plain),
        id(vec![at("d")], &filtered),
        id(vec![at("d")], &included),
        id(vec![at("d")], &list(&[])),
        id(vec![at("d")], &list(&["f"])),
        id(vec![at("d")], &list(&["f", "g"])),
    ];
    let distinct: std::collections::HashSet<_> = different.iter().collect();
    assert_eq!(distinct.len(), different.len());
    assert_eq!(different[10], id(vec![at("d")], &list(&["g", "./f", "g"])), "a list has no order");
    assert_eq!(id(vec![contents("d")], &plain), id(vec![contents("link")], &plain));
    assert_ne!(
        id(vec![at("link")], &plain),
        id(vec![at("link/")], &plain),
        "the link, and the directory under its name"
    );
}
