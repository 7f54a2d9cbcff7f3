//! Copies into a target that contains files.

use std::fs::{self, FileTimes};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tempfile::tempdir;

use crate::fake_ssh::FakeHost;
use crate::program::{Ended, arguments, downpour, json};
use crate::tree;

/// Creates `photos` and copies it to `copy` with `cp -rp`.
fn copied(local: &Path) -> (std::path::PathBuf, std::path::PathBuf) {
    let (source, copy) = (tree::directory(&local.join("photos")), local.join("copy"));
    let mut contents = source.clone().into_os_string();
    contents.push("/");
    downpour(arguments!["sync", contents, copy]).end().expect(0);
    tree::assert_same(&source, &copy);
    (contents.into(), copy)
}

#[track_caller]
fn summary(ended: &Ended) -> serde_json::Value {
    json(&ended.stdout).pop().expect("a summary")
}

#[test]
fn sync_unchanged_tree_sends_no_data() {
    let local = tempdir().expect("a directory");
    let (source, copy) = copied(local.path());
    let again = downpour(arguments!["sync", "--json", source, copy]).end().expect(0);
    assert_eq!(summary(&again)["bytes_present"], 3_100_002, "{}", again.stdout);
    // Same size and bytes, different time.
    let old = SystemTime::now() - Duration::from_secs(1000);
    fs::File::options()
        .write(true)
        .open(copy.join("one"))
        .and_then(|file| file.set_times(FileTimes::new().set_modified(old)))
        .expect("a time");
    let again = downpour(arguments!["sync", "--json", "--checksum", source, copy]).end().expect(0);
    assert_eq!(summary(&again)["bytes_present"], 3_100_002, "{}", again.stdout);
    tree::assert_same(&source, &copy);
}

#[test]
fn cp_changed_file_sends_differences() {
    const SIZE: usize = 3 << 20;
    let (local, far) = (tempdir().expect("a directory"), FakeHost::new());
    let (ours, theirs) = (local.path().join("image"), far.remote("image"));
    let version = |seed: u64| {
        let mut bytes = vec![0; SIZE];
        fastrand::Rng::with_seed(7).fill(&mut bytes);
        bytes.splice(1_000_000..1_000_000, seed.to_be_bytes());
        bytes
    };
    let cases: [(&str, &[&str], bool, bool); 4] = [
        ("up", &[], true, false),
        ("down", &[], false, false),
        ("in full", &["-W"], true, true),
        ("sync", &[], true, false),
    ];
    for (seed, (name, options, is_up, is_whole)) in (1..).zip(cases) {
        let (new, old) = if is_up { (&ours, &theirs) } else { (&theirs, &ours) };
        fs::write(old, version(0)).expect("a file");
        let age = FileTimes::new().set_modified(UNIX_EPOCH);
        fs::File::options().write(true).open(old).and_then(|file| file.set_times(age)).expect("a time");
        fs::write(new, version(seed)).expect("a file");
        let command = if name == "sync" { "sync" } else { "cp" };
        let paths = if is_up { [ours.clone(), "far:".into()] } else { ["far:image".into(), ours.clone()] };
        let options = ["--json"].iter().chain(options).map(std::ffi::OsString::from);
        let ended = far.run(command, options.chain(paths.map(Into::into))).expect(0);
        assert!(fs::read(old).expect("a file") == version(seed), "{name}");
        let summary = summary(&ended);
        let present = summary["bytes_present"].as_u64().expect("a number");
        let crossed = SIZE as u64 + 8 - present;
        assert!(if is_whole { present == 0 } else { (1..100_000).contains(&crossed) }, "{name}: {summary}");
        assert_eq!(summary["verified"], true, "{name}");
    }
}

#[test]
fn sync_directory_keeps_its_name() {
    let local = tempdir().expect("a directory");
    let (source, target) = (tree::directory(&local.path().join("photos")), local.path().join("backup"));
    for _ in 0..2 {
        downpour(arguments!["sync", source, target]).end().expect(0);
        tree::assert_same(&source, &target.join("photos"));
        assert_eq!(tree::names(&target).len(), 1);
    }
}

#[test]
fn contradictory_arguments_change_nothing() {
    let local = tempdir().expect("a directory");
    let (source, copy) = copied(local.path());
    tree::file(&copy.join("mine"), 10);
    fs::write(local.path().join("list"), "one\n").expect("a list");
    let list = local.path().join("list");
    downpour(arguments!["sync", "--delete", "--files-from", list, source, copy]).end().expect(2);
    assert!(copy.join("mine").exists() && copy.join("in/some").exists());
    let inside = source.join("inside");
    downpour(arguments!["cp", "-r", source, inside]).end().expect_line(2, "into itself");
    assert!(!inside.exists());
}

