//! Directories that may be searched and written but not read, and files that may not be read: each use asks for no more
//! than it needs. Root may read everything, so the tests run as another user.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use downpour_store::{
    Compare, Existing, FailReason, Filter, Modes, NoticeKind, ReceiveRequest, Removal, RequestedItems, Scanner,
    SkipReason, SourceItem, SourceOptions, SourceOutcome, Versions,
};
use tempfile::tempdir;

use crate::common::{Done, names, noise, transfer_as, transfer_from};
use crate::users::{
    OTHER, RECEIVER, as_receiver, as_root, as_unprivileged, child_directory, foreseen, has_several_users, interrupt,
};

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Creates a directory that a child test may use, and runs the test in it.
fn run(name: &str, with: fn(&str, &Path)) -> tempfile::TempDir {
    let home = tempdir().unwrap();
    mode(home.path(), 0o755);
    with(name, home.path());
    home
}

/// Receives into a directory in which no file is unreadable for another reason.
fn receive(sources: &[PathBuf], spec: ReceiveRequest) -> Done {
    transfer_as(sources, spec, 1, &mut |_| {}).unwrap()
}

fn replacing(into: &Path) -> ReceiveRequest {
    ReceiveRequest { existing: Existing::Replace, ..ReceiveRequest::into_directory(into) }
}

/// Returns the notices of names, in order.
fn reported(done: &Done) -> Vec<(String, NoticeKind)> {
    let mut notices: Vec<_> =
        done.notices.iter().map(|notice| (String::from_utf8_lossy(&notice.path).into_owned(), notice.kind)).collect();
    notices.sort_by(|one, other| one.0.cmp(&other.0));
    notices
}

#[test]
fn drop_box_target_receives_and_resumes() {
    if has_several_users() {
        run("opening::child_makes_a_drop_box", as_root);
    }
}

#[test]
#[ignore = "run by its parent test as root"]
fn child_makes_a_drop_box() {
    for is_taken in [false, true] {
        let drop_box = child_directory().join("box");
        fs::create_dir(&drop_box).unwrap();
        mode(&drop_box, 0o1733);
        let mut left = vec!["file0", "file1", "tree"];
        let first = drop_box.join(foreseen());
        if is_taken {
            // Another user has taken the predictable name.
            fs::create_dir(&first).unwrap();
            chown(&first, Some(OTHER), Some(OTHER)).unwrap();
        }
        as_receiver("opening::child_fills_a_drop_box", &child_directory());
        let first = foreseen();
        if is_taken {
            left.insert(0, &first);
        }
        assert_eq!(names(&drop_box), left);
        assert_eq!(names(&drop_box.join("tree")), ["inner"]);
        fs::remove_dir_all(&drop_box).unwrap();
    }
}

#[test]
#[ignore = "run by its parent test as a plain user"]
fn child_fills_a_drop_box() {
    let (from, into) = (tempdir().unwrap(), child_directory().join("box"));
    assert!(fs::read_dir(&into).is_err(), "a drop box is not listed");
    let mut sources: Vec<_> = ["file0", "file1"].iter().map(|name| from.path().join(name)).collect();
    for (seed, path) in (0..).zip(&sources) {
        fs::write(path, noise(1_500_000, seed)).unwrap();
    }
    interrupt(&sources, replacing(&into));
    let done = receive(&sources, replacing(&into));
    assert!(done.wanted < 2_500_000, "{} bytes wanted again", done.wanted);
    assert_eq!(reported(&done), []);
    fs::create_dir(from.path().join("tree")).unwrap();
    fs::write(from.path().join("tree/inner"), "inner").unwrap();
    sources.push(from.path().join("tree"));
    let done = receive(&sources, replacing(&into));
    assert_eq!((reported(&done), done.outcome.files, done.outcome.unchanged), (vec![], 3, 2));
    for (seed, path) in (0..).zip(&sources[..2]) {
        assert!(fs::read(into.join(path.file_name().unwrap())).unwrap() == noise(1_500_000, seed));
    }
    assert_eq!(fs::read(into.join("tree/inner")).unwrap(), b"inner");
    // A new name in it, for which it is the directory above.
    let named = ReceiveRequest { existing: Existing::Replace, ..ReceiveRequest::to_target(into.join("tree/new")) };
    receive(&sources[..1], named);
    assert!(fs::read(into.join("tree/new")).unwrap() == noise(1_500_000, 0));
    fs::remove_file(into.join("tree/new")).unwrap();
}

