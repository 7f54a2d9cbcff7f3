//! Transfers between this machine and one that ssh reaches.

mod copy;
pub mod doctor;
mod launch;
mod location;
mod locator;
mod pipe;
mod pipe_end;
mod pipe_frames;
mod place;
mod process;
mod request;
mod serve;
mod ssh;

use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use net::Family;
use transport::Profile;

use crate::files::{ReceiveSpec, ScanOptions};
use serde::{Deserialize, Serialize};

pub use copy::copy;
pub use doctor::doctor;
pub use location::{Location, LocationError};
pub use pipe::{Pipe, PipeEvent, Piping, pipe};
pub use serve::{Served, serve};

/// What the line begins with in which the other side says where it is.
const ANSWER: &str = "DOWNPOUR1 ";

/// How the user's own ssh is called.
#[derive(Clone, Debug)]
pub struct SshOptions {
    /// The program and its first arguments; by default `ssh`.
    pub command: Vec<OsString>,
    /// `-p`.
    pub port: Option<u16>,
    /// `-i`.
    pub identity: Option<PathBuf>,
    /// `-J`.
    pub jump: Option<String>,
    /// What downpour is called over there; by default `downpour`, also looked for in `~/.local/bin` and `~/.cargo/bin`.
    pub remote_program: Option<String>,
}

impl Default for SshOptions {
    fn default() -> Self {
        Self { command: vec!["ssh".into()], port: None, identity: None, jump: None, remote_program: None }
    }
}

/// What carries the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Via {
    /// UDP, or ssh where that is closed.
    #[default]
    Auto,
    /// UDP only.
    Udp,
    /// ssh's own connection only.
    Ssh,
}

/// A copy: what goes from where to where, and how.
#[derive(Clone, Debug)]
pub struct Copy {
    /// At least one; all on this machine, or all on one other.
    pub sources: Vec<Location>,
    /// The machine that the target is on; `None` for this one.
    pub target_host: Option<String>,
    /// What the receiving side is asked for; [`ReceiveSpec::requested`] follows from the sources.
    pub receive: ReceiveSpec,
    /// Which of the sources' names are sent.
    pub scan: ScanOptions,
    /// A directory keeps its name, also where the target does not exist yet.
    pub keeps_names: bool,
    /// A file that gets the BLAKE3 of every file, in b3sum's format.
    pub checksums: Option<PathBuf>,
    /// What carries the data.
    pub via: Via,
    /// How ssh is called.
    pub ssh: SshOptions,
    /// UDP ports that the remote side may take.
    pub ports: Option<RangeInclusive<u16>>,
    /// IP versions that may be used.
    pub family: Family,
    /// How the engine behaves.
    pub profile: Profile,
    /// How long the other side may be silent.
    pub dead_after: Duration,
    /// For how long a broken connection is made again, counted from the last time that anything arrived.
    pub retry_for: Option<Duration>,
    /// A file to which the engine's trace is appended (qlog, JSON text sequences).
    pub qlog: Option<PathBuf>,
}
