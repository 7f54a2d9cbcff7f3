//! `downpour remote --only`: a key that a forced command in `authorized_keys` restricts to one directory.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use tempfile::tempdir;

use crate::fake_ssh::FakeHost;
use crate::program::{arguments, json};
use crate::tree;

/// Creates a host on which every login runs `remote --only` with these options in the directory `limit`, regardless of
/// the requested command. The directory contains links to paths outside, and `secret` lies next to it.
fn limited(options: &str) -> FakeHost {
    let program = env!("CARGO_BIN_EXE_downpour");
    let far = FakeHost::with_login(&format!(r#"exec {program} remote --only "$FAR_HOME/limit" {options}"#));
    for directory in ["limit/directory", "secret"] {
        fs::create_dir_all(far.remote(directory)).expect("directories");
    }
    tree::file(&far.remote("limit/file"), 1000);
    tree::file(&far.remote("secret/key"), 100);
    symlink("../secret", far.remote("limit/out")).expect("a link");
    symlink("../secret/key", far.remote("limit/out-file")).expect("a link");
    symlink(far.remote("secret"), far.remote("limit/absolute")).expect("a link");
    symlink("directory", far.remote("limit/inside")).expect("a link");
    far
}

/// Returns paths outside of `limit`.
fn ways_out(far: &FakeHost) -> Vec<String> {
    let mut ways: Vec<String> = [
        "..",
        "../",
        "../new",
        "../secret",
        "../secret/key",
        "directory/../../new",
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
    ways.push(far.remote("secret/new").display().to_string());
    ways.push(far.remote("limit-beside").display().to_string());
    ways
}

/// Panics if anything outside of `limit` has changed.
#[track_caller]
fn assert_outside_untouched(far: &FakeHost) {
    assert_eq!(tree::names(&far.home()), [Path::new("limit"), Path::new("secret")]);
    assert_eq!(tree::names(&far.remote("secret")), [Path::new("key")]);
    let key = tempdir().expect("a directory");
    tree::assert_same(&far.remote("secret/key"), &tree::file(&key.path().join("key"), 100));
    for (link, target) in [("out", "../secret"), ("out-file", "../secret/key"), ("inside", "directory")] {
        let found = fs::read_link(far.remote("limit").join(link)).expect("a link");
        assert_eq!(found, Path::new(target));
    }
}

#[test]
fn remote_only_target_outside_denied() {
    let (local, far) = (tempdir().expect("a directory"), limited(""));
    let (file, directory) = (tree::file(&local.path().join("new"), 10), tree::directory(&local.path().join("photos")));
    for way in ways_out(&far) {
        let target = format!("far:{way}");
        for arguments in [
            arguments!["cp", "--via=ssh", file, target].to_vec(),
            arguments!["cp", "-r", "--via=ssh", directory.join(""), target].to_vec(),
            arguments!["sync", "--delete", "--via=ssh", directory, target].to_vec(),
        ] {
            far.run(arguments[0].to_str().expect("text"), &arguments[1..]).expect_line(7, "restricted key");
        }
        assert_outside_untouched(&far);
    }
    // A link is replaced, not followed.
    far.run("cp", arguments!["--via=ssh", file, "far:out-file"]).expect_line(7, "restricted key");
    assert_outside_untouched(&far);
}

#[test]
fn remote_only_source_outside_denied() {
    let (local, far) = (tempdir().expect("a directory"), limited(""));
    let into = local.path().join("into");
    let patterns = ["../*", "out/*", "/etc/host*", "out-file"].map(str::to_owned);
    for way in ways_out(&far).into_iter().chain(patterns) {
        let ended = far.run("cp", arguments!["-r", "--via=ssh", format!("far:{way}"), into]);
        let others = ended.stderr.replace("restricted key", "");
        assert!(way.contains("key") || !others.contains("key"), "{way} tells of others: {}", ended.stderr);
        ended.expect_line(7, "restricted key");
        tree::assert_untouched(&into);
    }
    // A link within a sent directory is sent as a link.
    far.run("cp", arguments!["-r", "--via=ssh", "far:", into]).expect(0);
    assert!(into.join("out").is_symlink() && into.join("out-file").is_symlink());
    far.run("cp", arguments!["-r", "--links=follow", "--via=ssh", "far:", into]).expect_line(7, "--links follow");
}

#[test]
fn remote_only_inside_allowed() {
    let (local, far) = (tempdir().expect("a directory"), limited(""));
    let (file, directory) = (tree::file(&local.path().join("new"), 10), tree::directory(&local.path().join("photos")));
    let absolute = far.remote("limit").canonicalize().expect("a path").join("absolute name");
    for (target, name) in [
        ("far:".to_owned(), "new"),
        ("far:a".to_owned(), "a"),
        ("far:directory".to_owned(), "directory/new"),
        ("far:inside/b".to_owned(), "directory/b"),
        ("far:inside/".to_owned(), "directory/new"),
        ("far:~/c".to_owned(), "c"),
        (format!("far:{}", absolute.display()), "absolute name"),
        ("far:directory/../d".to_owned(), "d"),
    ] {
        for via in ["--via=ssh", "--via=udp"] {
            let name = far.remote("limit").join(name);
            let _ = fs::remove_file(&name);
            far.run("cp", arguments![via, file, target]).expect(0);
            tree::assert_same(&file, &name);
        }
    }
    far.run("cp", arguments!["-rp", "--via=ssh", directory, "far:named"]).expect(0);
    tree::assert_same(&directory, &far.remote("limit/named"));
    tree::file(&far.remote("limit/named/old"), 10);
    far.run("sync", arguments!["--delete", "--via=ssh", directory.join(""), "far:named/"]).expect(0);
    tree::assert_same(&directory, &far.remote("limit/named"));
    far.run("verify", arguments!["--via=ssh", directory, "far:named"]).expect(0);
    far.run("verify", arguments!["--via=ssh", "far:named", directory]).expect(0);
    let (back, wild) = (local.path().join("back"), local.path().join("wild"));
    far.run("cp", arguments!["-rp", "--via=ssh", "far:named", back]).expect(0);
    tree::assert_same(&directory, &back);
    far.run("cp", arguments!["--via=ssh", "far:fi*", wild]).expect(0);
    tree::assert_same(&far.remote("limit/file"), &wild);
    let absent = far.run("cp", arguments!["--via=ssh", "far:nothing", back]).expect(3);
    assert!(absent.stderr.contains("nothing does not exist") && !absent.stderr.contains("/proc"), "{}", absent.stderr);
    let refused = far.run("cp", arguments!["--existing=refuse", "--via=ssh", file, "far:a"]).expect(1);
    assert!(!refused.stderr.contains("/proc"), "{}", refused.stderr);
    assert_outside_untouched(&far);
}

#[test]
fn remote_only_home_is_its_directory() {
    let (local, far) = (tempdir().expect("a directory"), limited(""));
    // As for any home: `~` has the name of the directory, the others mean its contents.
    for (command, path, name) in [
        (&["cp", "-r"][..], "~", "limit"),
        (&["sync"], "~", "limit"),
        (&["cp", "-r"], "~/", ""),
        (&["sync"], "~/.", ""),
        (&["cp", "-r"], "", ""),
    ] {
        let into = local.path().join("into");
        fs::create_dir(&into).expect("a directory");
        let all = command[1..].iter().map(|option| std::ffi::OsString::from(*option));
        let all = all.chain(["--via=ssh".into(), format!("far:{path}").into(), into.clone().into_os_string()]);
        far.run(command[0], all.collect::<Vec<_>>()).expect(0);
        assert_eq!(tree::names(&into.join(name)), tree::names(&far.remote("limit")), "{command:?} {path}");
        fs::remove_dir_all(&into).expect("a directory");
    }
    let file = tree::file(&local.path().join("new"), 10);
    for target in ["far:~", "far:~/"] {
        far.run("cp", arguments!["--via=ssh", file, target]).expect(0);
        tree::assert_same(&file, &far.remote("limit/new"));
        fs::remove_file(far.remote("limit/new")).expect("a file");
    }
    assert_outside_untouched(&far);
}

#[test]
fn remote_only_read_only_and_write_only() {
    let local = tempdir().expect("a directory");
    let (file, into) = (tree::file(&local.path().join("new"), 10), local.path().join("into"));
    let far = limited("--write-only");
    far.run("cp", arguments!["--via=ssh", file, "far:"]).expect(0);
    far.run("cp", arguments!["--via=ssh", "far:file", into]).expect_line(7, "only receiving is allowed");
    assert!(!into.exists());
    let far = limited("--read-only");
    far.run("cp", arguments!["--via=ssh", file, "far:"]).expect_line(7, "only sending is allowed");
    far.run("sync", arguments!["--delete", "--via=ssh", local.path(), "far:"])
        .expect_line(7, "only sending is allowed");
    assert!(!far.remote("limit/new").exists() && far.remote("limit/file").exists());
    far.run("cp", arguments!["-n", "--via=ssh", file, "far:"]).expect(0);
    far.run("cp", arguments!["--via=ssh", "far:file", into]).expect(0);
    tree::assert_same(&far.remote("limit/file"), &into);
    far.run("verify", arguments!["--via=ssh", into, "far:file"]).expect(0);
    assert_outside_untouched(&far);
}

/// The requested chunks of a file would reveal its content.
#[test]
fn remote_write_only_hides_content() {
    let local = tempdir().expect("a directory");
    for (access, compares) in [("--write-only", false), ("", true)] {
        let far = limited(access);
        let (new, old) = (local.path().join("image"), far.remote("limit/image"));
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
fn remote_only_pipe_and_doctor_denied() {
    let far = limited("");
    far.run("pipe", ["--via=ssh", "far", "touch ../new"]).expect_line(7, "commands are not allowed");
    for way in ["..", "/etc", "out"] {
        far.run("doctor", ["far", way]).expect_line(7, "restricted key");
    }
    assert_outside_untouched(&far);
}

#[test]
fn remote_only_missing_directory_fails() {
    let program = env!("CARGO_BIN_EXE_downpour");
    let local = tempdir().expect("a directory");
    let file = tree::file(&local.path().join("new"), 10);
    let far = FakeHost::with_login(&format!("exec {program} remote --only /no/such/directory"));
    far.run("cp", arguments!["--via=ssh", file, "far:"]).expect_line(1, "/no/such/directory: No such file");
    let far = FakeHost::with_login(&format!("exec {program} remote --read-only"));
    far.run("cp", arguments!["--via=ssh", file, "far:"]).expect(5);
    assert!(!far.remote("new").exists());
}

/// A read-only key, a write-only key, and one for both.
const KEYS: [&str; 3] = ["--read-only", "--write-only", ""];

/// Creates a host that restricts logins to `far` as [`limited`] does, but not logins to its other name, `other`.
fn limited_beside_another(options: &str) -> FakeHost {
    let program = env!("CARGO_BIN_EXE_downpour");
    let far = FakeHost::with_login(&format!(
        r#"case " $* " in *' -- other '*) mkdir -p "$FAR_HOME/../other"; cd "$FAR_HOME/../other"; exec sh -c "$command";; esac
exec {program} remote --only "$FAR_HOME/limit" {options}"#
    ));
    tree::directory(&far.remote("limit/photos"));
    fs::create_dir_all(far.remote("limit/empty")).expect("a directory");
    far
}

/// Returns all entries of a directory: names, types, modes, times, and hashes of content.
fn snapshot(top: &Path) -> Vec<String> {
    let (mut seen, mut left) = (Vec::new(), vec![top.to_owned()]);
    while let Some(path) = left.pop() {
        let found = path.symlink_metadata().expect("a name");
        let content = match found.file_type() {
            kind if kind.is_dir() => {
                let items = fs::read_dir(&path).expect("a directory");
                left.extend(items.map(|item| item.expect("a name").path()));
                Vec::new()
            }
            kind if kind.is_symlink() => fs::read_link(&path).expect("a link").into_os_string().into_encoded_bytes(),
            _ => fs::read(&path).expect("a file"),
        };
        let content = content.iter().fold(0_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(*byte)));
        seen.push(format!("{} {:?} {:?} {content}", path.display(), found.permissions(), found.modified()));
    }
    seen.sort();
    seen
}

/// Returns the commands that reach a remote host, with every option that changes what they read, write or remove.
fn commands(local: &Path) -> Vec<Vec<String>> {
    let at = |name: &str| local.join(name).display().to_string();
    let up = [at("photos"), "far:photos".to_owned()];
    let down = ["far:photos".to_owned(), at("into")];
    let between = ["far:photos".to_owned(), "other:into".to_owned()];
    let options: &[&[&str]] = &[
        &[],
        &["--remove-source-files"],
        &["--existing=replace"],
        &["--checksum"],
        &["--links=follow"],
        &["--backup"],
        &["-p"],
        &["-x"],
        &["--files-from=LIST"],
    ];
    let mut commands = Vec::new();
    for places in [&up, &down, &between] {
        for option in options {
            let mut command = vec!["cp".to_owned(), "-r3".to_owned()];
            command.extend(option.iter().map(|word| word.replace("LIST", &at("list"))));
            command.extend(places.clone());
            commands.push(command);
        }
        for option in [&["--delete"][..], &["--delete", "--remove-source-files"]] {
            let mut command = vec!["sync".to_owned(), "-3".to_owned()];
            command.extend(option.iter().map(|word| (*word).to_owned()));
            command.extend([format!("{}/", places[0]), places[1].clone()]);
            commands.push(command);
        }
    }
    // `-3` is for two remote hosts.
    for command in commands.iter_mut().filter(|command| command.last().is_none_or(|last| last != "other:into")) {
        command[1] = command[1].replace('3', "");
        command.retain(|word| word != "-");
    }
    commands
}

/// No command changes the tree of a read-only key, or gets a file from a write-only one.
#[test]
fn remote_only_every_option_respects_key() {
    let local = tempdir().expect("a directory");
    tree::directory(&local.path().join("photos"));
    fs::write(local.path().join("list"), "one\n").expect("a list");
    let (mut ran, mut removed) = (0, 0);
    for key in KEYS {
        for command in commands(local.path()) {
            for is_dry in [false, true] {
                let far = limited_beside_another(key);
                fs::write(far.remote("limit/photos/stray"), key).expect("a file");
                let before = snapshot(&far.remote("limit"));
                let dry = is_dry.then_some("-n");
                let words = [command[0].as_str(), "--via=ssh"].into_iter().chain(dry);
                let words: Vec<&str> = words.chain(command[1..].iter().map(String::as_str)).collect();
                let ended = far.run(words[0], &words[1..]);
                let context = format!("{key} {words:?}: {}", ended.stderr);
                assert_ne!(ended.status.code(), Some(2), "{context}");
                let after = snapshot(&far.remote("limit"));
                let (into, other) = (local.path().join("into"), far.home().with_file_name("other"));
                let has_come = into.exists() || other.join("into").exists();
                let is_up = command.last().is_some_and(|last| last.starts_with("far:"));
                assert!(before == after || (!is_dry && key != "--read-only"), "{context}");
                assert!(!has_come || (!is_dry && key != "--write-only" && !is_up), "{context}");
                assert_outside_untouched_but(&far);
                removed += usize::from(!is_up && before != after);
                ran += usize::from(ended.status.success());
                let _ = fs::remove_dir_all(into);
                // The next command needs the files that this one may have moved.
                tree::directory(&local.path().join("again"));
                fs::remove_dir_all(local.path().join("photos")).expect("a directory");
                fs::rename(local.path().join("again"), local.path().join("photos")).expect("a directory");
            }
        }
    }
    assert!(ran > 60 && removed > 3, "{ran} commands did something, {removed} have moved files away");
}

/// Panics if anything beside `limit` has changed.
#[track_caller]
fn assert_outside_untouched_but(far: &FakeHost) {
    assert_eq!(tree::names(&far.home()), [Path::new("limit")]);
}

/// A client may send a false request and then act differently.
#[test]
fn remote_only_false_dry_run_changes_nothing() {
    /// Marks every request as a dry run.
    const LIE: &str = r"
import json, os, struct
def take(count):
    got = b''
    while len(got) < count:
        got += os.read(0, count - len(got))
    return got
request = json.loads(take(struct.unpack('>I', take(4))[0]))
for task in request['task'].values():
    task['dry_run'] = True
text = json.dumps(request).encode()
os.write(1, struct.pack('>I', len(text)) + text)
while part := os.read(0, 65536):
    os.write(1, part)
";
    let local = tempdir().expect("a directory");
    let script = local.path().join("lie.py");
    fs::write(&script, LIE).expect("a script");
    let file = tree::file(&local.path().join("new"), 100_000);
    let program = env!("CARGO_BIN_EXE_downpour");
    let into = local.path().join("into");
    for (key, sends) in
        [("--read-only", true), ("", true), ("--read-only", false), ("", false), ("--write-only", false)]
    {
        // The receiver waits for data that is never sent.
        let ending = if sends { "timeout 3" } else { "" };
        let far = FakeHost::with_login(&format!(
            r#"python3 {} | {ending} {program} remote --only "$FAR_HOME/limit" {key}"#,
            script.display()
        ));
        fs::create_dir_all(far.remote("limit")).expect("a directory");
        tree::file(&far.remote("limit/file"), 100_000);
        let before = snapshot(&far.home());
        let words = match sends {
            true => arguments!["--remove-source-files", "--via=ssh", "far:file", into].to_vec(),
            false => arguments!["--existing=replace", "--timeout=2", "--via=ssh", file, "far:file"].to_vec(),
        };
        let ended = far.run("cp", &words);
        assert!(!ended.stderr.contains("restricted key"), "{key}: {}", ended.stderr);
        assert_eq!(snapshot(&far.home()), before, "{key} {words:?}: {}", ended.stderr);
    }
}

/// If DIR itself cannot be written, files for its directories would be staged in the user's cache.
#[test]
fn remote_only_stages_nothing_outside() {
    let local = tempdir().expect("a directory");
    let photos = tree::directory(&local.path().join("photos"));
    let far = limited("");
    fs::create_dir_all(far.remote("limit/into/photos")).expect("directories");
    fs::set_permissions(far.remote("limit/into"), fs::Permissions::from_mode(0o555)).expect("a mode");
    let is_closed = fs::File::create(far.remote("limit/into/probe")).is_err();
    if is_closed {
        far.run("cp", arguments!["-r", "--via=ssh", photos, "far:into"]).expect_line(7, "into: Permission denied");
        assert_eq!(tree::names(&far.remote("limit/into/photos")), [""; 0].map(Path::new));
    } else {
        eprintln!("NOT RUN: a directory that cannot be written, since this is root");
    }
    assert_outside_untouched(&far);
}

/// An empty name takes 3 bytes in a request, and an empty map 3.
#[test]
fn remote_only_request_memory_bounded() {
    /// Sends a request of this many bytes to a command, and prints its answer and its peak memory in kB.
    const FEED: &str = r#"
import resource, struct, subprocess, sys
size, value, key = int(sys.argv[1]), sys.argv[2].encode(), sys.argv[3].encode()
remote = subprocess.Popen(sys.argv[4:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
head = b'{"version":1,"' + key + b'":['
part = (value + b',') * (65536 // (len(value) + 1))
try:
    remote.stdin.write(struct.pack('>I', size) + head)
    left = size - len(head)
    while left > 0:
        remote.stdin.write(part[:left])
        left -= len(part)
    remote.stdin.close()
except BrokenPipeError:
    pass
print(remote.stdout.read().decode().strip().replace('\n', ' '))
remote.wait()
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"#;
    let directory = tempdir().expect("a directory");
    let (script, program) = (directory.path().join("feed.py"), env!("CARGO_BIN_EXE_downpour"));
    fs::write(&script, FEED).expect("a script");
    let fed = |size: u64, value: &str, key: &str| {
        let mut python = std::process::Command::new("python3");
        python.arg(&script).args([&size.to_string(), value, key, program, "remote", "--only"]).arg(directory.path());
        let output = python.output().expect("python3");
        let text = String::from_utf8(output.stdout).expect("text");
        let (answer, memory) = text.trim().rsplit_once('\n').unwrap_or_else(|| panic!("{text}"));
        (answer.to_owned(), memory.parse::<u64>().expect("a number"))
    };
    let usual = fed(100, "0", "task").1;
    for size in [64 << 20, 16 << 20, 8 << 20, 1 << 20] {
        for value in [r#""""#, "{}", r#"{"":0}"#, "0", r#"[[[[0]]]]"#] {
            for key in ["task", "profile", "ports"] {
                let (answer, memory) = fed(size, value, key);
                let context = format!("{size} bytes of {value} in {key}: {memory} kB, {answer}");
                assert!(answer.contains("DOWNPOUR1 ERROR "), "{context}");
                assert!(memory < usual + (100 << 10), "{context}; {usual} kB are usual");
                assert!(size <= 16 << 20 || answer.contains("request too large: 67.1 MB"), "{context}");
            }
        }
    }
}
