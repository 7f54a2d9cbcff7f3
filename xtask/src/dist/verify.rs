//! Whether the archive can be built again: a second build of the same commit, in another directory, must give the same
//! bytes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Source, archive};
use xtask::failure::Failure;
use xtask::tools;

/// Builds HEAD in its own worktree and compares its archive with `first`, which was built in this one.
pub(super) fn run(first: &Path) -> Result<(), Failure> {
    let worktree = Worktree::new(tools::target()?.join("dist/again"))?;
    let second = Source::at(&worktree.0, worktree.0.join("target")).pack(archive::time()?)?;
    let bytes = |path: &Path| fs::read(path).map_err(Failure::at(path.display()));
    if bytes(first)? == bytes(&second)? {
        println!("a second build in {} gives the same archive", worktree.0.display());
        return Ok(());
    }
    let directory = |archive: &Path| archive.with_extension("").with_extension("");
    let differing = differing(&directory(first), &directory(&second))?;
    Err(Failure::new(format_args!("a second build differs in {}", differing.join(", "))))
}

/// Returns an error unless the checkout is HEAD, of which the second build is made.
pub(super) fn require_clean() -> Result<(), Failure> {
    let status = git(&["status", "--porcelain"]).output().map_err(Failure::at("git status"))?;
    match status.status.success() && status.stdout.is_empty() {
        true => Ok(()),
        false => Err(Failure::new("--verify builds the commit again: commit the changes, in a git repository")),
    }
}

/// The files that differ in two directories.
fn differing(first: &Path, second: &Path) -> Result<Vec<String>, Failure> {
    let mut names = Vec::new();
    for directory in [first, second] {
        let relative = |path: &PathBuf| path.strip_prefix(directory).unwrap_or(path).to_owned();
        names.extend(tools::files(directory, None)?.iter().map(relative));
    }
    names.sort();
    names.dedup();
    names.retain(|name| fs::read(first.join(name)).ok() != fs::read(second.join(name)).ok());
    Ok(names.iter().map(|name| name.display().to_string()).collect())
}

/// A second checkout of HEAD, until this is dropped.
struct Worktree(PathBuf);

impl Worktree {
    fn new(path: PathBuf) -> Result<Self, Failure> {
        // One of a killed build.
        let _ = git(&["worktree", "remove", "--force"]).arg(&path).output();
        tools::run(git(&["worktree", "add", "--quiet", "--force", "--detach"]).arg(&path).arg("HEAD"))?;
        Ok(Self(path))
    }
}

impl Drop for Worktree {
    fn drop(&mut self) {
        let _ = git(&["worktree", "remove", "--force"]).arg(&self.0).status();
    }
}

fn git(arguments: &[&str]) -> Command {
    let mut command = Command::new("git");
    command.args(arguments).current_dir(tools::root());
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_and_missing_files_are_reported() {
        let directories = [(); 2].map(|()| tempfile::tempdir().expect("a directory"));
        let [first, second] = directories.each_ref().map(|directory| directory.path());
        for (directory, name, text) in [
            (first, "same", "x"),
            (second, "same", "x"),
            (first, "changed", "x"),
            (second, "changed", "y"),
            (second, "new", ""),
        ] {
            fs::write(directory.join(name), text).expect("room");
        }
        assert_eq!(differing(first, second).expect("two directories"), ["changed", "new"]);
    }
}
