//! The entries that a receiver confirms as stored, and their removal by the sender.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;

use downpour_store::messages::StoredEntry;
use downpour_store::{
    Batch, BatchSource, Entry, EntryKind, Existing, FileSink, NoticeKind, ReceiveRequest, Removal, Scanner, SourceItem,
    SourceOptions, SourceOutcome, Versions,
};
use tempfile::tempdir;

use super::common::{BLOCK, Control, names, send_block};

/// Scans the contents of a directory whose names may be removed.
fn scanner(directory: &Path, options: SourceOptions) -> Scanner {
    Scanner::new(vec![SourceItem::contents(directory)], SourceOptions { remove_sources: true, ..options }).unwrap()
}

fn removal(scanner: &Scanner) -> Removal {
    Removal::new(scanner.roots(), false)
}

/// Returns an entry with the version of its source.
fn entry<'a>(batch: &'a Batch, path: &str) -> (&'a Entry, u64) {
    let at = batch.entries.iter().position(|entry| entry.path == path.as_bytes()).unwrap();
    (&batch.entries[at], batch.versions[at])
}

fn remove(removal: &mut Removal, batch: &Batch, path: &str) -> SourceOutcome {
    let (entry, version) = entry(batch, path);
    removal.remove(entry, Versions { sent: version, stored: 0 }, false)
}

#[test]
fn remove_sources_only_unchanged_files() {
    let here = tempdir().unwrap();
    let (source, secret) = (here.path().join("source"), here.path().join("secret"));
    for directory in [&source, &source.join("in"), &source.join("moved"), &secret] {
        fs::create_dir(directory).unwrap();
    }
    let files = ["same", "longer", "touched", "replaced", "directory", "gone", "in/same", "moved/same"];
    files.iter().for_each(|name| fs::write(source.join(name), name).unwrap());
    fs::write(secret.join("same"), "moved/same").unwrap();
    symlink("same", source.join("link")).unwrap();
    let mut scanner = scanner(&source, SourceOptions::default());
    let batch = scanner.next().unwrap();
    let mut removal = removal(&scanner);

    fs::write(source.join("longer"), "longer than before").unwrap();
    let file = File::options().write(true).open(source.join("touched")).unwrap();
    let time = file.metadata().unwrap().modified().unwrap();
    fs::write(source.join("touched"), "TOUCHED").unwrap();
    file.set_modified(time).unwrap();
    fs::write(source.join("new"), "replaced").unwrap();
    fs::rename(source.join("new"), source.join("replaced")).unwrap();
    for name in ["directory", "gone"] {
        fs::remove_file(source.join(name)).unwrap();
    }
    fs::create_dir(source.join("directory")).unwrap();
    // Another user with write access to the source redirects the removal.
    fs::rename(source.join("moved"), here.path().join("away")).unwrap();
    symlink(&secret, source.join("moved")).unwrap();

    let changed = SourceOutcome::Kept(NoticeKind::SourceChanged);
    for (path, wanted) in [
        ("same", SourceOutcome::Removed),
        ("in/same", SourceOutcome::Removed),
        ("link", SourceOutcome::Removed),
        ("longer", changed),
        ("touched", changed),
        ("replaced", changed),
        ("directory", changed),
        ("in", changed),
        ("gone", SourceOutcome::Gone),
        ("same", SourceOutcome::Gone),
        ("moved/same", SourceOutcome::Kept(NoticeKind::SourceRefused)),
    ] {
        assert_eq!(remove(&mut removal, &batch, path), wanted, "{path}");
    }
    assert_eq!(names(&source), ["directory", "in", "longer", "moved", "replaced", "touched"]);
    assert_eq!((names(&source.join("in")).len(), names(&secret).len()), (0, 1));
}

#[test]
fn remove_sources_all_names_but_not_target() {
    let here = tempdir().unwrap();
    fs::write(here.path().join("a"), "file").unwrap();
    for name in ["b", "c", "elsewhere"] {
        fs::hard_link(here.path().join("a"), here.path().join(name)).unwrap();
    }
    let mut scanner = scanner(here.path(), SourceOptions::default());
    let (batch, mut removal) = (scanner.next().unwrap(), removal(&scanner));
    let (first, version) = entry(&batch, "a");
    let same = SourceOutcome::Kept(NoticeKind::SourceIsTarget);
    assert_eq!(removal.remove(first, Versions { sent: version, stored: version }, false), same);
    assert_eq!(removal.remove(first, Versions { sent: version, stored: 0 }, true), SourceOutcome::Shared);
    assert_eq!(remove(&mut removal, &batch, "a"), SourceOutcome::Removed);
    // Their inode has changed with the removal.
    assert_eq!(remove(&mut removal, &batch, "b"), SourceOutcome::Removed);
    fs::rename(here.path().join("elsewhere"), here.path().join("renamed")).unwrap();
    assert_eq!(remove(&mut removal, &batch, "c"), SourceOutcome::Kept(NoticeKind::SourceChanged), "by another user");
    assert_eq!(names(here.path()), ["c", "renamed"]);
}

