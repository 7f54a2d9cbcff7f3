//! Other programs.

use std::env;
use std::path::PathBuf;
use std::process::{Command, Output};

/// The program under test.
pub(crate) const DOWNPOUR: &str = env!("CARGO_BIN_EXE_downpour");

/// Returns the path of a program in PATH or in the directories for administrators, which are not always in PATH.
pub(crate) fn find(name: &str) -> PathBuf {
    let path = env::var_os("PATH").unwrap_or_default();
    let directories = env::split_paths(&path).chain(["/usr/sbin", "/usr/local/sbin", "/sbin"].map(PathBuf::from));
    let mut files = directories.map(|directory| directory.join(name));
    files.find(|file| file.is_file()).unwrap_or_else(|| panic!("there is no {name} here"))
}

/// Returns the path of xtask, for `relayed-ssh`.
pub(crate) fn xtask() -> PathBuf {
    env::var_os("XTASK").expect("run by cargo xtask test-ssh").into()
}

/// Runs a program, which must succeed. Returns its stdout.
pub(crate) fn stdout_of(command: &mut Command) -> String {
    let output = output_of(command);
    assert!(output.status.success(), "{command:?}: {}: {}", output.status, words(&output.stderr));
    words(&output.stdout)
}

/// Runs a program to its end.
pub(crate) fn output_of(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// Returns the output of a program as text.
pub(crate) fn words(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end().to_owned()
}

/// Returns the name of the user who runs the tests.
pub(crate) fn user() -> String {
    stdout_of(Command::new("id").arg("-un"))
}
