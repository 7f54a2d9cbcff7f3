//! The systemd unit: how much of the machine it leaves open, as `systemd-analyze security` counts it.

use std::process::{Command, Stdio};

use xtask::failure::Failure;
use xtask::tools;

const UNIT: &str = "packaging/systemd/downpour-recv@.service";

/// Ten times the most that the unit may be exposed, which USING.md states: 0 is the least and 100 the most. The rest is
/// the purpose of a receiver, the network, and the kernel's files in `/proc`.
const EXPOSURE: &str = "11";

/// Checks the unit, if systemd is installed.
pub(crate) fn check() -> Result<(), Failure> {
    let Some(analyze) = tools::find("systemd-analyze") else {
        println!("skipped: no systemd-analyze (on Debian, apt-get install systemd)");
        return Ok(());
    };
    let mut security = Command::new(analyze);
    security.args(["security", "--offline=true", "--no-pager", "--threshold", EXPOSURE]).arg(tools::root().join(UNIT));
    let output = security.stdin(Stdio::null()).output().map_err(Failure::at("systemd-analyze"))?;
    let (table, complaint) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let verdict = table.lines().last().unwrap_or_default().trim();
    if output.status.success() {
        println!("{verdict}");
        return Ok(());
    }
    let open: Vec<&str> = table.lines().filter(|line| line.starts_with('✗')).collect();
    Err(Failure::new(format_args!("{UNIT}: {}{}\n{verdict}", complaint.trim(), open.join("\n"))))
}
