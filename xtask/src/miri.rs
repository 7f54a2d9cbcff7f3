//! `cargo xtask miri`: the tests of unsafe code and of code that threads share, in an interpreter that finds undefined
//! behaviour and data races.

use xtask::failure::Failure;
use xtask::tools;

/// Packages, and the unit tests that Miri can run within minutes: it has no wide registers, no cryptography in
/// assembly, no UDP and no `poll`.
const RUNS: [(&str, &[&str]); 2] =
    [("erasure", &["kernel::"]), ("net", &["shared::", "a_writer_is_notified_of_its_end", "a_queue_without_a_reader"])];

/// Runs them all, whatever becomes of those before; the error names the packages that failed.
pub(crate) fn run() -> Result<(), Failure> {
    let mut failed = Vec::new();
    for (package, tests) in RUNS {
        let mut command = tools::cargo_nightly();
        // Random bytes and the clock are the system's.
        command.env("MIRIFLAGS", "-Zmiri-disable-isolation");
        command.args(["miri", "test", "--package", package, "--lib", "--"]).args(tests);
        if let Err(failure) = tools::run(&mut command) {
            eprintln!("{failure}");
            failed.push(package);
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(Failure::new(format_args!("Miri: {}", failed.join(", ")))) }
}
