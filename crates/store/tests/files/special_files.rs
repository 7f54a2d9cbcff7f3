//! Objects that must be kept or reported: FIFOs, skipped links, renamed items, directories that cannot be sealed; and
//! stopping.

use std::fs;
use std::os::unix::fs::{FileTypeExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use downpour_store::messages::ManifestPart;
use downpour_store::{
    Batch, Compare, Entry, EntryKind, Existing, FileSink, FilesError, Filter, LinkPolicy, NoticeKind, ReceiveRequest,
    RequestedItems, Scanner, SourceItem, SourceOptions,
};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::tempdir;

use crate::common::{Control, SOURCE, entry, names};

fn replacing(into: &Path) -> ReceiveRequest {
    ReceiveRequest { existing: Existing::Replace, ..ReceiveRequest::into_directory(into) }
}

fn batch(entries: Vec<Entry>) -> Batch {
    Batch { number: 0, entries, length: 0, versions: vec![], skipped: vec![], id_names: Vec::new(), is_last: true }
}

fn failures(receiving: &FileSink) -> Vec<(NoticeKind, String)> {
    let notices = receiving.take_notices().into_iter().filter(|notice| notice.kind.is_failure());
    notices.map(|notice| (notice.kind, String::from_utf8(notice.path).unwrap())).collect()
}

/// Sends the directory at `from`, which only contains empty files.
fn send_empty(from: PathBuf, options: SourceOptions, settings: ReceiveRequest) -> downpour_store::ReceiveOutcome {
    let receiving = FileSink::with_target(Arc::new(settings), false).unwrap();
    let mut control = Control::begin(&receiving).unwrap();
    for batch in Scanner::new(vec![SourceItem::new(from)], options).unwrap() {
        control.send_manifest(&batch).unwrap();
    }
    receiving.finish(&control.end()).unwrap()
}

#[test]
fn fifo_is_never_replaced() {
    for existing in [Existing::Replace, Existing::Skip] {
        let dir = tempdir().unwrap();
        let kinds = || {
            let empty = EntryKind::File { size: 0, version: 0, hash: None };
            let link = EntryKind::HardLink { target: b"first".to_vec() };
            [
                ("file", empty),
                ("directory", EntryKind::Directory),
                ("link", EntryKind::Symlink { target: b"x".to_vec() }),
                ("name", link),
            ]
        };
        for (name, _) in kinds() {
            mknodat(CWD, dir.path().join(name), FileType::Fifo, Mode::RWXU, 0).unwrap();
        }
        let mut entries = vec![entry("first", EntryKind::File { size: 0, version: 0, hash: None })];
        entries.extend(kinds().map(|(name, kind)| entry(name, kind)));
        let receiving = FileSink::new(ReceiveRequest { existing, ..replacing(dir.path()) }).unwrap();
        let mut control = Control::begin(&receiving).unwrap();
        control.send_manifest(&batch(entries)).unwrap();
        let outcome = receiving.finish(&control.end()).unwrap();
        let expected = match existing {
            Existing::Skip => vec![],
            _ => kinds().map(|(name, _)| (NoticeKind::SpecialInTheWay, name.to_owned())).to_vec(),
        };
        assert_eq!(failures(&receiving), expected);
        assert_eq!(outcome.failed_count, expected.len() as u64);
        for (name, _) in kinds() {
            assert!(dir.path().join(name).symlink_metadata().unwrap().file_type().is_fifo(), "{name}");
        }
    }
}

#[test]
fn delete_skipped_link_kept() {
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    for dir in [&from, &to] {
        fs::create_dir(dir.path().join("tree")).unwrap();
        symlink("elsewhere", dir.path().join("tree/link")).unwrap();
    }
    symlink("elsewhere", to.path().join("tree/other")).unwrap();
    let options = SourceOptions { links: LinkPolicy::Skip, ..SourceOptions::default() };
    let delete = Some(Filter::default());
    let outcome = send_empty(from.path().join("tree"), options, ReceiveRequest { delete, ..replacing(to.path()) });
    assert_eq!(names(&to.path().join("tree")), ["link"]);
    assert_eq!((outcome.deleted, outcome.special_count, outcome.failed_count), (1, 0, 0));
    assert!(!outcome.delete_left_out && outcome.listed.is_empty());
    assert_eq!(outcome.links_left_out, 1);
}

#[test]
fn delete_keeps_excluded_names_of_renamed_item() {
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    fs::create_dir_all(from.path().join("tree/sub")).unwrap();
    // A file replaces a directory that contains an excluded name.
    fs::write(from.path().join("tree/way"), b"").unwrap();
    for name in ["keep", "sub/keep", "gone/keep", "gone/not", "sub/not", "way/keep", "way/not"] {
        let path = to.path().join("copy").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, b"x").unwrap();
    }
    let rules = b"- /tree/keep\n- /tree/*/keep\n- /copy/**/not\n";
    let filter = Arc::new(Filter::parse(rules).unwrap());
    let options = SourceOptions { filter: Arc::clone(&filter), ..SourceOptions::default() };
    let named = ReceiveRequest::to_target(to.path().join("copy"));
    let settings = ReceiveRequest { delete: Some((*filter).clone()), existing: Existing::Replace, ..named };
    let outcome = send_empty(from.path().join("tree"), options, settings);
    let copy = to.path().join("copy");
    assert_eq!(names(&copy), ["gone", "keep", "sub", "way"]);
    for directory in ["gone", "sub"] {
        assert_eq!(names(&copy.join(directory)), ["keep"], "{directory}");
    }
    // The directory is kept, and the file cannot be placed.
    assert_eq!(names(&copy.join("way")), ["keep", "not"]);
    assert_eq!((outcome.deleted, outcome.failed_count), (2, 1));
}

