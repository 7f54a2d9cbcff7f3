//! What one place says about options.

use std::any::TypeId;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use clap::{Arg, ArgAction, Command};

use super::is_switch;

/// What one place says: the environment, a section of the file.
pub(super) type Layer = Vec<Setting>;

/// What is said about one option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Setting {
    /// The long name of the option.
    pub(super) name: String,
    /// One, or for an option that may stand more than once any number. A switch has `true` or `false`.
    pub(super) values: Vec<OsString>,
    /// Where it was said, for messages.
    pub(super) origin: String,
}

impl Setting {
    /// What a variable says. An empty one says nothing; one for an option that may be repeated has a value a line.
    pub(super) fn of_variable(option: &Arg, variable: &str, text: &OsStr) -> Option<Self> {
        if text.is_empty() {
            return None;
        }
        let values = if matches!(option.get_action(), ArgAction::Append) {
            use std::os::unix::ffi::{OsStrExt, OsStringExt};
            text.as_bytes().split(|byte| *byte == b'\n').map(|line| OsString::from_vec(line.to_vec())).collect()
        } else {
            vec![switch_word(option, text).unwrap_or_else(|| text.to_owned())]
        };
        Some(Self { name: option.get_long()?.to_owned(), values, origin: variable.to_owned() })
    }

    /// Whether it turns a switch off.
    pub(super) fn is_off(&self, option: &Arg) -> bool {
        is_switch(option) && self.values.iter().all(|value| value == "false")
    }

    /// Looks whether the option takes these values; what is wrong otherwise, without its origin.
    pub(super) fn check(&self, option: &Arg) -> Result<(), String> {
        if is_switch(option) {
            let are_words = self.values.iter().all(|value| value == "true" || value == "false");
            return if are_words { Ok(()) } else { Err(format!("{} is {}", self.name, Words::Switch)) };
        }
        if self.values.len() > 1 && !matches!(option.get_action(), ArgAction::Append) {
            return Err(format!("{} takes one value", self.name));
        }
        // An option of the same name and kind, alone: the real one may lean on others.
        let alone = Arg::new("value").long(self.name.clone()).action(option.get_action().clone());
        let command = Command::new("downpour")
            .no_binary_name(true)
            .arg(alone.value_parser(option.get_value_parser().clone()).num_args(1).allow_hyphen_values(true));
        let arguments = self.values.iter().map(|value| {
            let mut argument = OsString::from(format!("--{}=", self.name));
            argument.push(value);
            argument
        });
        command.try_get_matches_from(arguments).map(|_| ()).map_err(|error| gist(&error))
    }
}

/// How a value of an option is written in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Words {
    /// It is on or off.
    Switch,
    /// A count of what has a unit of its own, such as seconds, or a text with a unit.
    Number,
    /// Everything else. A number would be one without a unit.
    Text,
}

impl Words {
    /// Those of an option.
    pub(super) fn of(option: &Arg) -> Self {
        let numbers =
            [TypeId::of::<Duration>(), TypeId::of::<u16>(), TypeId::of::<u64>(), TypeId::of::<RangeInclusive<u16>>()];
        if is_switch(option) {
            Self::Switch
        } else if numbers.iter().any(|number| option.get_value_parser().type_id() == *number) {
            Self::Number
        } else {
            Self::Text
        }
    }
}

impl fmt::Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Switch => "true or false",
            Self::Number => "a number, or a text in quotes",
            Self::Text => "a text in quotes, or a list of some where it may stand more than once",
        })
    }
}

/// `1`, `yes` and `on` are words for a switch in the environment.
fn switch_word(option: &Arg, text: &OsStr) -> Option<OsString> {
    match text.to_str()?.to_ascii_lowercase().as_str() {
        _ if !is_switch(option) => None,
        "1" | "yes" | "on" | "true" => Some("true".into()),
        "0" | "no" | "off" | "false" => Some("false".into()),
        _ => None,
    }
}

/// What is wrong, on one line and without the advice to read the help.
fn gist(error: &clap::Error) -> String {
    let text = error.to_string();
    let lines = text.trim_start_matches("error: ").lines().map(str::trim);
    let wanted = lines.take_while(|line| !line.starts_with("For more information") && !line.starts_with("Usage:"));
    wanted.filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}
