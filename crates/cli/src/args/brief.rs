//! `-h`: one screen of the most used options.

use std::ffi::OsString;

use clap::{Arg, Command, CommandFactory as _};

use super::Cli;

/// Columns of a terminal, and of the help.
const WIDTH: usize = 80;

/// What `-h` of a command shows.
struct Brief {
    command: &'static str,
    /// Its usage, where that which follows from the options is longer than a row.
    usage: Option<&'static str>,
    /// Arguments by id, and options by their long names, each with its words where those of `--help` take several rows.
    shown: &'static [(&'static str, &'static str)],
}

const fn brief(command: &'static str, shown: &'static [(&'static str, &'static str)]) -> Brief {
    Brief { command, usage: None, shown }
}

const PATHS: (&str, &str) = ("paths", "[USER@]HOST:PATH or PATH; `folder/` is what is in it");
const EXCLUDE: (&str, &str) = ("exclude", "Skip matching files; see `downpour --help`");
const LIMIT: (&str, &str) = ("limit", "Limit the sending rate, such as 100M or 10MB/s");
const TICKET_FILE: (&str, &str) = ("ticket-file", "Write the ticket there, or read it");
const LISTEN: (&str, &str) = ("listen", "Listen, and print a ticket to connect with");
const VERBOSE: (&str, &str) = ("verbose", "Print also files, deletions and figures");
const VIA: (&str, &str) = ("via", "auto, udp or ssh: how the bytes go [default: auto]");
const QUIET: (&str, &str) = ("quiet", "");
const SSH: [(&str, &str); 2] = [("ssh-port", ""), ("identity", "")];

const SHOWN: &[Brief] = &[
    brief(
        "cp",
        &[
            PATHS,
            ("archive", "As -r -p --owner --group --specials"),
            ("recursive", ""),
            EXCLUDE,
            ("dry-run", ""),
            SSH[0],
            SSH[1],
            LIMIT,
            QUIET,
            VERBOSE,
        ],
    ),
    brief(
        "sync",
        &[
            PATHS,
            ("delete", "Delete there what the source does not have"),
            ("checksum", "Compare contents, not times"),
            EXCLUDE,
            ("dry-run", ""),
            SSH[0],
            SSH[1],
            LIMIT,
            QUIET,
            VERBOSE,
        ],
    ),
    brief(
        "send",
        &[
            ("paths", "Files and folders; `folder/` is what is in it, - is stdin"),
            ("name", "Name of what comes from stdin [default: stdin]"),
            ("to", "Connect to `recv --listen`; asks for its ticket"),
            ("listen", "Address to listen on"),
            TICKET_FILE,
            EXCLUDE,
            LIMIT,
            QUIET,
            VERBOSE,
        ],
    ),
    brief(
        "recv",
        &[
            ("given", "The ticket, safer at the prompt; - writes to stdout"),
            ("into", ""),
            ("yes", ""),
            ("existing", "refuse, replace, skip, keep-newer [default: refuse]"),
            ("quota", "Accept at most this many bytes of files"),
            LISTEN,
            TICKET_FILE,
            QUIET,
            VERBOSE,
        ],
    ),
    brief("verify", &[("a", ""), ("b", ""), EXCLUDE, SSH[0], SSH[1], VIA, ("json", ""), QUIET, VERBOSE]),
    brief(
        "doctor",
        &[
            ("host", ""),
            ("target", "Folder there, whose disk is measured"),
            ("size", ""),
            SSH[0],
            SSH[1],
            ("port", "UDP ports there, such as 60000-60010"),
            ("json", ""),
            QUIET,
            VERBOSE,
        ],
    ),
    brief(
        "pipe",
        &[
            ("host", ""),
            ("command", "Command there, and all its arguments"),
            SSH[0],
            SSH[1],
            VIA,
            LIMIT,
            ("rate", ""),
            ("set", ""),
            QUIET,
        ],
    ),
    Brief {
        command: "tunnel",
        usage: Some("downpour tunnel [OPTIONS] HOST\n       downpour tunnel --listen[=ADDR:PORT] --permit PLACE"),
        shown: &[
            ("host", "[USER@]HOST; without it, the other side has a ticket"),
            ("local", "Listen here: [BIND:]PORT:HOST:PORT"),
            ("remote", "Listen there, and connect from here"),
            ("proxy", "Listen here as a SOCKS proxy"),
            LISTEN,
            ("permit", "Where guests connect to: HOST:PORT, HOST:*, any"),
            TICKET_FILE,
            ("background", ""),
        ],
    },
    brief("bootstrap", &[("host", ""), ("to", ""), ("from", ""), SSH[0], SSH[1], QUIET]),
    brief("proxy", &[("host", ""), ("port", "Port of its ssh server"), ("persist", ""), SSH[0], SSH[1], VIA, QUIET]),
    brief(
        "demo",
        &[
            ("path", "File or folder to send [default: 50 MB of its own]"),
            ("size", ""),
            ("link", "Such as rate=100M,delay=50ms,loss=5%,queue=256KB"),
            ("rate", ""),
            ("no-compare", ""),
            ("progress", "bar, line or none [default: bar on a terminal]"),
            ("json", ""),
            QUIET,
            VERBOSE,
        ],
    ),
];

