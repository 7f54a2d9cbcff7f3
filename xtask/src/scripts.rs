//! The types of the scripts of the lab's page, which `tsc` reads from their comments.

use std::path::Path;
use std::process::Command;

use crate::failure::Failure;
use crate::tools;

/// The scripts, and the settings by which they are checked, here and in editors.
const SETTINGS: &str = "crates/lab/src/web/page/jsconfig.json";
/// The compiler in npm's registry, and its version.
const COMPILER: (&str, &str) = ("typescript", "7.0.2");

/// Checks them, or says that it has not where the compiler is not here and cannot be had.
pub(crate) fn check() -> Result<(), Failure> {
    let folder = tools::target()?.join("typescript");
    let compiler = folder.join("node_modules").join(".bin").join("tsc");
    if !is_current(&compiler) {
        let Some(npm) = tools::find("npm") else {
            println!("NOT RUN: there is no npm here (on Debian: apt-get install --no-install-recommends npm)");
            return Ok(());
        };
        let (name, version) = COMPILER;
        let mut install = Command::new(npm);
        install.args([
            "install",
            "--loglevel=error",
            "--no-save",
            "--no-audit",
            "--no-fund",
            "--ignore-scripts",
            "--prefix",
        ]);
        install.arg(&folder).arg(format!("{name}@{version}"));
        if tools::run(&mut install).is_err() || !is_current(&compiler) {
            println!("NOT RUN: npm cannot install {name} {version} here");
            return Ok(());
        }
    }
    tools::run(Command::new(compiler).arg("--project").arg(SETTINGS).current_dir(tools::root()))
}

/// Whether the compiler is there, runs, and has the version that is wanted.
fn is_current(compiler: &Path) -> bool {
    let told = Command::new(compiler).arg("--version").output();
    told.is_ok_and(|told| told.stdout.trim_ascii_end().ends_with(COMPILER.1.as_bytes()))
}
