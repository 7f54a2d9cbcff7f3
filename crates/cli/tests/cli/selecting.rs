//! Options that select and place files: sizes, ages, times, modes, relative names, rules, and `--on-end`. `tests/rsync`
//! compares the resulting targets with rsync's.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tempfile::tempdir;

use crate::fake_ssh::FakeHost;
use crate::program::{Program, arguments, command, downpour};
use crate::tree;

fn mode(path: &Path) -> u32 {
    path.symlink_metadata().expect("a name").mode() & 0o7777
}

#[track_caller]
fn assert_names(directory: &Path, wanted: &[&str]) {
    assert_eq!(tree::names(directory), wanted.iter().map(Path::new).collect::<Vec<_>>());
}

#[test]
fn min_max_size_selects_and_protects() {
    let far = FakeHost::new();
    let local = tempdir().expect("a directory");
    let source = local.path().join("source");
    fs::create_dir(&source).expect("a directory");
    for (name, bytes) in [("empty", 0), ("small", 10), ("middle", 1024), ("large", 1025)] {
        tree::file(&source.join(name), bytes);
    }
    let limits = ["--min-size=1", "--max-size=1K"];
    let options = |others: &[&'static str]| [&limits[..], others].concat();
    let contents = source.join("");
    let up = |others: &[&'static str]| {
        far.run("sync", options(others).iter().map(AsRef::as_ref).chain(arguments![contents, "far:copy"]))
    };
    let dry = up(&["-n"]).expect(0);
    assert!(!dry.stdout.contains("create large") && dry.stdout.contains("create middle"), "{}", dry.stdout);
    let done = up(&[]).expect(0);
    assert!(done.stderr.contains("2 kept"), "{}", done.stderr);
    let copy = far.remote("copy");
    assert_names(&copy, &["middle", "small"]);
    // --delete keeps names that the source has but does not send.
    for name in ["large", "gone"] {
        fs::write(copy.join(name), "other").expect("a file");
    }
    up(&["--delete"]).expect(0);
    assert_names(&copy, &["large", "middle", "small"]);
    assert_eq!(fs::read(copy.join("large")).expect("a file"), b"other");
    // From the remote host.
    let back = local.path().join("back");
    far.run("sync", arguments!["--max-size=10", "far:copy/", back]).expect(0);
    assert_names(&back, &["large", "small"]);
}

#[test]
fn max_age_skips_old_files() {
    let local = tempdir().expect("a directory");
    let (source, copy) = (local.path().join("source"), local.path().join("copy"));
    fs::create_dir(&source).expect("a directory");
    for (name, days) in [("old", 31), ("new", 29)] {
        let path = tree::file(&source.join(name), 10);
        let time = SystemTime::now() - Duration::from_secs(days * 86_400);
        fs::File::options().write(true).open(path).and_then(|file| file.set_modified(time)).expect("a time");
    }
    downpour(arguments!["sync", "--max-age", "30d", source.join(""), copy]).end().expect(0);
    assert_names(&copy, &["new"]);
}

#[test]
fn modify_window_and_size_only_unchanged() {
    let local = tempdir().expect("a directory");
    let (source, copy) = (tree::file(&local.path().join("file"), 10), local.path().join("copy"));
    fs::write(&copy, "0123456789").expect("a file");
    let time = source.metadata().and_then(|found| found.modified()).expect("a time");
    let other = time + Duration::from_secs(3);
    let content = || fs::read(&copy).expect("a file");
    for (option, is_copied) in [("--modify-window=3", false), ("--size-only", false), ("--modify-window=2", true)] {
        fs::File::options().write(true).open(&copy).and_then(|file| file.set_modified(other)).expect("a time");
        downpour(arguments!["sync", option, source, copy]).end().expect(0);
        assert_eq!(content() == fs::read(&source).expect("a file"), is_copied, "{option}");
        if option == "--modify-window=3" {
            assert_eq!(copy.metadata().and_then(|found| found.modified()).expect("a time"), other, "it stays");
        }
    }
    // The same size and time.
    fs::write(&copy, "0123456789").expect("a file");
    fs::File::options().write(true).open(&copy).and_then(|file| file.set_modified(time)).expect("a time");
    downpour(arguments!["sync", source, copy]).end().expect(0);
    assert_eq!(content(), b"0123456789");
    downpour(arguments!["sync", "-I", source, copy]).end().expect(0);
    assert_eq!(content(), fs::read(&source).expect("a file"));
}

#[test]
fn chmod_changes_modes_at_target() {
    let far = FakeHost::new();
    let local = tempdir().expect("a directory");
    let source = tree::directory(&local.path().join("photos"));
    far.run("sync", arguments!["--chmod=D711", "--chmod=F640", source.join(""), "far:copy"]).expect(0);
    let copy = far.remote("copy");
    assert_eq!(mode(&copy), 0o711, "the top");
    assert_eq!([mode(&copy.join("in")), mode(&copy.join("one")), mode(&copy.join("in/some"))], [0o711, 0o640, 0o640]);
    // Nothing is left to do.
    let again = far.run("sync", arguments!["-n", "--chmod=D711,F640", source.join(""), "far:copy"]).expect(0);
    assert_eq!(again.stdout, "");
    let refused = downpour(arguments!["sync", "--chmod=u+q", source, copy]).end().expect(2);
    assert!(refused.stderr.contains("use a form such as D755,F644"), "{}", refused.stderr);
    fs::set_permissions(copy.join("one"), fs::Permissions::from_mode(0o604)).expect("a mode");
    let when = UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    fs::File::open(&source).and_then(|top| top.set_modified(when)).expect("a time");
    far.run("sync", arguments!["--no-perms", source.join(""), "far:copy"]).expect(0);
    assert_eq!(mode(&copy.join("one")), 0o604);
    assert_eq!((mode(&copy), copy.metadata().and_then(|top| top.modified()).expect("a time")), (0o711, when));
}

#[test]
fn mkpath_makes_missing_directories() {
    let far = FakeHost::new();
    let local = tempdir().expect("a directory");
    let source = tree::file(&local.path().join("file"), 10);
    far.run("cp", arguments![source, "far:a/b/c/"]).expect(1);
    assert!(!far.remote("a").exists());
    far.run("cp", arguments!["-n", "--mkpath", source, "far:a/b/c/"]).expect(0);
    assert!(!far.remote("a").exists(), "a dry run makes nothing");
    far.run("cp", arguments!["--mkpath", source, "far:a/b/c/"]).expect(0);
    far.run("cp", arguments!["--mkpath", source, "far:d/e/renamed"]).expect(0);
    for path in ["a/b/c/file", "d/e/renamed"] {
        assert_eq!(fs::read(far.remote(path)).expect("a file"), fs::read(&source).expect("a file"), "{path}");
    }
    let refused = far.run("cp", arguments!["--mkpath", source, "far:a/b/c/file/d/"]).expect(1);
    assert!(refused.stderr.contains("is not a directory"), "{}", refused.stderr);
}

#[test]
fn relative_keeps_source_paths() {
    let far = FakeHost::new();
    let local = tempdir().expect("a directory");
    let source = tree::directory(&local.path().join("a/photos"));
    tree::file(&local.path().join("a/other"), 10);
    let inside = |line: &[&str], target: &Path| {
        let mut line = command(line);
        line.arg(target).current_dir(local.path());
        Program::start(line).end()
    };
    let copy = local.path().join("copy");
    inside(&["sync", "-R", "a/photos/in", "a/photos/one"], &copy).expect(0);
    assert_names(&copy.join("a/photos"), &["in", "one"]);
    tree::assert_same(&source.join("in"), &copy.join("a/photos/in"));
    let shorter = local.path().join("shorter");
    inside(&["cp", "-r", "--relative", "a/./photos/in/deep"], &shorter).expect(0);
    assert_names(&shorter.join("photos/in"), &["deep"]);
    // From the remote host.
    far.run("sync", arguments![source, "far:"]).expect(0);
    let back = local.path().join("back");
    far.run("sync", arguments!["-R", "far:photos/in/some", back]).expect(0);
    assert_names(&back.join("photos/in"), &["some"]);
    let refused = inside(&["sync", "-R", "a/photos", "/etc/hostname"], &copy).expect(2);
    assert!(refused.stderr.contains("different base directories"), "{}", refused.stderr);
}

#[test]
fn filter_rules_of_rsync() {
    let local = tempdir().expect("a directory");
    let (source, copy) = (local.path().join("source"), local.path().join("copy"));
    fs::create_dir(&source).expect("a directory");
    for name in ["keep.tmp", "a.tmp", "b.o", "c"] {
        tree::file(&source.join(name), 10);
    }
    let rules = local.path().join("rules");
    fs::write(&rules, "# objects\n- *.o\n").expect("rules");
    let merge = format!(". {}", rules.display());
    downpour(arguments!["sync", "-f", "+ keep.*", "--filter=-_*.tmp", "-f", merge, source.join(""), copy])
        .end()
        .expect(0);
    assert_names(&copy, &["c", "keep.tmp"]);
    // Unsupported rules in a file are not taken for patterns.
    for (line, expected) in [
        ("P keep", "unsupported rule"),
        (":- .gitignore", "rules per directory are not supported"),
        ("*.o", "unsupported rule"),
        (". other", "cannot include another"),
        ("!", "unsupported rule"),
    ] {
        fs::write(&rules, format!("- ok\n{line}\n")).expect("rules");
        let merge = format!(". {}", rules.display());
        let refused = downpour(arguments!["sync", "-f", merge, source.join(""), copy]).end().expect(2);
        assert!(refused.stderr.contains(expected), "{line}: {}", refused.stderr);
    }
    for (rule, expected) in [(":- .gitignore", "rules per directory are not supported"), ("P x", "unsupported rule")] {
        let refused = downpour(arguments!["sync", "--filter", rule, source, copy]).end().expect(2);
        assert!(refused.stderr.contains(expected), "{}", refused.stderr);
    }
}

#[test]
fn link_dest_hard_links_unchanged_files() {
    let far = FakeHost::new();
    let local = tempdir().expect("a directory");
    let source = tree::directory(&local.path().join("photos"));
    let backup = |name: &str, option: &str| {
        let target = format!("far:{name}");
        far.run("sync", arguments![option, "--json", source.join(""), target]).expect(0)
    };
    backup("first", "--link-dest=../none");
    tree::file(&source.join("one"), 2);
    fs::set_permissions(source.join("empty"), fs::Permissions::from_mode(0o600)).expect("a mode");
    let second = backup("second", "--link-dest=../first");
    assert!(second.stdout.contains("\"transferred_bytes\":2,"), "{}", second.stdout);
    tree::assert_same(&source, &far.remote("second"));
    let inode = |path: &str| far.remote(path).metadata().expect("a file").ino();
    for (name, is_shared) in [("in/some", true), ("in/deep/large Grüße", true), ("one", false), ("empty", false)] {
        let shared = inode(&format!("first/{name}")) == inode(&format!("second/{name}"));
        assert_eq!(shared, is_shared, "{name}");
    }
    // Again, and absolute, with nothing left to do.
    let third = backup("second", &format!("--link-dest={}", far.remote("first").display()));
    assert!(third.stdout.contains("\"transferred_bytes\":0,"), "{}", third.stdout);
    assert!(tree::names(&far.remote("second")).iter().all(|name| !name.to_string_lossy().contains("downpour")));
    // A restricted key links to nothing outside.
    let program = env!("CARGO_BIN_EXE_downpour");
    let limited = FakeHost::with_login(&format!(r#"exec {program} remote --only "$FAR_HOME/in""#));
    fs::create_dir(limited.remote("in")).expect("a directory");
    fs::create_dir(limited.remote("out")).expect("a directory");
    let refused = limited.run("sync", arguments!["--link-dest=../../out", source.join(""), "far:copy"]);
    assert_ne!(refused.status.code(), Some(0));
    assert!(refused.stderr.contains("omit --link-dest"), "{}", refused.stderr);
    let refused = limited.run("sync", arguments!["--mkpath", source.join(""), "far:copy"]);
    assert!(refused.stderr.contains("omit --mkpath"), "{}", refused.stderr);
}

#[test]
fn on_end_gets_exit_code() {
    let local = tempdir().expect("a directory");
    let source = tree::file(&local.path().join("file"), 10);
    let (copy, log) = (local.path().join("copy"), local.path().join("log"));
    let tell = format!("echo heard; echo \"$DOWNPOUR_EXIT_CODE\" >> {}", log.display());
    let done = downpour(arguments!["cp", "--json", "--on-end", tell, source, copy]).end().expect(0);
    assert!(done.stderr.contains("heard\n") && !done.stdout.contains("heard"), "{}", done.stdout);
    downpour(arguments!["cp", "--on-end", tell, "absent", copy]).end().expect(3);
    assert_eq!(fs::read_to_string(&log).expect("a log"), "0\n3\n");
    let failed = downpour(arguments!["cp", "--on-end", "exit 9", source, copy]).end().expect(0);
    assert!(failed.stderr.contains("--on-end: command failed with exit status: 9"), "{}", failed.stderr);
}
