//! `SRC... DST`.

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches};
use downpour::remote::Location;

use super::values;

/// From where to where.
#[derive(Clone, Debug)]
pub(crate) struct PathArgs {
    /// At least one.
    pub(crate) sources: Vec<Location>,
    pub(crate) target: Location,
}

impl PathArgs {
    /// Every location.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Location> {
        self.sources.iter().chain([&self.target])
    }
}

/// The one argument that holds them all: with two, options could not stand between the paths.
const NAME: &str = "paths";

impl Args for PathArgs {
    fn augment_args(command: Command) -> Command {
        let paths = Arg::new(NAME).value_name("PATH").action(ArgAction::Append).num_args(1..).required(true);
        command.arg(paths.value_parser(values::location()).help(
            "Sources and the target: PATH or [USER@]HOST:PATH. `folder/` copies the contents of a folder, `folder` the folder itself",
        ))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for PathArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut sources: Vec<Location> = matches.get_many(NAME).into_iter().flatten().cloned().collect();
        match sources.pop() {
            Some(target) if !sources.is_empty() => Ok(Self { sources, target }),
            _ => Err(Error::raw(ErrorKind::MissingRequiredArgument, "where to? write SRC... DST\n")),
        }
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
