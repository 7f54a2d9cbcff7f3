//! What is made from the definition of the arguments: completions and manual pages.

use std::fs;
use std::io;

use clap::CommandFactory;

use crate::args::{Cli, CompletionsArgs, ManArgs};
use crate::exit::{Code, Failure};
use crate::{output, stdout};

/// The name of the program.
const NAME: &str = "downpour";

/// Prints the completions of a shell.
pub(crate) fn completions(args: &CompletionsArgs) -> u8 {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), NAME, &mut script);
    stdout::write(&script);
    Code::Done as u8
}

/// Prints the manual page, or writes one for each command into a folder.
pub(crate) fn man(args: &ManArgs) -> Result<u8, Failure> {
    let disk = |error: io::Error| Failure::new(Code::Disk, format!("cannot write the manual pages: {error}"));
    let Some(folder) = &args.folder else {
        let mut page = Vec::new();
        clap_mangen::Man::new(definition()).render(&mut page).map_err(disk)?;
        stdout::write(&page);
        return Ok(Code::Done as u8);
    };
    fs::create_dir_all(folder).map_err(disk)?;
    clap_mangen::generate_to(definition(), folder).map_err(disk)?;
    output::err(format_args!("The pages are in {}: `man -M` wants them in a folder man1.", folder.display()));
    Ok(Code::Done as u8)
}

/// Without what `--version` says of this machine: the pages are the same everywhere.
fn definition() -> clap::Command {
    Cli::command().long_version(None::<&str>)
}