/// Returns the help of `-h` for the command of these arguments, if it is short of that of `--help`.
pub(crate) fn help(arguments: &[OsString]) -> Option<String> {
    let Some(at) = command_at(arguments) else {
        let is_short = !arguments.iter().any(|argument| argument == "--help");
        return is_short.then(of_program);
    };
    let name = arguments[at].to_str()?;
    let brief = SHOWN.iter().find(|brief| brief.command == name)?;
    let typed = arguments.iter().take_while(|argument| *argument != "--");
    if typed.clone().any(|argument| argument == "--help") || !typed.clone().any(|argument| argument == "-h") {
        return None;
    }
    let mut definition =
        Cli::command().mut_args(|arg| arg.hide(true)).mut_subcommand(name, |command| brief.apply(command));
    definition.build();
    Some(definition.find_subcommand_mut(name)?.render_help().to_string())
}

impl Brief {
    fn apply(&self, command: Command) -> Command {
        let command = command.term_width(WIDTH).mut_args(|arg| {
            let words = self.words(&arg);
            let arg = arg.help_heading(None::<&str>).hide(words.is_none());
            match words {
                Some("") | None => arg,
                // Its values and its default are among the words.
                Some(words) => match arg.get_action().takes_values() {
                    true => arg.help(words).hide_possible_values(true).hide_default_value(true),
                    false => arg.help(words),
                },
            }
        });
        let command =
            command.after_help(format!("`downpour {} --help` explains all options and has examples.", self.command));
        match self.usage {
            Some(usage) => command.override_usage(usage),
            None => command,
        }
    }

    /// Returns the words for an argument that is shown.
    fn words(&self, arg: &Arg) -> Option<&'static str> {
        let name = arg.get_long().unwrap_or(arg.get_id().as_str());
        self.shown.iter().find(|(shown, _)| *shown == name).map(|(_, words)| *words)
    }
}

/// The commands alone: their number fills a screen.
fn of_program() -> String {
    let mut definition = Cli::command().term_width(WIDTH);
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
        assert!(short("downpour --no-config cp -h").is_some());
        assert_eq!(short("downpour --no-config cp --help"), None);
    }

    #[test]
    fn each_is_a_screen_of_80_columns() {
        let definition = Cli::command();
        let program = help(&["downpour".into(), "-h".into()]).expect("help");
        let commands = SHOWN.iter().map(|brief| {
            let help = help(&["downpour".into(), brief.command.into(), "-h".into()]).expect("help");
            let command = definition.find_subcommand(brief.command).expect("a command");
            for (name, _) in brief.shown {
                let is_it = |arg: &Arg| arg.get_long().unwrap_or(arg.get_id().as_str()) == *name;
                assert!(command.get_arguments().any(is_it), "{} {name}", brief.command);
            }
            help
        });
        for help in commands.chain([program]) {
            assert!(help.lines().count() <= 24, "{help}");
            assert!(help.lines().all(|line| line.chars().count() <= WIDTH), "{help}");
        }
    }
}
