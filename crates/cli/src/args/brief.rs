//! `-h`: one screen of the most used options.

use std::ffi::OsString;

use clap::CommandFactory as _;

use super::Cli;

/// Options that `-h` shows, by their long names.
const SHOWN: &[(&str, &[&str])] = &[
    ("cp", &["recursive", "archive", "dry-run", "exclude", "ssh-port", "identity", "limit", "quiet", "verbose"]),
    ("sync", &["delete", "dry-run", "exclude", "checksum", "ssh-port", "identity", "limit", "quiet", "verbose"]),
    ("send", &["name", "to", "listen", "ticket-file", "exclude", "limit", "quiet", "verbose"]),
    ("recv", &["into", "yes", "existing", "quota", "listen", "ticket-file", "quiet", "verbose"]),
    ("verify", &["exclude", "ssh-port", "identity", "via", "json", "quiet", "verbose"]),
    ("doctor", &["size", "ssh-port", "identity", "port", "json", "quiet", "verbose"]),
    ("pipe", &["ssh-port", "identity", "via", "limit", "rate", "set", "quiet"]),
    ("tunnel", &["local", "remote", "proxy", "listen", "permit", "ticket-file", "background"]),
    ("bootstrap", &["to", "from", "ssh-port", "identity", "quiet"]),
    ("proxy", &["persist", "ssh-port", "identity", "via", "quiet"]),
];

/// Returns the help of `-h` for the command of these arguments, if it is short of that of `--help`.
pub(crate) fn help(arguments: &[OsString]) -> Option<String> {
    let Some(at) = command_at(arguments) else {
        let is_short = !arguments.iter().any(|argument| argument == "--help");
        return is_short.then(of_program);
    };
    let name = arguments[at].to_str()?;
    let (_, shown) = SHOWN.iter().find(|(command, _)| *command == name)?;
    let typed = arguments.iter().take_while(|argument| *argument != "--");
    if typed.clone().any(|argument| argument == "--help") || !typed.clone().any(|argument| argument == "-h") {
        return None;
    }
    let mut definition = Cli::command().mut_args(|arg| arg.hide(true)).mut_subcommand(name, |command| {
        let brief = command.mut_args(|arg| {
            let is_shown = arg.is_positional() || arg.get_long().is_some_and(|long| shown.contains(&long));
            arg.hide(!is_shown).help_heading(None::<&str>)
        });
        brief.after_help(format!("`downpour {name} --help` explains all options and has examples."))
    });
    definition.build();
    Some(definition.find_subcommand_mut(name)?.render_help().to_string())
}

/// The commands alone: their number fills a screen.
fn of_program() -> String {
    let mut definition = Cli::command();
    definition.build();
    definition.mut_args(|arg| arg.hide(true)).render_help().to_string()
}

/// Returns the position of the command: behind the program, and options of all commands.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_found_behind_the_options_of_all() {
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
        assert!(short("downpour --no-config cp -h").is_some_and(|help| help.lines().count() <= 24));
        assert_eq!(short("downpour --no-config cp --help"), None);
    }

    #[test]
    fn every_option_that_is_shown_exists() {
        let definition = Cli::command();
        for (name, shown) in SHOWN {
            let command = definition.find_subcommand(name).expect("a command");
            for long in *shown {
                assert!(command.get_arguments().any(|arg| arg.get_long() == Some(*long)), "{name} --{long}");
            }
        }
    }
}
