//! `cp`, `sync` and `verify` on one machine: both sides in one process.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Stdio;

use tempfile::tempdir;

use crate::far::Far;
use crate::program::{Program, arguments, command, downpour, json};
use crate::tree;

#[test]
fn a_file_under_a_name_and_into_a_directory() {
    let here = tempdir().expect("a directory");
    let source = tree::file(&here.path().join("file"), 300_000);
    let (name, directory) = (here.path().join("copy"), here.path().join("directory"));
    fs::create_dir(&directory).expect("a directory");
    let ended = downpour(arguments!["cp", source, name]).end().expect(0);
    assert!(ended.stderr.lines().last().is_some_and(|line| line.starts_with("1 file, 300")), "{}", ended.stderr);
    downpour(arguments!["cp", source, directory]).end().expect(0);
    tree::assert_same(&source, &name);
    tree::assert_same(&source, &directory.join("file"));
    assert_eq!(tree::names(here.path()).len(), 3, "nothing else");
}

#[test]
fn a_directory_with_and_without_its_name() {
    let here = tempdir().expect("a directory");
    let source = tree::directory(&here.path().join("photos"));
    let mut contents = source.clone().into_os_string();
    contents.push("/");
    let (with, without) = (here.path().join("with"), here.path().join("without"));
    fs::create_dir(&with).expect("a directory");
    downpour(arguments!["cp", "-rp", source, with]).end().expect(0);
    downpour(arguments!["cp", "-rp", contents, without]).end().expect(0);
    tree::assert_same(&source, &with.join("photos"));
    tree::assert_same(&source, &without);
    downpour(arguments!["cp", source, with]).end().expect_line(2, "photos");
}

