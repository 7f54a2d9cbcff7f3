//! `-h`: one screen of the most used options, and rsync's `-h` among other letters.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use clap::{Command, CommandFactory as _};

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

/// Commands whose users know rsync, where `-h` among other letters makes numbers readable, as they are anyway.
const OF_RSYNC: [&str; 2] = ["cp", "sync"];

/// Returns the help of `-h` for the command of these arguments, if it is short of that of `--help`.
pub(crate) fn help(arguments: &[OsString]) -> Option<String> {
    let name = arguments.get(1)?.to_str()?;
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

/// Removes `h` from among the letters of an argument such as `-avh`.
pub(crate) fn without_human_readable(arguments: &[OsString]) -> Vec<OsString> {
    let definition = Cli::command();
    let command = arguments.get(1).filter(|name| OF_RSYNC.iter().any(|known| known == name));
    let Some(command) = command.and_then(|name| definition.find_subcommand(name)) else { return arguments.to_vec() };
    let end = arguments.iter().position(|argument| argument == "--").unwrap_or(arguments.len());
    let (options, rest) = arguments.split_at(end);
    options.iter().map(|argument| without_h(command, argument)).chain(rest.iter().cloned()).collect()
}

fn without_h(command: &Command, argument: &OsStr) -> OsString {
    let bytes = argument.as_bytes();
    if bytes.len() < 3 || bytes[0] != b'-' || bytes[1] == b'-' {
        return argument.to_owned();
    }
    let takes_value = |letter: u8| {
        let option = command.get_arguments().find(|arg| arg.get_short() == Some(char::from(letter)));
        option.is_some_and(|arg| arg.get_action().takes_values())
    };
    let letters = bytes[1..].iter().position(|letter| takes_value(*letter)).map_or(bytes.len(), |at| at + 1);
    let kept = bytes[..letters].iter().filter(|letter| **letter != b'h').chain(&bytes[letters..]);
    match kept.copied().collect::<Vec<u8>>() {
        kept if kept.len() < 2 => argument.to_owned(),
        kept => OsString::from_vec(kept),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(arguments: &[&str]) -> Vec<String> {
        let arguments: Vec<OsString> = arguments.iter().map(Into::into).collect();
        without_human_readable(&arguments).into_iter().map(|word| word.into_string().expect("text")).collect()
    }

    #[test]
    fn a_letter_among_others_is_rsyncs_and_alone_it_asks_for_help() {
        for (typed, read_as) in [
            (&["downpour", "sync", "-avh", "a", "b"][..], &["downpour", "sync", "-av", "a", "b"][..]),
            (&["downpour", "cp", "-rh", "a", "b"], &["downpour", "cp", "-r", "a", "b"]),
            (&["downpour", "cp", "-h"], &["downpour", "cp", "-h"]),
            (&["downpour", "cp", "-hh"], &["downpour", "cp", "-hh"]),
            (&["downpour", "cp", "-ri/home/h", "a", "b"], &["downpour", "cp", "-ri/home/h", "a", "b"]),
            (&["downpour", "cp", "--", "-avh", "b"], &["downpour", "cp", "--", "-avh", "b"]),
            (&["downpour", "cp", "--human"], &["downpour", "cp", "--human"]),
            (&["downpour", "pipe", "far", "ls", "-lah"], &["downpour", "pipe", "far", "ls", "-lah"]),
        ] {
            assert_eq!(read(typed), read_as);
        }
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
