//! Directories that several users can write to. The tests use two real users other than root, created by root or, for
//! an ordinary user, in a user namespace with the ids in `/etc/subuid`.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use data_encoding::BASE32_NOPAD;
use downpour_store::{
    Compare, Existing, FileSink, Modes, NoticeKind, ReceiveRequest, RequestedItems, Scanner, SourceItem, SourceOptions,
};
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, utimensat};
use rustix::process::geteuid;
use tempfile::tempdir;

use crate::common::{Control, SOURCE, noise, snapshot, transfer_as};
use crate::journal::staging;

pub(crate) const RECEIVER: u32 = 1001;
pub(crate) const OTHER: u32 = 1002;
/// Environment variable with the directory of a child test.
const TEST_DIRECTORY: &str = "DOWNPOUR_TEST_DIRECTORY";

pub(crate) fn child_directory() -> PathBuf {
    std::env::var_os(TEST_DIRECTORY).map(PathBuf::from).expect("a child test is run by its parent test only")
}

/// Runs a child test, by its path in this program.
fn run_child(mut command: Command, name: &str, directory: &Path) {
    command.args(["--exact", name, "--ignored", "--nocapture"]).env(TEST_DIRECTORY, directory);
    command.env("XDG_CACHE_HOME", directory.join("cache"));
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

/// Whether child tests can run as several users; reports if not.
pub(crate) fn has_several_users() -> bool {
    let unshare = ["--user", "--map-root-user", "--map-auto", "true"];
    let has = geteuid().is_root() || Command::new("unshare").args(unshare).output().is_ok_and(|o| o.status.success());
    if !has {
        eprintln!("NOT RUN: this needs several users: root, or a range in /etc/subuid and newuidmap");
    }
    has
}

/// Runs a child test as root, who can become any user.
pub(crate) fn as_root(name: &str, directory: &Path) {
    let program = std::env::current_exe().unwrap();
    if geteuid().is_root() {
        return run_child(Command::new(program), name, directory);
    }
    let flags = ["--user", "--map-root-user", "--map-auto"];
    let allowed = Command::new("unshare").args(flags).arg("true").output().is_ok_and(|o| o.status.success());
    assert!(
        allowed,
        "this test needs several users: run it as root, or allow `unshare {}` (a range in /etc/subuid, and newuidmap)",
        flags.join(" ")
    );
    let mut command = Command::new("unshare");
    command.args(flags).arg(program);
    run_child(command, name, directory);
}

/// Runs a child test as the receiver.
pub(crate) fn as_receiver(name: &str, directory: &Path) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.uid(RECEIVER).gid(RECEIVER);
    run_child(command, name, directory);
}

/// Runs a child test as a user who is not root and owns `directory`.
pub(crate) fn as_unprivileged(name: &str, directory: &Path) {
    if geteuid().is_root() {
        std::os::unix::fs::chown(directory, Some(RECEIVER), Some(RECEIVER)).unwrap();
        return as_receiver(name, directory);
    }
    run_child(Command::new(std::env::current_exe().unwrap()), name, directory);
}

/// Returns the name of the staging directory, which can be predicted from the source.
pub(crate) fn foreseen() -> String {
    format!(".downpour-{}", &BASE32_NOPAD.encode(&SOURCE.0)[..8].to_lowercase())
}

