//! Output files of a transfer, the list of checksums and the trace: they replace no source and no target.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use tempfile::{TempDir, tempdir};

use crate::fake_ssh::FakeHost;
use crate::program::{arguments, downpour};
use crate::tree;

/// A list of one file, and the beginning of a trace.
const LIST: &str = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262  empty\n";
const TRACE: &str = "\x1e{}\n";

/// Returns every file beneath a directory with its content.
fn contents(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = tree::files(directory).into_iter().map(|name| directory.join(name)).filter(|path| path.is_file());
    files.map(|path| (path.clone(), fs::read(path).expect("a file"))).collect()
}

/// Returns a directory with the files `src/x` and `dst/x`, which have this content, and the links `link` to `dst` and
/// `shortcut` to `src/x`.
fn fixture(content: &str) -> TempDir {
    let local = tempdir().expect("a directory");
    for name in ["src", "dst"] {
        fs::create_dir(local.path().join(name)).expect("a directory");
        fs::write(local.path().join(name).join("x"), content).expect("a file");
    }
    symlink("dst", local.path().join("link")).expect("a link");
    symlink("src/x", local.path().join("shortcut")).expect("a link");
    local
}

#[test]
fn output_file_never_overwrites_transfer() {
    let far = FakeHost::new();
    fs::create_dir(far.remote("src")).expect("a directory");
    fs::write(far.remote("src/x"), "far").expect("a file");
    for (option, content) in [("--checksums", "plain"), ("--checksums", LIST), ("--qlog", "plain")] {
        let local = fixture(content);
        let before = contents(local.path());
        let at = |name: &str| local.path().join(name).into_os_string();
        let cases: [(&str, OsString, OsString); 9] = [
            ("src/x", at("src/x"), at("dst/x")),
            ("shortcut", at("src/x"), at("dst/x")),
            ("dst/x", at("src/x"), at("dst/x")),
            ("dst/x", at("src/x"), at("dst")),
            ("link/x", at("src/x"), at("dst/x")),
            ("dst/x", at("src/x"), at("link/")),
            ("dst/x", at("src/"), at("dst")),
            ("src/x", at("src/x"), "far:".into()),
            ("dst/x", "far:src/x".into(), at("dst")),
        ];
        for (output, source, target) in &cases {
            for more in [&[][..], &["--remove-source-files"], &["-n"], &["--existing", "skip"], &["--backup"]] {
                let output = local.path().join(output);
                let arguments = arguments!["-r", option, output, source, target];
                let ended = far.run("cp", arguments.into_iter().chain(more.iter().map(OsStr::new)));
                let expected = if content == LIST { "is part of the transfer" } else { "choose another file" };
                ended.expect_line(2, expected);
                assert_eq!(contents(local.path()), before, "{option} {output:?} {source:?} {target:?} {more:?}");
            }
        }
        let named = downpour(arguments!["cp", option, at("src/x"), at("shortcut"), at("dst/x")]).end();
        named.expect_line(2, "is part of the transfer");
    }
    let local = fixture("plain");
    let out = local.path().join("out");
    let x = local.path().join("src/x");
    downpour(arguments!["cp", "--checksums", out, x, out]).end().expect_line(2, "choose another file");
    assert!(!out.exists());
    let copy = local.path().join("copy");
    let both = downpour(arguments!["cp", "--qlog", out, "--checksums", out, x, copy]).end();
    both.expect_line(2, "the trace uses this file; choose another file");
    assert!(!copy.exists());
}

/// Also for files outside of the transfer: the user may have omitted an argument.
#[test]
fn output_file_replaces_own_kind_only() {
    let (local, far) = (fixture("plain"), FakeHost::new());
    fs::create_dir(far.remote("src")).expect("a directory");
    let [src, dst, listed] = ["src/", "dst", "listed"].map(|name| local.path().join(name));
    fs::write(&listed, "x\n").expect("a file");
    for name in ["x", "shared"] {
        fs::write(far.remote("src").join(name), name).expect("a file");
    }
    fs::hard_link(dst.join("x"), local.path().join("second")).expect("a link");
    fs::copy(src.join("x"), dst.join("x")).expect("a file");
    let before = (contents(local.path()), contents(&far.home()));
    let wrong = [src.join("x"), dst.join("x"), local.path().join("second"), listed.clone(), far.remote("src/shared")];
    for option in ["--checksums", "--qlog"] {
        for output in &wrong {
            for (command, from) in
                [("sync", src.as_os_str()), ("sync", OsStr::new("far:src/")), ("cp", src.as_os_str())]
            {
                let ended = far.run(command, arguments!["-r", option, output, "--files-from", listed, from, dst]);
                ended.expect_line(2, "cannot write");
                assert_eq!((contents(local.path()), contents(&far.home())), before, "{option} {output:?} {command}");
            }
        }
    }
    let [list, trace] = ["list", "trace"].map(|name| local.path().join(name));
    for size in [0, LIST.len()] {
        fs::write(&list, &LIST[..size]).expect("a file");
        fs::write(&trace, &TRACE[..size.min(TRACE.len())]).expect("a file");
        downpour(arguments!["sync", "--checksums", list, "--qlog", trace, src, dst]).end().expect(0);
        assert!(fs::read_to_string(&list).expect("a list").ends_with("  x\n"));
        assert!(fs::read_to_string(&trace).expect("a trace").starts_with('\x1e'));
    }
}

