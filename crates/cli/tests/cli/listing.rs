//! `--files-from`: lists that people and programs write.

use std::fs;
use std::path::PathBuf;

use tempfile::tempdir;

use crate::far::Far;
use crate::program::{arguments, downpour};
use crate::tree;

fn paths(names: &[&str]) -> Vec<PathBuf> {
    names.iter().map(PathBuf::from).collect()
}

#[test]
fn names_are_relative_to_the_source_and_to_the_target_with_and_without_a_slash() {
    let (far, here) = (Far::new(), tempdir().expect("a directory"));
    let list = here.path().join("list");
    fs::write(&list, "a\nsub/b\n").expect("a list");
    for base in [here.path().join("src"), far.there("src")] {
        fs::create_dir_all(base.join("sub")).expect("directories");
        for name in ["a", "sub/b", "c"] {
            fs::write(base.join(name), name).expect("a file");
        }
    }
    for command in ["sync", "cp"] {
        for (number, slash) in ["", "/", "/."].into_iter().enumerate() {
            let local = format!("{}{slash}", here.path().join("src").display());
            let there = format!("far:src{slash}");
            let name = format!("{command}-{number}");
            let [within, down] = ["within", "down"].map(|way| here.path().join(format!("{way}-{name}")));
            downpour(arguments![command, "--files-from", list, local, within]).end().expect(0);
            far.run(command, arguments!["--files-from", list, local, format!("far:{name}")]).expect(0);
            far.run(command, arguments!["--files-from", list, there, down]).expect(0);
            for target in [&within, &far.there(&name), &down] {
                assert_eq!(tree::names(target), paths(&["a", "sub"]), "{command} {slash} {}", target.display());
                assert_eq!(tree::names(&target.join("sub")), paths(&["b"]));
            }
            // What stands there already changes nothing about that.
            downpour(arguments![command, "--files-from", list, local, within]).end().expect(0);
            assert_eq!(tree::names(&within), paths(&["a", "sub"]));
        }
    }
}

#[test]
fn comments_and_ends_of_lines_of_any_system_are_no_names() {
    let here = tempdir().expect("a directory");
    let source = here.path().join("src");
    fs::create_dir(&source).expect("a directory");
    for name in ["a", "#b", ";c", "d e"] {
        fs::write(source.join(name), name).expect("a file");
    }
    let list = here.path().join("list");
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
fn a_listed_directory_is_made_and_that_it_stays_empty_is_said() {
    let (far, here) = (Far::new(), tempdir().expect("a directory"));
    let list = here.path().join("list");
    fs::write(&list, "sub\nempty\n").expect("a list");
    for base in [here.path().join("src"), far.there("src")] {
        fs::create_dir_all(base.join("sub/deep")).expect("directories");
        fs::create_dir(base.join("empty")).expect("a directory");
        fs::write(base.join("sub/file"), "x").expect("a file");
    }
    let local = here.path().join("src");
    let [within, down] = ["within", "down"].map(|way| here.path().join(way));
    for (ended, target) in [
        (downpour(arguments!["cp", "--files-from", list, local, within]).end(), within.clone()),
        (far.run("cp", arguments!["--files-from", list, local, "far:up"]), far.there("up")),
        (far.run("cp", arguments!["--files-from", list, "far:src", down]), down.clone()),
    ] {
        let said = ended.expect(0).stderr;
        assert_eq!(tree::names(&target), paths(&["empty", "sub"]));
        assert!(tree::names(&target.join("sub")).is_empty());
        assert!(said.contains("sub is a directory: its contents are left out; use -r"), "{said}");
        assert!(!said.contains("empty"), "{said}");
    }
    let said = downpour(arguments!["cp", "-r", "--files-from", list, local, within]).end().expect(0).stderr;
    assert!(!said.contains("skipped: "), "{said}");
    tree::assert_same(&local, &within);
    fs::write(&list, ".\n").expect("a list");
    let said = downpour(arguments!["cp", "--files-from", list, local, here.path().join("all")]).end().expect(0).stderr;
    assert!(said.contains(". is a directory: its contents are left out; use -r"), "{said}");
}
