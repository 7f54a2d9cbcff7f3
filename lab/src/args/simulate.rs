//! The options of `simulate`.

use std::path::PathBuf;

use clap::Args;

use super::LinkOptions;

pub(super) const EXAMPLES: &str = "\
Examples:
  downpour-lab simulate --rate 100M --delay 50ms --queue 1bdp --loss 1% --profile arq
  downpour-lab simulate --loss 5% --profile lt-tcp --set congestion=reno --set congestion.signal=ecn --qlog run.qlog
  downpour-lab simulate --topology dumbbell.toml --size 50MB";

/// Options of `simulate`.
#[derive(Args, Debug)]
pub struct SimulateArgs {
    #[command(flatten)]
    pub(crate) link: LinkOptions,
    /// File with a topology of hosts and links; every pair sends
    #[arg(long, value_name = "FILE")]
    pub(crate) topology: Option<PathBuf>,
    /// Profile of the senders: a name from `downpour profile list`, a file as printed by `downpour profile show`, or
    /// linux-tcp, which sends as Linux does with CUBIC
    #[arg(long, value_name = "NAME|FILE", default_value = "auto")]
    pub(crate) profile: String,
    /// Change a setting of the profile: congestion=cubic, congestion.beta=0.5
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Send at a fixed rate
    #[arg(long = "told", value_name = "RATE")]
    pub(crate) fixed_rate: Option<String>,
    /// Run twice; the second run uses the path cache of the first
    #[arg(long)]
    pub(crate) again: bool,
    /// Size of each transfer
    #[arg(long, default_value = "10MB")]
    pub(crate) size: String,
    /// Number of the run; each has other random losses
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub(crate) run: u64,
    /// Give up after this many seconds of virtual time
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    pub(crate) limit: u64,
    /// Also write the results to FILE as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write qlog traces of all senders to FILE (JSON-SEQ); `series` draws the last
    #[arg(long, value_name = "FILE")]
    pub(crate) qlog: Option<PathBuf>,
}
