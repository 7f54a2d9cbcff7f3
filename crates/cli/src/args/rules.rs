//! `--include` and `--exclude`: one list, in the order typed, to which the configuration adds.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use clap::builder::{OsStringValueParser, TypedValueParser as _};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches};
use downpour::files::{Pattern, PatternError, Rule};

use super::values;
use crate::exit::{Code, Failure};

/// A list of include and exclude rules; the first one that matches a name decides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rules {
    /// In order of precedence.
    pub(crate) list: Vec<Rule>,
    /// Options that were given an empty pattern: rules of lower layers are not added to them.
    closed: Vec<&'static str>,
    /// Files whose rules have not been read yet.
    files: Vec<RuleFile>,
    /// Some came from a pipe, and cannot be read again.
    pub(crate) from_pipe: bool,
    /// Some came from stdin.
    pub(crate) from_stdin: bool,
}

/// A file with rules.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RuleFile {
    path: PathBuf,
    /// Patterns without a sign are those of files to include.
    includes: bool,
    /// Place of its rules in the list.
    at: usize,
}

/// Maximum size of a file with rules in bytes.
const LONGEST: u64 = 1_000_000;

/// Creates a rule from a pattern.
type MakeRule = fn(Pattern) -> Rule;

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

/// Parses the rules in a file, one per line: patterns, or rules with a sign of their own (`+ PATTERN`, `- PATTERN`).
/// Blank lines and those that begin with `#` or `;` are skipped, as by rsync.
fn parse(text: &[u8], rule: MakeRule) -> Result<Vec<Rule>, String> {
    let lines = text.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let rules = lines.filter(|line| !matches!(line.first(), None | Some(b'#' | b';'))).map(|line| {
        let (rule, line): (MakeRule, _) = match line {
            [b'+', b' ', pattern @ ..] => (Rule::Include, pattern),
            [b'-', b' ', pattern @ ..] => (Rule::Exclude, pattern),
            pattern => (rule, pattern),
        };
        let shown = String::from_utf8_lossy(line);
        if line == b"!" {
            return Err(
                "! clears the list for rsync, and is no rule here: write the rules in the order that counts".into()
            );
        }
        Pattern::new(line).map(rule).map_err(|error| format!("{shown}: {error}"))
    });
    rules.collect()
}

/// Returns the values of an option, each with its place on the command line.
fn typed<'a, T: Clone + Send + Sync + 'static>(
    matches: &'a ArgMatches,
    name: &str,
) -> impl Iterator<Item = (usize, &'a T)> + use<'a, T> {
    let places = matches.indices_of(name).into_iter().flatten();
    places.zip(matches.get_many(name).into_iter().flatten())
}

impl Rules {
    /// Reads the files that were named. To be called once, since a pipe can be read only once, and before rules of
    /// lower layers are added.
    ///
    /// # Errors
    /// The first file that cannot be read, or that holds something else.
    pub(crate) fn read_files(&mut self) -> Result<(), Failure> {
        for RuleFile { path, includes, at } in std::mem::take(&mut self.files).into_iter().rev() {
            let shown = path.display();
            let absent = |error| Failure::new(Code::SourceAbsent, format!("cannot read the rules in {shown}: {error}"));
            let mut text = Vec::new();
            let is_stdin = Path::new(&path) == Path::new("-");
            if is_stdin && std::mem::replace(&mut self.from_stdin, true) {
                return Err(Failure::new(Code::Usage, "stdin can be read once: name - for one list only"));
            }
            let read = if is_stdin {
                io::stdin().lock().take(LONGEST + 1).read_to_end(&mut text)
            } else {
                File::open(&path).and_then(|file| file.take(LONGEST + 1).read_to_end(&mut text))
            };
            read.map_err(absent)?;
            if text.len() as u64 > LONGEST {
                return Err(Failure::new(Code::Usage, format!("{shown} holds no rules: it is longer than 1 MB")));
            }
            self.from_pipe |= is_stdin || !std::fs::metadata(&path).is_ok_and(|found| found.is_file());
            let refused = |error| Failure::new(Code::Usage, format!("{shown}: {error}"));
            let rules = parse(&text, if includes { Rule::Include } else { Rule::Exclude }).map_err(refused)?;
            self.list.splice(at..at, rules);
        }
        Ok(())
    }

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
        let file = |name: &'static str| {
            let option = Arg::new(name).long(name).value_name("FILE").action(ArgAction::Append);
            option.value_parser(values::path())
        };
        command
            .arg(option("include").help("Include matching files even if a later --exclude matches them"))
            .arg(option("exclude").help(
            "Skip matching files; see `downpour --help` for patterns. An empty one ignores those of the configuration",
        ))
            .arg(file("include-from").help("Include what matches a pattern of FILE, one per line; `-` reads stdin"))
            .arg(file("exclude-from").help("Skip what matches a pattern of FILE, one per line; `-` reads stdin"))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Rules {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        enum Placed {
            Rule(Rule),
            File(PathBuf, bool),
        }
        let (mut placed, mut closed) = (Vec::new(), Vec::new());
        for (name, rule) in OPTIONS {
            for (place, pattern) in typed::<Option<Pattern>>(matches, name) {
                match pattern {
                    Some(pattern) => placed.push((place, Placed::Rule(rule(pattern.clone())))),
                    None => closed.push(name),
                }
            }
        }
        for (name, includes) in [("include-from", true), ("exclude-from", false)] {
            let files = typed::<PathBuf>(matches, name);
            placed.extend(files.map(|(place, path)| (place, Placed::File(path.clone(), includes))));
        }
        placed.sort_by_key(|(place, _)| *place);
        let mut rules = Self { closed, ..Self::default() };
        for (_, placed) in placed {
            match placed {
                Placed::Rule(rule) => rules.list.push(rule),
                Placed::File(path, includes) => rules.files.push(RuleFile { path, includes, at: rules.list.len() }),
            }
        }
        Ok(rules)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
