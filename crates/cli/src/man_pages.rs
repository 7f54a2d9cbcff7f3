//! Output generated from the definition of the arguments: completions and manual pages.

mod scripts;

use std::fs;
use std::io;

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

/// Prints the manual page, or writes one for each command into a folder.
pub(crate) fn man(args: &ManArgs) -> Result<u8, Failure> {
    let disk = |error: io::Error| Failure::new(Code::Disk, format!("cannot write the manual pages: {error}"));
    let Some(folder) = &args.folder else {
        let mut page = Vec::new();
        clap_mangen::Man::new(definition()).render(&mut page).map_err(disk)?;
        print::write_out(laid_out(&String::from_utf8_lossy(&page)).as_bytes());
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
