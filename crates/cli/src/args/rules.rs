//! `--include` and `--exclude`: one list, in the order typed, to which the configuration adds.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use downpour::files::{Pattern, PatternError, Rule};

use crate::exit::{Code, Failure};

/// A list of include and exclude rules; the first one that matches a name decides.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    /// In order of precedence.
    pub(crate) list: Vec<Rule>,
    /// Rules and files of the command line, each with its position.
    typed: Vec<(usize, Typed)>,
    /// Options with an empty pattern, which ignores the rules of lower layers.
    closed: Vec<&'static str>,
    /// Files whose rules have not been read yet.
    files: Vec<RuleFile>,
    /// Whether some came from a pipe, which cannot be read again.
    pub(crate) from_pipe: bool,
    /// Whether some came from stdin.
    pub(crate) from_stdin: bool,
}

/// The value of an option.
#[derive(Clone, Debug)]
enum Typed {
    Rule(Rule),
    File(PathBuf, Lines),
}

/// The contents of a file.
#[derive(Clone, Copy, Debug)]
enum Lines {
    /// Patterns, and the kind of those without a sign.
    Patterns(MakeRule),
    /// Rules with a sign.
    Rules,
}

/// A file with rules.
#[derive(Clone, Debug)]
struct RuleFile {
    path: PathBuf,
    lines: Lines,
    /// Position of its rules in the list.
    at: usize,
}

/// Maximum size of a file with rules in bytes.
const LONGEST: u64 = 1_000_000;

/// Creates a rule from a pattern.
type MakeRule = fn(Pattern) -> Rule;

/// The two options. If one layer has both in no particular order, the exceptions (`--include`) take precedence.
const OPTIONS: [(&str, MakeRule); 2] = [("include", Rule::Include), ("exclude", Rule::Exclude)];

/// Returns whether an option with this name is a list of rules.
pub(crate) fn is_rule(option: &str) -> bool {
    OPTIONS.iter().any(|(name, _)| *name == option)
}

/// Parses a pattern; `None` for the empty one.
pub(super) fn pattern(text: &OsStr) -> Result<Option<Pattern>, PatternError> {
    if text.is_empty() { Ok(None) } else { Pattern::new(text.as_bytes()).map(Some) }
}

/// A rule of `--filter`.
#[derive(Clone, Debug)]
pub(super) enum FilterRule {
    Rule(Rule),
    /// A file with rules.
    File(PathBuf),
}

/// Parses a rule in rsync's form, of those with the same meaning on both sides of a copy.
pub(super) fn filter_rule(text: &OsStr) -> Result<FilterRule, String> {
    let bytes = text.as_bytes();
    let at = bytes.iter().position(|byte| matches!(byte, b' ' | b'_')).unwrap_or(bytes.len());
    let (kind, rest) = (&bytes[..at], bytes.get(at + 1..).unwrap_or_default());
    let make: MakeRule = match kind {
        b"-" | b"exclude" => Rule::Exclude,
        b"+" | b"include" => Rule::Include,
        b"." | b"merge" if !rest.is_empty() => return Ok(FilterRule::File(PathBuf::from(OsStr::from_bytes(rest)))),
        [b':', ..] | b"dir-merge" => {
            return Err(
                "rules per directory are not supported: write them in one file, for --exclude-from or '. FILE'"
                    .to_owned(),
            );
        }
        _ => {
            return Err(format!("unsupported rule {}: write '- PATTERN', '+ PATTERN' or '. FILE'", text.display()));
        }
    };
    Pattern::new(rest).map(|pattern| FilterRule::Rule(make(pattern))).map_err(|error| error.to_string())
}

/// Parses a line of a file with rules.
fn rule_alone(line: &[u8]) -> Result<Rule, String> {
    match filter_rule(OsStr::from_bytes(line))? {
        FilterRule::Rule(rule) => Ok(rule),
        FilterRule::File(path) => Err(format!("{}: a file of rules cannot include another", path.display())),
    }
}

/// Returns the lines that are neither blank nor comments.
fn lines_of(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let lines = text.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    lines.filter(|line| !matches!(line.first(), None | Some(b'#' | b';')))
}

