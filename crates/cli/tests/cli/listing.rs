//! `--files-from`: lists that people and programs write.

use std::fs;
use std::path::PathBuf;

use tempfile::tempdir;

use crate::fake_ssh::FakeHost;
use crate::program::{arguments, downpour};
use crate::tree;

fn paths(names: &[&str]) -> Vec<PathBuf> {
    names.iter().map(PathBuf::from).collect()
}

#[test]
fn files_from_relative_with_and_without_slash() {
    let (far, local) = (FakeHost::new(), tempdir().expect("a directory"));
    let list = local.path().join("list");
    fs::write(&list, "a\nsub/b\n").expect("a list");
    for base in [local.path().join("src"), far.remote("src")] {
        fs::create_dir_all(base.join("sub")).expect("directories");
        for name in ["a", "sub/b", "c"] {
            fs::write(base.join(name), name).expect("a file");
        }
    }
    for command in ["sync", "cp"] {
        for (number, slash) in ["", "/", "/."].into_iter().enumerate() {
            let source = format!("{}{slash}", local.path().join("src").display());
            let remote = format!("far:src{slash}");
            let name = format!("{command}-{number}");
            let [within, down] = ["within", "down"].map(|way| local.path().join(format!("{way}-{name}")));
            downpour(arguments![command, "--files-from", list, source, within]).end().expect(0);
            far.run(command, arguments!["--files-from", list, source, format!("far:{name}")]).expect(0);
            far.run(command, arguments!["--files-from", list, remote, down]).expect(0);
            for target in [&within, &far.remote(&name), &down] {
                assert_eq!(tree::names(target), paths(&["a", "sub"]), "{command} {slash} {}", target.display());
                assert_eq!(tree::names(&target.join("sub")), paths(&["b"]));
            }
            // An existing target makes no difference.
            downpour(arguments![command, "--files-from", list, source, within]).end().expect(0);
            assert_eq!(tree::names(&within), paths(&["a", "sub"]));
        }
    }
}

#[test]
fn files_from_skips_comments_and_crlf() {
    let local = tempdir().expect("a directory");
    let source = local.path().join("src");
    fs::create_dir(&source).expect("a directory");
    for name in ["a", "#b", ";c", "d e"] {
        fs::write(source.join(name), name).expect("a file");
    }
    let list = local.path().join("list");
    let copied = |text: &str, more: &[&str]| {
        fs::write(&list, text).expect("a list");
        let into = tempdir().expect("a directory");
        let target = into.path().to_owned();
        let command = arguments!["cp", "--files-from", list, source, target];
        downpour(command.into_iter().chain(more.iter().map(AsRef::as_ref))).end().expect(0);
        tree::names(into.path())
    };
    assert_eq!(copied("# mine\r\n\r\n;b\r\na\r\nd e\r\n", &[]), paths(&["a", "d e"]));
    assert_eq!(copied("./#b\n./;c", &[]), paths(&["#b", ";c"]));
    assert_eq!(copied("#b\0;c\0a\0", &["-0"]), paths(&["#b", ";c", "a"]));
}

#[test]
fn files_from_directory_made_empty_with_notice() {
    let (far, local) = (FakeHost::new(), tempdir().expect("a directory"));
    let list = local.path().join("list");
    fs::write(&list, "sub\nempty\n").expect("a list");
    for base in [local.path().join("src"), far.remote("src")] {
        fs::create_dir_all(base.join("sub/deep")).expect("directories");
        fs::create_dir(base.join("empty")).expect("a directory");
        fs::write(base.join("sub/file"), "x").expect("a file");
    }
    let source = local.path().join("src");
    let [within, down] = ["within", "down"].map(|way| local.path().join(way));
    for (ended, target) in [
        (downpour(arguments!["cp", "--files-from", list, source, within]).end(), within.clone()),
        (far.run("cp", arguments!["--files-from", list, source, "far:up"]), far.remote("up")),
        (far.run("cp", arguments!["--files-from", list, "far:src", down]), down.clone()),
    ] {
        let stderr = ended.expect(0).stderr;
        assert_eq!(tree::names(&target), paths(&["empty", "sub"]));
        assert!(tree::names(&target.join("sub")).is_empty());
        assert!(stderr.contains("sub is a directory: contents skipped; use -r"), "{stderr}");
        assert!(!stderr.contains("empty"), "{stderr}");
    }
    let stderr = downpour(arguments!["cp", "-r", "--files-from", list, source, within]).end().expect(0).stderr;
    assert!(!stderr.contains("skipped: "), "{stderr}");
    tree::assert_same(&source, &within);
    fs::write(&list, ".\n").expect("a list");
    let stderr =
        downpour(arguments!["cp", "--files-from", list, source, local.path().join("all")]).end().expect(0).stderr;
    assert!(stderr.contains(". is a directory: contents skipped; use -r"), "{stderr}");
}