#[test]
fn directory_mode_denied_notice() {
    let dir = tempdir().unwrap();
    let receiving = FileSink::new(replacing(dir.path())).unwrap();
    let mut control = Control::begin(&receiving).unwrap();
    control.send_manifest(&batch(vec![entry("d", EntryKind::Directory)])).unwrap();
    // Replace the directory by a link.
    fs::remove_dir(dir.path().join("d")).unwrap();
    symlink("/etc", dir.path().join("d")).unwrap();
    let outcome = receiving.finish(&control.end()).unwrap();
    assert_eq!(outcome.failed_count, 1);
    let notices = failures(&receiving);
    assert_eq!(notices.iter().map(|(_, path)| path.as_str()).collect::<Vec<_>>(), ["d"]);
}

#[test]
fn stop_ends_long_operations() {
    let dir = tempdir().unwrap();
    fs::write(dir.path().join("f"), b"mine").unwrap();
    let settings = ReceiveRequest { compare: Compare::Checksum, ..replacing(dir.path()) };
    let receiving = FileSink::new(settings.clone()).unwrap();
    receiving.begin(SOURCE).unwrap();
    receiving.stop();
    let same = EntryKind::File { size: 4, version: 0, hash: Some(*blake3::hash(b"mine").as_bytes()) };
    let part =
        ManifestPart { batch: 0, last: true, whole: false, again: false, length: 4, entries: vec![entry("f", same)] };
    assert!(matches!(receiving.add_manifest_part(&part), Err(FilesError::Over)));
    receiving.flush().unwrap();
    receiving.abandon(true).unwrap();
    assert_eq!(names(dir.path()), ["f"]);
    drop(receiving);

    let delete = Some(Filter::default());
    let requested = RequestedItems { contents: true, ..settings.requested.clone() };
    let receiving = FileSink::new(ReceiveRequest { delete, requested, ..settings }).unwrap();
    let mut control = Control::begin(&receiving).unwrap();
    control.send_manifest(&batch(vec![entry("d", EntryKind::Directory)])).unwrap();
    receiving.stop();
    receiving.flush().unwrap();
    assert!(matches!(receiving.finish(&control.end()), Err(FilesError::Over)));
    receiving.flush().unwrap();
    receiving.abandon(true).unwrap();
    assert_eq!(names(dir.path()), ["d", "f"], "nothing was deleted");
}
