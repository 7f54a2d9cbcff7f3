//! `cp`, `sync` and `verify`, whose arguments are `[user@]host:path`.

use clap::Args;
use downpour::remote::Location;

use super::groups::{
    BackupArgs, ConnectionArgs, ExistingArgs, OutputArgs, PreserveArgs, PreserveToo, SelectionArgs, SpeedArgs, SshArgs,
    TargetArgs, TraceArgs,
};
use super::paths::PathArgs;
use super::values;

/// `downpour cp`.
#[derive(Args, Debug)]
pub(crate) struct CpArgs {
    #[command(flatten)]
    pub(crate) paths: PathArgs,
    /// Archive: -r -p --owner --group --specials, and a source that is a symbolic link is copied as a link
    #[arg(short, long, help_heading = "What is copied")]
    pub(crate) archive: bool,
    /// Copy folders recursively
    #[arg(short, long, help_heading = "What is copied")]
    pub(crate) recursive: bool,
    #[command(flatten)]
    pub(crate) selection: SelectionArgs,
    /// Preserve modes regardless of the umask; times are always preserved
    ///
    /// Set-user-ID and set-group-ID are preserved only where root receives, with --owner and --group.
    #[arg(short, long, help_heading = "What is preserved")]
    pub(crate) preserve: bool,
    #[command(flatten)]
    pub(crate) preserved: PreserveArgs,
    #[command(flatten)]
    pub(crate) existing: ExistingArgs,
    #[command(flatten)]
    pub(crate) implied: Implied,
    #[command(flatten)]
    pub(crate) shared: CopyArgs,
}

/// What rsync has to be told, and happens here anyway.
#[derive(Args, Debug)]
pub(crate) struct Implied {
    #[arg(short, hide = true)]
    times: bool,
}

/// Further switches that `sync` always implies.
#[derive(Args, Debug)]
pub(crate) struct ImpliedBySync {
    #[command(flatten)]
    always: Implied,
    #[command(flatten)]
    pub(crate) preserved: PreserveToo,
    #[arg(short, hide = true)]
    recursive: bool,
    #[arg(short, hide = true)]
    pub(crate) permissions: bool,
}

/// `downpour sync`.
#[derive(Args, Debug)]
pub(crate) struct SyncArgs {
    #[command(flatten)]
    pub(crate) paths: PathArgs,
    /// Archive: --owner --group --specials; links, modes and times are always preserved
    #[arg(short, long, help_heading = "What is preserved")]
    pub(crate) archive: bool,
    #[command(flatten)]
    pub(crate) selection: SelectionArgs,
    #[command(flatten)]
    pub(crate) preserved: PreserveArgs,
    /// Delete files at the target that are not in the source, unless they are excluded
    ///
    /// What appears or changes there during the transfer is kept, with the folder that it is in.
    #[arg(long, conflicts_with = "files_from", help_heading = "At the target")]
    pub(crate) delete: bool,
    /// Delete at most N names; keep the rest and exit with 23
    #[arg(long, value_name = "N", requires = "delete", help_heading = "At the target")]
    pub(crate) max_delete: Option<u64>,
    /// Delete even if the source is empty; its disk may not be mounted
    #[arg(long, requires = "delete", help_heading = "At the target")]
    pub(crate) force_empty: bool,
    #[command(flatten)]
    pub(crate) existing: ExistingArgs,
    #[command(flatten)]
    pub(crate) implied: ImpliedBySync,
    #[command(flatten)]
    pub(crate) shared: CopyArgs,
}

/// What `cp` and `sync` have in common besides the paths and their selection, which precede other options in the help.
#[derive(Args, Debug)]
pub(crate) struct CopyArgs {
    /// Remove files from the source once they are stored at the target; directories stay
    ///
    /// A file is removed when its copy has its final name and is on the disk there, or was there already and is
    /// unchanged, and only if it has not changed since.
    #[arg(long, conflicts_with = "trust_staging", help_heading = "What is copied")]
    pub(crate) remove_source_files: bool,
    #[command(flatten)]
    pub(crate) at_target: TargetArgs,
    #[command(flatten)]
    pub(crate) backup: BackupArgs,
    #[command(flatten)]
    pub(crate) ssh: SshArgs,
    /// Between two remote hosts, send all data through this machine
    ///
    /// Otherwise the first host sends to the second by itself if its own ssh can log in there without asking, and through
    /// this machine if not.
    #[arg(short = '3', long, help_heading = "The other side")]
    pub(crate) through_here: bool,
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,
    #[command(flatten)]
    pub(crate) speed: SpeedArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) trace: TraceArgs,
    /// Print rsync's numbers at the end, those that are known here
    #[arg(long, hide = true)]
    pub(crate) stats: bool,
    /// Open a live picture of the transfer in the browser
    ///
    /// Needs downpour-lab, beside downpour or in PATH. Its address is printed to stderr, and the picture ends with the
    /// transfer; `downpour-lab web --follow` shows what --qlog has kept.
    #[arg(long, help_heading = "What is shown")]
    pub(crate) web: bool,
}

/// `downpour verify`.
#[derive(Args, Debug)]
pub(crate) struct VerifyArgs {
    /// PATH or USER@HOST:PATH
    #[arg(help = "PATH or [USER@]HOST:PATH", value_name = "A", value_parser = values::location())]
    pub(crate) a: Location,
    /// PATH or [USER@]HOST:PATH to compare with
    #[arg(value_name = "B", value_parser = values::location())]
    pub(crate) b: Location,
    #[command(flatten)]
    pub(crate) selection: SelectionArgs,
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
