//! The program `downpour-lab`: emulated links for real programs, and fair comparisons.

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::OnceLock;

use clap::Parser as _;
use sim::{LINUX_TCP, linux_tcp};
use transport::Profile;
use transport::profile::{AlgorithmRegistry, ProfileError};

use crate::args::{Cli, Command, Switch};
use crate::exit::{Code, Failure};
use crate::peers::{self, Downpour, Programs};
use crate::runner::StopFlag;
use crate::trial::Trials;
use crate::{commands, control, link, output, selftest, series, simulate, testbed, web};

/// Runs the program with these arguments, the first of which is the program's name; returns the exit code. Ends the
/// process itself for `--help`, `--version` and invalid arguments.
///
/// The lab starts its own program again, under the name [`NAME`](crate::NAME), for the hosts and for some peers. A
/// program that embeds the lab has to call this when started under that name. Profiles may choose the controllers and
/// schedules in `names`.
pub fn main(arguments: impl IntoIterator<Item = OsString>, downpour: Downpour, names: AlgorithmRegistry) -> ExitCode {
    _ = NAMES.set(names);
    let ended = run(Cli::parse_from(arguments).command, downpour).and_then(|code| match output::is_complete() {
        Err(failure) => Err(Failure { code: if code == Code::Done as u8 { failure.code } else { code }, ..failure }),
        Ok(()) => Ok(code),
    });
    ExitCode::from(ended.unwrap_or_else(|failure| {
        output::warn(&format!("downpour-lab: {}", failure.message));
        failure.code
    }))
}

/// The algorithms that this program adds to those of the engine.
static NAMES: OnceLock<AlgorithmRegistry> = OnceLock::new();

/// Returns the registry of algorithms for profiles.
pub(crate) fn names() -> &'static AlgorithmRegistry {
    NAMES.get_or_init(systems::registry)
}

/// Returns the profile of a simulated sender, by name, with these choices: one of the engine's, or `linux-tcp`, which
/// only the simulator has.
///
/// # Errors
/// No such profile or choice.
pub(crate) fn simulated_profile<'a>(
    name: &str,
    choices: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<Profile, String> {
    let mut choices = choices.into_iter().peekable();
    if name == LINUX_TCP {
        return match choices.peek() {
            Some((key, _)) => Err(format!("{key}: {LINUX_TCP} has no choices: omit it")),
            None => Ok(linux_tcp()),
        };
    }
    let mut profile = names().profile(name).map_err(|error| match error {
        ProfileError::UnknownName { .. } => format!("{error}, {LINUX_TCP}"),
        error => error.to_string(),
    })?;
    profile.set_all(choices).map_err(|error| error.to_string())?;
    Ok(profile)
}

fn run(command: Command, downpour: Downpour) -> Result<u8, Failure> {
    match command {
        Command::Link(args) => link::run(&args),
        Command::Impair(args) => {
            control::set_impaired(args.switch == Switch::On).map(|()| Code::Done as u8).map_err(|error| {
                Failure::new(
                    Code::Other,
                    format_args!("no surrounding link: use this within `downpour-lab link`: {error}"),
                )
            })
        }
        Command::Peers => Programs::of_this(downpour)
            .map(|programs| output::say(&peers::table(&programs)))
            .map(|()| Code::Done as u8)
            .map_err(|error| Failure::new(Code::Other, error)),
        Command::Peer { end } => {
            peers::run_own(end).map(|()| Code::Done as u8).map_err(|error| Failure::new(Code::Other, error))
        }
        Command::Run(args) => commands::run(&args, &trials(downpour)?, &stop()?),
        Command::Pack(args) => commands::pack(&args),
        Command::Report(args) => commands::report(&args),
        Command::Verdicts(args) => commands::verdicts(&args),
        Command::Records(args) => commands::records(&args),
        Command::Reproduce(args) => commands::reproduce(&args, &trials(downpour)?, &stop()?),
        Command::Simulate(args) => simulate::run(&args),
        Command::Series(args) => series::run(&args),
        Command::Web(args) => web::run(&args, downpour, &stop()?),
        Command::Demonstrate => web::demonstrate(),
        Command::Selftest => selftest::run(),
        Command::Clean => clean(),
        Command::KeepHost => {
            testbed::keep().map(|()| Code::Done as u8).map_err(|error| Failure::new(Code::Other, error))
        }
    }
}

/// Returns the measurement of runs.
fn trials(downpour: Downpour) -> Result<Trials, Failure> {
    Trials::new(downpour).map_err(|error| Failure::new(Code::Other, error))
}

fn stop() -> Result<StopFlag, Failure> {
    StopFlag::on_signals().map_err(|error| Failure::new(Code::Other, error))
}

fn clean() -> Result<u8, Failure> {
    let mut removed = Vec::new();
    for parent in [std::env::temp_dir(), peers::MEMORY.into()] {
        if parent.is_dir() {
            let error = |error| Failure::new(Code::Other, format_args!("cannot read {}: {error}", parent.display()));
            removed.extend(testbed::clean(&parent).map_err(error)?);
        }
    }
    for directory in &removed {
        output::say(&format!("removed {}\n", directory.display()));
    }
    if removed.is_empty() {
        output::say("no temporary directories of killed labs\n");
    }
    Ok(Code::Done as u8)
}