#[test]
fn only_what_is_selected() {
    let here = tempdir().expect("a directory");
    let source = tree::directory(&here.path().join("photos"));
    let into = here.path().join("into");
    fs::create_dir(&into).expect("a directory");
    // Options may appear between the paths.
    let arguments = arguments!["cp", "--include", "in/deep/", "-r", source, "--exclude", "in/*", "--links=skip", into];
    downpour(arguments).end().expect(0);
    let copy = into.join("photos");
    assert_eq!(tree::names(&copy.join("in")).len(), 1);
    tree::assert_same(&source.join("in/deep"), &copy.join("in/deep"));
    assert!(!copy.join("link").exists());

    let listed = here.path().join("listed");
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
fn a_listed_name_behind_a_link_arrives_in_a_directory_and_a_limited_login_follows_none() {
    let far = Far::new();
    let here = tempdir().expect("a directory");
    let (list, into) = (here.path().join("list"), here.path().join("into"));
    fs::create_dir_all(far.there("elsewhere/in")).expect("directories");
    let deep = tree::file(&far.there("elsewhere/in/deep"), 3_000_000);
    fs::create_dir(far.there("src")).expect("a directory");
    symlink("../elsewhere", far.there("src/link")).expect("a link");
    fs::write(&list, "link/in/deep\n").expect("a list");
    fs::create_dir(&into).expect("a directory");
    for source in [far.there("src/").into_os_string(), "far:src/".into()] {
        far.run("sync", arguments!["--files-from", list, source, into]).expect(0);
        assert!(fs::symlink_metadata(into.join("link")).expect("a directory").is_dir());
        tree::assert_same(&deep, &into.join("link/in/deep"));
        fs::remove_dir_all(into.join("link")).expect("a directory");
    }
    // A link at the target is never written through.
    fs::create_dir(here.path().join("outside")).expect("a directory");
    symlink("../outside", into.join("link")).expect("a link");
    far.run("sync", arguments!["--files-from", list, "far:src/", into]).expect(0);
    assert!(tree::names(&here.path().join("outside")).is_empty());
    tree::assert_same(&deep, &into.join("link/in/deep"));
    fs::remove_dir_all(into.join("link")).expect("a directory");

    let program = env!("CARGO_BIN_EXE_downpour");
    let limited = Far::with_login(&format!(r#"exec {program} remote --only "$FAR_HOME/src""#));
    fs::create_dir_all(limited.there("elsewhere/in")).expect("directories");
    tree::file(&limited.there("elsewhere/in/deep"), 10);
    fs::create_dir(limited.there("src")).expect("a directory");
    symlink("../elsewhere", limited.there("src/link")).expect("a link");
    let told = limited.run("sync", arguments!["--files-from", list, "far:", into]).expect(23).stderr;
    assert!(told.contains("link/in/deep") && !into.join("link").exists(), "{told}");
}

/// What programs communicate through is neither replaced nor taken for a name.
#[test]
fn a_target_or_list_that_is_a_device_or_leads_to_one_stays() {
    let here = tempfile::tempdir().expect("a directory");
    let path = |name: &str| here.path().join(name);
    fs::write(path("file"), "bytes").expect("a file");
    rustix::fs::mknodat(rustix::fs::CWD, path("fifo"), rustix::fs::FileType::Fifo, 0o600.into(), 0).expect("a FIFO");
    for (link, to) in [("null", "/dev/null"), ("link", "fifo"), ("nowhere", "absent")] {
        std::os::unix::fs::symlink(to, path(link)).expect("a link");
    }
    for name in ["null", "fifo", "link", "/dev/null", "/dev/stdout"] {
        let before = path(name).symlink_metadata().expect("it is there").file_type();
        let said = "leads to a device, pipe or socket, which is neither replaced nor written to";
        downpour(arguments!["cp", path("file"), path(name)]).end().expect_line(2, said);
        let list = downpour(arguments!["cp", "--checksums", path(name), path("file"), path("copy")]).end();
        list.expect_line(2, "cannot go to");
        assert_eq!(path(name).symlink_metadata().expect("it is there").file_type(), before, "{name}");
    }
    assert!(!path("copy").exists(), "refused before anything crosses");
    // It is a link that all use, also where it leads to a file.
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
    list.expect_line(2, "it is a link to a file that does not exist; name that file");
    // A link to a file is the name that was given, as for rsync: it is replaced, and the file stays.
    downpour(arguments!["cp", path("file"), path("nowhere")]).end().expect(0);
    assert!(path("nowhere").symlink_metadata().expect("a file").is_file() && !path("absent").exists());
}

#[test]
fn checksums_are_those_of_b3sum() {
    let here = tempdir().expect("a directory");
    let (source, list) = (here.path().join("file"), here.path().join("list"));
    fs::write(&source, "").expect("a file");
    downpour(arguments!["cp", "--checksums", list, source, here.path().join("copy")]).end().expect(0);
    let empty = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262";
    assert_eq!(fs::read_to_string(&list).expect("a list"), format!("{empty}  copy\n"), "the name at the target");
    fs::remove_file(&list).expect("a list");
    downpour(arguments!["cp", "-n", "--checksums", list, source, here.path().join("other")]).end().expect(0);
    assert!(!list.exists(), "a dry run writes nothing");
    let nowhere = here.path().join("no/list");
    let ended = downpour(arguments!["cp", "--checksums", nowhere, source, here.path().join("other")]).end();
    ended.expect_line(7, "no/list: No such file");
    assert!(!here.path().join("other").exists(), "told before anything crosses");
}

#[test]
fn verbose_names_what_is_done() {
    let here = tempdir().expect("a directory");
    let (source, target) = (here.path().join("a"), here.path().join("b"));
    fs::create_dir(&source).expect("a directory");
    tree::file(&source.join("new"), 10);
    fs::create_dir_all(target.join("a")).expect("directories");
    tree::file(&target.join("a/old"), 10);
    let ended = downpour(arguments!["sync", "-v", "--delete", source, target]).end().expect(0);
    for line in ["a/new (10 B)", "deleted a/old"] {
        assert!(ended.stderr.lines().any(|said| said == line), "no {line:?} in {}", ended.stderr);
    }
    assert!(!ended.stderr.contains("0.0.0.0"), "{}", ended.stderr);
}

#[test]
fn verify_tells_a_b_that_is_not_there() {
    let here = tempdir().expect("a directory");
    let source = tree::directory(&here.path().join("photos"));
    let ended = downpour(arguments!["verify", source, here.path().join("phtoos")]).end();
    assert_eq!(ended.expect_line(3, "phtoos does not exist").stdout, "");
    let other = here.path().join("other");
    fs::create_dir(&other).expect("a directory");
    let ended = downpour(arguments!["verify", source, other]).end().expect(1);
    let last = ended.stderr.lines().last().unwrap_or_default();
    assert_eq!(last, "8 differences. Nothing of A exists in B: check the path.");
}

#[test]
fn a_limit_below_the_told_rate_is_told() {
    let here = tempdir().expect("a directory");
    let source = tree::file(&here.path().join("file"), 10);
    let ended = downpour(arguments!["cp", "--rate", "1G", "--limit", "8M", source, here.path().join("b")]).end();
    let line = "Sending at 1 Gbit/s = 125 MB/s (IP bytes), capped by --limit: 8 Mbit/s = 1 MB/s.";
    assert!(ended.expect(0).stderr.lines().any(|said| said == line));
}

#[test]
fn json_tells_of_a_copy() {
    let here = tempdir().expect("a directory");
    let source = tree::directory(&here.path().join("photos"));
    let ended = downpour(arguments!["cp", "-r", "--json", source, here.path().join("copy")]).end().expect(0);
    assert_eq!(ended.stderr, "");
    let story = json(&ended.stdout);
    assert_eq!((&story[0]["type"], &story[0]["command"]), (&"start".into(), &"cp".into()));
    let summary = &story[story.len() - 1];
    assert_eq!(
        (&summary["type"], &summary["files"], &summary["bytes"]),
        (&"summary".into(), &4.into(), &3_100_002.into())
    );
}

#[test]
fn json_tells_each_figure_once() {
    let here = tempdir().expect("a directory");
    let source = tree::file(&here.path().join("file"), 600_000);
    // 0.3 s: the figures after 0.2 s are the last.
    let ended =
        downpour(arguments!["cp", "--json", "--limit", "16M", source, here.path().join("copy")]).end().expect(0);
    let story = json(&ended.stdout);
    let progress: Vec<_> = story.iter().filter(|line| line["type"] == "progress").collect();
    assert!(!progress.is_empty());
    assert!(progress.windows(2).all(|two| two[0] != two[1]), "{}", ended.stdout);
}

#[test]
fn cp_paths_invalid_exit_code() {
    let here = tempdir().expect("a directory");
    let file = tree::file(&here.path().join("file"), 10);
    for (arguments, code, words) in [
        (arguments!["cp", "a:x", "b:x", "c:y"].to_vec(), 2, "one machine"),
        (arguments!["cp", file, "a:x", "b"].to_vec(), 2, "one machine"),
        (arguments!["cp", "/no/such/file", "x"].to_vec(), 3, "/no/such/file"),
        (arguments!["cp", "--files-from", "/no/such/list", file, "x"].to_vec(), 3, "/no/such/list"),
    ] {
        downpour(arguments).end().expect_line(code, words);
    }
    assert!(downpour(arguments!["cp", file]).end().expect(2).stderr.contains("SRC... DST"));
}

#[test]
fn wildcards_stand_for_what_a_shell_makes_of_them() {
    let (here, far) = (tempdir().expect("a directory"), Far::new());
    for (directory, names) in [("s1", &["a"][..]), ("s2", &["b"]), ("w", &[".x", ".y", "z"])] {
        fs::create_dir(far.there(directory)).expect("a directory");
        for name in names {
            tree::file(&far.there(directory).join(name), 10);
        }
    }
    let into = here.path().join("into");
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
        ended.expect_line(2, &format!("far:{parent} stands for the parent of every match; name the directory itself"));
        assert!(names.is_empty(), "{names:?}");
    }
    for options in [&[][..], &["-r"]] {
        let (ended, names) = taken(options, "w/.*");
        ended.expect(0);
        assert_eq!(names, [Path::new(".x"), Path::new(".y")]);
    }
}
