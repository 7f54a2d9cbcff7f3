//! What one option is: its entry in the table.

use clap::ArgMatches;
use clap::builder::ValueParser;

use super::{Args, Command};

/// An option or an operand: all that is known of it, in one place. Its name, its help, the commands that have it and what
/// it sets follow from here for the command line, `-h` and `--help`, manual pages, completions, the configuration file, the
/// environment and docs/COMMANDS.md.
#[derive(Debug)]
pub(crate) struct Flag {
    /// The long name, which is also the key of the configuration file; an operand has no other use for it.
    pub(crate) name: &'static str,
    /// The letter.
    pub(crate) short: Option<char>,
    /// Another long name.
    pub(crate) alias: Option<&'static str>,
    /// What comes with it.
    pub(crate) takes: Takes,
    /// One line of help.
    pub(crate) help: &'static str,
    /// What `--help` says beyond that line.
    pub(crate) more: &'static str,
    /// Where it is in the help.
    pub(crate) section: Section,
    /// The commands that have it.
    pub(crate) of: &'static [Command],
    /// The commands whose `-h` shows it, with the words if the line of help takes several rows.
    pub(crate) brief: &'static [(&'static [Command], &'static str)],
    /// Options without which it means nothing.
    pub(crate) requires: Option<&'static str>,
    /// Options that exclude it.
    pub(crate) conflicts: &'static [&'static str],
    /// Where it may be set.
    pub(crate) settable: Settable,
    /// The fields of a request that it sets, which the other machine has to know.
    pub(crate) request: &'static [&'static str],
    /// No help mentions it.
    pub(crate) hidden: bool,
    /// Puts it where it takes effect.
    pub(crate) set: fn(&mut Args, &Given<'_>),
}

/// What an entry leaves out.
pub(super) const FLAG: Flag = Flag {
    name: "",
    short: None,
    alias: None,
    takes: Takes::Nothing,
    help: "",
    more: "",
    section: Section::Own,
    of: &[],
    brief: &[],
    requires: None,
    conflicts: &[],
    settable: Settable::Anywhere,
    request: &[],
    hidden: false,
    set: |_, _| {},
};

/// What comes with an option.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Takes {
    /// Nothing: it is a switch.
    Nothing,
    /// A value; the last one counts.
    Value(Value),
    /// A value each time.
    Values(Value),
    /// A value or none.
    Perhaps(Value),
    /// A value or none, and a value only after `=`.
    PerhapsAfterEquals(Value),
    /// It is an operand: a value.
    Operand(Value),
    /// It is an operand that may be left out.
    OptionalOperand(Value),
    /// It is all operands.
    Operands(Value),
    /// The same, of which there may be none.
    OptionalOperands(Value),
    /// It is everything that is left of the command line.
    Rest(Value),
}

impl Takes {
    /// The value; `None` for a switch.
    pub(crate) const fn value(&self) -> Option<&Value> {
        match self {
            Self::Nothing => None,
            Self::Value(value)
            | Self::Values(value)
            | Self::Perhaps(value)
            | Self::PerhapsAfterEquals(value)
            | Self::Operand(value)
            | Self::OptionalOperand(value)
            | Self::Operands(value)
            | Self::OptionalOperands(value)
            | Self::Rest(value) => Some(value),
        }
    }

    /// Whether it is an operand.
    pub(crate) const fn is_operand(&self) -> bool {
        match self {
            Self::Nothing | Self::Value(_) | Self::Values(_) | Self::Perhaps(_) | Self::PerhapsAfterEquals(_) => false,
            Self::Operand(_)
            | Self::OptionalOperand(_)
            | Self::Operands(_)
            | Self::OptionalOperands(_)
            | Self::Rest(_) => true,
        }
    }
}

/// A value of an option.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Value {
    /// Its name in the help.
    pub(crate) name: &'static str,
    /// How it is read.
    pub(crate) parser: fn() -> ValueParser,
    /// What it is if the option is left out.
    pub(crate) default: Option<&'static str>,
    /// Whether it may begin with a hyphen.
    pub(crate) may_begin_with_hyphen: bool,
}

/// Returns a value without a default.
pub(super) const fn value(name: &'static str, parser: fn() -> ValueParser) -> Value {
    Value { name, parser, default: None, may_begin_with_hyphen: false }
}

impl Value {
    /// Returns the same value with a default.
    pub(super) const fn or(self, default: &'static str) -> Self {
        Self { default: Some(default), ..self }
    }

    /// Returns the same value, which may begin with anything.
    pub(super) const fn with_hyphens(self) -> Self {
        Self { may_begin_with_hyphen: true, ..self }
    }
}

/// Where an option is in the help. The order is that of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Section {
    /// Below the operands, without a heading.
    Own,
    ByTicket,
    Forwards,
    WhileItRuns,
    Copied,
    Preserved,
    AtTheTarget,
    OtherSide,
    Connection,
    Speed,
    Shown,
}

impl Section {
    /// Its heading.
    pub(crate) const fn heading(self) -> Option<&'static str> {
        match self {
            Self::Own => None,
            Self::ByTicket => Some("By ticket"),
            Self::Forwards => Some("Forwards"),
            Self::WhileItRuns => Some("While it runs"),
            Self::Copied => Some("What is copied"),
            Self::Preserved => Some("What is preserved"),
            Self::AtTheTarget => Some("At the target"),
            Self::OtherSide => Some("The other side"),
            Self::Connection => Some("The connection"),
            Self::Speed => Some("Speed"),
            Self::Shown => Some("What is shown"),
        }
    }
}

/// Where an option may be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settable {
    /// On the command line, in the environment, in the configuration file.
    Anywhere,
    /// On the command line: it is for a single run.
    Typed,
}

/// The values that an option was given, or its default.
#[derive(Debug)]
pub(crate) struct Given<'a> {
    pub(super) matches: &'a ArgMatches,
    pub(super) name: &'static str,
}

impl Given<'_> {
    /// The last value.
    pub(super) fn one<T: Clone + Send + Sync + 'static>(&self) -> Option<T> {
        self.matches.get_one(self.name).cloned()
    }

    /// All values.
    pub(super) fn all<T: Clone + Send + Sync + 'static>(&self) -> Vec<T> {
        self.matches.get_many(self.name).into_iter().flatten().cloned().collect()
    }

    /// All values, each with its place on the command line.
    pub(super) fn placed<T: Clone + Send + Sync + 'static>(&self) -> Vec<(usize, T)> {
        let places = self.matches.indices_of(self.name).into_iter().flatten();
        places.zip(self.matches.get_many(self.name).into_iter().flatten().cloned()).collect()
    }
}
