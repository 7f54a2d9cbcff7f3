//! `cargo xtask soak`: a property that the tests check on a few hundred or thousand seeds, on as many as time allows.

use std::num::NonZero;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{panic, thread};

use clap::{Args, ValueEnum};

use xtask::failure::Failure;
use xtask::tools;

/// The options of `soak`.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// The property
    #[arg(value_enum, default_value_t = Property::Objects)]
    property: Property,
    /// How long
    #[arg(long, default_value_t = 10)]
    minutes: u64,
    /// The first seed; those after it follow [default: random]
    #[arg(long)]
    seed: Option<u64>,
}

/// A property of every seed.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Property {
    /// A transfer of objects over any network ends as it must
    Objects,
    /// A transfer of streams does
    Streams,
    /// A transfer by the documents' systems does
    Documents,
    /// A transfer by arq, lt-tcp and ttp with any feedback and loss detection does
    Choices,
    /// A transfer between hosts that change their addresses does
    Moving,
    /// A transfer over paths with a shrinking MTU does
    Shrinking,
    /// A transfer of streams over paths with a shrinking MTU does
    ShrinkingStreams,
    /// A decoder recovers the right bytes or returns its need
    Codes,
    /// A receiver changes nothing outside the request, whatever the sender sends
    Receiving,
}

impl Property {
    /// Its name on the command line.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// Why a seed breaks it. Some panic instead.
    fn check(self, seed: u64) -> Result<(), String> {
        use sim::property::{self, migration, mtu};
        match self {
            Self::Objects => property::check(seed).map(drop),
            Self::Streams => property::check_streams(seed).map(drop),
            Self::Documents => property::check_documents(seed).map(drop),
            Self::Choices => property::check_choices(seed).map(drop),
            Self::Moving => migration::check(seed).map(drop),
            Self::Shrinking => mtu::check(seed, false).map(drop),
            Self::ShrinkingStreams => mtu::check(seed, true).map(drop),
            Self::Codes => {
                hostile::check_random_code(seed);
                Ok(())
            }
            Self::Receiving => {
                hostile::check_random_case(seed);
                Ok(())
            }
        }
    }
}

/// The checked seeds.
#[derive(Clone, Debug)]
pub(crate) struct Soaked {
    /// The first of them; the others follow it.
    pub(crate) first: u64,
    pub(crate) tried: u64,
    /// Those that break the property, in order.
    pub(crate) failed: Vec<u64>,
}

/// Runs seed after seed on every core; an error lists those that broke the property.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    if tools::rerun_optimised(tools::root(), "xtask")? {
        return Ok(());
    }
    let Soaked { tried, failed, .. } = soak(options.property, options.seed, Duration::from_secs(60 * options.minutes));
    if failed.is_empty() {
        println!("{tried} seeds, all passed");
        return Ok(());
    }
    Err(Failure::new(format_args!("{} of {tried} seeds fail: {failed:?}", failed.len())))
}

/// Checks seed after seed on every core, from `first` or a random one on, and prints why one breaks the property.
pub(crate) fn soak(property: Property, first: Option<u64>, time: Duration) -> Soaked {
    let first = first.unwrap_or_else(|| fastrand::u64(..1 << 48));
    let until = Instant::now() + time;
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    println!("{}: seeds from {first} on, {threads} at a time, {} s", property.name(), time.as_secs());
    let next = AtomicU64::new(first);
    let mut failed: Vec<u64> = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(|| check_until(property, until, &next))).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("a panic is a failed seed")).collect()
    });
    failed.sort_unstable();
    Soaked { first, tried: next.into_inner() - first, failed }
}

/// Prints every failed seed at once, with the command that repeats it.
fn check_until(property: Property, until: Instant, next: &AtomicU64) -> Vec<u64> {
    let mut failed = Vec::new();
    while Instant::now() < until {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        let checked = panic::catch_unwind(|| property.check(seed));
        let wrong = match checked {
            Ok(Ok(())) => continue,
            Ok(Err(wrong)) => wrong,
            Err(_) => format!("seed {seed} panics: cargo xtask soak {} --seed {seed} --minutes 1", property.name()),
        };
        eprintln!("{wrong}");
        failed.push(seed);
    }
    failed
}