/// The peer may share the disk and write the file during the transfer.
#[test]
fn checksums_keep_file_made_meanwhile() {
    let (local, far) = (tempdir().expect("a directory"), FakeHost::new());
    let (source, list) = (local.path().join("file"), far.remote("file"));
    fs::write(&source, "new").expect("a file");
    for exists in [false, true] {
        fs::remove_file(&list).ok();
        if exists {
            fs::write(&list, LIST).expect("a list");
        }
        let ended = far.run("cp", arguments!["--checksums", list, source, "far:"]);
        ended.expect_line(7, "a file of this name was created during the transfer");
        tree::assert_same(&source, &list);
    }
}

#[test]
fn output_file_skipped_and_kept_at_target() {
    let local = tempdir().expect("a directory");
    let [src, dst] = ["src", "dst"].map(|name| local.path().join(name));
    fs::create_dir_all(src.join("sub")).expect("directories");
    for (name, content) in [("a", "a"), ("B3SUMS", LIST), ("sub/trace", TRACE)] {
        fs::write(src.join(name), content).expect("a file");
    }
    // A list replaces a name, so that its other names are files like any others.
    fs::hard_link(src.join("B3SUMS"), src.join("old")).expect("a link");
    let (list, trace, contents) = (src.join("B3SUMS"), src.join("sub/trace"), src.join(""));
    for _ in 0..2 {
        let sync = arguments!["sync", "-vH", "--delete", "--checksums", list, "--qlog", trace, contents, dst];
        let stderr = downpour(sync).end().expect(0).stderr;
        for name in ["B3SUMS", "sub/trace"] {
            assert!(stderr.contains(&format!("{name} is written by this command: skipped")), "{stderr}");
            assert!(!dst.join(name).exists());
        }
        let listed = fs::read_to_string(&list).expect("a list");
        assert!(listed.contains("  a\n") && listed.contains("  old\n") && listed.lines().count() == 2, "{listed}");
        assert_eq!(fs::read_to_string(dst.join("old")).expect("a file"), LIST);
    }
    // They are written during the copy, and would otherwise be deleted at the target or taken for backups.
    fs::write(local.path().join("outside"), LIST).expect("a list");
    for (list, trace) in [("only there/list", "a~"), ("link", "trace"), ("new", "only there/trace")] {
        fs::create_dir_all(dst.join("only there")).expect("a directory");
        fs::remove_file(dst.join("link")).ok();
        symlink("../outside", dst.join("link")).expect("a link");
        fs::write(dst.join(trace), TRACE).expect("a file");
        fs::write(dst.join("a"), "other").expect("a file");
        fs::write(dst.join("stranger"), "").expect("a file");
        let backup = if trace == "a~" { "--backup" } else { "-v" };
        let (list, trace) = (dst.join(list), dst.join(trace));
        let sync = arguments!["sync", backup, "--delete", "--checksums", list, "--qlog", trace, contents, dst];
        downpour(sync).end().expect(0);
        assert!(fs::read_to_string(&list).expect("a list").contains("  a\n"));
        assert_eq!(list.is_symlink(), list.ends_with("link"));
        assert!(fs::read_to_string(&trace).expect("a trace").len() > 100);
        assert!(!dst.join("stranger").exists());
        if backup == "--backup" {
            assert_eq!(fs::read_to_string(dst.join("a~~")).expect("a backup"), "other");
        }
    }
    // On a case-sensitive file system this is another file.
    fs::write(dst.join("A"), LIST).expect("a list");
    downpour(arguments!["sync", "--checksums", dst.join("A"), contents, dst]).end().expect(0);
    assert_eq!(fs::read_to_string(dst.join("a")).expect("a file"), "a");
}
