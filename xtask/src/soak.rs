//! `cargo xtask soak`: a property that the tests check on a few hundred or thousand seeds, on as many as there is time for.

use std::num::NonZero;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{panic, thread};

use clap::{Args, ValueEnum};

use crate::failure::Failure;
use crate::tools;

/// What `soak` understands.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// The property
    #[arg(value_enum, default_value_t = Property::Transfers)]
    property: Property,
    /// How long
    #[arg(long, default_value_t = 10)]
    minutes: u64,
    /// The first seed; those after it follow [default: random]
    #[arg(long)]
    seed: Option<u64>,
}

/// What must hold for every seed.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum Property {
    /// A transfer over any network ends as it must
    Transfers,
    /// A decoder comes to the right bytes or says what it needs
    Codes,
}

impl Property {
    fn name(self) -> &'static str {
        match self {
            Self::Transfers => "transfers",
            Self::Codes => "codes",
        }
    }

    /// Why a seed breaks it.
    fn check(self, seed: u64) -> Result<(), String> {
        match self {
            Self::Transfers => sim::property::check(seed).map(drop),
            Self::Codes => {
                erasure::fuzzing::check_random_case(seed);
                Ok(())
            }
        }
    }
}

/// Runs seed after seed on every core; an error lists those that broke the property.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    if tools::rerun_optimised()? {
        return Ok(());
    }
    let first = options.seed.unwrap_or_else(|| fastrand::u64(..1 << 48));
    let until = Instant::now() + Duration::from_secs(60 * options.minutes);
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    println!("seeds from {first} on, {threads} at a time, {} minutes", options.minutes);
    let next = AtomicU64::new(first);
    let mut failed: Vec<u64> = thread::scope(|scope| {
        let workers: Vec<_> =
            (0..threads).map(|_| scope.spawn(|| check_until(options.property, until, &next))).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("a panic is a failed seed")).collect()
    });
    let tried = next.into_inner() - first;
    if failed.is_empty() {
        println!("{tried} seeds, all of them as they must be");
        return Ok(());
    }
    failed.sort_unstable();
    Err(Failure::new(format_args!("{} of {tried} seeds fail: {failed:?}", failed.len())))
}

/// Tells of every seed that fails at once, with the command that repeats it.
fn check_until(property: Property, until: Instant, next: &AtomicU64) -> Vec<u64> {
    let mut failed = Vec::new();
    while Instant::now() < until {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        let checked = panic::catch_unwind(|| property.check(seed));
        let wrong = match checked {
            Ok(Ok(())) => continue,
            Ok(Err(wrong)) => wrong,
            Err(_) => format!("seed {seed} panics: cargo xtask soak {} --seed {seed}", property.name()),
        };
        eprintln!("{wrong}");
        failed.push(seed);
    }
    failed
}
