//! The names of a tree that take part: rsync's include and exclude rules.
//!
//! The rules are checked in order and the first that matches decides; a name without a match takes part. A path begins
//! at the transfer's root: with the name of the sent item, or, if only its contents are sent, with a name in it. An
//! excluded directory is not searched, so that an include below it has no effect.

mod class;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod pattern;

use std::fmt;

pub use pattern::Pattern;

/// Ordered rules; the first that matches a name decides.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Filter {
    rules: Vec<Rule>,
}

/// One rule of a filter.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rule {
    /// A name that matches takes part.
    Include(Pattern),
    /// A name that matches does not.
    Exclude(Pattern),
}

/// An invalid pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// Only slashes.
    #[error("empty pattern")]
    Empty,
    /// A NUL byte, which no name contains.
    #[error("pattern contains a NUL byte")]
    Nul,
    /// A `[` without its `]`. A literal bracket is written `\[`.
    #[error("pattern has a [ without a ]; write \\[ for the character")]
    OpenClass,
    /// No class of characters has this name.
    #[error("pattern has a [: :] without the name of a class")]
    ClassName,
}

/// An invalid line of rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// The line begins with neither `+ ` nor `- `.
    #[error("line {line}: a rule must begin with \"+ \" or \"- \"")]
    Kind {
        /// Counts from 1.
        line: usize,
    },
    /// Its pattern is invalid.
    #[error("line {line}: {error}")]
    Pattern {
        /// Counts from 1.
        line: usize,
        /// Why.
        error: PatternError,
    },
}

impl Rule {
    /// Whether a matching name takes part.
    #[must_use]
    pub fn includes(&self) -> bool {
        matches!(self, Self::Include(_))
    }

    /// Returns the pattern of the rule.
    #[must_use]
    pub fn pattern(&self) -> &Pattern {
        let (Self::Include(pattern) | Self::Exclude(pattern)) = self;
        pattern
    }
}

impl Filter {
    /// Creates a filter of these rules, in this order.
    #[must_use]
    pub fn new(rules: Vec<Rule>) -> Self {
        Self { rules }
    }

    /// Reads rules from lines `+ PATTERN` (include) and `- PATTERN` (exclude), as rsync's `--filter` takes them. Empty
    /// lines and those that begin with `#` or `;` are ignored; a line `!` discards the rules before it.
    ///
    /// # Errors
    /// The first invalid line.
    pub fn parse(lines: &[u8]) -> Result<Self, RuleError> {
        let mut rules = Vec::new();
        for (line, text) in (1..).zip(lines.split(|b| *b == b'\n')) {
            let text = text.strip_suffix(b"\r").unwrap_or(text);
            let pattern = |text: &[u8]| Pattern::new(text).map_err(|error| RuleError::Pattern { line, error });
            match text {
                [] | [b'#' | b';', ..] => {}
                b"!" => rules.clear(),
                [b'+', b' ', text @ ..] => rules.push(Rule::Include(pattern(text)?)),
                [b'-', b' ', text @ ..] => rules.push(Rule::Exclude(pattern(text)?)),
                _ => return Err(RuleError::Kind { line }),
            }
        }
        Ok(Self { rules })
    }

    /// Returns the rules in order.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Whether there are no rules, so that every name takes part.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Whether the entry at `path`, components joined by `/` from the transfer's root, takes part, given that its
    /// directory does.
    #[must_use]
    pub fn allows(&self, path: &[u8], is_directory: bool) -> bool {
        self.rules.iter().find(|rule| rule.pattern().matches(path, is_directory)).is_none_or(Rule::includes)
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", if self.includes() { '+' } else { '-' }, self.pattern())
    }
}

impl fmt::Display for Filter {
    /// For humans, a line for each rule: unprintable bytes are escaped. To send a filter to another process, serialise
    /// it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rules.iter().try_for_each(|rule| writeln!(f, "{rule}"))
    }
}
