//! clap's definition of the command line, and its parsed arguments, from the tables.

#[cfg(test)]
use std::ffi::OsString;

use clap::builder::{Resettable, StyledStr};
use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Command as Definition};

use super::commands::{COMMANDS, Entry, PROFILE};
use super::flag::{Flag, Given, Takes};
use super::{Args, Command, flags, values};
use crate::{exit, version};

/// The name of the program.
pub(crate) const NAME: &str = "downpour";

/// Returns the definition of the whole command line.
pub(crate) fn definition() -> Definition {
    let profiles = COMMANDS.iter().filter(|entry| entry.within == Some(PROFILE.name)).map(command);
    let profile = described(&PROFILE).subcommand_required(true).arg_required_else_help(true).subcommands(profiles);
    let mut program = Definition::new(NAME)
        .version(env!("CARGO_PKG_VERSION"))
        .long_version(version::long())
        .about("Transfer files fast, encrypted and verified, over networks that lose packets")
        .long_about(
            "Transfer files fast, encrypted and verified, over networks that lose packets\n\nData goes over UDP, with \
             erasure codes that repair losses without waiting for retransmission, and is verified end to end.",
        )
        .after_help(
            "`downpour --help` explains options of all commands, exit codes, rates, patterns and the configuration.",
        )
        .after_long_help(exit::help())
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        .max_term_width(100)
        .arg(
            of_all("config")
                .value_name("FILE")
                .value_parser(values::path())
                .help("Configuration file, or `none` [default: ~/.config/downpour/config.toml]"),
        )
        .arg(
            of_all("no-config")
                .action(ArgAction::SetTrue)
                .conflicts_with("config")
                .display_order(1001)
                .help("Ignore the configuration file"),
        );
    let mut profile = Some(profile);
    for entry in COMMANDS {
        program = match entry.within {
            None => program.subcommand(command(entry)),
            Some(_) => match profile.take() {
                Some(profile) => program.subcommand(profile),
                None => program,
            },
        };
    }
    program
}

/// Returns an option of all commands.
fn of_all(name: &'static str) -> Arg {
    Arg::new(name).long(name).global(true).help_heading("Output").display_order(1000).hide_short_help(true)
}

fn described(entry: &Entry) -> Definition {
    let long = if entry.more.is_empty() { None } else { Some(format!("{}\n\n{}", entry.about, entry.more)) };
    let mut command = Definition::new(entry.name).about(entry.about).hide(entry.hidden);
    if let Some(long) = long {
        command = command.long_about(long);
    }
    if !entry.examples.is_empty() {
        command = command.after_help(entry.examples);
    }
    match entry.usage {
        Some(usage) => command.override_usage(usage),
        None => command,
    }
}

fn command(entry: &Entry) -> Definition {
    let mut command = described(entry).args(flags::of(entry.command).map(|flag| arg(flag, entry.command)));
    if matches!(entry.command, Command::Cp | Command::Sync | Command::Send | Command::Verify) {
        command = command.args_override_self(true);
    }
    if entry.command == Command::Tunnel {
        let forwards = ["local", "remote", "proxy", "control", "listen"];
        command = command.group(ArgGroup::new("forwards").required(true).multiple(true).args(forwards));
    }
    command
}

/// Returns clap's form of an option of a command.
fn arg(flag: &Flag, command: Command) -> Arg {
    // An option may exclude one that only some of its commands have.
    let exists = |name: &&&str| flags::of(command).any(|other| other.name == **name);
    let conflicts = flag.conflicts.iter().filter(exists);
    let mut arg = Arg::new(flag.name).hide(flag.hidden).conflicts_with_all(conflicts);
    if !flag.takes.is_operand() {
        // A hidden short option may have a name only as its id.
        if !(flag.hidden && flag.help.is_empty()) {
            arg = arg.long(flag.name);
        }
        arg = arg.short(flag.short.map_or(Resettable::Reset, Resettable::Value));
    }
    if let Some(alias) = flag.alias {
        arg = arg.alias(alias);
    }
    if !flag.help.is_empty() {
        arg = arg.help(flag.help);
    }
    if !flag.more.is_empty() {
        arg = arg.long_help(StyledStr::from(format!("{}\n\n{}", flag.help, flag.more)));
    }
    if let Some(heading) = flag.section.heading() {
        arg = arg.help_heading(heading);
    }
    if let Some(other) = flag.requires {
        arg = arg.requires(other);
    }
    let Some(value) = flag.takes.value() else { return arg.action(ArgAction::SetTrue) };
    arg = arg
        .value_name(value.name)
        .value_parser((value.parser)())
        .allow_hyphen_values(value.may_begin_with_hyphen)
        .default_value(value.default.map_or(Resettable::Reset, |default| Resettable::Value(default.into())));
    match flag.takes {
        Takes::Nothing | Takes::Value(_) | Takes::OptionalOperand(_) => arg.action(ArgAction::Set),
        Takes::Operand(_) => arg.action(ArgAction::Set).required(true),
        Takes::Values(_) => arg.action(ArgAction::Append),
        Takes::OptionalValue(_) => arg.action(ArgAction::Set).num_args(0..=1),
        Takes::OptionalValueAfterEquals(_) => arg.action(ArgAction::Set).num_args(0..=1).require_equals(true),
        Takes::Operands(_) => arg.action(ArgAction::Append).num_args(1..).required(true),
        Takes::OptionalOperands(_) => arg.action(ArgAction::Append).num_args(0..),
        Takes::Rest(_) => {
            arg.action(ArgAction::Append).num_args(1..).required(true).trailing_var_arg(true).allow_hyphen_values(true)
        }
    }
}

impl Args {
    /// Reads the arguments of a program.
    ///
    /// # Errors
    /// clap's own.
    #[cfg(test)]
    pub(crate) fn parse(arguments: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> Result<Self, clap::Error> {
        definition().try_get_matches_from(arguments).and_then(|matches| Self::of(&matches))
    }

    /// Returns the parsed arguments.
    ///
    /// # Errors
    /// A source without a destination.
    pub(crate) fn of(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let (entry, of_command) = chosen(matches);
        let mut args = Self::new(entry.command);
        args.config = matches.get_one("config").cloned();
        args.no_config = matches.get_flag("no-config");
        for flag in flags::of(entry.command) {
            let is_given = match flag.takes.value() {
                Some(_) => of_command.contains_id(flag.name),
                None => of_command.get_flag(flag.name),
            };
            if is_given {
                (flag.set)(&mut args, &Given { matches: of_command, name: flag.name });
            }
        }
        args.checked()
    }
}

/// Returns the command and its arguments.
fn chosen(matches: &ArgMatches) -> (&'static Entry, &ArgMatches) {
    let found = |name: &str, within: Option<&str>| {
        COMMANDS.iter().find(|entry| entry.name == name && entry.within == within).unwrap_or(&PROFILE)
    };
    match matches.subcommand() {
        Some((name, own)) if name == PROFILE.name => match own.subcommand() {
            Some((name, own)) => (found(name, Some(PROFILE.name)), own),
            None => (&PROFILE, own),
        },
        Some((name, own)) => (found(name, None), own),
        // clap requires one.
        None => (&PROFILE, matches),
    }
}