#[test]
fn sync_dry_run_lists_changes_only() {
    let local = tempdir().expect("a directory");
    let (source, copy) = copied(local.path());
    tree::file(&source.join("new"), 10);
    tree::file(&source.join("in/some"), 99_999);
    tree::file(&copy.join("old"), 10);
    fs::File::open(&copy).and_then(|directory| directory.set_modified(SystemTime::UNIX_EPOCH)).expect("a time");
    let before = tree::names(&copy);
    let dry = downpour(arguments!["sync", "-n", "--delete", source, copy]).end().expect(0);
    let mut lines: Vec<&str> = dry.stdout.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["change attributes of .", "create new", "delete old", "replace in/some"]);
    assert_eq!(tree::names(&copy), before);
    downpour(arguments!["sync", "--delete", source, copy]).end().expect(0);
    tree::assert_same(&source, &copy);
}

#[test]
fn cp_existing_replace_skip_refuse() {
    let local = tempdir().expect("a directory");
    let (source, target) = (tree::file(&local.path().join("file"), 1000), local.path().join("target"));
    for (existing, code, replaced) in [("refuse", 1, false), ("skip", 0, false), ("replace", 0, true)] {
        fs::write(&target, "mine").expect("a file");
        downpour(arguments!["cp", "--existing", existing, source, target]).end().expect(code);
        assert_eq!(fs::read(&target).expect("a file") != b"mine", replaced, "{existing}");
    }
    fs::write(&target, "mine").expect("a file");
    let dry = downpour(arguments!["cp", "-n", "--existing", "skip", source, target]).end().expect(0);
    assert!(dry.stdout.contains("kept") && dry.stderr.contains("Nothing to do"), "{} {}", dry.stdout, dry.stderr);
}

#[test]
fn update_keeps_newer_target() {
    let local = tempdir().expect("a directory");
    let (source, target) = (tree::file(&local.path().join("file"), 1000), local.path().join("target"));
    let set = |path: &Path, seconds| {
        let time = FileTimes::new().set_modified(UNIX_EPOCH + Duration::from_secs(seconds));
        fs::File::options().write(true).open(path).and_then(|file| file.set_times(time)).expect("a time");
    };
    for (mine, replaced) in [(2_000_000, false), (500_000, true)] {
        fs::write(&target, "mine").expect("a file");
        set(&source, 1_000_000);
        set(&target, mine);
        downpour(arguments!["cp", "-u", source, target]).end().expect(0);
        assert_eq!(fs::read(&target).expect("a file") != b"mine", replaced, "{mine}");
    }
    let list = local.path().join("list");
    fs::write(&list, "*.tmp\n").expect("a file");
    let (tree, copy) = (local.path().join("tree"), local.path().join("copy"));
    fs::create_dir(&tree).expect("a directory");
    tree::file(&tree.join("a"), 10);
    tree::file(&tree.join("b.tmp"), 10);
    downpour(arguments!["cp", "-a", "--exclude-from", list, tree, copy]).end().expect(0);
    assert_eq!(tree::names(&copy), [Path::new("a")]);
    downpour(arguments!["sync", "-avC", tree, copy]).end().expect_line(2, "-C");
}

#[test]
fn hard_links_of_kept_files_kept() {
    let local = tempdir().expect("a directory");
    let (tree, copy) = (local.path().join("tree"), local.path().join("copy"));
    fs::create_dir(&tree).expect("a directory");
    let write = |path: &Path, text: &str, seconds| {
        fs::write(path, text).expect("a file");
        let time = FileTimes::new().set_modified(UNIX_EPOCH + Duration::from_secs(seconds));
        fs::File::options().write(true).open(path).and_then(|file| file.set_times(time)).expect("a time");
    };
    let read = |name: &str| fs::read_to_string(copy.join(name)).expect("a file");
    write(&tree.join("a"), "sent", 1_000_000);
    fs::hard_link(tree.join("a"), tree.join("b")).expect("a link");
    let contents = tree.join(".");
    let run = |more: &[&str]| {
        let all = arguments!["sync", "-H", contents, copy];
        downpour(all.into_iter().chain(more.iter().map(AsRef::as_ref))).end()
    };
    let sync = |more: &[&str]| run(more).expect(0).stdout;
    sync(&[]);
    write(&copy.join("a"), "mine", 2_000_000);
    assert_eq!((sync(&["-un"]), sync(&["-u"])), ("kept a\nkept b\n".to_owned(), String::new()));
    assert_eq!((read("a"), read("b")), ("mine".into(), "mine".into()));
    // Only the second name is newer.
    fs::remove_file(copy.join("b")).expect("a file");
    write(&copy.join("a"), "old", 500_000);
    write(&copy.join("b"), "newer", 2_000_000);
    sync(&["-u"]);
    assert_eq!((read("a"), read("b")), ("sent".into(), "newer".into()));
    // Only the second name exists: its file is not sent, which is reported.
    fs::remove_file(copy.join("a")).expect("a file");
    for dry_run in [true, false] {
        let ended = run(if dry_run { &["--existing", "only", "-n"] } else { &["--existing", "only"] });
        assert!(ended.expect(23).stderr.contains("b: hard link target was not received"));
    }
    assert_eq!(tree::names(&copy), [Path::new("b")]);
    // And the other way round: the first name is kept, and the second one does not exist.
    fs::rename(copy.join("b"), copy.join("a")).expect("a file");
    for dry_run in [true, false] {
        let ended = run(if dry_run { &["-u", "-n"] } else { &["-u"] });
        assert!(ended.expect(23).stderr.contains("b: hard link target was not received"));
    }
    assert_eq!((tree::names(&copy), read("a")), (vec!["a".into()], "newer".into()));
}

