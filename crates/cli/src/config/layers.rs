//! The settings of one source of options.

use std::any::TypeId;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use clap::{Arg, ArgAction, Command};

use super::is_switch;

/// The settings of one source: the environment, or a section of the file.
pub(super) type Layer = Vec<Setting>;

/// A setting of one option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Setting {
    /// The long name of the option.
    pub(super) name: String,
    /// One value, or any number for an option that can be repeated. A switch has `true` or `false`.
    pub(super) values: Vec<OsString>,
    /// Its origin, for messages.
    pub(super) origin: String,
}

impl Setting {
    /// Returns the setting of a variable; `None` if it is empty. For an option that can be repeated, each line is a value,
    /// and empty lines are ignored.
    pub(super) fn of_variable(option: &Arg, variable: &str, text: &OsStr) -> Option<Self> {
        if text.is_empty() {
            return None;
        }
        let values: Vec<OsString> = if matches!(option.get_action(), ArgAction::Append) {
            use std::os::unix::ffi::{OsStrExt, OsStringExt};
            let lines = text.as_bytes().split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
            lines.map(|line| OsString::from_vec(line.to_vec())).collect()
        } else {
            vec![switch_word(option, text).unwrap_or_else(|| text.to_owned())]
        };
        if values.is_empty() {
            return None;
        }
        Some(Self { name: option.get_long()?.to_owned(), values, origin: variable.to_owned() })
    }

    /// Returns whether it turns a switch off.
    pub(super) fn is_off(&self, option: &Arg) -> bool {
        is_switch(option) && self.values.iter().all(|value| value == "false")
    }

    /// Returns its value; of a list, the last one.
    pub(super) fn last(&self) -> Option<&OsStr> {
        self.values.last().map(OsString::as_os_str)
    }

    /// Checks that the option accepts these values; returns the error without its origin.
    pub(super) fn check(&self, option: &Arg) -> Result<(), String> {
        if is_switch(option) {
            let are_words = self.values.iter().all(|value| value == "true" || value == "false");
            return if are_words { Ok(()) } else { Err(format!("{} is {}", self.name, Words::Switch)) };
        }
        if self.values.len() > 1 && !matches!(option.get_action(), ArgAction::Append) {
            return Err(format!("{} takes one value", self.name));
        }
        // An isolated option of the same name and kind: the original may depend on others.
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

/// The form of an option's values in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Words {
    /// True or false.
    Switch,
    /// A number with a fixed unit, such as seconds, or a text with a unit.
    Number,
    /// A text. A number would lack its unit.
    Text,
}

impl Words {
    /// Returns the form of an option's values.
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
            Self::Text => "a text in quotes, or a list of texts if the option can be repeated",
        })
    }
}

/// Translates the words for a switch in the environment, such as `1`, `yes` and `on`.
fn switch_word(option: &Arg, text: &OsStr) -> Option<OsString> {
    match text.to_str()?.to_ascii_lowercase().as_str() {
        _ if !is_switch(option) => None,
        "1" | "yes" | "on" | "true" => Some("true".into()),
        "0" | "no" | "off" | "false" => Some("false".into()),
        _ => None,
    }
}

/// Returns the error in one line, without usage and advice.
fn gist(error: &clap::Error) -> String {
    let text = error.to_string();
    let lines = text.trim_start_matches("error: ").lines().map(str::trim);
    let wanted = lines.take_while(|line| !line.starts_with("For more information") && !line.starts_with("Usage:"));
    wanted.filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}
