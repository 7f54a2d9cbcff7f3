//! `--web`: the lab that draws a transfer is found, started and ended, and leaves nothing.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::{TempDir, tempdir};

use crate::program::{Program, arguments, program_with};
use crate::tree;

/// A directory with a copy of the program, a file to be copied, and perhaps a lab that is this script.
pub(crate) struct Installation {
    directory: TempDir,
    source: PathBuf,
}

impl Installation {
    pub(crate) fn new(lab: Option<&str>) -> Self {
        let directory = tempdir().expect("a directory");
        copy(env!("CARGO_BIN_EXE_downpour").as_ref(), &directory.path().join("downpour"));
        fs::create_dir(directory.path().join("tmp")).expect("a directory");
        if let Some(script) = lab {
            let path = directory.path().join("script");
            fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("a script");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a program");
            copy(&path, &directory.path().join("downpour-lab"));
        }
        let source = tree::file(&directory.path().join("source"), 100_000);
        Self { directory, source }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// `cp --web source target` with these options.
    fn copy(&self, options: &[&str]) -> Command {
        let mut arguments = vec!["cp".into(), "--web".into()];
        arguments.extend(options.iter().map(std::ffi::OsString::from));
        arguments.extend([self.source.clone().into(), self.path("target").into()]);
        let mut command = program_with(&self.path("downpour"), arguments);
        command.env("PATH", "").env("TMPDIR", self.path("tmp"));
        command
    }

    fn is_left(&self) -> bool {
        fs::read_dir(self.path("tmp")).expect("a directory").next().is_some()
    }
}

/// Copies a program in another process: children that other tests start meanwhile could keep the file open for writing,
/// and it could not be started then.
fn copy(from: &Path, to: &Path) {
    assert!(Command::new("cp").args(["-p".as_ref(), from, to]).status().expect("cp").success());
}

/// Saves its arguments, prints its address, and waits for the end of its input.
const LAB: &str =
    r#"echo "$@" >"${0%/*}/arguments"; echo http://127.0.0.1:1/5ecret/#live; while read -r line; do :; done"#;

#[test]
fn web_without_lab_exit_2() {
    let installation = Installation::new(None);
    let ended = Program::start(installation.copy(&[])).end();
    ended.expect_line(2, "--web needs downpour-lab, which was not found beside downpour or in PATH: build it with");
    assert!(!installation.path("target").exists() && !installation.is_left());
}

#[test]
fn web_private_trace_removed() {
    let installation = Installation::new(Some(LAB));
    let ended = Program::start(installation.copy(&[])).end();
    assert!(ended.status.success(), "{}", ended.stderr);
    assert!(ended.stderr.contains("charts of this transfer: http://127.0.0.1:1/5ecret/#live"), "{}", ended.stderr);
    let noted = fs::read_to_string(installation.path("arguments")).expect("it was started");
    let trace = noted.trim().strip_prefix("web --until-eof --open --follow ").expect("what it is told");
    assert!(Path::new(trace).starts_with(installation.path("tmp")), "{trace}");
    assert_eq!(fs::read(installation.path("target")).expect("a copy"), fs::read(&installation.source).expect("a file"));
    assert!(!installation.is_left());
}

#[test]
fn web_qlog_trace_kept() {
    let installation = Installation::new(Some(LAB));
    let kept = installation.path("kept.qlog");
    let ended = Program::start(installation.copy(&["--qlog", kept.to_str().expect("text")])).end();
    assert!(ended.status.success(), "{}", ended.stderr);
    assert!(fs::read_to_string(installation.path("arguments")).expect("it was started").contains("/kept.qlog"));
    let trace = fs::read_to_string(kept).expect("a trace");
    assert!(trace.contains("downpour:block_acknowledged") && trace.contains("\"limited_by\""), "{}", &trace[..500]);
    assert!(!installation.is_left());
}

#[test]
fn web_lab_failure_copies_nothing() {
    let installation = Installation::new(Some("echo downpour-lab: cannot listen >&2; exit 1"));
    let ended = Program::start(installation.copy(&[])).end();
    ended.expect_line(1, ": downpour-lab: cannot listen");
    assert!(!installation.path("target").exists() && !installation.is_left());
}

#[test]
fn web_waits_for_lab_to_end() {
    let slow = r#"trap '/bin/sleep 3; : >"${0%/*}/ended"; kill $!; exit' TERM
        echo http://127.0.0.1:1/5ecret/#live; /bin/sleep 60 >/dev/null 2>&1 & wait"#;
    let installation = Installation::new(Some(slow));
    let ended = Program::start(installation.copy(&[])).end();
    assert!(ended.status.success(), "{}", ended.stderr);
    assert!(ended.stderr.contains("waiting for downpour-lab, which stops the runs"), "{}", ended.stderr);
    assert!(installation.path("ended").exists() && !installation.is_left());
}

#[test]
fn web_refused_between_remote_hosts() {
    let installation = Installation::new(Some(LAB));
    let command = program_with(&installation.path("downpour"), arguments!["sync", "--web", "a:x", "b:y"]);
    Program::start(command).end().expect_line(2, "--web does not work between two remote hosts");
    assert!(!installation.path("arguments").exists());
}
