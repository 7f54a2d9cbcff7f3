//! An older remote downpour, whose answer does not list the restrictions that it enforces.

use std::fs;

use tempfile::tempdir;

use crate::fake_ssh::FakeHost;
use crate::program::arguments;
use crate::tree;

#[test]
fn old_remote_unsupported_options_refused() {
    let far = FakeHost::with_login(r#"sh -c "$command" | sed -u 's/ enforces=[^ ]*//'"#);
    let local = tempdir().expect("a directory");
    let source = tree::directory(&local.path().join("photos"));
    fs::create_dir(far.remote("photos")).expect("a directory");
    fs::write(far.remote("photos/old"), "old").expect("a file");
    let before = tree::names(&far.home());
    for (options, expected) in [
        (&["--safe-links"][..], "it does not skip unsafe links; update it, or omit --safe-links"),
        (
            &["--delete", "--force-empty", "--max-delete", "9"],
            "it does not limit deletions; update it, or omit --max-delete",
        ),
        (&["--delete"], "deletes everything if the source is empty; update it, or use --force-empty"),
        (&["-a"], "it does not support owners, groups, ACLs"),
        (&["-n", "-X"], "it does not support owners, groups, ACLs"),
        (
            &["--chmod=go-rwx"],
            "it does not support all options of this copy; update it, or omit the options that it lacks",
        ),
        (
            &["--link-dest=../x"],
            "it does not support all options of this copy; update it, or omit the options that it lacks",
        ),
        (&["-b"], "it does not keep backups; update it, or omit -b and --backup-dir"),
        (&["-n", "--remove-source-files"], "it does not remove sources; update it, or omit --remove-source-files"),
    ] {
        let ended = far.run("sync", options.iter().map(AsRef::as_ref).chain(arguments![source, "far:"]));
        ended.expect_line(1, expected);
        assert_eq!(tree::names(&far.home()), before, "{options:?}");
    }
    far.run("sync", arguments!["-n", "--delete", "--safe-links", source, "far:"]).expect(0);
    assert_eq!(tree::names(&far.home()), before, "a dry run");
    far.run("sync", arguments!["--delete", "--force-empty", source, "far:"]).expect(0);
    tree::assert_same(&source, &far.remote("photos"));

    // As the sender, too.
    let target = local.path().join("target");
    for (option, expected) in [
        ("-x", "it does not stay on one file system"),
        ("-A", "it does not support owners, groups, ACLs"),
        ("--remove-source-files", "it does not remove sources"),
    ] {
        let ended = far.run("sync", arguments![option, "far:photos/", &target]);
        ended.expect_line(1, expected);
        assert!(!target.exists(), "{option}");
    }
    far.run("sync", arguments!["far:photos/", &target]).expect(0);
}

#[test]
fn old_remote_unreadable_answer_explained() {
    let far = FakeHost::with_login("echo DOWNPOUR1 downpour2xyz; cat >/dev/null");
    let local = tempdir().expect("a directory");
    let source = tree::file(&local.path().join("file"), 10);
    let ended = far.run("cp", arguments![source, "far:"]);
    let ended = ended.expect_line(1, "no common protocol version; update the older program");
    assert!(!ended.stderr.contains("ticket"), "{}", ended.stderr);
}
