//! Other programs.

use std::env;
use std::path::PathBuf;
use std::process::{Command, Output};

/// The program under test.
pub(crate) const DOWNPOUR: &str = env!("CARGO_BIN_EXE_downpour");

/// A program in PATH, or in the folders for administrators, which are not in everybody's PATH.
pub(crate) fn find(name: &str) -> PathBuf {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain(["/usr/sbin", "/usr/local/sbin", "/sbin"].map(PathBuf::from));
    let mut files = folders.map(|folder| folder.join(name));
    files.find(|file| file.is_file()).unwrap_or_else(|| panic!("there is no {name} here: cargo xtask test-ssh tells"))
}

/// The house's commands, for `relayed-ssh`.
pub(crate) fn xtask() -> PathBuf {
    env::var_os("XTASK").expect("run by cargo xtask test-ssh").into()
}

/// Runs a program to its end, which must be a good one; what it prints on stdout.
pub(crate) fn said(command: &mut Command) -> String {
    let output = ended(command);
    assert!(output.status.success(), "{command:?}: {}: {}", output.status, words(&output.stderr));
    words(&output.stdout)
}

/// Runs a program to its end.
pub(crate) fn ended(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// What a program printed.
pub(crate) fn words(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end().to_owned()
}

/// The name of whoever runs the tests.
pub(crate) fn user() -> String {
    said(Command::new("id").arg("-un"))
}
