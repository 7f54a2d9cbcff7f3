//! The command line.

mod link;
mod simulate;

use clap::{Parser, Subcommand};

use crate::commands::{PackArgs, RecordsArgs, ReportArgs, ReproduceArgs, RunArgs, VerdictsArgs};
use crate::exit;
use crate::peers::OwnPeer;
use crate::series::SeriesArgs;
use crate::web::WebArgs;
pub use link::{ImpairArgs, LinkArgs, LinkOptions, Switch};
pub use simulate::SimulateArgs;

/// Run real programs over emulated links and compare them.
#[derive(Debug, Parser)]
#[command(name = "downpour-lab", version, after_long_help = exit::HELP)]
#[command(disable_help_subcommand = true, max_term_width = 100)]
pub struct Cli {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run commands over an emulated link
    ///
    /// Creates two hosts, `a` and `b`, from network namespaces, and a link between them with the given rate, delay and
    /// impairments. The command runs on `a`, --peer on `b`. Each host resolves the name `peer` to the other,
    /// whose address is also in LAB_PEER. Needs no root if the kernel lets users create namespaces. Prints statistics
    /// of the link at the end, and whether the run is valid.
    #[command(after_help = link::EXAMPLES)]
    Link(Box<LinkArgs>),
    /// Switch the impairments of the surrounding link off or on
    ///
    /// For commands started by `link`. Affects loss, jitter, reordering, duplication, corruption and ECN marks in both
    /// directions; rate, queue and delay remain.
    Impair(ImpairArgs),
    /// Run downpour's engine over a network in virtual time
    ///
    /// Takes the options and topologies of `link` and uses the same model, independent of the machine. A minute of
    /// virtual time takes seconds, and equal run numbers give equal runs. All pairs of a topology send at once.
    #[command(after_help = simulate::EXAMPLES)]
    Simulate(Box<SimulateArgs>),
    /// Plot a connection over time from its trace
    ///
    /// Plots window, rate, loss estimate, overhead, round-trip time, queueing delay and open blocks over time, from
    /// the output of `downpour send --qlog`.
    Series(SeriesArgs),
    /// Measure which links this machine can emulate accurately, and up to which rate
    ///
    /// Compares measurements with the exact answers of the model: lost packets, round-trip times and rates. Takes half
    /// a minute. Run it under the same load as your experiments.
    Selftest,
    /// Run a plan
    Run(RunArgs),
    /// Plot results and write a report
    Report(ReportArgs),
    /// Judge results by their documents' claims
    Verdicts(VerdictsArgs),
    /// List the records behind a number of a verdict
    Records(RecordsArgs),
    /// Compress the records of finished experiments
    Pack(PackArgs),
    /// Repeat an experiment from a paper, plot it and write a report
    Reproduce(ReproduceArgs),
    /// Show the lab in a browser
    Web(WebArgs),
    /// List the programs that can be measured, and how to install missing ones
    Peers,
    /// Remove temporary files of killed labs
    ///
    /// These are temporary directories: the kernel ends namespaces and their processes together with the lab.
    Clean,
    /// One end of a transfer, started by the lab for a peer.
    #[command(hide = true)]
    Peer {
        /// The end.
        #[command(subcommand)]
        end: OwnPeer,
    },
    /// A demonstration over emulated links, started by `web`.
    #[command(hide = true)]
    Demonstrate,
    /// The first process of a host.
    #[command(hide = true)]
    KeepHost,
}
