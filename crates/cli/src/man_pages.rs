//! Output generated from the definition of the arguments: completions and manual pages.

mod scripts;

use std::fs;
use std::io::{self, IsTerminal as _, Write as _};
use std::process::Command;

use clap::CommandFactory;

use crate::args::{Cli, CompletionsArgs, ManArgs};
use crate::exit::{Code, Failure};
use crate::print;

/// The name of the program.
const NAME: &str = "downpour";

/// Prints the completions of a shell.
pub(crate) fn completions(args: &CompletionsArgs) -> u8 {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), NAME, &mut script);
    let script = scripts::with_places(args.shell, &String::from_utf8_lossy(&script));
    print::write_out(script.as_bytes());
    Code::Done as u8
}

/// Shows the page of a command, or writes all pages into a directory.
pub(crate) fn man(args: &ManArgs) -> Result<u8, Failure> {
    let disk = |error: io::Error| Failure::new(Code::Disk, format!("cannot write the manual pages: {error}"));
    let Some(folder) = &args.write else {
        let mut page = Vec::new();
        clap_mangen::Man::new(documented(&args.command)?).render(&mut page).map_err(disk)?;
        let page = laid_out(&String::from_utf8_lossy(&page));
        if !(io::stdout().is_terminal() && is_shown_by_man(page.as_bytes())) {
            print::write_out(page.as_bytes());
        }
        return Ok(Code::Done as u8);
    };
    fs::create_dir_all(folder).map_err(disk)?;
    clap_mangen::generate_to(definition(), folder).map_err(disk)?;
    for entry in fs::read_dir(folder).map_err(disk)? {
        let path = entry.map_err(disk)?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.starts_with(NAME) && name.ends_with(".1") {
            let page = fs::read_to_string(&path).map_err(disk)?;
            fs::write(&path, laid_out(&page)).map_err(disk)?;
        }
    }
    print::err(format_args!("The pages are in {}: `man -M` wants them in a folder man1.", folder.display()));
    Ok(Code::Done as u8)
}

/// Returns the command with these names.
fn documented(names: &[String]) -> Result<clap::Command, Failure> {
    let mut found = definition();
    if names.is_empty() {
        return Ok(found);
    }
    found.build();
    for name in names {
        let Some(command) = found.find_subcommand(name).filter(|command| !command.is_hide_set()) else {
            let message = format!("there is no command {:?}: downpour --help lists them", names.join(" "));
            return Err(Failure::new(Code::Usage, message));
        };
        found = command.clone();
    }
    Ok(found)
}

/// Whether `man` has shown the page to the user.
fn is_shown_by_man(page: &[u8]) -> bool {
    let show = || -> io::Result<bool> {
        let mut file = tempfile::Builder::new().prefix(NAME).suffix(".1").tempfile()?;
        file.write_all(page)?;
        Ok(Command::new("man").arg("-l").arg(file.path()).status()?.success())
    };
    show().unwrap_or(false)
}

/// Preserves the line breaks in a page's last section, which has the tables and examples of `--help`: troff would join
/// and justify the lines.
fn laid_out(page: &str) -> String {
    let mut out = String::with_capacity(page.len() + 256);
    let (mut is_last, mut was_indented) = (false, false);
    for line in page.lines() {
        if line.starts_with(".SH ") {
            is_last = line == ".SH EXTRA";
        }
        if is_last && was_indented && !line.starts_with([' ', '.']) {
            out += ".br\n";
        }
        was_indented = line.starts_with(' ');
        out += line;
        out += if line == ".SH EXTRA" { "\n.ad l\n" } else { "\n" };
    }
    out
}

/// Returns the definition without the description of this machine in `--version`: the pages are the same everywhere.
fn definition() -> clap::Command {
    Cli::command().long_version(None::<&str>)
}
