//! What is written about a transfer, the list of checksums and the trace: it takes the place of no source and no target.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use tempfile::tempdir;

use crate::far::Far;
use crate::program::{arguments, downpour};
use crate::tree;

/// Returns every file beneath a folder with its content.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = tree::files(folder).into_iter().map(|name| folder.join(name)).filter(|path| path.is_file());
    files.map(|path| (path.clone(), fs::read(path).expect("a file"))).collect()
}

#[test]
fn a_source_or_target_is_never_overwritten_by_what_is_written_about_it() {
    let (here, far) = (tempdir().expect("a folder"), Far::new());
    let [src, dst] = ["src", "dst"].map(|name| here.path().join(name));
    for folder in [&src, &dst, &far.there("src")] {
        fs::create_dir(folder).expect("a folder");
        fs::write(folder.join("x"), folder.as_os_str().as_encoded_bytes()).expect("a file");
    }
    fs::create_dir(src.join("sub")).expect("a folder");
    fs::write(src.join("sub/y"), "y").expect("a file");
    symlink("dst", here.path().join("link")).expect("a link");
    symlink("src/x", here.path().join("shortcut")).expect("a link");
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
    for (list, source, target) in &cases {
        for more in [&[][..], &["--remove-source-files"]] {
            let list = here.path().join(list);
            let arguments = arguments!["-r", "--checksums", list, source, target];
            let ended = far.run("cp", arguments.into_iter().chain(more.iter().map(OsStr::new)));
            ended.expect_line(2, "is part of the transfer, and the list of checksums would overwrite it");
            assert_eq!(contents(here.path()), before, "{list:?} {source:?} {target:?} {more:?}");
        }
    }
    downpour(arguments!["cp", "--checksums", at("src/x"), at("shortcut"), at("dst/x")])
        .end()
        .expect_line(2, "is part of the transfer");
    // A file that is to be made.
    let out = here.path().join("out");
    downpour(arguments!["cp", "--checksums", out, src.join("x"), out]).end().expect_line(2, "name another file");
    assert!(!out.exists());
    // Where a trace is appended, what was there stays before it.
    let said = "is part of the transfer, and the trace would overwrite it";
    downpour(arguments!["cp", "--qlog", src.join("x"), src.join("x"), out]).end().expect_line(2, said);
    downpour(arguments!["cp", "--qlog", dst.join("x"), src.join("x"), dst.join("x")]).end().expect_line(2, said);
    assert_eq!(contents(here.path()), before);
    let (x, copy) = (src.join("x"), here.path().join("copy"));
    let both = downpour(arguments!["cp", "--qlog", out, "--checksums", out, x, copy]).end();
    both.expect_line(7, "the trace is written there: name another file");
    assert!(!copy.exists());
}

/// What the other side has put there is not seen before: the two may share a disk.
#[test]
fn a_list_does_not_replace_what_the_other_side_has_put_there() {
    let (here, far) = (tempdir().expect("a folder"), Far::new());
    let (source, list) = (tree::file(&here.path().join("file"), 1000), far.there("file"));
    for _ in 0..2 {
        fs::remove_file(&list).ok();
        let ended = far.run("cp", arguments!["--checksums", list, source, "far:"]);
        ended.expect_line(7, "another file has got this name since the transfer began");
        tree::assert_same(&source, &list);
    }
}

#[test]
fn what_is_written_about_a_transfer_is_left_out_of_it_and_kept_at_its_target() {
    let here = tempdir().expect("a folder");
    let [src, dst] = ["src", "dst"].map(|name| here.path().join(name));
    fs::create_dir_all(src.join("sub")).expect("folders");
    for name in ["a", "B3SUMS", "sub/trace"] {
        fs::write(src.join(name), name).expect("a file");
    }
    let (list, trace) = (src.join("B3SUMS"), src.join("sub/trace"));
    for _ in 0..2 {
        let contents = src.join("");
        let sync = arguments!["sync", "-v", "--delete", "--checksums", list, "--qlog", trace, contents, dst];
        let said = downpour(sync).end().expect(0).stderr;
        for name in ["B3SUMS", "sub/trace"] {
            assert!(said.contains(&format!("{name} is written by this command, and left out")), "{said}");
            assert!(!dst.join(name).exists());
        }
        let listed = fs::read_to_string(&list).expect("a list");
        assert!(listed.ends_with("  a\n") && listed.lines().count() == 1, "{listed}");
    }
    // The trace is written while the target is made the same, and would be deleted there.
    let trace = dst.join("trace");
    fs::write(&trace, "before\n").expect("a file");
    fs::write(dst.join("other"), "").expect("a file");
    downpour(arguments!["sync", "--delete", "--qlog", trace, src.join(""), dst]).end().expect(0);
    assert!(fs::read_to_string(&trace).expect("a trace").len() > 100);
    assert!(!dst.join("other").exists());
}
