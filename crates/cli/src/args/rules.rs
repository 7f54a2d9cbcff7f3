//! `--include` and `--exclude`: one list, in the order typed, to which the configuration adds.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;

use clap::builder::{OsStringValueParser, TypedValueParser as _};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches};
use downpour::files::{Pattern, PatternError, Rule};

/// A list of include and exclude rules; the first one that matches a name decides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rules {
    /// In order of precedence.
    pub(crate) list: Vec<Rule>,
    /// Options that were given an empty pattern: rules of lower layers are not added to them.
    closed: Vec<&'static str>,
}

/// Creates a rule from a pattern.
type MakeRule = fn(Pattern) -> Rule;

/// The options that read rules from a file.
const FILES: [&str; 2] = ["include-from", "exclude-from"];

/// The two options. If one place has both without an order of their own, the exceptions (`--include`) take precedence.
const OPTIONS: [(&str, MakeRule); 2] = [("include", Rule::Include), ("exclude", Rule::Exclude)];

/// Returns whether an option with this name is a list of rules.
pub(crate) fn is_rule(option: &str) -> bool {
    OPTIONS.iter().any(|(name, _)| *name == option)
}

/// Parses a pattern; `None` for the empty one.
fn pattern(text: &OsStr) -> Result<Option<Pattern>, PatternError> {
    if text.is_empty() { Ok(None) } else { Pattern::new(text.as_bytes()).map(Some) }
}

/// Reads the rules in a file, one per line: patterns, or rules with a sign of their own (`+ PATTERN`, `- PATTERN`). Blank
/// lines and those that begin with `#` or `;` are skipped, as by rsync.
fn read(path: &OsStr, rule: MakeRule) -> Result<Vec<Rule>, String> {
    let text = std::fs::read(path).map_err(|error| error.to_string())?;
    let lines = text.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let rules = lines.filter(|line| !matches!(line.first(), None | Some(b'#' | b';'))).map(|line| {
        let (rule, line): (MakeRule, _) = match line {
            [b'+', b' ', pattern @ ..] => (Rule::Include, pattern),
            [b'-', b' ', pattern @ ..] => (Rule::Exclude, pattern),
            pattern => (rule, pattern),
        };
        let refused = |error| format!("{}: {error}", String::from_utf8_lossy(line));
        Pattern::new(line).map(rule).map_err(refused)
    });
    rules.collect()
}

impl Rules {
    /// Adds the rules of the next lower layer. `said` returns the patterns that it gives for an option. An empty list
    /// or pattern excludes the rules of all lower layers.
    ///
    /// # Errors
    /// The first invalid pattern.
    pub(crate) fn add<'a>(&mut self, said: impl Fn(&str) -> Option<&'a [OsString]>) -> Result<(), PatternError> {
        for (name, rule) in OPTIONS {
            let Some(values) = said(name).filter(|_| !self.closed.contains(&name)) else { continue };
            let patterns: Vec<Option<Pattern>> = values.iter().map(|text| pattern(text)).collect::<Result<_, _>>()?;
            if patterns.is_empty() || patterns.contains(&None) {
                self.closed.push(name);
            }
            self.list.extend(patterns.into_iter().flatten().map(rule));
        }
        Ok(())
    }
}

impl Args for Rules {
    fn augment_args(command: Command) -> Command {
        let option = |name: &'static str| {
            Arg::new(name)
                .long(name)
                .value_name("PATTERN")
                .action(ArgAction::Append)
                .value_parser(OsStringValueParser::new().try_map(|text| pattern(&text)))
                // A pattern may begin with anything.
                .allow_hyphen_values(true)
        };
        let file = |name: &'static str, rule: MakeRule| {
            Arg::new(name)
                .long(name)
                .value_name("FILE")
                .action(ArgAction::Append)
                .value_parser(OsStringValueParser::new().try_map(move |path| read(&path, rule)))
        };
        command
            .arg(option("include").help("Include matching files even if a later --exclude matches them"))
            .arg(option("exclude").help(
            "Skip matching files; see `downpour --help` for patterns. An empty one ignores those of the configuration",
        ))
            .arg(file("include-from", Rule::Include).help("Include what matches a pattern of FILE, one per line"))
            .arg(file("exclude-from", Rule::Exclude).help("Skip what matches a pattern of FILE, one per line"))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Rules {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let (mut placed, mut closed) = (Vec::new(), Vec::new());
        for (name, rule) in OPTIONS {
            let places = matches.indices_of(name).into_iter().flatten();
            for (place, pattern) in places.zip(matches.get_many::<Option<Pattern>>(name).into_iter().flatten()) {
                match pattern {
                    Some(pattern) => placed.push((place, rule(pattern.clone()))),
                    None => closed.push(name),
                }
            }
        }
        for name in FILES {
            let places = matches.indices_of(name).into_iter().flatten();
            for (place, rules) in places.zip(matches.get_many::<Vec<Rule>>(name).into_iter().flatten()) {
                placed.extend(rules.iter().map(|rule| (place, rule.clone())));
            }
        }
        placed.sort_by_key(|(place, _)| *place);
        Ok(Self { list: placed.into_iter().map(|(_, rule)| rule).collect(), closed })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
