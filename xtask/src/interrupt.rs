//! `cargo xtask interrupt`: the test that interrupts the program at random moments, with many more of them.

use clap::Args;

use xtask::failure::Failure;
use xtask::tools;

/// The options of `interrupt`.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// How many interruptions
    #[arg(default_value_t = 1000)]
    count: u64,
    /// The first seed; those after it follow [default: random]
    #[arg(long)]
    seed: Option<u64>,
}

/// Runs the test; its output has the seeds.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let mut test = tools::cargo(tools::root());
    test.args(["test", "--package", "downpour-cli", "--test", "cli", "--", "--nocapture", "interrupting::"]);
    test.env("INTERRUPTIONS", options.count.to_string());
    if let Some(seed) = options.seed {
        test.env("INTERRUPTION_SEED", seed.to_string());
    }
    tools::run(&mut test)
}
