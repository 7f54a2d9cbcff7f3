//! File systems and directories from which a staging directory cannot be removed at once, or not at all: the files are
//! delivered anyway. The tests mount real file systems, for which they need root and FUSE or a loop device, and report
//! if they have none.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use downpour_store::{Existing, FileSink, LeftReason, NoticeKind, ReceiveRequest, Scanner, SourceItem, SourceOptions};
use tempfile::{TempDir, tempdir};

use crate::common::{Control, names, noise, transfer_as};

/// An action that is undone on drop.
struct Undo(Vec<Vec<String>>);

impl Drop for Undo {
    fn drop(&mut self) {
        for words in self.0.iter().rev() {
            run(words);
        }
    }
}

fn run<S: AsRef<std::ffi::OsStr>>(words: &[S]) -> Option<Output> {
    Command::new(&words[0]).args(&words[1..]).output().ok().filter(|output| output.status.success())
}

fn words(text: &str, path: &Path) -> Vec<String> {
    text.split(' ').map(|word| word.replace('@', path.to_str().unwrap())).collect()
}

/// Makes a file system in a file, on a loop device; `None` if that is not possible on this host.
fn loop_device(home: &Path, make: &str) -> Option<(String, Undo)> {
    let image = home.join("image");
    fs::File::create(&image).unwrap().set_len(64 << 20).unwrap();
    run(&words(make, &image))?;
    let found = run(&words("losetup --find --show @", &image))?;
    let device = String::from_utf8(found.stdout).unwrap().trim().to_owned();
    let undo = Undo(vec![words(&format!("losetup -d {device}"), home)]);
    Some((device, undo))
}

/// Mounts a file system; `None`, with a report, if that is not possible on this host.
fn mounted(name: &str) -> Option<(TempDir, PathBuf, Undo)> {
    let home = tempdir().unwrap();
    let (mnt, store) = (home.path().join("mnt"), home.path().join("store"));
    fs::create_dir(&mnt).unwrap();
    fs::create_dir(&store).unwrap();
    let mount = || match name {
        "bindfs" => {
            run(&words("bindfs @/store @/mnt", home.path()))?;
            Some(Undo(vec![words("fusermount3 -u @", &mnt)]))
        }
        "exfat-fuse" => {
            let (device, mut undo) = loop_device(home.path(), "mkfs.exfat @")?;
            run(&words(&format!("mount.exfat-fuse {device} @"), &mnt))?;
            undo.0.push(words("umount @", &mnt));
            Some(undo)
        }
        _ => {
            let (device, mut undo) = loop_device(home.path(), "mkfs.ext4 -q @")?;
            run(&words(&format!("mount {device} @"), &mnt))?;
            undo.0.push(words("umount @", &mnt));
            Some(undo)
        }
    };
    let made = mount();
    if made.is_none() {
        eprintln!("NOT RUN: no {name} can be mounted here");
    }
    Some((made?, home)).map(|(undo, home)| (home, mnt, undo))
}

fn sources(home: &Path) -> Vec<PathBuf> {
    let sources: Vec<_> = ["one", "two"].iter().map(|name| home.join(name)).collect();
    (0..).zip(&sources).for_each(|(seed, path)| fs::write(path, noise(300_000, seed)).unwrap());
    sources
}

fn spec(into: &Path) -> ReceiveRequest {
    ReceiveRequest { existing: Existing::Replace, ..ReceiveRequest::into_directory(into) }
}

/// Such file systems keep a file that is removed while open, and so the directory that contains it.
#[test]
fn staging_removed_if_open_files_keep_names() {
    for name in ["bindfs", "exfat-fuse"] {
        let Some((home, mnt, _undo)) = mounted(name) else { continue };
        // Checks that the file system behaves so.
        fs::write(mnt.join("open"), "").unwrap();
        let open = fs::File::open(mnt.join("open")).unwrap();
        fs::remove_file(mnt.join("open")).unwrap();
        assert_eq!(names(&mnt).len(), 1, "{name}: a removed file that is open has a name");
        drop(open);
        let sources = sources(home.path());
        for into in [mnt.join("new"), mnt.join("new")] {
            let done = transfer_as(&sources, spec(&into), 1, &mut |_| {}).unwrap();
            assert_eq!((done.outcome.failed_count, done.outcome.staging_left), (0, None), "{name}");
            assert_eq!(names(&into), ["one", "two"], "{name}");
            fs::remove_file(into.join("one")).unwrap();
        }
        // Nor does the directory of an abandoned transfer, with its partial data.
        let into = mnt.join("given up");
        let receiving = FileSink::new(spec(&into)).unwrap();
        let mut control = Control::begin(&receiving).unwrap();
        for batch in Scanner::new(sources.iter().map(SourceItem::new).collect(), SourceOptions::default()).unwrap() {
            control.send_manifest(&batch).unwrap();
        }
        receiving.write(0, 0, &noise(100_000, 0)).unwrap();
        assert_eq!(receiving.abandon(true).unwrap(), None, "{name}");
        assert!(!into.exists(), "{name}");
    }
}

#[test]
fn append_only_target_receives_files() {
    let Some((home, mnt, mut undo)) = mounted("ext4") else { return };
    let (into, cache) = (mnt.join("into"), mnt.join("cache"));
    fs::create_dir(&into).unwrap();
    fs::create_dir(&cache).unwrap();
    if run(&words("chattr +a @", &into)).is_none() {
        return eprintln!("NOT RUN: no directory can be made append-only here");
    }
    undo.0.push(words("chattr -a @", &into));
    // If the user's files are on another file system, the directory remains, which is reported.
    let child = |cache: &Path| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "tidying::child_receives", "--ignored", "--nocapture"]);
        let output = command.env("DOWNPOUR_TEST_DIRECTORY", home.path()).env("XDG_CACHE_HOME", cache).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && text.contains("1 passed"), "{text}");
        text.into_owned()
    };
    fs::set_permissions(&cache, fs::Permissions::from_mode(0o700)).unwrap();
    assert!(child(&cache).contains("left: None"));
    assert_eq!(names(&into), ["one", "two"]);
    assert_eq!(names(&cache.join("downpour/staging")), [""; 0]);
    assert_eq!(fs::read(into.join("two")).unwrap(), noise(300_000, 1));
    run(&words("chattr -a @", &into)).unwrap();
    names(&into).iter().for_each(|name| fs::remove_file(into.join(name)).unwrap());
    run(&words("chattr +a @", &into)).unwrap();
    assert!(child(home.path()).contains(&format!("left: {:?}", Some(LeftReason::AppendOnly))));
    let names = names(&into);
    assert!(names.len() == 3 && names[0].starts_with(".downpour-"), "{names:?}");
    assert_eq!(fs::read_dir(into.join(&names[0])).unwrap().count(), 0, "an empty directory");
}

#[test]
#[ignore = "run by its parent test"]
fn child_receives() {
    let home = crate::users::child_directory();
    let done = transfer_as(&sources(&home), spec(&home.join("mnt/into")), 1, &mut |_| {}).unwrap();
    assert_eq!((done.outcome.failed_count, done.outcome.files), (0, 2), "{:?}", done.notices);
    // The sender is notified once.
    let notices: Vec<_> = done.notices.iter().map(|notice| (notice.kind, notice.path.as_slice())).collect();
    let left = done.outcome.staging_left.as_ref().map(|left| left.path.as_os_str().as_encoded_bytes());
    assert_eq!(notices, left.map(|path| (NoticeKind::StaleStaging, path)).into_iter().collect::<Vec<_>>());
    println!("left: {:?}", done.outcome.staging_left.map(|left| left.reason));
}