#[test]
fn remove_sources_dry_run_removes_nothing() {
    let here = tempdir().unwrap();
    fs::write(here.path().join("a"), "file").unwrap();
    let mut scanner = scanner(here.path(), SourceOptions::default());
    let (batch, mut removal) = (scanner.next().unwrap(), Removal::new(scanner.roots(), true));
    assert_eq!(remove(&mut removal, &batch, "a"), SourceOutcome::Removed);
    assert_eq!(names(here.path()), ["a"]);
}

/// Sends the contents of `source` into `target`; returns the paths reported as stored before the end and after it.
fn stored(source: &Path, target: &Path, spec: ReceiveRequest, links: bool) -> [Vec<String>; 2] {
    let mut scanner = scanner(source, SourceOptions { hard_links: links, ..SourceOptions::default() });
    let batch = Arc::new(scanner.next().unwrap());
    let spec = ReceiveRequest { target: target.to_owned(), report_stored: true, ..spec };
    let dry_run = spec.dry_run;
    let receiving = FileSink::new(spec).unwrap();
    let mut control = Control::begin(&receiving).unwrap();
    control.send_manifest(&batch).unwrap();
    if !dry_run {
        let object = BatchSource::new(Arc::clone(&batch), scanner.roots(), control.wanted.clone());
        let blocks = u32::try_from(object.length().div_ceil(BLOCK as u64)).unwrap();
        for block in 0..blocks {
            assert_eq!(receiving.take_stored(), [], "before all is verified");
            send_block(&mut control, &object, 0, block, false).unwrap();
        }
    }
    let paths = |reported: Vec<(u32, Vec<StoredEntry>)>| {
        let reported: Vec<_> = reported.into_iter().flat_map(|(_, entries)| entries).collect();
        assert!(reported.is_sorted_by_key(|stored| stored.entry));
        reported.iter().map(|s| String::from_utf8_lossy(&batch.entries[s.entry as usize].path).into_owned()).collect()
    };
    let before = paths(receiving.take_stored());
    receiving.finish(&control.end()).unwrap();
    [before, paths(receiving.take_stored())]
}

#[test]
fn remove_sources_reports_stored_only() {
    let here = tempdir().unwrap();
    let (source, target) = (here.path().join("source"), here.path().join("target"));
    for directory in [&source, &source.join("in"), &target, &target.join("blocked"), &target.join("blocked/in")] {
        fs::create_dir(directory).unwrap();
    }
    for name in ["blocked", "changes", "in/new", "newer", "same"] {
        fs::write(source.join(name), name.repeat(40_000)).unwrap();
    }
    fs::hard_link(source.join("in/new"), source.join("linked")).unwrap();
    symlink("x", source.join("link")).unwrap();
    fs::copy(source.join("same"), target.join("same")).unwrap();
    let time = fs::metadata(source.join("same")).unwrap().modified().unwrap();
    File::options().write(true).open(target.join("same")).unwrap().set_modified(time).unwrap();
    fs::write(target.join("newer"), "newer").unwrap();

    let keep_newer = ReceiveRequest { existing: Existing::KeepNewer, ..ReceiveRequest::into_directory("") };
    let reported = stored(&source, &target, ReceiveRequest { dry_run: true, ..keep_newer.clone() }, true);
    assert_eq!(reported, [vec!["changes", "in/new", "link", "linked", "same"], vec![]]);
    let reported = stored(&source, &target, keep_newer, true);
    assert_eq!(reported, [vec!["changes", "in/new", "link", "same"], vec!["linked"]]);
    // Kept files are never reported, even if they look equal.
    let skip = ReceiveRequest { existing: Existing::Skip, ..ReceiveRequest::into_directory("") };
    fs::write(source.join("more"), "").unwrap();
    assert_eq!(stored(&source, &target, skip, true), [vec!["more"], vec![]]);
}

#[test]
fn stored_entries_not_reported_unrequested() {
    let here = tempdir().unwrap();
    let (source, target) = (here.path().join("source"), here.path().join("target"));
    fs::create_dir(&source).unwrap();
    fs::write(source.join("file"), "file").unwrap();
    let mut scanner = scanner(&source, SourceOptions::default());
    let batch = Arc::new(scanner.next().unwrap());
    let receiving = FileSink::new(ReceiveRequest::into_directory(&target)).unwrap();
    let mut control = Control::begin(&receiving).unwrap();
    control.send_manifest(&batch).unwrap();
    let object = BatchSource::new(Arc::clone(&batch), scanner.roots(), control.wanted.clone());
    send_block(&mut control, &object, 0, 0, false).unwrap();
    receiving.finish(&control.end()).unwrap();
    assert_eq!((receiving.take_stored(), names(&target)), (vec![], vec!["file".to_owned()]));
    assert!(matches!(batch.entries[0].kind, EntryKind::File { .. }));
}
