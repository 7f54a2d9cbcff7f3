//! Where programs are.

use std::env;
use std::io;
use std::path::{Path, PathBuf};

/// Where programs are looked for: beside this one, then among those that `cargo xtask lab-deps` has built, then in PATH and the folders
/// for administrators, which are not in everybody's PATH.
#[derive(Clone, Debug)]
pub struct Programs {
    lab: PathBuf,
}

impl Programs {
    /// For the program that runs.
    ///
    /// # Errors
    /// A system that does not tell which one that is.
    pub fn of_this() -> io::Result<Self> {
        env::current_exe().map(Self::beside)
    }

    /// With another `downpour-lab` than the program that runs: for tests.
    pub fn beside(lab: PathBuf) -> Self {
        Self { lab }
    }

    /// `downpour-lab` itself.
    pub(super) fn lab(&self) -> &Path {
        &self.lab
    }

    /// The program of this name.
    pub(super) fn find(&self, name: &str) -> Option<PathBuf> {
        let beside = self.lab.parent();
        let built = beside.and_then(Path::parent).map(|target| target.join("lab-deps"));
        let path = env::var_os("PATH").unwrap_or_default();
        let administrators = ["/usr/sbin", "/usr/local/sbin", "/sbin"].map(PathBuf::from);
        let folders =
            beside.map(Path::to_owned).into_iter().chain(built).chain(env::split_paths(&path)).chain(administrators);
        folders.map(|folder| folder.join(name)).find(|file| file.is_file())
    }
}
