//! `cargo xtask lab-deps`: installs the programs that `downpour-lab` compares with downpour, as far as Debian has them,
//! and builds two senders from our own sources.

use std::fs;
use std::path::Path;
use std::process::Command;

use xtask::failure::Failure;
use xtask::tools;

/// The file that shows the presence of a Debian package, a program or a header, and the package.
const PACKAGES: [(&str, &str); 12] = [
    ("iperf3", "iperf3"),
    ("kcptun-client", "kcptun"),
    ("rsync", "rsync"),
    ("scp", "openssh-client"),
    ("sshd", "openssh-server"),
    ("srt-file-transmit", "srt-tools"),
    ("uftpd", "uftp"),
    ("unshare", "util-linux"),
    ("ip", "iproute2"),
    ("c++", "g++"),
    ("/usr/include/normApi.h", "libnorm-dev"),
    ("/usr/include/udt/udt.h", "libudt-dev"),
];

/// The built senders: their source below `peers`, and their library.
const BUILT: [(&str, &str, &str); 2] = [("lab-norm", "norm.cpp", "-lnorm"), ("lab-udt", "udt.cpp", "-ludt")];

/// Installs missing packages, and builds the senders.
pub(crate) fn run() -> Result<(), Failure> {
    let missing: Vec<&str> =
        PACKAGES.into_iter().filter(|(sign, _)| !is_installed(sign)).map(|(_, package)| package).collect();
    if missing.is_empty() {
        println!("All packages are installed.");
    } else {
        install(&missing)?;
    }
    build()?;
    if tools::find("hysteria").is_none() {
        println!(
            "hysteria is not in Debian: put the program of https://github.com/apernet/hysteria/releases into PATH."
        );
    }
    println!("Run `downpour-lab peers` to list the measurable programs.");
    Ok(())
}

fn is_installed(sign: &str) -> bool {
    if sign.starts_with('/') { Path::new(sign).exists() } else { tools::find(sign).is_some() }
}

/// Installs with apt-get, if it exists and the user may.
fn install(packages: &[&str]) -> Result<(), Failure> {
    let arguments = [&["install", "--yes", "--no-install-recommends"], packages].concat();
    let line = format!("apt-get {}", arguments.join(" "));
    let why = match tools::find("apt-get") {
        None => "apt-get not found; on Debian",
        Some(_) if !rustix::process::geteuid().is_root() => "only root can install packages",
        Some(program) => {
            println!("{line}");
            return tools::run(Command::new(program).args(&arguments).env("DEBIAN_FRONTEND", "noninteractive"));
        }
    };
    Err(Failure::new(format_args!("missing: {}; {why}: {line}", packages.join(", "))))
}

/// Builds into the directory below cargo's target directory that the lab searches.
fn build() -> Result<(), Failure> {
    let directory = tools::target()?.join("lab-deps");
    fs::create_dir_all(&directory).map_err(Failure::at(directory.display()))?;
    let sources = crate::root().join("peers");
    for (program, source, library) in BUILT {
        let target = directory.join(program);
        let mut compiler = Command::new("c++");
        compiler.args(["-std=c++17", "-O2", "-Wall", "-Wextra", "-o"]).arg(&target).arg(sources.join(source));
        tools::run(compiler.args([library, "-pthread"]))?;
        println!("Built {}.", target.display());
    }
    Ok(())
}
