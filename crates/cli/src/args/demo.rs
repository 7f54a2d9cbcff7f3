//! `demo`.

use std::path::PathBuf;

use clap::Args;
use downpour::Rate;
use netsim::Duplex;

use super::groups::OutputArgs;
use super::values;
use crate::rates;

/// The network of the demo unless `--link` says another: 100 Mbit/s, 100 ms there and back, one packet in twenty lost
/// each way.
pub(crate) const DEMO_LINK: &str = "rate=100M,delay=50ms,loss=5%,queue=256KB";

/// `downpour demo`.
#[derive(Args, Debug)]
pub(crate) struct DemoArgs {
    /// The file or folder to send [default: a generated file]
    #[arg(value_name = "PATH", conflicts_with = "size", value_parser = values::path())]
    pub(crate) path: Option<PathBuf>,
    /// Size of the generated file
    #[arg(long, value_name = "SIZE", value_parser = values::size, default_value = "50MB")]
    pub(crate) size: u64,
    /// The link: KEY=VALUE,..., or one for each direction, separated by ` / `
    ///
    /// Keys: rate, delay, jitter, queue, loss, burst, reorder, duplicate, corrupt, mark, mark-above, seed. The delay is
    /// one-way.
    #[arg(long, value_name = "LINK", default_value = DEMO_LINK)]
    pub(crate) link: Duplex,
    /// The rate to send at [default: the link's rate]
    #[arg(long, value_parser = rates::parse)]
    pub(crate) rate: Option<Rate>,
    /// Skip the comparison with TCP
    #[arg(long)]
    pub(crate) no_compare: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
