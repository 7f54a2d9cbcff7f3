//! Transfers of trees: the top directory, several sources, skipped names and conflicting names.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::time::UNIX_EPOCH;

use tempfile::tempdir;

use crate::fake_ssh::FakeHost;
use crate::program::{Program, arguments, command, downpour, json};
use crate::tree;

#[track_caller]
fn mode_and_time(path: &Path) -> (u32, i64, i64) {
    let found = fs::metadata(path).expect("a directory");
    (found.mode() & 0o7777, found.mtime(), found.mtime_nsec())
}

#[test]
fn sync_sets_attributes_of_top_directory() {
    let local = tempdir().expect("a directory");
    let (source, copy) = (tree::directory(&local.path().join("photos")), local.path().join("copy"));
    let contents = source.join("");
    fs::set_permissions(&source, fs::Permissions::from_mode(0o1750)).expect("a mode");
    downpour(arguments!["sync", contents, copy]).end().expect(0);
    assert_eq!(mode_and_time(&copy), mode_and_time(&source));
    let again = downpour(arguments!["sync", "-n", contents, copy]).end().expect(0);
    assert_eq!(again.stdout, "");
    tree::file(&copy.join("old"), 1);
    fs::File::open(&copy).and_then(|directory| directory.set_modified(UNIX_EPOCH)).expect("a time");
    let dry = downpour(arguments!["sync", "-n", "--delete", contents, copy]).end().expect(0);
    assert_eq!(dry.stdout, "delete old\nchange attributes of .\n");
    downpour(arguments!["sync", "--delete", contents, copy]).end().expect(0);
    assert_eq!(mode_and_time(&copy), mode_and_time(&source));
}

#[test]
fn delete_with_several_sources() {
    let local = tempdir().expect("a directory");
    let (one, two) = (local.path().join("one"), local.path().join("two"));
    for directory in [&one, &two] {
        fs::create_dir(directory).expect("a directory");
        tree::file(&directory.join(directory.file_name().expect("a name")), 10);
    }
    let (file, copy) = (tree::file(&local.path().join("file"), 10), local.path().join("copy"));
    fs::create_dir(&copy).expect("a directory");
    tree::file(&copy.join("old"), 10);
    downpour(arguments!["sync", "--delete", one.join(""), two.join(""), file, copy]).end().expect(0);
    let mut names: Vec<_> =
        fs::read_dir(&copy).expect("a directory").map(|item| item.expect("a name").file_name()).collect();
    names.sort();
    assert_eq!(names, ["file", "one", "two"]);
}

#[test]
fn delete_empty_source_needs_force_empty() {
    let local = tempdir().expect("a directory");
    let (empty, copy) = (local.path().join("empty"), local.path().join("copy"));
    fs::create_dir(&empty).expect("a directory");
    downpour(arguments!["sync", "--delete", empty.join(""), copy]).end().expect(0);
    assert!(copy.is_dir());
    tree::file(&copy.join("old"), 10);
    // The source is empty: its disk may not be mounted.
    for option in ["--dry-run", "--verbose"] {
        let ended = downpour(arguments!["sync", "--delete", option, empty.join(""), copy]).end().expect(23);
        assert!(ended.stderr.contains("the source is empty"), "{}", ended.stderr);
        assert_eq!(fs::read_dir(&copy).expect("a directory").count(), 1);
    }
    let dry = downpour(arguments!["sync", "-n", "--delete", "--force-empty", empty.join(""), copy]).end().expect(0);
    assert!(dry.stdout.starts_with("delete old\n"), "{}", dry.stdout);
    downpour(arguments!["sync", "--delete", "--force-empty", empty.join(""), copy]).end().expect(0);
    assert_eq!(fs::read_dir(&copy).expect("a directory").count(), 0);
}

