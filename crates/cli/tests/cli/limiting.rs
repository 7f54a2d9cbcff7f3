//! `downpour remote --only`: a key that is limited to one folder by a forced command in `authorized_keys`.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use tempfile::tempdir;

use crate::far::Far;
use crate::program::{arguments, json};
use crate::tree;

/// Creates a machine on which every login runs `remote --only` with these options in the folder `limit`, whatever it
/// requests. The folder contains links that lead out of it, and `secret` lies next to it.
fn limited(options: &str) -> Far {
    let program = env!("CARGO_BIN_EXE_downpour");
    let far = Far::with_login(&format!(r#"exec {program} remote --only "$FAR_HOME/limit" {options}"#));
    for folder in ["limit/folder", "secret"] {
        fs::create_dir_all(far.there(folder)).expect("folders");
    }
    tree::file(&far.there("limit/file"), 1000);
    tree::file(&far.there("secret/key"), 100);
    symlink("../secret", far.there("limit/out")).expect("a link");
    symlink("../secret/key", far.there("limit/out-file")).expect("a link");
    symlink(far.there("secret"), far.there("limit/absolute")).expect("a link");
    symlink("folder", far.there("limit/inside")).expect("a link");
    far
}

/// Returns paths that lead out of `limit`.
fn ways_out(far: &Far) -> Vec<String> {
    let mut ways: Vec<String> = [
        "..",
        "../",
        "../new",
        "../secret",
        "../secret/key",
        "folder/../../new",
        "~/../new",
        "/",
        "/new",
        "out",
        "out/",
        "out/key",
        "out/new",
        "inside/../../new",
        "absolute",
        "absolute/new",
    ]
    .map(str::to_owned)
    .to_vec();
    ways.push(far.there("secret/new").display().to_string());
    ways.push(far.there("limit-beside").display().to_string());
    ways
}

/// Panics if anything outside of `limit` has changed.
#[track_caller]
fn assert_outside_untouched(far: &Far) {
    assert_eq!(tree::names(&far.home()), [Path::new("limit"), Path::new("secret")]);
    assert_eq!(tree::names(&far.there("secret")), [Path::new("key")]);
    let key = tempdir().expect("a folder");
    tree::assert_same(&far.there("secret/key"), &tree::file(&key.path().join("key"), 100));
    for (link, target) in [("out", "../secret"), ("out-file", "../secret/key"), ("inside", "folder")] {
        let found = fs::read_link(far.there("limit").join(link)).expect("a link");
        assert_eq!(found, Path::new(target));
    }
}

#[test]
fn no_target_leads_out() {
    let (here, far) = (tempdir().expect("a folder"), limited(""));
    let (file, folder) = (tree::file(&here.path().join("new"), 10), tree::folder(&here.path().join("photos")));
    for way in ways_out(&far) {
        let target = format!("far:{way}");
        for arguments in [
            arguments!["cp", "--via=ssh", file, target].to_vec(),
            arguments!["cp", "-r", "--via=ssh", folder.join(""), target].to_vec(),
            arguments!["sync", "--delete", "--via=ssh", folder, target].to_vec(),
        ] {
            far.run(arguments[0].to_str().expect("text"), &arguments[1..]).expect_line(7, "limited to one folder");
        }
        assert_outside_untouched(&far);
    }
    // A link that is to be replaced is not followed.
    far.run("cp", arguments!["--via=ssh", file, "far:out-file"]).expect_line(7, "limited to one folder");
    assert_outside_untouched(&far);
}

#[test]
fn no_source_leads_out() {
    let (here, far) = (tempdir().expect("a folder"), limited(""));
    let into = here.path().join("into");
    let patterns = ["../*", "out/*", "/etc/host*", "out-file"].map(str::to_owned);
    for way in ways_out(&far).into_iter().chain(patterns) {
        let ended = far.run("cp", arguments!["-r", "--via=ssh", format!("far:{way}"), into]);
        assert!(way.contains("key") || !ended.stderr.contains("key"), "{way} tells of others: {}", ended.stderr);
        ended.expect_line(7, "limited to one folder");
        tree::assert_untouched(&into);
    }
    // A link within a sent folder is sent as a link.
    far.run("cp", arguments!["-r", "--via=ssh", "far:", into]).expect(0);
    assert!(into.join("out").is_symlink() && into.join("out-file").is_symlink());
    far.run("cp", arguments!["-r", "--links=follow", "--via=ssh", "far:", into]).expect_line(7, "--links follow");
}

#[test]
fn honest_use_is_not_refused() {
    let (here, far) = (tempdir().expect("a folder"), limited(""));
    let (file, folder) = (tree::file(&here.path().join("new"), 10), tree::folder(&here.path().join("photos")));
    let absolute = far.there("limit").canonicalize().expect("a path").join("absolute name");
    for (target, name) in [
        ("far:".to_owned(), "new"),
        ("far:a".to_owned(), "a"),
        ("far:folder".to_owned(), "folder/new"),
        ("far:inside/b".to_owned(), "folder/b"),
        ("far:inside/".to_owned(), "folder/new"),
        ("far:~/c".to_owned(), "c"),
        (format!("far:{}", absolute.display()), "absolute name"),
        ("far:folder/../d".to_owned(), "d"),
    ] {
        for via in ["--via=ssh", "--via=udp"] {
            let name = far.there("limit").join(name);
            let _ = fs::remove_file(&name);
            far.run("cp", arguments![via, file, target]).expect(0);
            tree::assert_same(&file, &name);
        }
    }
    far.run("cp", arguments!["-rp", "--via=ssh", folder, "far:named"]).expect(0);
    tree::assert_same(&folder, &far.there("limit/named"));
    tree::file(&far.there("limit/named/old"), 10);
    far.run("sync", arguments!["--delete", "--via=ssh", folder.join(""), "far:named/"]).expect(0);
    tree::assert_same(&folder, &far.there("limit/named"));
    far.run("verify", arguments!["--via=ssh", folder, "far:named"]).expect(0);
    far.run("verify", arguments!["--via=ssh", "far:named", folder]).expect(0);
    let (back, wild) = (here.path().join("back"), here.path().join("wild"));
    far.run("cp", arguments!["-rp", "--via=ssh", "far:named", back]).expect(0);
    tree::assert_same(&folder, &back);
    far.run("cp", arguments!["--via=ssh", "far:fi*", wild]).expect(0);
    tree::assert_same(&far.there("limit/file"), &wild);
    let absent = far.run("cp", arguments!["--via=ssh", "far:nothing", back]).expect(3);
    assert!(absent.stderr.contains("nothing does not exist") && !absent.stderr.contains("/proc"), "{}", absent.stderr);
    let refused = far.run("cp", arguments!["--existing=refuse", "--via=ssh", file, "far:a"]).expect(1);
    assert!(!refused.stderr.contains("/proc"), "{}", refused.stderr);
    assert_outside_untouched(&far);
}

#[test]
fn the_home_of_a_limited_login_is_its_folder() {
    let (here, far) = (tempdir().expect("a folder"), limited(""));
    // As of any home: `~` has the name of the folder, the others stand for its contents.
    for (command, path, name) in [
        (&["cp", "-r"][..], "~", "limit"),
        (&["sync"], "~", "limit"),
        (&["cp", "-r"], "~/", ""),
        (&["sync"], "~/.", ""),
        (&["cp", "-r"], "", ""),
    ] {
        let into = here.path().join("into");
        fs::create_dir(&into).expect("a folder");
        let all = command[1..].iter().map(|option| std::ffi::OsString::from(*option));
        let all = all.chain(["--via=ssh".into(), format!("far:{path}").into(), into.clone().into_os_string()]);
        far.run(command[0], all.collect::<Vec<_>>()).expect(0);
        assert_eq!(tree::names(&into.join(name)), tree::names(&far.there("limit")), "{command:?} {path}");
        fs::remove_dir_all(&into).expect("a folder");
    }
    let file = tree::file(&here.path().join("new"), 10);
    for target in ["far:~", "far:~/"] {
        far.run("cp", arguments!["--via=ssh", file, target]).expect(0);
        tree::assert_same(&file, &far.there("limit/new"));
        fs::remove_file(far.there("limit/new")).expect("a file");
    }
    assert_outside_untouched(&far);
}

#[test]
fn a_key_may_be_for_one_direction() {
    let here = tempdir().expect("a folder");
    let (file, into) = (tree::file(&here.path().join("new"), 10), here.path().join("into"));
    let far = limited("--write-only");
    far.run("cp", arguments!["--via=ssh", file, "far:"]).expect(0);
    far.run("cp", arguments!["--via=ssh", "far:file", into]).expect_line(7, "it only receives");
    assert!(!into.exists());
    let far = limited("--read-only");
    far.run("cp", arguments!["--via=ssh", file, "far:"]).expect_line(7, "it only sends");
    far.run("sync", arguments!["--delete", "--via=ssh", here.path(), "far:"]).expect_line(7, "it only sends");
    assert!(!far.there("limit/new").exists() && far.there("limit/file").exists());
    far.run("cp", arguments!["-n", "--via=ssh", file, "far:"]).expect(0);
    far.run("cp", arguments!["--via=ssh", "far:file", into]).expect(0);
    tree::assert_same(&far.there("limit/file"), &into);
    far.run("verify", arguments!["--via=ssh", into, "far:file"]).expect(0);
    assert_outside_untouched(&far);
}

/// Which chunks of a file are wanted tells what it contains.
#[test]
fn a_key_that_only_receives_compares_no_contents() {
    let here = tempdir().expect("a folder");
    for (access, compares) in [("--write-only", false), ("", true)] {
        let far = limited(access);
        let (new, old) = (here.path().join("image"), far.there("limit/image"));
        fs::write(&new, vec![7; 300_000]).expect("a file");
        fs::write(&old, vec![7; 300_001]).expect("a file");
        let ended = far.run("cp", arguments!["--json", "--via=ssh", new, "far:"]).expect(0);
        let summary = json(&ended.stdout).pop().expect("a summary");
        let found = summary["bytes_present"].as_u64().expect("a number");
        assert_eq!(found > 0, compares, "{summary}");
        tree::assert_same(&new, &old);
    }
}

#[test]
fn commands_and_folders_outside_are_refused_to_pipe_and_doctor() {
    let far = limited("");
    far.run("pipe", ["--via=ssh", "far", "touch ../new"]).expect_line(7, "it runs no commands");
    for way in ["..", "/etc", "out"] {
        far.run("doctor", ["far", way]).expect_line(7, "limited to one folder");
    }
    assert_outside_untouched(&far);
}

#[test]
fn a_limit_that_cannot_be_kept_is_told() {
    let program = env!("CARGO_BIN_EXE_downpour");
    let here = tempdir().expect("a folder");
    let file = tree::file(&here.path().join("new"), 10);
    let far = Far::with_login(&format!("exec {program} remote --only /no/such/folder"));
    far.run("cp", arguments!["--via=ssh", file, "far:"]).expect_line(1, "/no/such/folder: No such file");
    let far = Far::with_login(&format!("exec {program} remote --read-only"));
    far.run("cp", arguments!["--via=ssh", file, "far:"]).expect(5);
    assert!(!far.there("new").exists());
}
