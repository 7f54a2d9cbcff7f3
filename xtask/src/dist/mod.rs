//! `cargo xtask dist`: a program that runs on any Linux of this processor, in an archive with its files.

mod archive;
mod elf;
mod linked;
mod notices;
mod sbom;
mod verify;

use std::env::consts::ARCH;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;

use xtask::failure::Failure;
use xtask::tools;

/// The files that go into the archive unchanged.
const FILES: [&str; 4] = ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"];
const UNITS: &str = "packaging/systemd";
/// The shells of the program's completions, and the file names that they expect.
const SHELLS: [(&str, &str); 3] = [("bash", "downpour.bash"), ("fish", "downpour.fish"), ("zsh", "_downpour")];

/// The options of `dist`.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Build a second time, in another directory, and compare the two archives byte by byte
    #[arg(long)]
    verify: bool,
}

/// Builds the program, proves that it is static, and packs it.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    if !cfg!(target_os = "linux") {
        return Err(Failure::new("only Linux makes a static program: musl is a Linux C library"));
    }
    if options.verify {
        verify::require_clean()?;
    }
    let here = Source::at(tools::root(), tools::target()?);
    let packed = here.pack(archive::time()?)?;
    archive::write_sums(&here.directory(), &packed)?;
    if options.verify { verify::run(&packed) } else { Ok(()) }
}

/// A checkout, and cargo's target directory for it.
struct Source {
    root: PathBuf,
    target: PathBuf,
    triple: String,
}

impl Source {
    fn at(root: &Path, target: PathBuf) -> Self {
        Self { root: root.to_owned(), target, triple: format!("{ARCH}-unknown-linux-musl") }
    }

    /// Where archives go.
    fn directory(&self) -> PathBuf {
        self.target.join("dist")
    }

    /// Builds the program and packs it, every file as of `time`; returns the path of the archive.
    fn pack(&self, time: u64) -> Result<PathBuf, Failure> {
        let program = self.build()?;
        elf::check_static(&program)?;
        let says = said(Command::new(&program).arg("--version"))?;
        let version = env!("CARGO_PKG_VERSION");
        if !says.starts_with(&format!("downpour {version}")) {
            return Err(Failure::new(format_args!("the program printed {:?}, not downpour {version}", says.trim())));
        }
        let name = format!("downpour-{version}-{}", self.triple);
        let stage = self.directory().join(&name);
        self.stage(&program, &stage)?;
        let packed = archive::pack(&self.directory(), &name, time)?;
        let length = |path: &Path| fs::metadata(path).map_or(0, |metadata| metadata.len());
        println!("{}", says.trim());
        println!("static program, {} bytes: {}", length(&program), stage.join("downpour").display());
        println!("archive, {} bytes: {}", length(&packed), packed.display());
        Ok(packed)
    }

    /// Builds the program; returns its path.
    fn build(&self) -> Result<PathBuf, Failure> {
        let triple = &self.triple;
        if let Some(rustup) = tools::find("rustup") {
            tools::run(Command::new(rustup).args(["--quiet", "target", "add", triple]).current_dir(&self.root))?;
        }
        let mut cargo = tools::cargo(tools::root());
        cargo.current_dir(&self.root).args(["build", "--locked", "--profile", "dist", "--package", "downpour-cli"]);
        cargo.args(["--target", triple, "--target-dir"]).arg(&self.target);
        let variable = triple.replace('-', "_");
        // No path of this machine in the program, so that another machine builds the same bytes.
        let rename = |from: &Path, to: &str| format!("--remap-path-prefix={}={to}", from.display());
        // The last matching one counts.
        let renamed = [(self.root.as_path(), "downpour"), (&self.target, "target"), (&cargo_home()?, "cargo")];
        let flags = renamed.map(|(from, to)| rename(from, to)).join(" ");
        cargo.env(format!("CARGO_TARGET_{}_RUSTFLAGS", variable.to_uppercase()), flags).env_remove("RUSTFLAGS");
        // The C of the dependencies calls no C library, so the system's compiler suffices without one for musl.
        let own = format!("CC_{variable}");
        if std::env::var_os(&own).is_none() && tools::find("musl-gcc").is_none() {
            cargo.env(own, "cc");
        }
        tools::run(&mut cargo)?;
        Ok(self.target.join(triple).join("dist/downpour"))
    }

    /// Lays everything out as the archive will hold it.
    fn stage(&self, program: &Path, stage: &Path) -> Result<(), Failure> {
        match fs::remove_dir_all(stage) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Failure::at(stage.display())(error)),
            _ => Ok(()),
        }?;
        for directory in ["systemd", "man", "completions"] {
            let directory = stage.join(directory);
            fs::create_dir_all(&directory).map_err(Failure::at(directory.display()))?;
        }
        copy(program, &stage.join("downpour"))?;
        for name in FILES {
            copy(&self.root.join(name), &stage.join(name))?;
        }
        for unit in tools::files(&self.root.join(UNITS), Some("service"))? {
            copy(&unit, &stage.join("systemd").join(unit.file_name().unwrap_or_default()))?;
        }
        let linked = linked::read(&self.root, &self.triple)?;
        notices::write(&linked, &stage.join("THIRD-PARTY.txt"))?;
        sbom::write(&self.root, &linked, &stage.join("sbom.cdx.json"))?;
        said(Command::new(program).args(["man", "--write"]).arg(stage.join("man")))?;
        for (shell, name) in SHELLS {
            let script = said(Command::new(program).args(["completions", shell]))?;
            let path = stage.join("completions").join(name);
            fs::write(&path, script).map_err(Failure::at(path.display()))?;
        }
        Ok(())
    }
}

fn cargo_home() -> Result<PathBuf, Failure> {
    let set = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = set.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    home.ok_or_else(|| Failure::new("neither CARGO_HOME nor HOME is set"))
}

fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    fs::copy(from, to).map(drop).map_err(Failure::at(from.display()))
}

/// The output of a program that succeeds.
fn said(command: &mut Command) -> Result<String, Failure> {
    let line = format!("{command:?}");
    let output = command.output().map_err(Failure::at(&line))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        return Err(Failure::new(format_args!("{line}: {}: {}", output.status, complaint.trim())));
    }
    String::from_utf8(output.stdout).map_err(Failure::at(line))
}
