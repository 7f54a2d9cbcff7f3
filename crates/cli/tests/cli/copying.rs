//! `cp`, `sync` and `verify` on one host: sender and receiver in one process.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Stdio;

use tempfile::tempdir;

use crate::fake_ssh::FakeHost;
use crate::program::{Program, arguments, command, downpour, json};
use crate::tree;

#[test]
fn cp_file_to_name_and_into_directory() {
    let local = tempdir().expect("a directory");
    let source = tree::file(&local.path().join("file"), 300_000);
    let (name, directory) = (local.path().join("copy"), local.path().join("directory"));
    fs::create_dir(&directory).expect("a directory");
    let ended = downpour(arguments!["cp", source, name]).end().expect(0);
    assert!(ended.stderr.lines().last().is_some_and(|line| line.starts_with("1 file, 300")), "{}", ended.stderr);
    downpour(arguments!["cp", source, directory]).end().expect(0);
    tree::assert_same(&source, &name);
    tree::assert_same(&source, &directory.join("file"));
    assert_eq!(tree::names(local.path()).len(), 3, "nothing else");
}

#[test]
fn cp_directory_trailing_slash_copies_contents() {
    let local = tempdir().expect("a directory");
    let source = tree::directory(&local.path().join("photos"));
    let mut contents = source.clone().into_os_string();
    contents.push("/");
    let (with, without) = (local.path().join("with"), local.path().join("without"));
    fs::create_dir(&with).expect("a directory");
    downpour(arguments!["cp", "-rp", source, with]).end().expect(0);
    downpour(arguments!["cp", "-rp", contents, without]).end().expect(0);
    tree::assert_same(&source, &with.join("photos"));
    tree::assert_same(&source, &without);
    downpour(arguments!["cp", source, with]).end().expect_line(2, "photos");
}

#[test]
fn cp_include_exclude_files_from_select() {
    let local = tempdir().expect("a directory");
    let source = tree::directory(&local.path().join("photos"));
    let into = local.path().join("into");
    fs::create_dir(&into).expect("a directory");
    // Options may appear between the paths.
    let arguments = arguments!["cp", "--include", "in/deep/", "-r", source, "--exclude", "in/*", "--links=skip", into];
    downpour(arguments).end().expect(0);
    let copy = into.join("photos");
    assert_eq!(tree::names(&copy.join("in")).len(), 1);
    tree::assert_same(&source.join("in/deep"), &copy.join("in/deep"));
    assert!(!copy.join("link").exists());

    let listed = local.path().join("listed");
    let mut command = command(arguments!["cp", "-0", "--files-from", "-", source, listed]);
    command.stdin(Stdio::piped());
    let mut program = Program::start(command);
    program.stdin().write_all(b"one\0in/some\0").expect("a program that reads");
    program.end().expect(0);
    let copy = listed.join("photos");
    let copy = if copy.exists() { copy } else { listed };
    assert_eq!(tree::names(&copy).len(), 2, "one and in");
    tree::assert_same(&source.join("in/some"), &copy.join("in/some"));
}

