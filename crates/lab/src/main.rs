//! The program `downpour-lab`: emulated links that real programs run over, and honest comparisons.

use std::process::ExitCode;

use clap::Parser as _;
use lab::args::{Cli, Command, Switch};
use lab::exit::{Code, Failure};
use lab::peers::{self, Programs};
use lab::runner::Stop;
use lab::trial::Trials;
use lab::{commands, control, link, selftest, series, simulate, space};

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            eprintln!("downpour-lab: {}", failure.message);
            ExitCode::from(failure.code)
        }
    }
}

fn run(command: Command) -> Result<u8, Failure> {
    match command {
        Command::Link(args) => link::run(&args),
        Command::Impair(args) => control::set_impaired(args.switch == Switch::On)
            .map(|()| Code::Done as u8)
            .map_err(|error| Failure::new(Code::Other, format_args!("not within a `downpour-lab link`: {error}"))),
        Command::Peers => Programs::of_this()
            .map(|programs| print!("{}", peers::table(&programs)))
            .map(|()| Code::Done as u8)
            .map_err(|error| Failure::new(Code::Other, error)),
        Command::Peer { end } => {
            peers::run_own(end).map(|()| Code::Done as u8).map_err(|error| Failure::new(Code::Other, error))
        }
        Command::Run(args) => commands::run(&args, &trials()?, &stop()?),
        Command::Report(args) => commands::report(&args),
        Command::Reproduce(args) => commands::reproduce(&args, &trials()?, &stop()?),
        Command::Simulate(args) => simulate::run(&args),
        Command::Series(args) => series::run(&args),
        Command::Selftest => selftest::run(),
        Command::Clean => clean(),
        Command::KeepHost => space::keep().map(|()| Code::Done as u8).map_err(|error| Failure::new(Code::Other, error)),
    }
}

/// What makes runs.
fn trials() -> Result<Trials, Failure> {
    Trials::new().map_err(|error| Failure::new(Code::Other, error))
}

fn stop() -> Result<Stop, Failure> {
    Stop::on_signals().map_err(|error| Failure::new(Code::Other, error))
}

fn clean() -> Result<u8, Failure> {
    let mut removed = Vec::new();
    for parent in [std::env::temp_dir(), peers::MEMORY.into()] {
        if parent.is_dir() {
            let error = |error| Failure::new(Code::Other, format_args!("cannot read {}: {error}", parent.display()));
            removed.extend(space::clean(&parent).map_err(error)?);
        }
    }
    for folder in &removed {
        println!("removed {}", folder.display());
    }
    if removed.is_empty() {
        println!("nothing was left behind");
    }
    Ok(Code::Done as u8)
}
