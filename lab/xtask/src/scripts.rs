//! The types of the scripts of the lab's page, which `tsc` reads from their comments.

use std::path::Path;
use std::process::Command;

use xtask::failure::Failure;
use xtask::tools;

/// The scripts, and their settings, also for editors.
const SETTINGS: &str = "src/web/page/jsconfig.json";
/// The compiler in npm's registry, and its version.
const COMPILER: (&str, &str) = ("typescript", "7.0.2");

/// Checks the scripts. If the compiler cannot be installed, that is a notice, or an error if `CI` is `true` and
/// `NO_NPM` is not set.
pub(crate) fn check() -> Result<(), Failure> {
    let directory = tools::target()?.join("typescript");
    let compiler = directory.join("node_modules").join(".bin").join("tsc");
    if !is_current(&compiler) {
        let Some(npm) = tools::find("npm") else {
            return not_run("npm not found (on Debian: apt-get install --no-install-recommends npm)".to_owned());
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
        install.arg(&directory).arg(format!("{name}@{version}"));
        if tools::run(&mut install).is_err() || !is_current(&compiler) {
            return not_run(format!("npm cannot install {name} {version}"));
        }
    }
    tools::run(Command::new(compiler).arg("--project").arg(SETTINGS).current_dir(crate::root()))
}

/// Reports why the scripts are not checked, or fails if they must be.
fn not_run(why: String) -> Result<(), Failure> {
    let is_true = |name| std::env::var_os(name).is_some_and(|value| value == "true");
    if is_true("CI") && !is_true("NO_NPM") {
        return Err(Failure::new(why));
    }
    println!("NOT RUN: {why}");
    Ok(())
}

/// Returns whether the compiler exists, runs, and has the required version.
fn is_current(compiler: &Path) -> bool {
    let output = Command::new(compiler).arg("--version").output();
    output.is_ok_and(|output| output.stdout.trim_ascii_end().ends_with(COMPILER.1.as_bytes()))
}
