//! The program `downpour`: moves files fast over networks that lose packets.

mod args;
mod demo;
mod exit;
mod human;
mod interrupt;
mod json;
mod options;
mod output;
mod progress;
mod prompt;
mod rates;
mod recv;
mod send;
mod ticket;
mod watch;

use std::process::ExitCode;

use args::{Cli, Command};
use clap::Parser;
use exit::{Code, Failure};
use interrupt::Interrupts;

fn main() -> ExitCode {
    let command = Cli::parse().command;
    let shown = command.shown();
    let result = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(Code::Other, format!("the system refuses what an event loop needs: {error}")))
        .and_then(|runtime| runtime.block_on(run(command)));
    match result {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            output::failed(shown, &failure);
            ExitCode::from(failure.code)
        }
    }
}

/// Runs a command; gives the exit code of one that went well or nearly.
async fn run(command: Command) -> Result<u8, Failure> {
    let mut interrupts = Interrupts::install()
        .map_err(|error| Failure::new(Code::Other, format!("cannot listen for Ctrl-C: {error}")))?;
    match command {
        Command::Send(args) => send::run(args, &mut interrupts).await,
        Command::Recv(args) => recv::run(args, &mut interrupts).await,
        Command::Demo(args) => demo::run(args, &mut interrupts).await,
    }
}
