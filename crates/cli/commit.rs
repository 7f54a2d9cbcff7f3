//! The commit that is built, for build scripts.

use std::path::Path;
use std::process::Command;

/// Returns the first 12 digits of the commit checked out, and whether sources differ from it; `None` where `root`, the
/// directory of the repository, is not a checkout of its own, so that an unpacked archive always builds the same.
pub(crate) fn checked_out(root: &Path) -> Option<(String, bool)> {
    if Path::new(&git(&["rev-parse", "--show-toplevel"])?).canonicalize().ok()? != root.canonicalize().ok()? {
        return None;
    }
    // A commit moves the log of HEAD, a checkout HEAD itself.
    for name in ["HEAD", "logs/HEAD"] {
        let path = git(&["rev-parse", "--path-format=absolute", "--git-path", name])?;
        // Cargo would take a missing one as changed every time.
        if Path::new(&path).exists() {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    let changed = git(&["status", "--porcelain", "--", ":(top,glob)crates/*/src/**", ":(top)lab/src"])?;
    Some((git(&["rev-parse", "--short=12", "HEAD"])?, !changed.is_empty()))
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
