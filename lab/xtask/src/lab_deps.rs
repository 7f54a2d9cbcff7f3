//! `cargo xtask lab-deps`: what `downpour-lab` measures beside downpour, as far as Debian has it, and the two senders
//! that are built from sources of our own.

use std::fs;
use std::path::Path;
use std::process::Command;

use xtask::failure::Failure;
use xtask::tools;

/// What shows that a Debian package is there: a program, or a header; and the package.
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

/// Senders of files that are built here: their source below `peers`, and the library they lean on.
const BUILT: [(&str, &str, &str); 2] = [("lab-norm", "norm.cpp", "-lnorm"), ("lab-udt", "udt.cpp", "-ludt")];

/// Installs what is missing, and builds.
pub(crate) fn run() -> Result<(), Failure> {
    let missing: Vec<&str> =
        PACKAGES.into_iter().filter(|(sign, _)| !is_there(sign)).map(|(_, package)| package).collect();
    if missing.is_empty() {
        println!("Every package is there.");
    } else {
        install(&missing)?;
    }
    build()?;
    if tools::find("hysteria").is_none() {
        println!(
            "hysteria is not in Debian: put the program of https://github.com/apernet/hysteria/releases into PATH."
        );
    }
    println!("`downpour-lab peers` tells what can be measured.");
    Ok(())
}

fn is_there(sign: &str) -> bool {
    if sign.starts_with('/') { Path::new(sign).exists() } else { tools::find(sign).is_some() }
}

/// By apt-get, where that is there and this user may.
fn install(packages: &[&str]) -> Result<(), Failure> {
    let arguments = [&["install", "--yes", "--no-install-recommends"], packages].concat();
    let line = format!("apt-get {}", arguments.join(" "));
    let why = match tools::find("apt-get") {
        None => "there is no apt-get here; on Debian",
        Some(_) if !rustix::process::geteuid().is_root() => "only an administrator may install packages",
        Some(program) => {
            println!("{line}");
            return tools::run(Command::new(program).args(&arguments).env("DEBIAN_FRONTEND", "noninteractive"));
        }
    };
    Err(Failure::new(format_args!("missing: {}; {why}: {line}", packages.join(", "))))
}

/// Into the directory of cargo's target directory where the lab looks.
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
