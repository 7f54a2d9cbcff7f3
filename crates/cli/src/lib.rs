//! The program `downpour`: copies files fast over networks that lose packets.
//!
//! Everything is in [`main`], so that a crate can add a congestion controller or a schedule of its own and be the whole
//! program: `lab/examples/own-controller` is one. This crate chooses exit codes, messages and escapes; the library
//! `downpour` does the work.

mod advice;
mod announce;
mod args;
mod background;
mod blocking;
mod bootstrap;
mod clean;
mod complete;
mod config;
mod copy;
mod demo;
mod doctor;
mod escape;
mod exit;
mod interrupt;
mod json;
mod man_pages;
mod notices;
mod on_end;
mod options;
mod output;
mod pipe;
mod print;
mod profile;
mod progress;
mod prompt;
mod proxy;
mod rate;
mod rate_timetable;
mod recv;
mod relative;
mod remote;
mod send;
mod stats;
mod status;
mod stop_signal;
mod stream;
mod ticket;
mod tunnel;
mod verify;
mod version;
mod watch;
mod web;

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

use downpour::profile::AlgorithmRegistry;
use rustix::process::{DumpableBehavior, Resource, Rlimit, getrlimit, setrlimit};
use tokio::runtime::Runtime;

use args::{Args, Command, OutputArgs};
use bootstrap::Offer;
use exit::{Code, Failure};
use interrupt::SignalHandlers;
use stop_signal::stopping;

/// Runs the program with these arguments, the first of which is its name; returns the exit code. Exits the process
/// itself for `--help`, `--version` and invalid arguments.
///
/// Profiles may choose the controllers and schedules in `names`.
pub fn main(arguments: impl IntoIterator<Item = OsString>, names: AlgorithmRegistry) -> ExitCode {
    hide_memory();
    report_file_size_limit();
    interrupt::ignore_progress_signal();
    _ = NAMES.set(names);
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let args = match config::read(&arguments) {
        Ok(args) => args,
        Err(failure) => {
            let shown = OutputArgs { json: args::wants_json(&arguments), ..OutputArgs::default() };
            return ExitCode::from(finish(shown, Err(failure)));
        }
    };
    let (shown, on_end) = (args.output, args.on_end.clone());
    announce::begin(&args);
    let result = event_loop().and_then(|runtime| {
        let result = runtime.block_on(run_with_offer(args, &arguments));
        // Blocking work, such as the read of a large file for a stopped copy, is not awaited.
        runtime.shutdown_background();
        result
    });
    announce::end();
    let code = finish(shown, result);
    if let Some(command) = on_end {
        on_end::run(&command, code);
    }
    ExitCode::from(code)
}

/// Fewest open files for a transfer, which opens the parent directories of a name.
const MIN_OPEN_FILES: u64 = 64;

/// Creates the event loop.
fn event_loop() -> Result<Runtime, Failure> {
    // tokio panics if it cannot open the pipe for signals.
    let limits = getrlimit(Resource::Nofile);
    if let Some(limit) = limits.current.filter(|limit| *limit < MIN_OPEN_FILES) {
        let raised = setrlimit(Resource::Nofile, Rlimit { current: Some(MIN_OPEN_FILES), ..limits });
        let message = format!("only {limit} open files allowed: raise the limit to {MIN_OPEN_FILES} (ulimit -n)");
        raised.map_err(|_| Failure::new(Code::Other, message))?;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| Failure::new(Code::Other, format!("cannot create the event loop: {error}")))
}

/// Runs a command, and once more after downpour was installed on a remote host that lacked it.
async fn run_with_offer(args: Args, arguments: &[OsString]) -> Result<u8, Failure> {
    let offer = Offer::of(&args);
    match (run(args).await, offer) {
        (Err(failure), Some(offer)) => match &failure.lacks_program {
            Some(host) if offer.make(host, &mut signals()?).await? => run(config::read(arguments)?).await,
            _ => Err(failure),
        },
        (result, _) => result,
    }
}

/// Returns docs/COMMANDS.md, from the tables of commands and options.
#[must_use]
pub fn commands_reference() -> String {
    args::reference()
}

/// Keeps keys out of core dumps and hides them from other processes of the same user. Failure is ignored: the transfer
/// works without this protection, and no known system refuses the call.
fn hide_memory() {
    _ = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable);
}

/// Lets a write beyond the limit of a file's size (`ulimit -f`) fail with a message, instead of SIGXFSZ ending the process.
/// Failure is ignored: no known system refuses the call.
fn report_file_size_limit() {
    static IS_BEYOND: AtomicBool = AtomicBool::new(false);
    _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, &IS_BEYOND);
}

/// The names that this program adds to those of the engine.
static NAMES: OnceLock<AlgorithmRegistry> = OnceLock::new();

/// Returns the names that profiles may use.
fn names() -> &'static AlgorithmRegistry {
    NAMES.get_or_init(systems::registry)
}

/// Reports an error, checks that all output was written, and returns the exit code.
fn finish(shown: OutputArgs, result: Result<u8, Failure>) -> u8 {
    match result {
        Ok(code) => match print::is_complete() {
            Ok(()) => code,
            Err(failure) => {
                output::failed(shown, &failure);
                let is_worse = code == Code::Done as u8 || stopping().is_some();
                if is_worse { failure.code } else { code }
            }
        },
        Err(failure) => {
            output::failed(shown, &failure);
            failure.code
        }
    }
}

/// Runs a command; returns the exit code of a full or partial success.
async fn run(args: Args) -> Result<u8, Failure> {
    match args.command {
        // It handles signals itself while it has data to save.
        Command::Remote if args.remote.digest => remote::digest(),
        Command::Remote => Ok(exit::of_remote(remote::run(args.remote).await)),
        // It starts a helper process before signals are handled.
        Command::Pipe => pipe::run(args).await,
        Command::Clean => clean::run(&args),
        Command::Status => status::run(&args),
        Command::Complete => Ok(complete::run(&args)),
        Command::Completions => Ok(man_pages::completions(&args)),
        Command::Man => man_pages::man(&args),
        Command::ProfileList => Ok(profile::list()),
        Command::ProfileShow => profile::show(&args),
        Command::ProfileDiff => profile::diff(&args),
        Command::Send if stream::is_requested(&args) => stream::send(args).await,
        Command::Send => send::run(args, &mut signals()?).await,
        Command::Recv => recv::run(args, &mut signals()?).await,
        Command::Demo => demo::run(args, &mut signals()?).await,
        Command::Cp | Command::Sync => copy::run(args, &mut signals()?).await,
        Command::Verify => verify::run(args, &mut signals()?).await,
        Command::Bootstrap => bootstrap::run(args, &mut signals()?).await,
        Command::Doctor => doctor::run(args, &mut signals()?).await,
        Command::Tunnel => tunnel::run(args).await,
        Command::Proxy => proxy::run(args).await,
    }
}

fn signals() -> Result<SignalHandlers, Failure> {
    taken(SignalHandlers::install())
}

fn taken(signals: std::io::Result<SignalHandlers>) -> Result<SignalHandlers, Failure> {
    signals.map_err(|error| Failure::new(Code::Other, format!("cannot listen for signals: {error}")))
}
