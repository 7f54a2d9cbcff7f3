//! A remote downpour that is older than this one. It differs in its answer: it does not say which restrictions it
//! enforces.

use std::fs;

use tempfile::tempdir;

use crate::far::Far;
use crate::program::arguments;
use crate::tree;

#[test]
fn what_an_older_remote_would_ignore_is_not_requested_of_it() {
    let far = Far::with_login(r#"sh -c "$command" | sed -u 's/ enforces=[^ ]*//'"#);
    let here = tempdir().expect("a directory");
    let source = tree::directory(&here.path().join("photos"));
    fs::create_dir(far.there("photos")).expect("a directory");
    fs::write(far.there("photos/old"), "old").expect("a file");
    let before = tree::names(&far.home());
    for (options, said) in [
        (&["--safe-links"][..], "does not leave out links that lead out of the tree; update it, or omit --safe-links"),
        (
            &["--delete", "--force-empty", "--max-delete", "9"],
            "does not know the limit of deletions; update it, or omit --max-delete",
        ),
        (&["--delete"], "deletes everything if the source is empty; update it, or use --force-empty"),
        (&["-a"], "knows nothing of owners, groups, ACLs"),
        (&["-n", "-X"], "knows nothing of owners, groups, ACLs"),
        (&["--chmod=go-rwx"], "does not know all options of this copy; update it, or omit the options that it lacks"),
        (&["--link-dest=../x"], "does not know all options of this copy; update it, or omit the options that it lacks"),
        (&["-b"], "makes no backups; update it, or omit -b and --backup-dir"),
        (&["-n", "--remove-source-files"], "does not remove sources; update it, or omit --remove-source-files"),
    ] {
        let ended = far.run("sync", options.iter().map(AsRef::as_ref).chain(arguments![source, "far:"]));
        ended.expect_line(1, said);
        assert_eq!(tree::names(&far.home()), before, "{options:?}");
    }
    far.run("sync", arguments!["-n", "--delete", "--safe-links", source, "far:"]).expect(0);
    assert_eq!(tree::names(&far.home()), before, "a dry run");
    far.run("sync", arguments!["--delete", "--force-empty", source, "far:"]).expect(0);
    tree::assert_same(&source, &far.there("photos"));

    // As the sender, too.
    let target = here.path().join("target");
    for (option, said) in [
        ("-x", "does not stop at other file systems"),
        ("-A", "knows nothing of owners, groups, ACLs"),
        ("--remove-source-files", "does not remove sources"),
    ] {
        let ended = far.run("sync", arguments![option, "far:photos/", &target]);
        ended.expect_line(1, said);
        assert!(!target.exists(), "{option}");
    }
    far.run("sync", arguments!["far:photos/", &target]).expect(0);
}

#[test]
fn an_answer_that_cannot_be_read_is_no_matter_of_tickets() {
    let far = Far::with_login("echo DOWNPOUR1 downpour2xyz; cat >/dev/null");
    let here = tempdir().expect("a directory");
    let source = tree::file(&here.path().join("file"), 10);
    let ended = far.run("cp", arguments![source, "far:"]);
    let ended = ended.expect_line(1, "speaks no version of the protocol known here; update the older program");
    assert!(!ended.stderr.contains("ticket"), "{}", ended.stderr);
}