#[test]
fn search_only_directory_sends_named_files() {
    run("opening::child_sends_by_name", as_unprivileged);
}

#[test]
#[ignore = "run by its parent test as a plain user"]
fn child_sends_by_name() {
    let (from, into) = (child_directory().join("from"), child_directory().join("into"));
    fs::create_dir_all(from.join("sub/below")).unwrap();
    fs::create_dir(&into).unwrap();
    for name in ["one", "two", "sub/below/three", "sub/denied"] {
        fs::write(from.join(name), name).unwrap();
    }
    mode(&from.join("sub/denied"), 0o200);
    let searched = ["sub/below", "sub", ""];
    searched.iter().for_each(|name| mode(&from.join(name), 0o311));
    let done = receive(&[from.join("one")], replacing(&into));
    assert_eq!((reported(&done), done.outcome.failed_count), (vec![], 0));
    let listed = |names: &[&str]| {
        let files_from = Some(names.iter().map(|name| name.as_bytes().to_vec()).collect());
        let options = SourceOptions { files_from, remove_sources: true, ..SourceOptions::default() };
        Scanner::new(vec![SourceItem::contents(&from)], options).unwrap()
    };
    let done = transfer_from(listed(&["two", "sub/below/three"]), replacing(&into), 1, &mut |_| {}).unwrap();
    assert_eq!((reported(&done), done.outcome.failed_count), (vec![], 0));
    for name in ["one", "two", "sub/below/three"] {
        assert_eq!(fs::read(into.join(name)).unwrap(), name.as_bytes());
    }
    // An unreadable file is reported by its name; the others are received.
    let done = transfer_from(listed(&["one", "sub/denied"]), replacing(&into), 1, &mut |_| {}).unwrap();
    let failed: Vec<_> = done.outcome.listed.iter().map(|failed| (failed.path.as_slice(), failed.reason)).collect();
    assert_eq!(failed, [(&b"sub/denied"[..], FailReason::Skipped(SkipReason::Unreadable))]);
    // Removing needs no more than sending.
    let mut scanner = listed(&["two", "sub/below/three"]);
    let batch = scanner.next().unwrap();
    let mut removal = Removal::new(scanner.roots(), false);
    for (entry, version) in batch.entries.iter().zip(&batch.versions).filter(|(entry, _)| entry.size() > 0) {
        assert_eq!(
            removal.remove(entry, Versions { sent: *version, stored: 0 }, false),
            SourceOutcome::Removed,
            "{entry:?}"
        );
    }
    let options = || SourceOptions { remove_sources: true, ..SourceOptions::default() };
    let item = || Scanner::new(vec![SourceItem::new(from.join("one"))], options()).unwrap();
    let batch = item().next().unwrap();
    let outcome = Removal::new(item().roots(), false).remove(
        &batch.entries[0],
        Versions { sent: batch.versions[0], stored: 0 },
        false,
    );
    assert_eq!(outcome, SourceOutcome::Removed);
    searched.iter().rev().for_each(|name| mode(&from.join(name), 0o755));
    assert_eq!((names(&from), names(&from.join("sub/below"))), (vec!["sub".to_owned()], vec![]));
}

#[test]
fn list_only_directory_reports_each_name() {
    run("opening::child_sends_a_listed_directory", as_unprivileged);
}

#[test]
#[ignore = "run by its parent test as a plain user"]
fn child_sends_a_listed_directory() {
    let (from, into) = (child_directory().join("from"), child_directory().join("into"));
    fs::create_dir_all(from.join("listed")).unwrap();
    fs::create_dir(&into).unwrap();
    fs::write(from.join("listed/file"), "content").unwrap();
    mode(&from.join("listed"), 0o400);
    let done = receive(std::slice::from_ref(&from), replacing(&into));
    let failed: Vec<_> = done.outcome.listed.iter().map(|failed| failed.path.as_slice()).collect();
    assert_eq!(failed, [b"from/listed/file"]);
    mode(&from.join("listed"), 0o700);
}

