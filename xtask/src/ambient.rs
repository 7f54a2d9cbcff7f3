//! Time, threads and random numbers: `store` and `downpour` have them of the crate `runtime`, so that tests can replace them.
//!
//! It reads lines of code outside tests, and needs no compiler.

use xtask::failure::Failure;

use crate::sources;

const CRATES: [&str; 2] = ["store", "downpour"];

/// Calls that bypass the runtime. Asynchronous code uses tokio's clock, which tests can pause.
const BYPASSES: [&str; 9] = [
    "Instant::now",
    "SystemTime::now",
    ".elapsed()",
    "thread::spawn",
    "thread::Builder",
    "scope.spawn(",
    "thread::sleep",
    ".recv_timeout(",
    "getrandom::",
];

/// Checks both crates; the error lists the lines.
pub(crate) fn check() -> Result<(), Failure> {
    sources::fail_on(sources::of(&CRATES)?, bypassing)
}

/// Returns the lines, by their numbers, that ask the system.
fn bypassing(code: &str) -> Vec<String> {
    sources::lines(code, |line| BYPASSES.iter().any(|bypass| line.contains(bypass)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_the_system_are_found() {
        let code = "// Instant::now()\nlet a = runtime::now();\nlet b = std::time::Instant::now();\nthread::sleep(c)\n";
        let found = ["3: let b = std::time::Instant::now();", "4: thread::sleep(c)"];
        assert_eq!(bypassing(code), found);
    }
}
