//! `cargo xtask soak`: the property that the tests check on a few thousand seeds, on as many as there is time for.

use std::num::NonZero;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{panic, thread};

use clap::Args;

use crate::failure::Failure;
use crate::tools;

/// What `soak` understands.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// How long
    #[arg(long, default_value_t = 10)]
    minutes: u64,
    /// The first seed; those after it follow [default: random]
    #[arg(long)]
    seed: Option<u64>,
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
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(|| check_until(until, &next))).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("a panic is a failed seed")).collect()
    });
    let tried = next.into_inner() - first;
    if failed.is_empty() {
        println!("{tried} seeds, all of them end as they must");
        return Ok(());
    }
    failed.sort_unstable();
    Err(Failure::new(format_args!("{} of {tried} seeds fail: {failed:?}", failed.len())))
}

/// Tells of every seed that fails at once, with the command that repeats it.
fn check_until(until: Instant, next: &AtomicU64) -> Vec<u64> {
    let mut failed = Vec::new();
    while Instant::now() < until {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        let checked = panic::catch_unwind(|| sim::property::check(seed));
        let wrong = match checked {
            Ok(Ok(_)) => continue,
            Ok(Err(wrong)) => wrong,
            Err(_) => format!("seed {seed} panics: cargo xtask soak --seed {seed}"),
        };
        eprintln!("{wrong}");
        failed.push(seed);
    }
    failed
}
