//! What is written about a transfer, the list of checksums and the trace: it takes the place of no source and no target.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use tempfile::{TempDir, tempdir};

use crate::far::Far;
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

/// A directory with `src/x`, `dst/x`, `link`, which leads to `dst`, and `shortcut`, which leads to `src/x`; all files have
/// this content.
fn place(content: &str) -> TempDir {
    let here = tempdir().expect("a directory");
    for name in ["src", "dst"] {
        fs::create_dir(here.path().join(name)).expect("a directory");
        fs::write(here.path().join(name).join("x"), content).expect("a file");
    }
    symlink("dst", here.path().join("link")).expect("a link");
    symlink("src/x", here.path().join("shortcut")).expect("a link");
    here
}

#[test]
fn a_source_or_target_is_never_overwritten_by_what_is_written_about_it() {
    let far = Far::new();
    fs::create_dir(far.there("src")).expect("a directory");
    fs::write(far.there("src/x"), "far").expect("a file");
    for (option, content) in [("--checksums", "plain"), ("--checksums", LIST), ("--qlog", "plain")] {
        let here = place(content);
        let before = contents(here.path());
        let at = |name: &str| here.path().join(name).into_os_string();
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
                let output = here.path().join(output);
                let arguments = arguments!["-r", option, output, source, target];
                let ended = far.run("cp", arguments.into_iter().chain(more.iter().map(OsStr::new)));
                let what = if content == LIST { "is part of the transfer" } else { "choose another file" };
                ended.expect_line(2, what);
                assert_eq!(contents(here.path()), before, "{option} {output:?} {source:?} {target:?} {more:?}");
            }
        }
        let named = downpour(arguments!["cp", option, at("src/x"), at("shortcut"), at("dst/x")]).end();
        named.expect_line(2, "is part of the transfer");
    }
    let here = place("plain");
    let out = here.path().join("out");
    let x = here.path().join("src/x");
    downpour(arguments!["cp", "--checksums", out, x, out]).end().expect_line(2, "choose another file");
    assert!(!out.exists());
    let copy = here.path().join("copy");
    let both = downpour(arguments!["cp", "--qlog", out, "--checksums", out, x, copy]).end();
    both.expect_line(2, "the trace is written there; choose another file");
    assert!(!copy.exists());
}

/// Whether or not it is one of the transfer's: a word may have been forgotten.
#[test]
fn only_a_list_is_replaced_by_a_list_and_only_a_trace_is_continued() {
    let (here, far) = (place("plain"), Far::new());
    fs::create_dir(far.there("src")).expect("a directory");
    let [src, dst, listed] = ["src/", "dst", "listed"].map(|name| here.path().join(name));
    fs::write(&listed, "x\n").expect("a file");
    for name in ["x", "shared"] {
        fs::write(far.there("src").join(name), name).expect("a file");
    }
    fs::hard_link(dst.join("x"), here.path().join("second")).expect("a link");
    fs::copy(src.join("x"), dst.join("x")).expect("a file");
    let before = (contents(here.path()), contents(&far.home()));
    let wrong = [src.join("x"), dst.join("x"), here.path().join("second"), listed.clone(), far.there("src/shared")];
    for option in ["--checksums", "--qlog"] {
        for output in &wrong {
            for (command, from) in
                [("sync", src.as_os_str()), ("sync", OsStr::new("far:src/")), ("cp", src.as_os_str())]
            {
                let ended = far.run(command, arguments!["-r", option, output, "--files-from", listed, from, dst]);
                ended.expect_line(2, "cannot go to");
                assert_eq!((contents(here.path()), contents(&far.home())), before, "{option} {output:?} {command}");
            }
        }
    }
    let [list, trace] = ["list", "trace"].map(|name| here.path().join(name));
    for size in [0, LIST.len()] {
        fs::write(&list, &LIST[..size]).expect("a file");
        fs::write(&trace, &TRACE[..size.min(TRACE.len())]).expect("a file");
        downpour(arguments!["sync", "--checksums", list, "--qlog", trace, src, dst]).end().expect(0);
        assert!(fs::read_to_string(&list).expect("a list").ends_with("  x\n"));
        assert!(fs::read_to_string(&trace).expect("a trace").starts_with('\x1e'));
    }
}

/// What the other side has put there is not seen before: the two may share a disk.
#[test]
fn a_list_does_not_replace_what_the_other_side_has_put_there() {
    let (here, far) = (tempdir().expect("a directory"), Far::new());
    let (source, list) = (here.path().join("file"), far.there("file"));
    fs::write(&source, "new").expect("a file");
    for is_there in [false, true] {
        fs::remove_file(&list).ok();
        if is_there {
            fs::write(&list, LIST).expect("a list");
        }
        let ended = far.run("cp", arguments!["--checksums", list, source, "far:"]);
        ended.expect_line(7, "another file has got this name since the transfer began");
        tree::assert_same(&source, &list);
    }
}

#[test]
fn what_is_written_about_a_transfer_is_left_out_of_it_and_kept_at_its_target() {
    let here = tempdir().expect("a directory");
    let [src, dst] = ["src", "dst"].map(|name| here.path().join(name));
    fs::create_dir_all(src.join("sub")).expect("directories");
    for (name, content) in [("a", "a"), ("B3SUMS", LIST), ("sub/trace", TRACE)] {
        fs::write(src.join(name), content).expect("a file");
    }
    // A list replaces a name, so that its other names are files like any others.
    fs::hard_link(src.join("B3SUMS"), src.join("old")).expect("a link");
    let (list, trace, contents) = (src.join("B3SUMS"), src.join("sub/trace"), src.join(""));
    for _ in 0..2 {
        let sync = arguments!["sync", "-vH", "--delete", "--checksums", list, "--qlog", trace, contents, dst];
        let said = downpour(sync).end().expect(0).stderr;
        for name in ["B3SUMS", "sub/trace"] {
            assert!(said.contains(&format!("{name} is written by this command, and left out")), "{said}");
            assert!(!dst.join(name).exists());
        }
        let listed = fs::read_to_string(&list).expect("a list");
        assert!(listed.contains("  a\n") && listed.contains("  old\n") && listed.lines().count() == 2, "{listed}");
        assert_eq!(fs::read_to_string(dst.join("old")).expect("a file"), LIST);
    }
    // They are written while the target is made the same, and would be deleted or taken for backups there.
    fs::write(here.path().join("elsewhere"), LIST).expect("a list");
    for (list, trace) in [("only there/list", "a~"), ("link", "trace"), ("new", "only there/trace")] {
        fs::create_dir_all(dst.join("only there")).expect("a directory");
        fs::remove_file(dst.join("link")).ok();
        symlink("../elsewhere", dst.join("link")).expect("a link");
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
    // Where names do not fold, this is another one.
    fs::write(dst.join("A"), LIST).expect("a list");
    downpour(arguments!["sync", "--checksums", dst.join("A"), contents, dst]).end().expect(0);
    assert_eq!(fs::read_to_string(dst.join("a")).expect("a file"), "a");
}
