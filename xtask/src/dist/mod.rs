//! `cargo xtask dist`: a program that runs on any Linux of this processor, in an archive with what belongs to it.

mod archive;
mod elf;
mod notices;

use std::env::consts::ARCH;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::Failure;
use crate::tools;

/// What goes into the archive as it stands here.
const FILES: [&str; 4] = ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"];
const UNITS: &str = "packaging/systemd";
/// What the program's completions are for, and the names that shells look for.
const SHELLS: [(&str, &str); 3] = [("bash", "downpour.bash"), ("fish", "downpour.fish"), ("zsh", "_downpour")];

/// Builds it, proves that it is static, and packs it.
pub(crate) fn run() -> Result<(), Failure> {
    if !cfg!(target_os = "linux") {
        return Err(Failure::new("only Linux makes a static program: musl is a Linux C library"));
    }
    let target = format!("{ARCH}-unknown-linux-musl");
    let program = build(&target)?;
    elf::check_static(&program)?;
    let says = said(Command::new(&program).arg("--version"))?;
    let version = env!("CARGO_PKG_VERSION");
    if !says.starts_with(&format!("downpour {version}")) {
        return Err(Failure::new(format_args!("the program calls itself {:?}, not downpour {version}", says.trim())));
    }
    let name = format!("downpour-{version}-{target}");
    let folder = tools::target()?.join("dist");
    let stage = folder.join(&name);
    stage_files(&program, &target, &stage)?;
    let packed = archive::pack(&folder, &name)?;
    archive::write_sums(&folder, &packed)?;
    let length = |path: &Path| fs::metadata(path).map_or(0, |metadata| metadata.len());
    println!("{}", says.trim());
    println!("static program, {} bytes: {}", length(&program), stage.join("downpour").display());
    println!("archive, {} bytes: {}", length(&packed), packed.display());
    Ok(())
}

/// Builds the program; says where it is.
fn build(target: &str) -> Result<PathBuf, Failure> {
    if let Some(rustup) = tools::find("rustup") {
        tools::run(Command::new(rustup).args(["--quiet", "target", "add", target]).current_dir(tools::root()))?;
    }
    let mut cargo = tools::cargo();
    cargo.args(["build", "--profile", "dist", "--package", "cli", "--target", target]);
    let variable = target.replace('-', "_");
    // No path of this machine in the program, so that another machine builds the same bytes.
    let rename = |from: &Path, to: &str| format!("--remap-path-prefix={}={to}", from.display());
    let flags = [rename(tools::root(), "downpour"), rename(&cargo_home()?, "cargo")].join(" ");
    cargo.env(format!("CARGO_TARGET_{}_RUSTFLAGS", variable.to_uppercase()), flags).env_remove("RUSTFLAGS");
    // The C of the dependencies calls no C library, so that the system's compiler does where there is none for musl.
    let own = format!("CC_{variable}");
    if std::env::var_os(&own).is_none() && tools::find("musl-gcc").is_none() {
        cargo.env(own, "cc");
    }
    tools::run(&mut cargo)?;
    Ok(tools::target()?.join(target).join("dist/downpour"))
}

fn cargo_home() -> Result<PathBuf, Failure> {
    let set = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = set.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    home.ok_or_else(|| Failure::new("neither CARGO_HOME nor HOME is set"))
}

/// Lays everything out as the archive will hold it.
fn stage_files(program: &Path, target: &str, stage: &Path) -> Result<(), Failure> {
    match fs::remove_dir_all(stage) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Failure::at(stage.display())(error)),
        _ => Ok(()),
    }?;
    create(&stage.join("systemd"))?;
    copy(program, &stage.join("downpour"))?;
    for name in FILES {
        copy(&tools::root().join(name), &stage.join(name))?;
    }
    for unit in tools::files(&tools::root().join(UNITS), Some("service"))? {
        copy(&unit, &stage.join("systemd").join(unit.file_name().unwrap_or_default()))?;
    }
    notices::write(target, &stage.join("THIRD-PARTY.txt"))?;
    let help = said(Command::new(program).arg("--help"))?;
    let makes = |command: &str| help.lines().any(|line| line.split_whitespace().next() == Some(command));
    if makes("man") {
        create(&stage.join("man"))?;
        said(Command::new(program).arg("man").arg(stage.join("man")))?;
    }
    if makes("completions") {
        create(&stage.join("completions"))?;
        for (shell, name) in SHELLS {
            let script = said(Command::new(program).args(["completions", shell]))?;
            let path = stage.join("completions").join(name);
            fs::write(&path, script).map_err(Failure::at(path.display()))?;
        }
    }
    Ok(())
}

fn create(folder: &Path) -> Result<(), Failure> {
    fs::create_dir_all(folder).map_err(Failure::at(folder.display()))
}

fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    fs::copy(from, to).map(drop).map_err(Failure::at(from.display()))
}

/// What a program prints that ends well.
fn said(command: &mut Command) -> Result<String, Failure> {
    let line = format!("{command:?}");
    let output = command.output().map_err(Failure::at(&line))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        return Err(Failure::new(format_args!("{line}: {}: {}", output.status, complaint.trim())));
    }
    String::from_utf8(output.stdout).map_err(Failure::at(line))
}
