use std::fs;

use super::layout::{FILES, is_directory_name};
use super::*;

const SOURCE: SourceId = SourceId([9; 16]);

fn open(into: &Path) -> Staging {
    Staging::open(&site(into), true).unwrap().unwrap()
}

fn site(into: &Path) -> Site {
    let target = openat(rustix::fs::CWD, into, READ_DIRECTORY, Mode::empty()).unwrap();
    Site::of(&target, into, SOURCE, None).unwrap()
}

#[test]
fn staged_files_are_spread_over_directories() {
    let dir = tempfile::tempdir().unwrap();
    let ids: Vec<_> = (0..=u8::MAX).map(|first| StagedId([first; 16])).collect();
    let staging = open(dir.path());
    for id in &ids {
        staging.open_file(*id, 0o644).unwrap();
        staging.journal.append(&[journal::Record::Verified(*id, 0..1, [0; 32])]).unwrap();
    }
    let directories = |staging: &Staging| {
        let names = fs::read_dir(staging.path()).unwrap().map(|item| item.unwrap().file_name().into_encoded_bytes());
        names.filter(|name| is_directory_name(name)).count()
    };
    assert_eq!(directories(&staging), 32);
    // First some of them, then all at once.
    staging.sync(&ids[..20]).unwrap();
    staging.sync(&ids).unwrap();
    drop(staging);

    let staging = open(dir.path());
    for id in &ids {
        assert!(staging.claim(*id).unwrap(), "{id:?}");
    }
    staging.remove().unwrap();
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn removed_staging_subdirectory_is_recreated() {
    let dir = tempfile::tempdir().unwrap();
    let staging = open(dir.path());
    let id = StagedId([1; 16]);
    staging.open_file(id, 0o644).unwrap();
    fs::remove_dir_all(staging.path().join(id.directory())).unwrap();
    // The files in it are reported missing, like a single removed file.
    staging.sync(&[id]).unwrap();
    staging.remove_file(id).unwrap();
    assert_eq!(staging.open_made(id).unwrap_err().kind(), io::ErrorKind::NotFound);
    staging.open_file(id, 0o644).unwrap();
    assert_eq!(staging.look(id).unwrap().size, 0);
    // Without the staging directory itself, there is no place to create it in.
    fs::remove_dir_all(staging.path()).unwrap();
    assert!(staging.is_removed());
    assert_eq!(staging.open_file(id, 0o644).unwrap_err().kind(), io::ErrorKind::NotFound);
    assert!(staging.sync(&[id]).is_err());
}

#[test]
fn incomplete_new_staging_directory_is_removed() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path()));
    // This call must not remove a directory that existed before.
    let staging = dir.path().join(staging_name(SOURCE));
    fs::remove_file(staging.join("journal")).unwrap();
    fs::create_dir(staging.join("journal")).unwrap();
    assert!(Staging::open(&site(dir.path()), true).is_err());
    assert!(staging.exists());
}

fn directories(into: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(into).unwrap().map(|item| item.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn link_in_place_of_staged_file_not_followed() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("mine"), "mine").unwrap();
    let (staging, id) = (open(dir.path()), StagedId([1; 16]));
    staging.open_file(id, 0o644).unwrap();
    let place = staging.path().join(id.place());
    fs::remove_file(&place).unwrap();
    std::os::unix::fs::symlink(dir.path().join("mine"), &place).unwrap();
    assert!(staging.open_to_read(id).is_err());
    staging.open_file(id, 0o644).unwrap();
    assert_eq!(fs::symlink_metadata(&place).unwrap().len(), 0);
    assert_eq!(fs::read(dir.path().join("mine")).unwrap(), b"mine");
}

#[test]
fn staging_under_random_name_is_found_again() {
    let dir = tempfile::tempdir().unwrap();
    let taken = dir.path().join(staging_name(SOURCE));
    fs::write(&taken, "mine").unwrap();
    let (staging, id) = (open(dir.path()), StagedId([1; 16]));
    staging.open_file(id, 0o644).unwrap();
    staging.journal.append(&[journal::Record::Verified(id, 0..1, [0; 32])]).unwrap();
    let path = staging.path().to_owned();
    drop(staging);
    fs::remove_file(&taken).unwrap();
    let again = open(dir.path());
    assert_eq!(again.path(), path);
    assert!(again.claim(id).unwrap());
    assert_eq!(directories(dir.path()).len(), 1);
}

