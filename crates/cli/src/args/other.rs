//! `doctor`, `pipe`, `profile`, `completions` and `man`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use clap_complete::Shell;

use super::groups::{NetworkArgs, OutputArgs, ProfileChoice, SpeedArgs, SshArgs, Via};
use super::values;

/// `downpour doctor`.
#[derive(Args, Debug)]
pub(crate) struct DoctorArgs {
    /// The other machine: USER@HOST
    #[arg(help = "The other machine: [USER@]HOST", value_name = "HOST", value_parser = values::host)]
    pub(crate) host: String,
    /// The folder over there that files would go to: its disk is measured [default: the home]
    #[arg(value_name = "DIR")]
    pub(crate) target: Option<PathBuf>,
    /// The size of the transfer whose time is wanted [default: some usual ones]
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    pub(crate) size: Option<u64>,
    #[command(flatten)]
    pub(crate) ssh: SshArgs,
    #[command(flatten)]
    pub(crate) network: NetworkArgs,
    #[command(flatten)]
    pub(crate) speed: SpeedArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// `downpour pipe`.
#[derive(Args, Debug)]
pub(crate) struct PipeArgs {
    /// The other machine: USER@HOST
    #[arg(help = "The other machine: [USER@]HOST", value_name = "HOST", value_parser = values::host)]
    pub(crate) host: String,
    /// What runs there, as ssh would run it; everything from here on is its own
    #[arg(required = true, value_name = "CMD", trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) command: Vec<String>,
    #[command(flatten)]
    pub(crate) ssh: SshArgs,
    /// What carries the data
    #[arg(long, value_enum, value_name = "WHAT", default_value = "auto", help_heading = "The connection")]
    pub(crate) via: Via,
    #[command(flatten)]
    pub(crate) network: NetworkArgs,
    #[command(flatten)]
    pub(crate) speed: SpeedArgs,
    /// Say nothing but errors
    #[arg(short, long, help_heading = "What is shown")]
    pub(crate) quiet: bool,
}

/// `downpour profile`.
#[derive(Debug, Subcommand)]
pub(crate) enum ProfileCommand {
    /// Name every profile
    List,
    /// Print a profile: every choice and every number, and where it comes from
    ///
    /// The output is a file that --profile takes. What stands in it may be left out where it is the same in the profile named `based-on`.
    Show(Box<ShowArgs>),
    /// Print in what two profiles differ
    Diff(Box<DiffArgs>),
}

/// `downpour profile show`.
#[derive(Args, Debug)]
pub(crate) struct ShowArgs {
    /// A name, or a file
    #[arg(value_name = "NAME|FILE", value_parser = values::profile, default_value = "auto")]
    pub(crate) profile: ProfileChoice,
    /// Change one choice of the profile, or one number of a choice: congestion=cubic, congestion.beta=0.5
    #[arg(long, value_name = "KEY=VALUE", value_parser = values::setting)]
    pub(crate) set: Vec<(String, String)>,
    /// What each number may be, too
    #[arg(long)]
    pub(crate) allowed: bool,
}

/// `downpour profile diff`.
#[derive(Args, Debug)]
pub(crate) struct DiffArgs {
    /// A name, or a file
    #[arg(value_name = "NAME|FILE", value_parser = values::profile)]
    pub(crate) first: ProfileChoice,
    /// A name, or a file
    #[arg(value_name = "NAME|FILE", value_parser = values::profile)]
    pub(crate) second: ProfileChoice,
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
