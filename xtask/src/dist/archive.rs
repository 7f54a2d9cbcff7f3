//! The archive and its sums. The same content gives the same bytes: order, owners, modes and times are fixed, by
//! options of tar and gzip, where the crates tar and flate2 would leave them to code of our own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ring::digest;

use xtask::failure::Failure;
use xtask::tools;

/// Packs the directory `name` in `directory` with tar and gzip, every file as of `time`, in seconds since 1970; returns
/// the path of the archive.
pub(super) fn pack(directory: &Path, name: &str, time: u64) -> Result<PathBuf, Failure> {
    let tarball = directory.join(format!("{name}.tar"));
    let mut tar = Command::new("tar");
    tar.args(["--create", "--format=ustar", "--sort=name", "--owner=0", "--group=0", "--numeric-owner"]);
    tar.arg("--mode=u+rwX,go+rX,go-w").arg(format!("--mtime=@{time}"));
    tar.arg("--directory").arg(directory).arg("--file").arg(&tarball).arg(name).env("LC_ALL", "C");
    tools::run(&mut tar)?;
    // Without the name and the time of the file in its header.
    tools::run(Command::new("gzip").args(["--force", "--no-name", "--best"]).arg(&tarball))?;
    Ok(directory.join(format!("{name}.tar.gz")))
}

/// Time of all files in seconds since 1970: SOURCE_DATE_EPOCH, or the time of the commit.
pub(super) fn time() -> Result<u64, Failure> {
    let text = match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(text) => text,
        Err(_) => {
            let mut git = Command::new("git");
            git.args(["log", "-1", "--format=%ct"]).current_dir(tools::root()).stderr(Stdio::null());
            let output = git.output().map_err(Failure::at("git log"))?;
            String::from_utf8_lossy(&output.stdout).into_owned()
        }
    };
    let refused = |_| Failure::new("no time for the archive: set SOURCE_DATE_EPOCH outside a git repository");
    text.trim().parse().map_err(refused)
}

/// Writes the archive's sums next to it, in the formats of sha256sum and b3sum.
pub(super) fn write_sums(directory: &Path, archive: &Path) -> Result<(), Failure> {
    let bytes = fs::read(archive).map_err(Failure::at(archive.display()))?;
    let name = archive.file_name().unwrap_or_default().display();
    let sha256: String =
        digest::digest(&digest::SHA256, &bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    for (sums, sum) in [("SHA256SUMS", sha256), ("B3SUMS", blake3::hash(&bytes).to_hex().to_string())] {
        let path = directory.join(sums);
        fs::write(&path, format!("{sum}  {name}\n")).map_err(Failure::at(path.display()))?;
        println!("{sums}: {sum}");
    }
    Ok(())
}
