//! Transfers between the local host and hosts that ssh reaches.

mod announced;
mod answer;
mod asked;
mod bootstrap;
mod copy;
pub mod doctor;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod greeting;
mod host_to_host;
mod host_to_host_frames;
mod host_to_host_remote;
mod launch;
mod location;
mod locator;
mod login;
mod path_expansion;
mod pipe;
mod pipe_end;
mod pipe_frames;
mod pipe_guard;
mod pipe_output;
mod process;
mod request;
mod required_features;
mod restricted_root;
mod rights;
mod serve;
mod signals;
mod speech;
mod ssh;
mod standard_io;
mod tunnel;
mod tunnel_end;
mod via;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use crate::error::Error;
use crate::files::{Existing, ReceiveRequest, SourceOptions};
use crate::options::EngineOptions;
use crate::transfer::{TransferControl, TransferOptions};
use request::{RemoteTask, Request};

pub use bootstrap::{Bootstrap, BootstrapEvent, bootstrap, own_digest};
pub use copy::copy;
pub use doctor::doctor;
pub use location::{Location, LocationError, host_name};
pub use pipe::{PipeEvent, PipeOptions, RunningPipe, pipe};
pub use restricted_root::{Access, KeyRestriction};
pub use serve::{ServeResult, serve};
pub use speech::{StderrHandler, StderrPart};
pub use tunnel::{Tunnel, tunnel};
pub use via::{CarrierChoice, PathOptions};

/// How to call the user's ssh.
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
    /// Name of the remote downpour; by default `downpour`, also searched in `~/.local/bin` and `~/.cargo/bin`.
    pub remote_program: Option<String>,
    /// Whether ssh may prompt the user. Otherwise its messages become part of the error.
    pub asks: bool,
    /// Takes the stderr output of ssh and the remote host, which may be hostile; `None` lets it through to this
    /// process's stderr unchanged.
    pub stderr_handler: Option<StderrHandler>,
}

impl Default for SshOptions {
    fn default() -> Self {
        Self {
            command: vec!["ssh".into()],
            port: None,
            identity: None,
            jump: None,
            remote_program: None,
            asks: true,
            stderr_handler: None,
        }
    }
}

/// How to reach the host of streams.
#[derive(Clone, Debug)]
pub struct HostOptions {
    /// Argument for ssh: `[user@]host`.
    pub host: String,
    /// How to call ssh.
    pub ssh: SshOptions,
    /// The path of the data.
    pub path: PathOptions,
    /// The sending profile and buffer limits of both sides.
    pub engine: EngineOptions,
}

impl HostOptions {
    /// Logs in, and requests this task.
    fn log_in(
        &self,
        task: RemoteTask,
        switch: &Arc<TransferControl>,
        on_note: &mut dyn FnMut(String),
    ) -> Result<ssh::Remote, Error> {
        let request = Request::new(task, &self.path, &self.engine);
        let remote = launch::log_in((&self.ssh, &self.host, self.path.family), &request, switch, on_note);
        remote.map_err(|error| switch.stopped().map_or(error, Error::from))
    }
}

/// Description of a copy.
#[derive(Clone, Debug)]
pub struct HostCopy {
    /// Sources, at least one; all on the local host, or all on one remote host.
    pub sources: Vec<Location>,
    /// Host of the target; `None` for the local host.
    pub target_host: Option<String>,
    /// Between two remote hosts: whether the local host always relays the data.
    pub relay_locally: bool,
    /// Options of the receiver; [`ReceiveRequest::requested`] is derived from the sources.
    pub receive: ReceiveRequest,
    /// Which parts of the sources are sent.
    pub scan: SourceOptions,
    /// Keep the name of a directory even if the target does not exist yet.
    pub keeps_names: bool,
    /// Whether a remote sender may announce names that were not requested.
    pub trusts_sender: bool,
    /// How to call ssh.
    pub ssh: SshOptions,
    /// The path of the data.
    pub path: PathOptions,
    /// Options of the local side. A remote side sends with the same engine, has a path cache of its own unless
    /// [`TransferOptions::paths`] is `None`, and writes no files about the transfer.
    pub options: TransferOptions,
}

impl HostCopy {
    /// Creates a copy of `sources`, which replaces differing files at `target`, and otherwise has the defaults of its
    /// parts.
    #[must_use]
    pub fn new(sources: Vec<Location>, target: Location) -> Self {
        let (target_host, target) = target.into_parts();
        Self {
            sources,
            target_host,
            relay_locally: false,
            receive: ReceiveRequest { existing: Existing::Replace, ..ReceiveRequest::to_target(target) },
            scan: SourceOptions::default(),
            keeps_names: false,
            trusts_sender: false,
            ssh: SshOptions::default(),
            path: PathOptions::default(),
            options: TransferOptions::default(),
        }
    }
}
