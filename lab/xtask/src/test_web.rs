//! `cargo xtask test-web`: the tests of the lab's page, in a real browser, which they start.

use std::ffi::OsString;
use std::process::Command;

use xtask::failure::Failure;
use xtask::tools;

use crate::root;

/// The tests, and the program that runs them.
const DIRECTORY: &str = "tests/web";
/// The required Python packages.
const REQUIREMENTS: &str = "lab/tests/web/requirements.txt";

/// Runs the tests; the error names a missing requirement.
pub(crate) fn run(arguments: &[OsString]) -> Result<(), Failure> {
    let python = tools::find("python3").ok_or_else(|| {
        Failure::new("python3 not found (3.9 or later; on Debian: apt-get install python3 python3-venv)")
    })?;
    let chromium = tools::find("chromium").ok_or_else(|| {
        Failure::new("chromium not found: on Debian, apt-get install --no-install-recommends chromium")
    })?;
    if !tools::answers(Command::new(&python).args(["-c", "import playwright.sync_api, zstandard"])) {
        return Err(Failure::new(format_args!(
            "{} lacks playwright or zstandard: in the directory of the repository, python3 -m venv target/web && target/web/bin/pip install \
             -r {REQUIREMENTS}, and then in lab, PATH=$PWD/../target/web/bin:$PATH cargo xtask test-web",
            python.display()
        )));
    }
    tools::run(tools::cargo(&root()).args(["build", "--workspace", "--bin", "downpour-lab"]))?;
    // The full workspace, since cargo would rebuild the dependencies with the features of a single package.
    tools::run(tools::cargo(tools::root()).args(["build", "--workspace", "--bin", "downpour"]))?;
    let mut tests = Command::new(python);
    tests.arg("-B").arg(root().join(DIRECTORY).join("harness.py")).args(arguments);
    tests.env("WEB_PROGRAMS", tools::target()?.join("debug")).env("CHROMIUM", chromium);
    tools::run(&mut tests)
}
