//! Other programs, and where things are.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use crate::failure::Failure;

/// Returns the directory of the repository, which is that of the product's workspace.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace")
}

/// Returns the cargo that started this program, in the directory of a workspace.
pub fn cargo(workspace: &Path) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(workspace);
    // The variables that cargo sets for this program's package: ring's build script reads the same names, and all its
    // dependents would be rebuilt whenever one differs between this command and cargo itself.
    for (name, _) in env::vars_os() {
        if ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|begin| name.to_string_lossy().starts_with(begin)) {
            command.env_remove(name);
        }
    }
    command
}

/// Returns the cargo of the nightly toolchain, in the product's workspace: that of the toolchain manager, not the one
/// that started this program.
pub fn cargo_nightly() -> Command {
    let mut command = Command::new("cargo");
    command.arg("+nightly").current_dir(root()).env_remove("RUSTUP_TOOLCHAIN");
    command
}

/// Runs a program to its exit; its output is shown.
///
/// # Errors
/// It cannot be started, or does not end well.
pub fn run(command: &mut Command) -> Result<(), Failure> {
    let line = shown(command);
    let status = command.status().map_err(Failure::at(&line))?;
    if status.success() { Ok(()) } else { Err(Failure::new(format_args!("{line}: {status}"))) }
}

/// Returns whether a program exists and succeeds; its output is hidden.
pub fn answers(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

/// Finds a program in PATH, or in the directories for administrators, which are not in everybody's PATH.
pub fn find(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let directories = env::split_paths(&path).chain(["/usr/sbin", "/usr/local/sbin", "/sbin"].map(PathBuf::from));
    directories.map(|directory| directory.join(name)).find(|file| file.is_file())
}

/// Returns cargo's target directory, of either workspace.
///
/// # Errors
/// Cargo does not report it.
pub fn target() -> Result<PathBuf, Failure> {
    let mut metadata = cargo(root());
    metadata.args(["metadata", "--no-deps", "--format-version", "1"]).stderr(Stdio::inherit());
    let output = metadata.output().map_err(Failure::at("cargo metadata"))?;
    let parsed: serde_json::Value = serde_json::from_slice(&output.stdout).map_err(Failure::at("cargo metadata"))?;
    let directory = parsed["target_directory"].as_str();
    directory.map(PathBuf::from).ok_or_else(|| Failure::new("cargo metadata names no target directory"))
}

/// Builds a program of a workspace for speed and returns where it is.
///
/// # Errors
/// It cannot be built.
pub fn build(workspace: &Path, package: &str, program: &str) -> Result<PathBuf, Failure> {
    run(cargo(workspace).args(["build", "--release", "--package", package]))?;
    Ok(target()?.join("release").join(format!("{program}{}", env::consts::EXE_SUFFIX)))
}

/// Runs this command, of this package of a workspace, once more in another profile, unless it is this one already.
///
/// Commands start in the dev profile, which is built soonest and checks arithmetic; measuring needs the other one.
///
/// # Errors
/// It cannot be built, or does not end well.
pub fn rerun_optimised(workspace: &Path, package: &str) -> Result<bool, Failure> {
    if !cfg!(debug_assertions) {
        return Ok(false);
    }
    run(cargo(workspace)
        .args(["run", "--quiet", "--release", "--package", package, "--"])
        .args(env::args_os().skip(1)))?;
    Ok(true)
}

/// Returns the files below a directory whose names end so, sorted.
///
/// # Errors
/// One of the directories cannot be read.
pub fn files(directory: &Path, extension: Option<&str>) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        let entries = fs::read_dir(&directory).map_err(Failure::at(directory.display()))?;
        for entry in entries {
            let path = entry.map_err(Failure::at(directory.display()))?.path();
            if path.is_dir() {
                directories.push(path);
            } else if extension.is_none_or(|wanted| path.extension() == Some(OsStr::new(wanted))) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// A program's name and arguments.
fn shown(command: &Command) -> String {
    let name = Path::new(command.get_program()).file_stem().unwrap_or_default();
    let words = std::iter::once(name).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