#[test]
fn compare_search_only_and_unreadable_names() {
    run("opening::child_compares", as_unprivileged);
}

#[test]
#[ignore = "run by its parent test as a plain user"]
fn child_compares() {
    let (from, into) = (child_directory().join("from"), child_directory().join("into"));
    for directory in [&from, &into] {
        fs::create_dir_all(directory.join("tree/sub")).unwrap();
        for name in ["file", "denied", "tree/sub/inner"] {
            fs::write(directory.join(name), name).unwrap();
        }
    }
    mode(&into.join("denied"), 0o200);
    ["tree/sub", "tree", ""].iter().for_each(|name| mode(&into.join(name), 0o311));
    let compared = |sources: &[&str]| {
        let requested = RequestedItems { many: true, ..RequestedItems::default() };
        let spec = ReceiveRequest {
            compare: Compare::Checksum,
            delete: Some(Filter::default()),
            compare_trees: true,
            dry_run: true,
            requested,
            ..replacing(&into)
        };
        let roots = sources.iter().map(|name| SourceItem::new(from.join(name))).collect();
        let scanner = Scanner::new(roots, SourceOptions { hash: true, ..SourceOptions::default() }).unwrap();
        // Their times differ.
        let is_content = |notices: &(String, NoticeKind)| notices.1 != NoticeKind::Attributes;
        let done = transfer_from(scanner, spec, 1, &mut |_| {}).unwrap();
        reported(&done).into_iter().filter(is_content).collect::<Vec<_>>()
    };
    let denied = |name: &str| (name.to_owned(), NoticeKind::Permission);
    assert_eq!(compared(&["file"]), []);
    assert_eq!(compared(&["file", "denied"]), [denied("denied")]);
    // Names that exist only at the target would not be found.
    assert_eq!(compared(&["tree"]), [denied("tree")]);
}

#[test]
fn delete_unlistable_directory_only_if_empty() {
    run("opening::child_deletes", as_unprivileged);
}

#[test]
#[ignore = "run by its parent test as a plain user"]
fn child_deletes() {
    let (from, into) = (child_directory().join("from"), child_directory().join("into"));
    fs::create_dir(&from).unwrap();
    fs::write(from.join("file"), "content").unwrap();
    for directory in ["full", "empty", "both/full", "both/empty"] {
        fs::create_dir_all(into.join(directory)).unwrap();
    }
    for file in ["full/kept", "both/full/kept", "both/file", "extra"] {
        fs::write(into.join(file), "too much").unwrap();
    }
    ["full", "empty", "both/full", "both/empty"].iter().for_each(|name| mode(&into.join(name), 0o311));
    let mirror = || {
        let requested = RequestedItems { contents: true, many: true, items: None, directory_if: None };
        let spec = ReceiveRequest { delete: Some(Filter::default()), requested, ..replacing(&into) };
        let scanner = Scanner::new(vec![SourceItem::contents(&from)], SourceOptions::default()).unwrap();
        transfer_from(scanner, spec, 1, &mut |_| {}).unwrap()
    };
    let denied = |name: &str| (name.to_owned(), NoticeKind::Permission);
    let is_failure = |notices: &(String, NoticeKind)| notices.1.is_failure();
    let failures = |done: &Done| reported(done).into_iter().filter(is_failure).collect::<Vec<_>>();
    assert_eq!(failures(&mirror()), [denied("both/full"), denied("full")]);
    assert_eq!(
        (names(&into), names(&into.join("both"))),
        (vec!["both".into(), "file".into(), "full".into()], vec!["full".into()])
    );
    // The target itself.
    mode(&into, 0o311);
    assert_eq!(failures(&mirror()), [denied(".")]);
    mode(&into, 0o755);
    assert!(into.join("full").exists());
}