/// `/proc` is another file system on every host; a followed link reaches it without a mount.
#[cfg(target_os = "linux")]
#[test]
fn delete_keeps_names_below_mount_point() {
    let local = tempdir().expect("a directory");
    let (tree, copy) = (local.path().join("tree"), local.path().join("copy"));
    fs::create_dir_all(copy.join("outside/saved")).expect("a directory");
    fs::create_dir(&tree).expect("a directory");
    symlink("/proc/sys/fs", tree.join("outside")).expect("a link");
    tree::file(&tree.join("a"), 10);
    tree::file(&copy.join("extra"), 10);
    let sync = ["sync", "-x", "--delete", "--links=follow"].map(Path::new);
    let ended = downpour(sync.into_iter().chain([tree.join(".").as_path(), copy.as_path()])).end().expect(0);
    assert_eq!(tree::names(&copy), [Path::new("a"), Path::new("outside")], "{}", ended.stderr);
    assert_eq!(tree::names(&copy.join("outside")), [Path::new("saved")]);
}

#[test]
fn verify_lists_every_difference() {
    let local = tempdir().expect("a directory");
    let (source, copy) = copied(local.path());
    let same = downpour(arguments!["verify", source, copy]).end().expect(0);
    assert!(same.stderr.contains("No difference in 4 files"), "{}", same.stderr);
    assert_eq!(same.stdout, "");
    // Same size and time, different bytes.
    let one = copy.join("one");
    let time = fs::metadata(&one).and_then(|metadata| metadata.modified()).expect("a time");
    fs::write(&one, "?").expect("a file");
    fs::File::options()
        .write(true)
        .open(&one)
        .and_then(|file| file.set_times(FileTimes::new().set_modified(time)))
        .expect("a time");
    tree::file(&source.join("a"), 1);
    tree::file(&copy.join("b"), 1);
    let differ = downpour(arguments!["verify", source, copy]).end().expect(1);
    let mut lines: Vec<&str> = differ.stdout.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["differs: one", "only in A: a", "only in B: b"]);
    assert!(copy.join("b").exists() && !copy.join("a").exists(), "nothing is touched");
    downpour(arguments!["verify", one, copy.join("one")]).end().expect(0);
}

#[test]
fn verify_reports_uncomparable_names() {
    let local = tempdir().expect("a directory");
    let (source, copy) = copied(local.path());
    for directory in [&source, &copy] {
        fs::remove_file(directory.join("link")).expect("no link");
    }
    symlink("nowhere", source.join("dangling")).expect("a link");
    tree::file(&copy.join("dangling"), 1);
    let unread = downpour(arguments!["verify", "--links=follow", source, copy]).end().expect(23);
    assert_eq!(unread.stdout, "");
    assert!(unread.stderr.contains("dangling: could not be compared: "), "{}", unread.stderr);
    assert!(unread.stderr.lines().any(|line| line == "1 name could not be compared."), "{}", unread.stderr);
    tree::file(&copy.join("b"), 1);
    let differ = downpour(arguments!["verify", "--links=follow", source, copy]).end().expect(1);
    assert_eq!(differ.stdout, "only in B: b\n");
    assert!(differ.stderr.contains("1 difference. 1 name could not be compared."), "{}", differ.stderr);
    assert!(!differ.stderr.contains("deleted"), "{}", differ.stderr);
    let differ = downpour(arguments!["verify", "--json", "--links=follow", source, copy]).end().expect(1);
    let summary = json(&differ.stdout).pop().expect("a summary");
    assert_eq!((&summary["type"], &summary["deleted"]), (&"summary".into(), &0.into()), "what differs stays");
}
