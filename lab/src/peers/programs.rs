//! The locations of programs.

use std::env;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The directories of programs: that of this one, then that of `cargo xtask lab-deps`, then PATH and the directories
/// for administrators, which may not be in PATH.
#[derive(Clone, Debug)]
pub struct Programs {
    lab: PathBuf,
    downpour: Downpour,
}

/// The program that the downpour peers run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Downpour {
    /// The program of that name, found like any other.
    Found,
    /// The running one, which is `downpour` when not called [`NAME`](crate::NAME): it has registered all names of the
    /// plan.
    This,
}

/// The name of downpour's program.
const DOWNPOUR: &str = "downpour";

impl Programs {
    /// Creates the locations for the running program.
    ///
    /// # Errors
    /// A system that does not report the path of the running program.
    pub fn of_this(downpour: Downpour) -> io::Result<Self> {
        Ok(Self { lab: env::current_exe()?, downpour })
    }

    /// Creates the locations with another `downpour-lab` than the running program, for tests.
    pub fn beside(lab: PathBuf) -> Self {
        Self { lab, downpour: Downpour::Found }
    }

    /// Returns a command for `downpour-lab` itself, without arguments.
    pub(super) fn lab(&self) -> Command {
        let mut command = Command::new(&self.lab);
        command.arg0(crate::NAME);
        command
    }

    /// Returns the program of this name.
    pub(super) fn find(&self, name: &str) -> Option<PathBuf> {
        if name == DOWNPOUR && self.downpour == Downpour::This {
            return Some(self.lab.clone());
        }
        let beside = self.lab.parent();
        let built = beside.and_then(Path::parent).map(|target| target.join("lab-deps"));
        let path = env::var_os("PATH").unwrap_or_default();
        let administrators = ["/usr/sbin", "/usr/local/sbin", "/sbin"].map(PathBuf::from);
        let directories =
            beside.map(Path::to_owned).into_iter().chain(built).chain(env::split_paths(&path)).chain(administrators);
        directories.map(|directory| directory.join(name)).find(|file| file.is_file())
    }
}
