use std::fs;

use super::*;

const SOURCE: SourceId = SourceId([9; 16]);

fn open(into: &Path) -> Staging {
    let target = openat(rustix::fs::CWD, into, FOLDER, Mode::empty()).unwrap();
    Staging::open(&target, into, SOURCE, true).unwrap().unwrap()
}

#[test]
fn staged_files_lie_in_several_folders_and_all_are_found_synced_and_removed() {
    let dir = tempfile::tempdir().unwrap();
    let ids: Vec<_> = (0..=u8::MAX).map(|first| StagedId([first; 16])).collect();
    let staging = open(dir.path());
    for id in &ids {
        staging.open_file(*id, 0o644).unwrap();
        staging.journal.append(&[super::super::journal::Record::Verified(*id, 0..1, [0; 32])]).unwrap();
    }
    let folders = |staging: &Staging| {
        let names = fs::read_dir(staging.path()).unwrap().map(|item| item.unwrap().file_name().into_encoded_bytes());
        names.filter(|name| is_folder_name(name)).count()
    };
    assert_eq!(folders(&staging), 32);
    // One by one, and all at once.
    staging.sync(&ids[..20]).unwrap();
    staging.sync(&ids).unwrap();
    drop(staging);

    let staging = open(dir.path());
    for id in &ids {
        assert!(staging.claim(*id).unwrap(), "{id:?}");
    }
    let target = openat(rustix::fs::CWD, dir.path(), FOLDER, Mode::empty()).unwrap();
    staging.remove(&target).unwrap();
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn a_folder_of_staged_files_that_was_removed_by_hand_is_made_again() {
    let dir = tempfile::tempdir().unwrap();
    let staging = open(dir.path());
    let id = StagedId([1; 16]);
    staging.open_file(id, 0o644).unwrap();
    fs::remove_dir_all(staging.path().join(id.folder())).unwrap();
    // Files in it are missed, as one that was removed alone is.
    staging.sync(&[id]).unwrap();
    staging.remove_file(id).unwrap();
    assert_eq!(staging.open_made(id).unwrap_err().kind(), io::ErrorKind::NotFound);
    staging.open_file(id, 0o644).unwrap();
    assert_eq!(staging.look(id).unwrap().size, 0);
    // Without the staging folder itself there is nothing to make it in.
    fs::remove_dir_all(staging.path()).unwrap();
    assert!(staging.is_removed());
    assert_eq!(staging.open_file(id, 0o644).unwrap_err().kind(), io::ErrorKind::NotFound);
    assert!(staging.sync(&[id]).is_err());
}

#[test]
fn a_staging_folder_that_cannot_be_completed_does_not_stay_if_it_is_new() {
    let dir = tempfile::tempdir().unwrap();
    let target = openat(rustix::fs::CWD, dir.path(), FOLDER, Mode::empty()).unwrap();
    drop(open(dir.path()));
    // What is there is not this call's to remove.
    let staging = dir.path().join(staging_name(SOURCE));
    fs::remove_file(staging.join("journal")).unwrap();
    fs::create_dir(staging.join("journal")).unwrap();
    assert!(Staging::open(&target, dir.path(), SOURCE, true).is_err());
    assert!(staging.exists());
}

/// A record of an item is all that tells the next run that the item is its own.
#[test]
fn a_folder_with_one_record_is_not_useless() {
    let dir = tempfile::tempdir().unwrap();
    let staging = open(dir.path());
    assert!(staging.is_useless().unwrap());
    staging
        .journal
        .append(&[super::super::journal::Record::Item(super::super::journal::Item::new(b"top", 4, 6))])
        .unwrap();
    assert!(!staging.is_useless().unwrap());
    drop(staging);
    let staging = open(dir.path());
    assert!(!staging.is_useless().unwrap());
}
