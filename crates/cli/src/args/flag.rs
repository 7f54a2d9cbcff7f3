//! The type of an entry in the table of options.

use clap::ArgMatches;
use clap::builder::ValueParser;

use super::{Args, Command};

/// An option or an operand. The command line, `-h` and `--help`, manual pages, completions, the configuration file, the
/// environment and docs/COMMANDS.md all follow from this entry.
#[derive(Debug)]
pub(crate) struct Flag {
    /// The long name, which is also the key of the configuration file; an operand uses it only as an id.
    pub(crate) name: &'static str,
    /// The short name.
    pub(crate) short: Option<char>,
    /// A second long name.
    pub(crate) alias: Option<&'static str>,
    /// Its value.
    pub(crate) takes: Takes,
    /// One line of help.
    pub(crate) help: &'static str,
    /// Further text of `--help`.
    pub(crate) more: &'static str,
    /// Its section in the help.
    pub(crate) section: Section,
    /// The commands that have it.
    pub(crate) of: &'static [Command],
    /// The commands whose `-h` shows it, with a shorter text if the line of help takes several rows.
    pub(crate) brief: &'static [(&'static [Command], &'static str)],
    /// The option without which it is invalid.
    pub(crate) requires: Option<&'static str>,
    /// Options that exclude it.
    pub(crate) conflicts: &'static [&'static str],
    /// Where it may be set.
    pub(crate) settable: Settable,
    /// The fields of a request that it sets, which the remote host has to know.
    pub(crate) request: &'static [&'static str],
    /// Whether the help omits it.
    pub(crate) hidden: bool,
    /// Stores its value.
    pub(crate) set: fn(&mut Args, &Given<'_>),
}

/// Defaults for the fields that an entry omits.
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

/// The kind of an option's value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Takes {
    /// None: a switch.
    Nothing,
    /// A value; the last one counts.
    Value(Value),
    /// Several values, one each time.
    Values(Value),
    /// A value or none.
    OptionalValue(Value),
    /// A value or none, and a value only after `=`.
    OptionalValueAfterEquals(Value),
    /// An operand.
    Operand(Value),
    /// An optional operand.
    OptionalOperand(Value),
    /// One or more operands.
    Operands(Value),
    /// Any number of operands.
    OptionalOperands(Value),
    /// The rest of the command line.
    Rest(Value),
}

impl Takes {
    /// Returns the value; `None` for a switch.
    pub(crate) const fn value(&self) -> Option<&Value> {
        match self {
            Self::Nothing => None,
            Self::Value(value)
            | Self::Values(value)
            | Self::OptionalValue(value)
            | Self::OptionalValueAfterEquals(value)
            | Self::Operand(value)
            | Self::OptionalOperand(value)
            | Self::Operands(value)
            | Self::OptionalOperands(value)
            | Self::Rest(value) => Some(value),
        }
    }

    /// Returns whether it is an operand.
    pub(crate) const fn is_operand(&self) -> bool {
        match self {
            Self::Nothing
            | Self::Value(_)
            | Self::Values(_)
            | Self::OptionalValue(_)
            | Self::OptionalValueAfterEquals(_) => false,
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
    /// Its parser.
    pub(crate) parser: fn() -> ValueParser,
    /// Its default.
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

    /// Returns the same value, which may begin with a hyphen.
    pub(super) const fn with_hyphens(self) -> Self {
        Self { may_begin_with_hyphen: true, ..self }
    }
}

/// A section of the help. The sections are shown in the order of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Section {
    /// Below the operands, without a heading.
    Own,
    Ticket,
    Forwards,
    Process,
    Selection,
    Attributes,
    Destination,
    RemoteHost,
    Connection,
    Speed,
    Output,
}

impl Section {
    /// Returns its heading.
    pub(crate) const fn heading(self) -> Option<&'static str> {
        match self {
            Self::Own => None,
            Self::Ticket => Some("Ticket"),
            Self::Forwards => Some("Forwards"),
            Self::Process => Some("Process"),
            Self::Selection => Some("Selection"),
            Self::Attributes => Some("Attributes"),
            Self::Destination => Some("Destination"),
            Self::RemoteHost => Some("Remote host"),
            Self::Connection => Some("Connection"),
            Self::Speed => Some("Speed"),
            Self::Output => Some("Output"),
        }
    }
}

/// Where an option may be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settable {
    /// On the command line, in the environment, in the configuration file.
    Anywhere,
    /// On the command line only: for a single run.
    Typed,
}

/// The values that an option was given, or its default.
#[derive(Debug)]
pub(crate) struct Given<'a> {
    pub(super) matches: &'a ArgMatches,
    pub(super) name: &'static str,
}

impl Given<'_> {
    /// Returns the last value.
    pub(super) fn one<T: Clone + Send + Sync + 'static>(&self) -> Option<T> {
        self.matches.get_one(self.name).cloned()
    }

    /// Returns all values.
    pub(super) fn all<T: Clone + Send + Sync + 'static>(&self) -> Vec<T> {
        self.matches.get_many(self.name).into_iter().flatten().cloned().collect()
    }

    /// Returns all values, each with its position on the command line.
    pub(super) fn placed<T: Clone + Send + Sync + 'static>(&self) -> Vec<(usize, T)> {
        let places = self.matches.indices_of(self.name).into_iter().flatten();
        places.zip(self.matches.get_many(self.name).into_iter().flatten().cloned()).collect()
    }
}
