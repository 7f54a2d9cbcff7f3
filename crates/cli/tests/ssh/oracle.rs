//! Judges a transfer by its source and target before and after.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};

use data_encoding::BASE64;
use serde_json::Value;

use crate::program::{Ended, json};
use crate::random::{Entry, Object, Tree};

/// Exit codes that an interrupted command may have: done, broken, unreachable, timeout, partial, vanished, stopped.
const CODES: [i32; 9] = [0, 1, 4, 5, 8, 23, 24, 75, 130];

/// One run of a transfer of `tree`, in the directory of the source, to `tree` in that of the target.
pub(crate) struct Run {
    /// The directory of the target.
    pub(crate) before: Tree,
    pub(crate) after: Tree,
    /// The directory of the source: at the beginning, and after each edit while the run lasted.
    pub(crate) versions: Vec<Tree>,
    /// Every program of it.
    pub(crate) ended: Vec<Ended>,
    /// Which of them receives; the sender does not report that a file has arrived.
    pub(crate) receiver: Option<usize>,
    pub(crate) deletes: bool,
}

impl Run {
    fn in_a_version(&self, name: &Path, object: &Object) -> bool {
        self.versions.iter().any(|tree| tree.get(name).is_some_and(|found| found.object == *object))
    }

    fn was_absent(&self, name: &Path) -> bool {
        self.versions.iter().any(|tree| !tree.contains_key(name))
    }

    fn transcript(&self) -> String {
        let all = self.ended.iter();
        all.map(|ended| format!("{}\n{}{}", ended.status, ended.stdout, ended.stderr)).collect()
    }
}

/// Panics if an interrupted run has broken a rule.
pub(crate) fn judge(run: &Run) {
    for ended in &run.ended {
        let code = ended.status.code();
        assert!(!ended.stderr.contains("panicked"), "{}", run.transcript());
        let is_killed = code.is_none() && ended.status.signal().is_some();
        assert!(is_killed || code.is_some_and(|code| CODES.contains(&code)), "{}", run.transcript());
    }
    judge_names(run);
    for (number, ended) in run.ended.iter().enumerate() {
        for line in json_of_killed(&ended.stdout) {
            match line["type"].as_str() {
                Some("file") if run.receiver == Some(number) => judge_file(run, &path(&line)),
                Some("summary") if line["verified"] == true => judge_verified(run, &line),
                _ => {}
            }
        }
    }
}

/// Returns the complete JSON lines of a program that may have been killed.
fn json_of_killed(stdout: &str) -> Vec<Value> {
    let whole = stdout.lines().filter(|line| line.ends_with('}')).map(|line| format!("{line}\n"));
    json(&whole.collect::<String>())
}

fn path(line: &Value) -> PathBuf {
    let text = |key: &str| line[key].as_str().map(str::as_bytes);
    let bytes = match text("path_bytes") {
        Some(encoded) => BASE64.decode(encoded).expect("base64"),
        None => text("path").expect("a path").to_vec(),
    };
    OsStr::from_bytes(&bytes).into()
}

/// Panics if an entry that was not requested has changed, or a changed one is no version of the source.
fn judge_names(run: &Run) {
    for (name, after) in &run.after {
        // With another time, an old version would look like the new one.
        let is_as_before = |before: &Entry| before.object == after.object && before.mtime == after.mtime;
        if run.before.get(name).is_some_and(is_as_before) {
            continue;
        }
        assert!(name.starts_with("tree"), "{name:?} was not requested:\n{}", run.transcript());
        assert!(run.in_a_version(name, &after.object), "{name:?} is no version of its source:\n{}", run.transcript());
    }
    for name in run.before.keys().filter(|name| !run.after.contains_key(*name)) {
        assert!(name.starts_with("tree"), "{name:?} was deleted:\n{}", run.transcript());
        // Names below a directory that the source has as a file or link are deleted with it.
        let replaced = name
            .ancestors()
            .skip(1)
            .any(|above| run.after.get(above).is_some_and(|found| found.object != Object::Directory));
        assert!(replaced || run.deletes && run.was_absent(name), "{name:?} was deleted:\n{}", run.transcript());
    }
}

/// Judges a file reported as arrived.
fn judge_file(run: &Run, name: &Path) {
    let found = run.after.get(name).unwrap_or_else(|| panic!("{name:?} is not there:\n{}", run.transcript()));
    assert!(matches!(found.object, Object::File(_)), "{name:?} is no file:\n{}", run.transcript());
    assert!(run.in_a_version(name, &found.object), "{name:?} was called verified:\n{}", run.transcript());
}

/// Judges a transfer reported as verified.
fn judge_verified(run: &Run, summary: &Value) {
    assert_eq!((&summary["unchanged"], summary["failed"].as_array().map(Vec::len)), (&0.into(), Some(0)), "{summary}");
    for (name, _) in run.versions[0].iter().filter(|(name, _)| name.starts_with("tree")) {
        match run.after.get(name) {
            Some(found) => {
                assert!(run.in_a_version(name, &found.object), "{name:?} was verified:\n{}", run.transcript())
            }
            None => assert!(run.was_absent(name), "{name:?} is missing:\n{}", run.transcript()),
        }
    }
}

/// Panics unless an undisturbed run has made the target equal to the source, also in modes if it `syncs`.
pub(crate) fn judge_complete(run: &Run, syncs: bool) {
    let source = run.versions[0].iter().filter(|(name, _)| name.starts_with("tree"));
    for ended in &run.ended {
        assert_eq!(ended.status.code(), Some(0), "{}", run.transcript());
    }
    let mut count = 0;
    for (name, found) in source {
        let after = run.after.get(name).unwrap_or_else(|| panic!("{name:?} is missing:\n{}", run.transcript()));
        assert_eq!(after.object, found.object, "{name:?}:\n{}", run.transcript());
        assert_eq!(after.mtime, found.mtime, "time of {name:?}:\n{}", run.transcript());
        assert!(!syncs || after.mode == found.mode, "mode of {name:?}:\n{}", run.transcript());
        count += 1;
    }
    let at_target = run.after.keys().filter(|name| name.starts_with("tree")).count();
    assert!(!run.deletes || at_target == count, "{at_target} instead of {count} names:\n{}", run.transcript());
}
