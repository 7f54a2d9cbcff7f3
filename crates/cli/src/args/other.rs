//! `doctor`, `pipe`, `completions` and `man`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

use super::groups::{ConnectionArgs, OutputArgs, SpeedArgs, SshArgs, TraceArgs};
use super::values;

/// `downpour doctor`.
#[derive(Args, Debug)]
pub(crate) struct DoctorArgs {
    /// The other machine: [USER@]HOST
    #[arg(value_name = "HOST", value_parser = values::host)]
    pub(crate) host: String,
    #[command(flatten)]
    pub(crate) ssh: SshArgs,
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) trace: TraceArgs,
}

/// `downpour pipe`.
#[derive(Args, Debug)]
pub(crate) struct PipeArgs {
    /// The other machine: [USER@]HOST
    #[arg(value_name = "HOST", value_parser = values::host)]
    pub(crate) host: String,
    /// What runs there, as ssh would run it; everything from here on is its own
    #[arg(required = true, value_name = "CMD", trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) command: Vec<OsString>,
    #[command(flatten)]
    pub(crate) ssh: SshArgs,
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,
    #[command(flatten)]
    pub(crate) speed: SpeedArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) trace: TraceArgs,
}

/// `downpour completions`.
#[derive(Args, Debug)]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: Shell,
}

/// `downpour man`.
#[derive(Args, Debug)]
pub(crate) struct ManArgs {
    /// Write downpour.1, downpour-cp.1 and so on into this folder
    #[arg(value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
}