/// If the preferred name is taken, another is used and found again. The object with the first name is not touched.
#[test]
fn staging_name_taken_uses_another_name() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let name = staging_name(SOURCE);
    let open_to_all = |path: &Path| {
        fs::create_dir(path).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
    };
    let of_another_source = |path: &Path| {
        fs::create_dir(path).unwrap();
        let target = openat(rustix::fs::CWD, path, READ_DIRECTORY, Mode::empty()).unwrap();
        Journal::open(&target, SourceId([8; 16]), |_| Ok(())).unwrap();
    };
    let with_a_file = |path: &Path| {
        fs::create_dir(path).unwrap();
        fs::write(path.join("mine"), "mine").unwrap();
    };
    let to_elsewhere = |path: &Path| symlink("/tmp", path).unwrap();
    let a_file = |path: &Path| fs::write(path, "mine").unwrap();
    let with_a_link = |path: &Path| {
        fs::create_dir(path).unwrap();
        symlink("/tmp", path.join(FILES)).unwrap();
    };
    let ways: [&dyn Fn(&Path); 6] =
        [&open_to_all, &of_another_source, &with_a_file, &to_elsewhere, &a_file, &with_a_link];
    for (number, take) in ways.into_iter().enumerate() {
        let dir = tempfile::tempdir().unwrap();
        take(&dir.path().join(&name));
        let before = fs::symlink_metadata(dir.path().join(&name)).unwrap();
        assert!(Staging::open(&site(dir.path()), false).unwrap().is_none(), "way {number}");
        let staging = open(dir.path());
        let path = staging.path().to_owned();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        staging.open_file(StagedId([1; 16]), 0o644).unwrap();
        let found = Staging::open(&site(dir.path()), false);
        assert!(matches!(found, Err(FilesError::Busy { .. })), "way {number}: {found:?}");
        drop(staging);
        let staging = Staging::open(&site(dir.path()), false).unwrap().unwrap();
        assert_eq!((staging.path(), staging.is_new), (&*path, false), "way {number}");
        assert_ne!(path, dir.path().join(&name));
        staging.remove().unwrap();
        assert_eq!(directories(dir.path()), std::slice::from_ref(&name), "way {number}");
        let after = fs::symlink_metadata(dir.path().join(&name)).unwrap();
        assert_eq!(
            (after.permissions(), after.modified().unwrap()),
            (before.permissions(), before.modified().unwrap())
        );
        if number == 2 {
            assert_eq!(fs::read(dir.path().join(&name).join("mine")).unwrap(), b"mine");
        }
    }
}

/// Permissions of other users are removed before the directory is used.
#[test]
fn staging_directory_is_closed_to_others() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    let path = open(dir.path()).path().to_owned();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(open(dir.path()).path(), path);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn moved_staging_directory_emptied_not_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let staging = open(dir.path());
    staging.open_file(StagedId([1; 16]), 0o644).unwrap();
    fs::rename(staging.path(), dir.path().join("away")).unwrap();
    assert_eq!(staging.remove().unwrap_err().reason, LeftReason::InUse, "its name does not exist");
    let staging = open(dir.path());
    fs::rename(staging.path(), dir.path().join("again")).unwrap();
    fs::create_dir(staging.path()).unwrap();
    assert_eq!(staging.remove().unwrap_err().reason, LeftReason::InUse, "another directory has its name");
    assert_eq!(directories(dir.path()).len(), 3);
    assert_eq!(directories(&dir.path().join("away")), Vec::<String>::new());
}

/// The record of an item is the only evidence for the next run that it created the item.
#[test]
fn staging_with_one_record_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let staging = open(dir.path());
    assert!(staging.is_useless().unwrap());
    staging.journal.append(&[journal::Record::Item(journal::Item::new(b"top", 4, 6))]).unwrap();
    assert!(!staging.is_useless().unwrap());
    drop(staging);
    let staging = open(dir.path());
    assert!(!staging.is_useless().unwrap());
}

#[test]
fn leftovers_finds_only_staging_directories() {
    let dir = tempfile::tempdir().unwrap();
    let (top, below) = (dir.path().join("top"), dir.path().join("top/below"));
    fs::create_dir_all(&below).unwrap();
    let staging = open(&below);
    let id = StagedId([1; 16]);
    std::io::Write::write_all(&mut staging.open_file(id, 0o644).unwrap(), &[7; 100_000]).unwrap();
    staging.journal.append(&[journal::Record::Verified(id, 0..1, [0; 32])]).unwrap();
    // Names of parts, but no journal: another directory of this user, renamed by another user.
    for part in ["links", "files"] {
        fs::create_dir_all(top.join(".downpour-aaaaaaaa")).unwrap();
        fs::write(top.join(".downpour-aaaaaaaa").join(part), "precious").unwrap();
    }
    std::os::unix::fs::symlink(&below, top.join("link")).unwrap();
    std::os::unix::fs::symlink(staging.path(), top.join(".downpour-bbbbbbbb")).unwrap();
    fs::write(top.join(".downpour-cccccccc"), "a file").unwrap();
    let search = |recursive| {
        let mut found = Vec::new();
        leftovers(&top, recursive, |leftover| found.push(leftover), |path, error| panic!("{path:?}: {error}")).unwrap();
        found
    };
    assert_eq!(search(false).len(), 0);
    let [used] = &search(true)[..] else { panic!("{:?}", search(true)) };
    assert_eq!((&*used.path, used.files, used.is_in_use), (staging.path(), 1, true));
    assert!((100_000..200_000).contains(&used.bytes), "{used:?}");
    assert!(matches!(used.remove(), Err(FilesError::Busy { .. })));
    drop(staging);
    let [left] = &search(true)[..] else { panic!("one") };
    assert!(!left.is_in_use);
    // Its directory was moved away, and a link from its path points to another one with such a directory.
    let other = dir.path().join("other");
    fs::create_dir(&other).unwrap();
    drop(open(&other));
    fs::rename(&below, top.join("moved")).unwrap();
    std::os::unix::fs::symlink(&other, &below).unwrap();
    left.remove().unwrap();
    left.remove().unwrap();
    assert_eq!(fs::read_dir(top.join("moved")).unwrap().count(), 0);
    assert_eq!(fs::read_dir(&other).unwrap().count(), 1);
    assert_eq!(fs::read_dir(top.join(".downpour-aaaaaaaa")).unwrap().count(), 2);
}
