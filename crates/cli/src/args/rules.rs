//! `--include` and `--exclude`: one list, in the order typed.

use std::os::unix::ffi::OsStrExt as _;

use clap::builder::{OsStringValueParser, TypedValueParser as _};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches};
use downpour::files::{Pattern, Rule};

/// A list of include and exclude rules; the first one that matches a name decides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rules(pub(crate) Vec<Rule>);

/// Creates a rule from a pattern.
type MakeRule = fn(Pattern) -> Rule;

/// The two options.
const OPTIONS: [(&str, MakeRule); 2] = [("include", Rule::Include), ("exclude", Rule::Exclude)];

impl Args for Rules {
    fn augment_args(command: Command) -> Command {
        let option = |name: &'static str| {
            Arg::new(name)
                .long(name)
                .value_name("PATTERN")
                .action(ArgAction::Append)
                .value_parser(OsStringValueParser::new().try_map(|text| Pattern::new(text.as_bytes())))
                // A pattern may begin with anything.
                .allow_hyphen_values(true)
        };
        command
            .arg(option("include").help("Include matching files even if a later --exclude matches them"))
            .arg(option("exclude").help("Skip matching files; see `downpour --help` for patterns"))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Rules {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut placed = Vec::new();
        for (name, rule) in OPTIONS {
            // Configured rules have no order of their own: they follow the typed ones, and includes precede the
            // excludes to which they are exceptions.
            let is_typed = matches.value_source(name) == Some(ValueSource::CommandLine);
            let patterns = matches.get_many::<Pattern>(name).into_iter().flatten().cloned().map(rule);
            let places = matches.indices_of(name).into_iter().flatten();
            placed.extend(places.map(|place| if is_typed { place } else { usize::MAX }).zip(patterns));
        }
        placed.sort_by_key(|(place, _)| *place);
        Ok(Self(placed.into_iter().map(|(_, rule)| rule).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
