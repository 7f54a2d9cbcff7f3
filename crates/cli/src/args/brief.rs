//! `-h`: one screen of the most used options.

use std::ffi::OsString;

use clap::{Arg, Command, CommandFactory as _};

use super::Cli;

/// Columns of a terminal, and of the help.
const WIDTH: usize = 80;

/// Arguments by id, and options by their long names, each with its words where those of `--help` take several rows.
type Rows = &'static [(&'static str, &'static str)];

/// What `-h` of a command shows.
struct Brief {
    command: &'static str,
    /// Its usage, where that which follows from the options is longer than a row.
    usage: Option<&'static str>,
    /// Those of several commands, and its own.
    shown: &'static [Rows],
}

const fn brief(command: &'static str, shown: &'static [Rows]) -> Brief {
    Brief { command, usage: None, shown }
}

const LOGIN: Rows = &[("ssh-port", ""), ("identity", "")];
const EXCLUDE: Rows = &[("exclude", "Skip matching files; see `downpour --help`")];
const LIMIT: Rows = &[("limit", "Limit the sending rate, such as 100M or 10MB/s")];
const TICKET_FILE: Rows = &[("ticket-file", "Write the ticket there, or read it")];
const LISTEN: Rows = &[("listen", "Listen, and print a ticket to connect with")];
const VIA: Rows = &[("via", "auto, udp or ssh: how the bytes go [default: auto]")];
const QUIET: Rows = &[("quiet", "")];
const OUTPUT: Rows = &[("quiet", ""), ("verbose", "Print also files, deletions and figures")];
const COPYING: Rows = &[("paths", "[USER@]HOST:PATH or PATH; `dir/` means its contents"), ("dry-run", "")];

const SHOWN: &[Brief] = &[
    brief(
        "cp",
        &[
            COPYING,
            EXCLUDE,
            LOGIN,
            LIMIT,
            OUTPUT,
            &[("archive", "As -r -p --owner --group --specials"), ("recursive", "")],
        ],
    ),
    brief(
        "sync",
        &[
            COPYING,
            EXCLUDE,
            LOGIN,
            LIMIT,
            OUTPUT,
            &[("delete", "Delete there what the source does not have"), ("checksum", "Compare contents, not times")],
        ],
    ),
    brief(
        "send",
        &[
            EXCLUDE,
            LIMIT,
            TICKET_FILE,
            OUTPUT,
            &[
                ("paths", "Files and directories; `dir/` means its contents, - stdin"),
                ("name", "Name of what comes from stdin [default: stdin]"),
                ("to", "Connect to `recv --listen`; asks for its ticket"),
                ("listen", "Address to listen on"),
            ],
        ],
    ),
    brief(
        "recv",
        &[
            LISTEN,
            TICKET_FILE,
            OUTPUT,
            &[
                ("given", "The ticket, safer at the prompt; - writes to stdout"),
                ("into", ""),
                ("yes", ""),
                ("existing", "refuse, replace, skip, keep-newer [default: refuse]"),
                ("quota", "Accept at most this many bytes of files"),
            ],
        ],
    ),
    brief("verify", &[EXCLUDE, LOGIN, VIA, OUTPUT, &[("a", ""), ("b", ""), ("json", "")]]),
    brief(
        "doctor",
        &[
            LOGIN,
            OUTPUT,
            &[
                ("host", ""),
                ("target", "Directory there, whose disk is measured"),
                ("size", ""),
                ("port", "UDP ports there, such as 60000-60010"),
                ("json", ""),
            ],
        ],
    ),
    brief(
        "pipe",
        &[
            LOGIN,
            VIA,
            LIMIT,
            QUIET,
            &[("host", ""), ("command", "Command there, and all its arguments"), ("rate", ""), ("set", "")],
        ],
    ),
    Brief {
        command: "tunnel",
        usage: Some("downpour tunnel [OPTIONS] HOST\n       downpour tunnel --listen[=ADDR:PORT] --permit PLACE"),
        shown: &[
            LISTEN,
            TICKET_FILE,
            &[
                ("host", "[USER@]HOST; without it, the other side has a ticket"),
                ("local", "Listen here: [BIND:]PORT:HOST:PORT"),
                ("remote", "Listen there, and connect from here"),
                ("proxy", "Listen here as a SOCKS proxy"),
                ("permit", "Where guests connect to: HOST:PORT, HOST:*, any"),
                ("background", ""),
            ],
        ],
    },
    brief("bootstrap", &[LOGIN, QUIET, &[("host", ""), ("to", ""), ("from", "")]]),
    brief("proxy", &[LOGIN, VIA, QUIET, &[("host", ""), ("port", "Port of its ssh server"), ("persist", "")]]),
    brief(
        "demo",
        &[
            OUTPUT,
            &[
                ("path", "File or directory to send [default: a generated file]"),
                ("size", ""),
                ("link", "Such as rate=100M,delay=50ms,loss=5%,queue=256KB"),
                ("rate", ""),
                ("no-compare", ""),
                ("progress", "bar, line or none [default: bar on a terminal]"),
                ("json", ""),
            ],
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
        self.shown.iter().copied().flatten().find(|(shown, _)| *shown == name(arg)).map(|(_, words)| *words)
    }
}

/// Returns the name of an argument in [`Rows`].
fn name(arg: &Arg) -> &str {
    arg.get_long().unwrap_or(arg.get_id().as_str())
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
            for (shown, _) in brief.shown.iter().copied().flatten() {
                assert!(command.get_arguments().any(|arg| name(arg) == *shown), "{} {shown}", brief.command);
            }
            help
        });
        for help in commands.chain([program]) {
            assert!(help.lines().count() <= 24, "{help}");
            assert!(help.lines().all(|line| line.chars().count() <= WIDTH), "{help}");
        }
    }
}