#[test]
fn attributes_set_on_unreadable_own_files() {
    run("opening::child_sets_attributes", as_unprivileged);
}

#[test]
#[ignore = "run by its parent test as a plain user"]
fn child_sets_attributes() {
    let (from, into) = (child_directory().join("from"), child_directory().join("into"));
    for directory in [&from, &into] {
        fs::create_dir_all(directory.join("sub")).unwrap();
        fs::write(directory.join("file"), "content").unwrap();
        let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
        fs::File::open(directory.join("file")).unwrap().set_modified(time).unwrap();
    }
    fs::write(from.join("sub/inner"), "inner").unwrap();
    mode(&from.join("file"), 0o640);
    mode(&into.join("file"), 0o200);
    mode(&into.join("sub"), 0o311);
    mode(&into, 0o300);
    let sources = [from.join("file"), from.join("sub")];
    let done = receive(&sources, ReceiveRequest { modes: Modes::Exact, ..replacing(&into) });
    assert_eq!((reported(&done), done.outcome.failed_count, done.outcome.unchanged), (vec![], 0, 1));
    mode(&into, 0o700);
    assert_eq!(into.join("file").metadata().unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(into.join("sub").metadata().unwrap().permissions().mode() & 0o777, 0o755);
    assert_eq!(fs::read(into.join("sub/inner")).unwrap(), b"inner");
    // Without exact modes, a directory keeps its own.
    fs::write(from.join("sub/more"), "more").unwrap();
    mode(&into.join("sub"), 0o333);
    let done = receive(&sources, replacing(&into));
    assert_eq!((reported(&done), done.outcome.failed_count), (vec![], 0));
    assert_eq!(into.join("sub").metadata().unwrap().permissions().mode() & 0o777, 0o333);
    assert_eq!(fs::read(into.join("sub/more")).unwrap(), b"more");
}

#[test]
fn unreadable_mode_reaches_mounted_file_system() {
    if has_several_users() {
        run("opening::child_mounts", as_root);
    }
}

#[test]
#[ignore = "run by its parent test as root"]
fn child_mounts() {
    let home = child_directory();
    fs::create_dir_all(home.join("into/sub")).unwrap();
    for directory in ["into", ""] {
        chown(home.join(directory), Some(RECEIVER), Some(RECEIVER)).unwrap();
    }
    let script = "mount -t tmpfs -o mode=311,uid=$1 downpour \"$0/into/sub\" && shift && exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", script]).arg(&home).arg(RECEIVER.to_string());
    command.args(["setpriv", "--clear-groups"]);
    command.args([format!("--reuid={RECEIVER}"), format!("--regid={RECEIVER}")]);
    command.arg(std::env::current_exe().unwrap()).args(["--exact", "--ignored", "--nocapture"]);
    command.arg("opening::child_receives_onto_a_mount").process_group(0);
    let output = command.output().expect("unshare");
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

#[test]
#[ignore = "run by its parent test as a plain user"]
fn child_receives_onto_a_mount() {
    let (from, into) = (child_directory().join("from"), child_directory().join("into"));
    fs::create_dir_all(from.join("sub")).unwrap();
    fs::write(from.join("sub/file"), "content").unwrap();
    assert!(fs::read_dir(into.join("sub")).is_err());
    // The receiver gives the file a mode that denies its owner reading.
    fs::write(into.join("sub/file"), "old").unwrap();
    mode(&into.join("sub/file"), 0o200);
    let done = receive(&[from.join("sub")], ReceiveRequest { report_stored: true, ..replacing(&into) });
    assert_eq!((reported(&done), done.outcome.failed_count), (vec![], 0));
    assert_eq!(into.join("sub/file").metadata().unwrap().permissions().mode() & 0o777, 0o200);
    mode(&into.join("sub/file"), 0o600);
    assert_eq!(fs::read(into.join("sub/file")).unwrap(), b"content");
    mode(&into.join("sub"), 0o700);
    assert_eq!((names(&into), names(&into.join("sub"))), (vec!["sub".into()], vec!["file".into()]));
}