#[test]
fn files_from_through_symlink_makes_directory() {
    let far = FakeHost::new();
    let local = tempdir().expect("a directory");
    let (list, into) = (local.path().join("list"), local.path().join("into"));
    fs::create_dir_all(far.remote("outside/in")).expect("directories");
    let deep = tree::file(&far.remote("outside/in/deep"), 3_000_000);
    fs::create_dir(far.remote("src")).expect("a directory");
    symlink("../outside", far.remote("src/link")).expect("a link");
    fs::write(&list, "link/in/deep\n").expect("a list");
    fs::create_dir(&into).expect("a directory");
    for source in [far.remote("src/").into_os_string(), "far:src/".into()] {
        far.run("sync", arguments!["--files-from", list, source, into]).expect(0);
        assert!(fs::symlink_metadata(into.join("link")).expect("a directory").is_dir());
        tree::assert_same(&deep, &into.join("link/in/deep"));
        fs::remove_dir_all(into.join("link")).expect("a directory");
    }
    // A link at the target is never written through.
    fs::create_dir(local.path().join("outside")).expect("a directory");
    symlink("../outside", into.join("link")).expect("a link");
    far.run("sync", arguments!["--files-from", list, "far:src/", into]).expect(0);
    assert!(tree::names(&local.path().join("outside")).is_empty());
    tree::assert_same(&deep, &into.join("link/in/deep"));
    fs::remove_dir_all(into.join("link")).expect("a directory");

    let program = env!("CARGO_BIN_EXE_downpour");
    let limited = FakeHost::with_login(&format!(r#"exec {program} remote --only "$FAR_HOME/src""#));
    fs::create_dir_all(limited.remote("outside/in")).expect("directories");
    tree::file(&limited.remote("outside/in/deep"), 10);
    fs::create_dir(limited.remote("src")).expect("a directory");
    symlink("../outside", limited.remote("src/link")).expect("a link");
    let stderr = limited.run("sync", arguments!["--files-from", list, "far:", into]).expect(23).stderr;
    assert!(stderr.contains("link/in/deep") && !into.join("link").exists(), "{stderr}");
}

/// Devices and FIFOs are neither replaced nor written to.
#[test]
fn cp_device_target_refused() {
    let local = tempfile::tempdir().expect("a directory");
    let path = |name: &str| local.path().join(name);
    fs::write(path("file"), "bytes").expect("a file");
    rustix::fs::mknodat(rustix::fs::CWD, path("fifo"), rustix::fs::FileType::Fifo, 0o600.into(), 0).expect("a FIFO");
    for (link, to) in [("null", "/dev/null"), ("link", "fifo"), ("nowhere", "absent")] {
        std::os::unix::fs::symlink(to, path(link)).expect("a link");
    }
    for name in ["null", "fifo", "link", "/dev/null", "/dev/stdout"] {
        let before = path(name).symlink_metadata().expect("it is there").file_type();
        let expected = "is a device, FIFO or socket: it cannot be replaced or written to";
        downpour(arguments!["cp", path("file"), path(name)]).end().expect_line(2, expected);
        let list = downpour(arguments!["cp", "--checksums", path(name), path("file"), path("copy")]).end();
        list.expect_line(2, "cannot write");
        assert_eq!(path(name).symlink_metadata().expect("it is there").file_type(), before, "{name}");
    }
    assert!(!path("copy").exists(), "refused before anything crosses");
    // Every process uses this link, even if its stdout is a file.
    std::os::unix::fs::symlink("/dev/stdout", path("second")).expect("a link");
    std::os::unix::fs::symlink("second", path("third")).expect("a link");
    for name in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "second", "third"] {
        let mut redirected = command(arguments!["cp", "--archive", path("file"), path(name)]);
        redirected.stdout(fs::File::create(path("out")).expect("a file"));
        let output = redirected.output().expect("it ran");
        assert_eq!(output.status.code(), Some(2), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(path(name).is_symlink() || name == "/proc/self/fd/1", "{name}");
    }
    let list = downpour(arguments!["cp", "--checksums", path("nowhere"), path("file"), path("copy")]).end();
    list.expect_line(2, "dangling symbolic link; name that file");
    // A link to a file is the name that was given, as for rsync: it is replaced, and the file stays.
    downpour(arguments!["cp", path("file"), path("nowhere")]).end().expect(0);
    assert!(path("nowhere").symlink_metadata().expect("a file").is_file() && !path("absent").exists());
}

#[test]
fn checksums_match_b3sum_format() {
    let local = tempdir().expect("a directory");
    let (source, list) = (local.path().join("file"), local.path().join("list"));
    fs::write(&source, "").expect("a file");
    downpour(arguments!["cp", "--checksums", list, source, local.path().join("copy")]).end().expect(0);
    let empty = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262";
    assert_eq!(fs::read_to_string(&list).expect("a list"), format!("{empty}  copy\n"), "the name at the target");
    fs::remove_file(&list).expect("a list");
    downpour(arguments!["cp", "-n", "--checksums", list, source, local.path().join("other")]).end().expect(0);
    assert!(!list.exists(), "a dry run writes nothing");
    let nowhere = local.path().join("no/list");
    let ended = downpour(arguments!["cp", "--checksums", nowhere, source, local.path().join("other")]).end();
    ended.expect_line(7, "no/list: No such file");
    assert!(!local.path().join("other").exists(), "the error comes first");
}

#[test]
fn sync_verbose_names_changes() {
    let local = tempdir().expect("a directory");
    let (source, target) = (local.path().join("a"), local.path().join("b"));
    fs::create_dir(&source).expect("a directory");
    tree::file(&source.join("new"), 10);
    fs::create_dir_all(target.join("a")).expect("directories");
    tree::file(&target.join("a/old"), 10);
    let ended = downpour(arguments!["sync", "-v", "--delete", source, target]).end().expect(0);
    for line in ["a/new (10 B)", "deleted a/old"] {
        assert!(ended.stderr.lines().any(|found| found == line), "no {line:?} in {}", ended.stderr);
    }
    assert!(!ended.stderr.contains("0.0.0.0"), "{}", ended.stderr);
}

#[test]
fn verify_missing_b_exit_3() {
    let local = tempdir().expect("a directory");
    let source = tree::directory(&local.path().join("photos"));
    let ended = downpour(arguments!["verify", source, local.path().join("phtoos")]).end();
    assert_eq!(ended.expect_line(3, "phtoos does not exist").stdout, "");
    let other = local.path().join("other");
    fs::create_dir(&other).expect("a directory");
    let ended = downpour(arguments!["verify", source, other]).end().expect(1);
    let last = ended.stderr.lines().last().unwrap_or_default();
    assert_eq!(last, "8 differences. Nothing of A exists in B: check the path.");
}

#[test]
fn cp_limit_below_rate_reported() {
    let local = tempdir().expect("a directory");
    let source = tree::file(&local.path().join("file"), 10);
    let ended = downpour(arguments!["cp", "--rate", "1G", "--limit", "8M", source, local.path().join("b")]).end();
    let line = "Sending at 1 Gbit/s = 125 MB/s (IP bytes), capped by --limit: 8 Mbit/s = 1 MB/s.";
    assert!(ended.expect(0).stderr.lines().any(|found| found == line));
}

#[test]
fn cp_json_start_and_summary() {
    let local = tempdir().expect("a directory");
    let source = tree::directory(&local.path().join("photos"));
    let ended = downpour(arguments!["cp", "-r", "--json", source, local.path().join("copy")]).end().expect(0);
    assert_eq!(ended.stderr, "");
    let lines = json(&ended.stdout);
    assert_eq!((&lines[0]["type"], &lines[0]["command"]), (&"start".into(), &"cp".into()));
    let summary = &lines[lines.len() - 1];
    assert_eq!(
        (&summary["type"], &summary["files"], &summary["bytes"]),
        (&"summary".into(), &4.into(), &3_100_002.into())
    );
}

#[test]
fn cp_json_progress_without_repeats() {
    let local = tempdir().expect("a directory");
    let source = tree::file(&local.path().join("file"), 600_000);
    // 0.3 s: the figures after 0.2 s are the last.
    let ended =
        downpour(arguments!["cp", "--json", "--limit", "16M", source, local.path().join("copy")]).end().expect(0);
    let lines = json(&ended.stdout);
    let progress: Vec<_> = lines.iter().filter(|line| line["type"] == "progress").collect();
    assert!(!progress.is_empty());
    assert!(progress.windows(2).all(|two| two[0] != two[1]), "{}", ended.stdout);
}

#[test]
fn cp_paths_invalid_exit_code() {
    let local = tempdir().expect("a directory");
    let file = tree::file(&local.path().join("file"), 10);
    for (arguments, code, words) in [
        (arguments!["cp", "a:x", "b:x", "c:y"].to_vec(), 2, "one host"),
        (arguments!["cp", file, "a:x", "b"].to_vec(), 2, "one host"),
        (arguments!["cp", "/no/such/file", "x"].to_vec(), 3, "/no/such/file"),
        (arguments!["cp", "--files-from", "/no/such/list", file, "x"].to_vec(), 3, "/no/such/list"),
    ] {
        downpour(arguments).end().expect_line(code, words);
    }
    assert!(downpour(arguments!["cp", file]).end().expect(2).stderr.contains("SRC... DST"));
}

#[test]
fn cp_remote_wildcards_expand_like_shell() {
    let (local, far) = (tempdir().expect("a directory"), FakeHost::new());
    for (directory, names) in [("s1", &["a"][..]), ("s2", &["b"]), ("w", &[".x", ".y", "z"])] {
        fs::create_dir(far.remote(directory)).expect("a directory");
        for name in names {
            tree::file(&far.remote(directory).join(name), 10);
        }
    }
    let into = local.path().join("into");
    let taken = |options: &[&str], path: &str| {
        fs::create_dir(&into).expect("a directory");
        let options = options.iter().map(std::ffi::OsString::from);
        let all = options.chain([format!("far:{path}").into(), into.clone().into_os_string()]);
        let ended = far.run("cp", all.collect::<Vec<_>>());
        let names = tree::names(&into);
        fs::remove_dir_all(&into).expect("a directory");
        (ended, names)
    };
    for contents in ["s*/", "s*/.", "s?/./"] {
        let (ended, names) = taken(&["-r"], contents);
        ended.expect(0);
        assert_eq!(names, [Path::new("a"), Path::new("b")], "{contents}");
    }
    for parent in ["*/..", "s1*/.."] {
        let (ended, names) = taken(&["-r"], parent);
        ended.expect_line(2, &format!("far:{parent}: `..` after a wildcard; name the directory itself"));
        assert!(names.is_empty(), "{names:?}");
    }
    for options in [&[][..], &["-r"]] {
        let (ended, names) = taken(options, "w/.*");
        ended.expect(0);
        assert_eq!(names, [Path::new(".x"), Path::new(".y")]);
    }
}