/// Takes the predicted name, with files inside, and reports it. Then replaces all other staging directories as fast as
/// possible.
const ATTACK: &str = r#"
mkdir "$1" "$1/a" && echo mine > "$1/journal" && echo mine > "$1/a/aaaaaaaaaaaaaaaaaaaaaaaaaa"
chmod -R 777 "$1"
echo ready
number=0
while :; do
    for found in .downpour-*; do
        [ "$found" = "$1" ] && continue
        number=$((number + 1))
        echo evil 2>/dev/null > "$found/journal"
        for staged in "$found"/*/*; do echo evil 2>/dev/null > "$staged"; done
        mkdir -p decoy/a && echo theirs > decoy/a/file
        mv "$found" "stolen-$number" 2>/dev/null && mv -T decoy "$found"
    done
done
"#;

fn attack(directory: &Path) -> Child {
    let mut attack = Command::new("sh");
    attack.args(["-c", ATTACK, "sh", &foreseen()]).current_dir(directory).uid(OTHER).gid(OTHER).stdout(Stdio::piped());
    let mut child = attack.stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    child
}

#[test]
fn staging_name_taken_by_attacker_is_harmless() {
    let home = tempdir().unwrap();
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).unwrap();
    as_root("users::child_shares_a_directory", home.path());
}

#[test]
#[ignore = "run by its parent test as root"]
fn child_shares_a_directory() {
    for mode in [0o1777, 0o777] {
        let directory = child_directory().join(format!("{mode:o}"));
        fs::create_dir(&directory).unwrap();
        fs::set_permissions(&directory, fs::Permissions::from_mode(mode)).unwrap();
        let mut attack = attack(&directory);
        let before = snapshot(&directory.join(foreseen()));
        let result = std::panic::catch_unwind(|| as_receiver("users::child_receives_there", &directory));
        attack.kill().unwrap();
        attack.wait().unwrap();
        assert!(result.is_ok(), "mode {mode:o}");
        assert_eq!(snapshot(&directory.join(foreseen())), before, "mode {mode:o}");
        // Objects of the other user in place of a staging directory are left alone.
        for item in fs::read_dir(&directory).unwrap().map(|item| item.unwrap()) {
            let is_decoy = item.file_name().to_string_lossy().starts_with(".downpour-");
            if is_decoy && item.metadata().unwrap().uid() == OTHER && item.file_name() != *foreseen() {
                assert!(item.path().join("a/file").exists(), "mode {mode:o}");
            }
        }
        let stolen = fs::read_dir(&directory)
            .unwrap()
            .filter(|item| item.as_ref().unwrap().file_name().to_string_lossy().starts_with("stolen"));
        // If the directory is not sticky, the attack must have succeeded in replacing some.
        assert_eq!(stolen.count() > 0, mode == 0o777);
    }
}

#[test]
#[ignore = "run by its parent test as a plain user"]
fn child_receives_there() {
    let (from, into) = (tempdir().unwrap(), child_directory());
    let sources: Vec<_> = (0..3).map(|number| from.path().join(format!("file{number}"))).collect();
    for (seed, path) in (0..).zip(&sources) {
        fs::write(path, noise(1_500_000, seed)).unwrap();
    }
    let spec = || ReceiveRequest { existing: Existing::Replace, ..ReceiveRequest::into_directory(&into) };
    let is_sticky = into.metadata().unwrap().mode() & 0o1000 != 0;
    for round in 0..5 {
        if is_sticky {
            // A run is interrupted after some blocks, and the next one finds its data.
            interrupt(&sources, spec());
        }
        let done = transfer_as(&sources, spec(), round, &mut |_| {}).unwrap();
        assert!(!is_sticky || done.wanted < 4_000_000, "{} bytes wanted again", done.wanted);
        for (seed, path) in (0..).zip(&sources) {
            let placed = into.join(path.file_name().unwrap());
            assert!(fs::read(&placed).unwrap() == noise(1_500_000, seed), "round {round}");
            assert_eq!(placed.metadata().unwrap().uid(), RECEIVER);
            fs::remove_file(placed).unwrap();
        }
    }
}

/// Receives the first blocks and is then killed.
pub(crate) fn interrupt(sources: &[PathBuf], spec: ReceiveRequest) {
    let scanner = Scanner::new(sources.iter().map(SourceItem::new).collect(), SourceOptions::default()).unwrap();
    let roots = scanner.roots();
    let receiving = FileSink::new(spec).unwrap();
    let mut control = Control::begin(&receiving).unwrap();
    let batch = std::sync::Arc::new({ scanner }.next().unwrap());
    control.send_manifest(&batch).unwrap();
    let source = downpour_store::BatchSource::new(std::sync::Arc::clone(&batch), roots, control.wanted.clone());
    for block in 0..10 {
        crate::common::send_block(&mut control, &source, batch.number, block, true).unwrap();
    }
}

#[test]
fn attributes_of_other_users_files_reported() {
    let home = tempdir().unwrap();
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o777)).unwrap();
    as_root("users::child_gives_files_to_another", home.path());
}

#[test]
#[ignore = "run by its parent test as root"]
fn child_gives_files_to_another() {
    let directory = child_directory();
    fs::write(directory.join("file"), "content").unwrap();
    fs::create_dir(directory.join("dir")).unwrap();
    std::os::unix::fs::symlink("there", directory.join("link")).unwrap();
    for name in ["file", "dir", "link"] {
        std::os::unix::fs::lchown(directory.join(name), Some(OTHER), Some(OTHER)).unwrap();
    }
    fs::set_permissions(directory.join("file"), fs::Permissions::from_mode(0o604)).unwrap();
    as_receiver("users::child_changes_attributes", &directory);
    assert_eq!(directory.join("file").metadata().unwrap().mode() & 0o777, 0o604);
}

#[test]
#[ignore = "run by its parent test as a plain user"]
fn child_changes_attributes() {
    let (from, into) = (tempdir().unwrap(), child_directory());
    fs::write(from.path().join("file"), "content").unwrap();
    fs::create_dir(from.path().join("dir")).unwrap();
    std::os::unix::fs::symlink("there", from.path().join("link")).unwrap();
    let sources: Vec<_> = ["file", "dir", "link"].iter().map(|name| from.path().join(name)).collect();
    // Avoids the creation time of the others, which could be in the same clock tick.
    let time = Timespec { tv_sec: 1_000_000_000, tv_nsec: 0 };
    for path in &sources {
        let times = Timestamps { last_access: time, last_modification: time };
        utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
    }
    let base = ReceiveRequest { existing: Existing::Replace, ..ReceiveRequest::into_directory(&into) };
    let spec = ReceiveRequest { modes: Modes::Exact, compare: Compare::Checksum, ..base };
    let scan = SourceOptions { hash: true, ..SourceOptions::default() };
    let receiving = FileSink::new(spec).unwrap();
    let mut control = Control::begin(&receiving).unwrap();
    for batch in Scanner::new(sources.iter().map(SourceItem::new).collect(), scan).unwrap() {
        control.send_manifest(&batch).unwrap();
    }
    let outcome = receiving.finish(&control.end()).unwrap();
    let mut refused = receiving.take_notices();
    refused.sort_by(|one, other| one.path.cmp(&other.path));
    let names: Vec<_> = refused.iter().map(|notice| (notice.path.as_slice(), notice.kind)).collect();
    let denied = NoticeKind::Permission;
    assert_eq!(names, [(&b"dir"[..], denied), (b"file", denied), (b"link", denied)]);
    assert_eq!(outcome.failed_count, 3);
    assert!(staging(&into).is_none());
}

#[test]
fn read_only_directory_copy_is_resumed() {
    let home = tempdir().unwrap();
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o777)).unwrap();
    as_root("users::child_prepares_nothing", home.path());
}

#[test]
#[ignore = "run by its parent test as root"]
fn child_prepares_nothing() {
    as_receiver("users::child_continues_a_read_only_copy", &child_directory());
}

#[test]
#[ignore = "run by its parent test as a plain user"]
fn child_continues_a_read_only_copy() {
    let (from, into) = (child_directory().join("from"), child_directory().join("into"));
    for directory in [&from, &into] {
        fs::create_dir_all(directory.join("sub")).unwrap();
    }
    let set_mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    set_mode(&into.join("sub"), 0o555);
    set_mode(&into, 0o555);
    let requested = RequestedItems { contents: true, many: true, items: None, directory_if: None };
    let spec = ReceiveRequest {
        existing: Existing::Replace,
        modes: Modes::Exact,
        requested,
        ..ReceiveRequest::into_directory(&into)
    };
    for name in ["sub/file", "top", "sub/another"] {
        set_mode(&from, 0o755);
        set_mode(&from.join("sub"), 0o755);
        fs::write(from.join(name), name).unwrap();
        set_mode(&from.join("sub"), 0o555);
        set_mode(&from, 0o555);
        let scan = Scanner::new(vec![SourceItem::contents(&from)], SourceOptions::default()).unwrap();
        let done = crate::common::transfer_from(scan, spec.clone(), 1, &mut |_| {}).unwrap();
        assert!(!done.outcome.is_partial(), "{:?}", done.outcome);
        assert_eq!(fs::read(into.join(name)).unwrap(), name.as_bytes());
        let mode = |path: &Path| path.metadata().unwrap().mode() & 0o777;
        assert_eq!((mode(&into), mode(&into.join("sub"))), (0o555, 0o555));
    }
}

#[test]
fn subdirectory_filled_in_unwritable_target() {
    let home = tempdir().unwrap();
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).unwrap();
    as_root("users::child_prepares_a_writable_directory", home.path());
}

#[test]
#[ignore = "run by its parent test as root"]
fn child_prepares_a_writable_directory() {
    let home = child_directory();
    fs::create_dir_all(home.join("into")).unwrap();
    for directory in ["into/sub", "cache", "from"] {
        let directory = home.join(directory);
        fs::create_dir(&directory).unwrap();
        std::os::unix::fs::chown(&directory, Some(RECEIVER), Some(RECEIVER)).unwrap();
    }
    as_receiver("users::child_fills_a_writable_directory", &home);
}

#[test]
#[ignore = "run by its parent test as a plain user"]
fn child_fills_a_writable_directory() {
    let (from, into, cache) =
        (child_directory().join("from"), child_directory().join("into"), child_directory().join("cache"));
    fs::create_dir_all(from.join("sub/below")).unwrap();
    fs::write(from.join("sub/below/file"), "content").unwrap();
    fs::write(from.join("top"), "refused").unwrap();
    let sources = [from.join("sub"), from.join("top")];
    let spec = || ReceiveRequest { existing: Existing::Replace, ..ReceiveRequest::into_directory(&into) };
    let staged = || fs::read_dir(cache.join("downpour/staging")).unwrap().count();
    // An interrupted run leaves its staging directory there.
    let receiving = FileSink::new(spec()).unwrap();
    let mut control = Control::begin(&receiving).unwrap();
    for batch in Scanner::new(sources.iter().map(SourceItem::new).collect(), SourceOptions::default()).unwrap() {
        control.send_manifest(&batch).unwrap();
    }
    drop(receiving);
    assert_eq!(staged(), 1);
    let done = transfer_as(&sources, spec(), 1, &mut |_| {}).unwrap();
    let refused: Vec<_> = done.outcome.listed.iter().map(|failed| failed.path.as_slice()).collect();
    assert_eq!((done.outcome.failed_count, refused), (1, vec![&b"top"[..]]));
    assert_eq!(fs::read(into.join("sub/below/file")).unwrap(), b"content");
    assert_eq!(staged(), 0);
    assert!(!into.join("top").exists());
}

#[test]
fn set_id_programs_give_no_rights_away() {
    let home = tempdir().unwrap();
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o777)).unwrap();
    as_root("users::child_copies_programs_as_both", home.path());
}

#[test]
#[ignore = "run by its parent test as root"]
fn child_copies_programs_as_both() {
    let program = child_directory().join("program");
    fs::write(&program, "content").unwrap();
    std::os::unix::fs::chown(&program, Some(OTHER), Some(OTHER)).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o6755)).unwrap();
    copy_program(&child_directory(), 0);
    as_receiver("users::child_copies_a_program", &child_directory());
}

#[test]
#[ignore = "run by its parent test as a plain user"]
fn child_copies_a_program() {
    copy_program(&child_directory(), RECEIVER);
}

/// Copies a set-user-id program of another user with exact modes, as `sync` does. Runs as the user with this id.
fn copy_program(directory: &Path, user: u32) {
    let into = tempdir().unwrap();
    let spec = ReceiveRequest { modes: Modes::Exact, ..ReceiveRequest::into_directory(into.path()) };
    transfer_as(&[directory.join("program")], spec, 1, &mut |_| {}).unwrap();
    let copied = into.path().join("program").metadata().unwrap();
    assert_eq!((copied.uid(), copied.mode() & 0o7777), (user, 0o755));
}