/// Parses the rules in a file, one per line: patterns, or rules with a sign of their own (`+ PATTERN`, `- PATTERN`).
/// Blank lines and those that begin with `#` or `;` are skipped, as by rsync.
fn parse(text: &[u8], rule: MakeRule) -> Result<Vec<Rule>, String> {
    let rules = lines_of(text).map(|line| {
        let (rule, line): (MakeRule, _) = match line {
            [b'+', b' ', pattern @ ..] => (Rule::Include, pattern),
            [b'-', b' ', pattern @ ..] => (Rule::Exclude, pattern),
            pattern => (rule, pattern),
        };
        let shown = String::from_utf8_lossy(line);
        if line == b"!" {
            return Err("`!` is not supported: list the rules in order of precedence".into());
        }
        Pattern::new(line).map(rule).map_err(|error| format!("{shown}: {error}"))
    });
    rules.collect()
}

impl Rules {
    /// Adds the patterns of an option, each with its position on the command line; `None` is the empty one.
    pub(super) fn place(&mut self, name: &'static str, patterns: Vec<(usize, Option<Pattern>)>, rule: MakeRule) {
        for (place, pattern) in patterns {
            match pattern {
                Some(pattern) => self.typed.push((place, Typed::Rule(rule(pattern)))),
                None => self.closed.push(name),
            }
        }
    }

    /// Adds the files of an option.
    pub(super) fn place_files(&mut self, files: Vec<(usize, PathBuf)>, rule: MakeRule) {
        self.typed.extend(files.into_iter().map(|(place, path)| (place, Typed::File(path, Lines::Patterns(rule)))));
    }

    /// Adds rules with a sign.
    pub(super) fn place_filters(&mut self, filters: Vec<(usize, FilterRule)>) {
        self.typed.extend(filters.into_iter().map(|(place, filter)| match filter {
            FilterRule::Rule(rule) => (place, Typed::Rule(rule)),
            FilterRule::File(path) => (place, Typed::File(path, Lines::Rules)),
        }));
    }

    /// Makes the list of the rules on the command line, in their order.
    pub(super) fn put_in_order(&mut self) {
        let mut typed = std::mem::take(&mut self.typed);
        typed.sort_by_key(|(place, _)| *place);
        for (_, typed) in typed {
            match typed {
                Typed::Rule(rule) => self.list.push(rule),
                Typed::File(path, lines) => self.files.push(RuleFile { path, lines, at: self.list.len() }),
            }
        }
    }

    /// Reads the files. Call it once, since a pipe can be read only once, and before [`Self::add`].
    ///
    /// # Errors
    /// The first file that cannot be read or is invalid.
    pub(crate) fn read_files(&mut self) -> Result<(), Failure> {
        for RuleFile { path, lines, at } in std::mem::take(&mut self.files).into_iter().rev() {
            let shown = path.display();
            let absent = |error| Failure::new(Code::SourceAbsent, format!("cannot read the rules in {shown}: {error}"));
            let mut text = Vec::new();
            let is_stdin = Path::new(&path) == Path::new("-");
            if is_stdin && std::mem::replace(&mut self.from_stdin, true) {
                return Err(Failure::new(Code::Usage, "stdin can be read only once: use - for one list"));
            }
            let read = if is_stdin {
                io::stdin().lock().take(LONGEST + 1).read_to_end(&mut text)
            } else {
                File::open(&path).and_then(|file| file.take(LONGEST + 1).read_to_end(&mut text))
            };
            read.map_err(absent)?;
            if text.len() as u64 > LONGEST {
                return Err(Failure::new(Code::Usage, format!("{shown} is not a list of rules: longer than 1 MB")));
            }
            self.from_pipe |= is_stdin || !std::fs::metadata(&path).is_ok_and(|found| found.is_file());
            let refused = |error| Failure::new(Code::Usage, format!("{shown}: {error}"));
            let rules = match lines {
                Lines::Patterns(rule) => parse(&text, rule),
                Lines::Rules => lines_of(&text).map(rule_alone).collect(),
            };
            let rules = rules.map_err(refused)?;
            self.list.splice(at..at, rules);
        }
        Ok(())
    }

    /// Adds the rules of the next lower layer, where `patterns` returns those of an option. An empty list or pattern
    /// excludes the rules of all lower layers.
    ///
    /// # Errors
    /// The first invalid pattern.
    pub(crate) fn add<'a>(&mut self, patterns: impl Fn(&str) -> Option<&'a [OsString]>) -> Result<(), PatternError> {
        for (name, rule) in OPTIONS {
            let Some(values) = patterns(name).filter(|_| !self.closed.contains(&name)) else { continue };
            let parsed: Vec<Option<Pattern>> = values.iter().map(|text| pattern(text)).collect::<Result<_, _>>()?;
            if parsed.is_empty() || parsed.contains(&None) {
                self.closed.push(name);
            }
            self.list.extend(parsed.into_iter().flatten().map(rule));
        }
        Ok(())
    }
}
