//! What was typed.

mod link;
mod simulate;

use clap::{Parser, Subcommand};

use crate::commands::{ReportArgs, ReproduceArgs, RunArgs};
use crate::exit;
use crate::peers::OwnPeer;
use crate::series::SeriesArgs;
pub use link::{ImpairArgs, LinkArgs, LinkOptions, Switch};
pub use simulate::SimulateArgs;

/// Emulated links that real programs run over, and honest comparisons.
#[derive(Debug, Parser)]
#[command(name = "downpour-lab", version, after_long_help = exit::HELP)]
#[command(disable_help_subcommand = true, max_term_width = 100)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run commands over an emulated link
    ///
    /// Makes two hosts out of network namespaces, `a` and `b`, and a link between them that has the rate, the delay and the faults asked for. The
    /// command runs on `a`, that of --peer on `b`. Each finds the other under the name `peer`, and its address in LAB_PEER. Needs no
    /// root where the kernel lets users make namespaces. Says at the end what the link did, and whether the machine kept up.
    #[command(after_help = link::EXAMPLES)]
    Link(Box<LinkArgs>),
    /// Switch the faults of the link one runs over off or on
    ///
    /// For commands of `link`: loss, jitter, reordering, duplication, corruption and marks, in both directions; rate, queue and delay stay.
    Impair(ImpairArgs),
    /// Run downpour's engine over a network in virtual time
    ///
    /// The same options and topologies as for `link`, the same model, and no machine in between: what takes a minute there takes seconds here, and every
    /// run with the same number is the same. All pairs of a topology send at once.
    #[command(after_help = simulate::EXAMPLES)]
    Simulate(Box<SimulateArgs>),
    /// Draw the course of a connection from its trace
    ///
    /// Window, rate, loss estimate, redundancy, round-trip time, queueing delay and open blocks over time, from what `downpour send --qlog` writes.
    Series(SeriesArgs),
    /// Measure which links this machine can emulate, and up to which rate
    ///
    /// Asks questions whose exact answers the model knows: which packets get lost, how long a round trip takes, how much gets through. Takes half a
    /// minute. Run it while the machine does what it does during your experiments.
    Selftest,
    /// Measure what a plan says
    Run(RunArgs),
    /// Draw results, and write them up as one page
    Report(ReportArgs),
    /// Measure an experiment of a document again, draw it and write it up
    Reproduce(ReproduceArgs),
    /// List the programs that can be measured, and what installs those that are absent
    Peers,
    /// Remove what a lab that was killed left behind
    ///
    /// That is at most folders of temporary files: the kernel ends namespaces and what runs in them together with the lab.
    Clean,
    /// One end of a transfer, started by the tables of the peers.
    #[command(hide = true)]
    Peer {
        /// Which.
        #[command(subcommand)]
        end: OwnPeer,
    },
    /// The first process of a host.
    #[command(hide = true)]
    KeepHost,
}