#[test]
fn max_delete_bounds_deletions() {
    let local = tempdir().expect("a directory");
    let (source, copy) = (tree::directory(&local.path().join("photos")), local.path().join("copy"));
    downpour(arguments!["sync", source.join(""), copy]).end().expect(0);
    for name in ["old-1", "old-2", "old-3"] {
        tree::file(&copy.join(name), 10);
    }
    let old = || tree::names(&copy).into_iter().filter(|name| name.to_string_lossy().starts_with("old")).count();
    let ended = downpour(arguments!["sync", "--delete", "--max-delete", "2", source.join(""), copy]).end().expect(23);
    assert!(ended.stderr.contains("--max-delete"), "{}", ended.stderr);
    assert_eq!(old(), 1);
    downpour(arguments!["sync", "--delete", "--max-delete", "1", source.join(""), copy]).end().expect(0);
    assert_eq!(old(), 0);
}

#[test]
fn delete_skipped_reported() {
    let local = tempdir().expect("a directory");
    let (source, copy) = (tree::directory(&local.path().join("photos")), local.path().join("copy"));
    downpour(arguments!["sync", source.join(""), copy]).end().expect(0);
    tree::file(&copy.join("old"), 10);
    symlink("nowhere", source.join("dangling")).expect("a link");
    for dry_run in [true, false] {
        let program = match dry_run {
            true => downpour(arguments!["sync", "-n", "--delete", "--links=follow", source.join(""), copy]),
            false => downpour(arguments!["sync", "--delete", "--links=follow", source.join(""), copy]),
        };
        let ended = program.end().expect(23);
        assert!(ended.stderr.contains("nothing deleted"), "{}", ended.stderr);
        assert!(copy.join("old").exists());
    }
}

#[test]
fn links_skip_counted_once() {
    let local = tempdir().expect("a directory");
    let source = local.path().join("photos");
    fs::create_dir(&source).expect("a directory");
    for name in ["a", "b"] {
        symlink("nowhere", source.join(name)).expect("a link");
    }
    let ended = downpour(arguments!["cp", "-r", "--links=skip", source, local.path().join("copy")]).end().expect(0);
    let notices: Vec<&str> = ended.stderr.lines().filter(|line| line.contains("skipped: ")).collect();
    assert_eq!(notices, ["skipped: 2 symbolic links"]);
    let again = downpour(arguments!["cp", "-r", "--json", "--links=skip", source, local.path().join("again")]);
    let lines = json(&again.end().expect(0).stdout);
    let summary = lines.iter().find(|line| line["type"] == "summary").expect("a summary");
    assert_eq!(summary["links_left_out"], 2);
}

#[test]
fn directory_does_not_replace_file() {
    let local = tempdir().expect("a directory");
    let (source, file) = (tree::directory(&local.path().join("photos")), local.path().join("file"));
    fs::write(&file, "mine").expect("a file");
    for program in [downpour(arguments!["cp", "-r", source, file]), downpour(arguments!["sync", source, file])] {
        program.end().expect_line(1, "is not a directory");
    }
    assert_eq!(fs::read_to_string(&file).expect("a file"), "mine");
}

#[test]
fn delete_one_empty_source_needs_force_empty() {
    let local = tempdir().expect("a directory");
    let far = FakeHost::new();
    let copy = local.path().join("copy");
    for at in [local.path(), &far.home()] {
        for (directory, name) in [("m1", "one"), ("m2", "two")] {
            fs::create_dir(at.join(directory)).expect("a directory");
            tree::file(&at.join(directory).join(name), 10);
        }
    }
    let sources = |prefix: &str| ["m1/", "m2/"].map(|directory| format!("{prefix}{directory}"));
    let near = sources(&format!("{}/", local.path().display()));
    downpour(arguments!["sync", "--delete", near[0], near[1], copy]).end().expect(0);
    assert_eq!(tree::names(&copy), [Path::new("one"), Path::new("two")]);
    // As if its disk were not mounted.
    fs::remove_file(local.path().join("m1/one")).expect("a file");
    fs::remove_file(far.remote("m1/one")).expect("a file");
    for [first, second] in [near.clone(), sources("far:")] {
        for more in [&["--delete"][..], &["--delete", "-n"]] {
            let options = more.iter().map(Into::into).chain([&first, &second].map(Into::into));
            let all: Vec<std::ffi::OsString> = options.chain([copy.clone().into_os_string()]).collect();
            let ended = far.run("sync", all).expect_line(2, "m1/ is empty");
            assert!(ended.stderr.contains("--force-empty"), "{}", ended.stderr);
            assert_eq!(tree::names(&copy), [Path::new("one"), Path::new("two")]);
        }
        // Without --delete an empty directory is an ordinary source.
        far.run("sync", arguments![first, second, copy]).expect(0);
    }
    far.run("sync", arguments!["--delete", "--force-empty", near[0], near[1], copy]).expect(0);
    assert_eq!(tree::names(&copy), [Path::new("two")]);
}

