//! `-h`: one screen of the most used options.

use std::ffi::OsString;

use clap::Command as Definition;

use super::commands::{COMMANDS, Command, Entry};
use super::definition::definition;
use super::flag::Flag;
use super::flags;

/// Columns of a terminal, and of the help.
const WIDTH: usize = 80;

/// Returns the help of `-h` for the command of these arguments, if it is shorter than that of `--help`.
pub(crate) fn help(arguments: &[OsString]) -> Option<String> {
    let Some(at) = command_at(arguments) else {
        let is_short = !arguments.iter().any(|argument| argument == "--help");
        return is_short.then(of_program);
    };
    let entry = COMMANDS.iter().find(|entry| entry.within.is_none() && arguments[at] == entry.name)?;
    let typed = arguments.iter().take_while(|argument| *argument != "--");
    if typed.clone().any(|argument| argument == "--help") || !typed.clone().any(|argument| argument == "-h") {
        return None;
    }
    if !flags::of(entry.command).any(|flag| words(flag, entry.command).is_some()) {
        return None;
    }
    let shortened =
        definition().mut_args(|arg| arg.hide(true)).mut_subcommand(entry.name, |command| shorten(entry, command));
    let mut shortened = shortened;
    shortened.build();
    Some(shortened.find_subcommand_mut(entry.name)?.render_help().to_string())
}

/// Returns a command whose help is that of `-h`.
fn shorten(entry: &Entry, command: Definition) -> Definition {
    let command = command.term_width(WIDTH).mut_args(|arg| {
        let flag = flags::of(entry.command).find(|flag| arg.get_id() == flag.name);
        let words = flag.and_then(|flag| words(flag, entry.command));
        let arg = arg.help_heading(None::<&str>).hide(words.is_none());
        match words {
            Some("") | None => arg,
            // The text includes its values and its default.
            Some(words) => match arg.get_action().takes_values() {
                true => arg.help(words).hide_possible_values(true).hide_default_value(true),
                false => arg.help(words),
            },
        }
    });
    let command =
        command.after_help(format!("`downpour {} --help` explains all options and has examples.", entry.name));
    match entry.brief_usage {
        Some(usage) => command.override_usage(usage),
        None => command,
    }
}

/// Returns the text for an option that `-h` shows.
fn words(flag: &Flag, command: Command) -> Option<&'static str> {
    flag.brief.iter().find(|(of, _)| of.contains(&command)).map(|(_, words)| *words)
}

/// Returns the help of the program: the commands alone fill a screen.
fn of_program() -> String {
    let mut definition = definition().term_width(WIDTH);
    definition.build();
    definition.mut_args(|arg| arg.hide(true)).render_help().to_string()
}

/// Returns the position of the command, after the program and options of all commands.
pub(crate) fn command_at(arguments: &[OsString]) -> Option<usize> {
    let mut at = 1;
    while let Some(word) = arguments.get(at)?.to_str().filter(|word| word.starts_with('-')) {
        at += match word {
            "--config" => 2,
            "--no-config" => 1,
            word if word.starts_with("--config=") => 1,
            _ => return None,
        };
    }
    Some(at)
}

/// Returns whether a command line, valid or not, requests JSON of a command that has it.
pub(crate) fn wants_json(arguments: &[OsString]) -> bool {
    let Some(at) = command_at(arguments).filter(|at| *at < arguments.len()) else { return false };
    let definition = super::definition();
    let command = definition.find_subcommand(&arguments[at]);
    let has_json = command.is_some_and(|command| command.get_arguments().any(|arg| arg.get_long() == Some("json")));
    has_json && arguments[at..].iter().take_while(|word| *word != "--").any(|word| word == "--json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_is_found_after_global_options() {
        for (line, at) in [
            ("downpour cp -h", Some(1)),
            ("downpour --no-config cp", Some(2)),
            ("downpour --config cp sync a b", Some(3)),
            ("downpour --config=x sync", Some(2)),
            ("downpour --config x", None),
            ("downpour -V cp", None),
            ("downpour", None),
        ] {
            let arguments: Vec<OsString> = line.split(' ').map(Into::into).collect();
            assert_eq!(command_at(&arguments), at, "{line}");
        }
        let short = |line: &str| help(&line.split(' ').map(Into::into).collect::<Vec<_>>());
        assert!(short("downpour --no-config cp -h").is_some());
        assert_eq!(short("downpour --no-config cp --help"), None);
    }

    #[test]
    fn brief_help_fits_24_lines_of_80_columns() {
        let program = help(&["downpour".into(), "-h".into()]).expect("help");
        let commands = COMMANDS.iter().filter_map(|entry| help(&["downpour".into(), entry.name.into(), "-h".into()]));
        assert!(commands.clone().count() > 8);
        for help in commands.chain([program]) {
            assert!(help.lines().count() <= 24, "{help}");
            assert!(help.lines().all(|line| line.chars().count() <= WIDTH), "{help}");
        }
    }
}
