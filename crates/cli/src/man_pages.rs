//! Output generated from the definition of the arguments: completions and manual pages.

mod scripts;

use std::fs;
use std::io::{self, IsTerminal as _, Write as _};
use std::process::{Command, Stdio};
use std::sync::Arc;

use clap_complete::Shell;
use signal_hook::consts::{SIGINT, SIGQUIT};
use signal_hook::flag;

use crate::args::{Args, NAME, definition};
use crate::exit::{Code, Failure};
use crate::print;

/// Prints the completions of a shell.
pub(crate) fn completions(args: &Args) -> u8 {
    // clap requires one.
    let shell = args.shell.unwrap_or(Shell::Bash);
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut shown(), NAME, &mut script);
    let script = scripts::with_places(shell, &String::from_utf8_lossy(&script));
    print::write_out(script.as_bytes());
    Code::Done as u8
}

/// Shows the page of a command, or writes all pages into a directory.
pub(crate) fn man(args: &Args) -> Result<u8, Failure> {
    let disk = |error: io::Error| Failure::new(Code::Disk, format!("cannot write the manual pages: {error}"));
    let [directory] = &args.paths[..] else {
        let (mut command, mut page) = (find_documented(&args.words)?, Vec::new());
        clap_mangen::Man::new(command.clone()).render(&mut page).map_err(disk)?;
        let page = with_named_sections(&String::from_utf8_lossy(&page));
        match io::stdout().is_terminal() {
            true if is_shown_by_man(page.as_bytes()) => {}
            // As text for a terminal.
            true => print::write_out(command.render_long_help().to_string().as_bytes()),
            false => print::write_out(page.as_bytes()),
        }
        return Ok(Code::Done as u8);
    };
    fs::create_dir_all(directory).map_err(disk)?;
    clap_mangen::generate_to(for_pages(), directory).map_err(disk)?;
    for entry in fs::read_dir(directory).map_err(disk)? {
        let path = entry.map_err(disk)?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.starts_with(NAME) && name.ends_with(".1") {
            let page = fs::read_to_string(&path).map_err(disk)?;
            fs::write(&path, with_named_sections(&page)).map_err(disk)?;
        }
    }
    print::err(format_args!("The pages are in {}. `man -M` needs them in a directory man1.", directory.display()));
    Ok(Code::Done as u8)
}

/// Returns the command with these names.
fn find_documented(names: &[String]) -> Result<clap::Command, Failure> {
    let mut found = for_pages();
    if names.is_empty() {
        return Ok(found);
    }
    found.build();
    for name in names {
        let Some(command) = found.find_subcommand(name).filter(|command| !command.is_hide_set()) else {
            let message = format!("unknown command {:?}: downpour --help lists all commands", names.join(" "));
            return Err(Failure::new(Code::Usage, message));
        };
        found = command.clone();
    }
    Ok(found)
}

/// Shows the page with `man`; returns whether that worked.
fn is_shown_by_man(page: &[u8]) -> bool {
    let show = || -> io::Result<bool> {
        let mut file = tempfile::Builder::new().prefix(NAME).suffix(".1").tempfile()?;
        file.write_all(page)?;
        // Ctrl-C and Ctrl-\ are for the pager and must not end this program, which waits for it. The pager does not inherit
        // handlers, unlike ignored signals.
        for signal in [SIGINT, SIGQUIT] {
            flag::register(signal, Arc::default())?;
        }
        Ok(Command::new("man").arg("-l").arg(file.path()).stderr(Stdio::null()).status()?.success())
    };
    show().unwrap_or(false)
}

/// The heading that clap_mangen gives to the tables and examples of `--help`.
const EXTRA: &str = ".SH EXTRA";

/// Names the last section of a page, and preserves its line breaks: troff would join and justify the lines.
fn with_named_sections(page: &str) -> String {
    let (before, last) = page.split_once(EXTRA).map_or((page, None), |(before, last)| (before, Some(last)));
    let (heading, last) = match last.and_then(|last| last.strip_prefix("\nExamples:\n")) {
        Some(examples) => (".SH EXAMPLES\n.ad l\n", examples),
        None => (".SH NOTES\n.ad l\n", last.unwrap_or_default()),
    };
    let mut out = before.to_owned();
    if !last.is_empty() {
        out += heading;
    }
    let mut was_indented = false;
    for line in last.trim_start_matches('\n').lines() {
        if was_indented && !line.starts_with([' ', '.']) {
            out += ".br\n";
        }
        was_indented = line.starts_with(' ');
        out += line;
        out += "\n";
    }
    out
}

/// Returns the definition without the commands that only programs call.
fn shown() -> clap::Command {
    let all = definition();
    let commands = all.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    clap::Command::new(NAME).version(env!("CARGO_PKG_VERSION")).args(all.get_arguments().cloned()).subcommands(commands)
}

/// Returns the definition without the description of this host in `--version`: the pages are the same on all hosts.
/// The options of all commands, which `-h` omits, have their text too.
fn for_pages() -> clap::Command {
    definition().long_version(None::<&str>).mut_args(|arg| arg.hide_short_help(false))
}