#[test]
fn path_too_long_skipped_and_named() {
    let local = tempdir().expect("a directory");
    let (source, copy) = (local.path().join("photos"), local.path().join("copy"));
    fs::create_dir(&source).expect("a directory");
    tree::file(&source.join("aside"), 1000);
    let make = r#"d=$(printf %250s | tr ' ' d); for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17; do
        mkdir $d && cd -P $d || exit; done; echo x >last"#;
    let made = std::process::Command::new("sh").args(["-c", make]).current_dir(&source).status().expect("a shell");
    assert!(made.success());
    for command in [&["cp", "-r"][..], &["sync", "--delete"]] {
        let all = command.iter().map(Into::into).chain([source.clone(), copy.clone()].map(Into::into));
        let ended = downpour(all.collect::<Vec<std::ffi::OsString>>()).end().expect(23);
        let notices: Vec<_> = ended.stderr.lines().filter(|line| line.contains("a name that is too long")).collect();
        assert_eq!(notices.len(), 1, "{}", ended.stderr);
        assert!(notices[0].contains("photos/.../ddd") && notices[0].len() < 1000, "{}", notices[0]);
        let at = if command[0] == "sync" { copy.join("photos") } else { copy.clone() };
        tree::assert_same(&source.join("aside"), &at.join("aside"));
        let directories = std::process::Command::new("find").arg(&at).args(["-name", "ddd*"]).output().expect("find");
        assert_eq!(directories.stdout.iter().filter(|byte| **byte == b'\n').count(), 16);
        fs::remove_dir_all(&copy).expect("a directory");
    }
}

#[test]
fn safe_links_skipped_with_notice() {
    let (local, far) = (tempdir().expect("a directory"), FakeHost::new());
    let source = local.path().join("photos");
    fs::create_dir(&source).expect("a directory");
    tree::file(&source.join("file"), 10);
    symlink("file", source.join("within")).expect("a link");
    symlink("/etc/hosts", source.join("out")).expect("a link");
    let copy = local.path().join("copy");
    for target in [copy.clone().into_os_string(), "far:copy".into()] {
        let ended = far.run("cp", arguments!["-r", "--safe-links", source, target]).expect(0);
        let notices: Vec<&str> = ended.stderr.lines().filter(|line| line.contains("skipped: ")).collect();
        assert_eq!(notices, ["skipped: photos/out is a symbolic link that points out of the copied tree"]);
        assert!(ended.stderr.lines().last().is_some_and(|line| line.contains("verified")), "{}", ended.stderr);
    }
    for copy in [copy, far.remote("copy")] {
        assert_eq!(tree::names(&copy), [Path::new("file"), Path::new("within")]);
    }
}

#[test]
fn cp_dev_stdin_pipe_refused() {
    let local = tempdir().expect("a directory");
    let mut command = command(arguments!["cp", "/dev/stdin", local.path().join("copy")]);
    command.stdin(std::process::Stdio::piped());
    Program::start(command).end().expect_line(3, "not a file, directory or symbolic link");
}
