//! Where programs are.

use std::env;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where programs are looked for: beside this one, then among those that `cargo xtask lab-deps` has built, then in PATH and the folders
/// for administrators, which are not in everybody's PATH.
#[derive(Clone, Debug)]
pub struct Programs {
    lab: PathBuf,
    downpour: Downpour,
}

/// Which program the peers are that are downpour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Downpour {
    /// The one of that name, looked for like any other.
    Found,
    /// The one that runs, which is `downpour` where it is not called [`NAME`](crate::NAME): it has registered what a plan may ask of it.
    This,
}

/// The name of downpour's program.
const DOWNPOUR: &str = "downpour";

impl Programs {
    /// For the program that runs.
    ///
    /// # Errors
    /// A system that does not tell which one that is.
    pub fn of_this(downpour: Downpour) -> io::Result<Self> {
        Ok(Self { lab: env::current_exe()?, downpour })
    }

    /// With another `downpour-lab` than the program that runs: for tests.
    pub fn beside(lab: PathBuf) -> Self {
        Self { lab, downpour: Downpour::Found }
    }

    /// `downpour-lab` itself, to be given its arguments.
    pub(super) fn lab(&self) -> Command {
        let mut command = Command::new(&self.lab);
        command.arg0(crate::NAME);
        command
    }

    /// The program of this name.
    pub(super) fn find(&self, name: &str) -> Option<PathBuf> {
        if name == DOWNPOUR && self.downpour == Downpour::This {
            return Some(self.lab.clone());
        }
        let beside = self.lab.parent();
        let built = beside.and_then(Path::parent).map(|target| target.join("lab-deps"));
        let path = env::var_os("PATH").unwrap_or_default();
        let administrators = ["/usr/sbin", "/usr/local/sbin", "/sbin"].map(PathBuf::from);
        let folders =
            beside.map(Path::to_owned).into_iter().chain(built).chain(env::split_paths(&path)).chain(administrators);
        folders.map(|folder| folder.join(name)).find(|file| file.is_file())
    }
}
