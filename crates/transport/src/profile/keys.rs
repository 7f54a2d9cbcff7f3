//! The keys of a profile: each names one choice, as text, that can be looked at and changed.

use super::Profile;
use crate::settings::{BitRate, Choice, Form, Or, SettingError, Shown};
use crate::time::Rate;
use serde::de::{Deserialize, Deserializer, Error};
use serde::ser::{Serialize, SerializeMap, Serializer};
use std::collections::BTreeMap;
use std::fmt;

/// Why a profile is not what was asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// No profile has this name.
    #[error("no profile is called '{0}' (there are: {names})", names = Profile::NAMES.join(", "))]
    UnknownName(String),
    /// No choice has this key.
    #[error("a profile has no '{0}' (it has: {keys})", keys = Key::ALL.map(|key| key.name()).join(", "))]
    UnknownKey(String),
    /// The text is not allowed there.
    #[error(transparent)]
    Setting(#[from] SettingError),
}

/// One choice of a profile.
#[derive(Clone, Copy)]
pub struct Key {
    name: &'static str,
    of: fn(&Profile) -> &dyn Choice,
    at: fn(&mut Profile) -> &mut dyn Choice,
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Key").field(&self.name).finish()
    }
}

macro_rules! key {
    ($name:literal, $($place:ident).+) => {
        Key { name: $name, of: |profile| &profile.$($place).+, at: |profile| &mut profile.$($place).+ }
    };
}

impl Key {
    /// Every key, in the order in which a profile is shown.
    pub const ALL: [Self; 13] = [
        key!("symbols", symbols),
        key!("blocks", blocks),
        key!("streams", streams),
        key!("schedule", schedule),
        key!("congestion", recovery.congestion),
        key!("detection", recovery.detection),
        key!("timeout", recovery.timeout),
        key!("rtt", recovery.rtt),
        key!("estimator", recovery.estimator),
        key!("feedback.packets", feedback.packets),
        key!("feedback.blocks", feedback.blocks),
        key!("feedback.timing", feedback.timing),
        key!("limit", limit),
    ];

    /// Its name.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The choice that a profile makes.
    pub fn of<'a>(&self, profile: &'a Profile) -> &'a dyn Choice {
        (self.of)(profile)
    }

    /// The key that `text` names, and the number of the choice, where it names one.
    fn find(text: &str) -> Option<(Self, Option<&str>)> {
        Self::ALL.into_iter().find_map(|key| {
            let rest = text.strip_prefix(key.name)?;
            if rest.is_empty() { Some((key, None)) } else { Some((key, Some(rest.strip_prefix('.')?))) }
        })
    }
}

impl Profile {
    /// Makes another choice: `key` is a [`Key`]'s name (`congestion`, value `cubic:beta=0.5`), or one number of what is chosen
    /// (`congestion.beta`, value `0.5`).
    ///
    /// # Errors
    /// A key or a value that there is not; nothing has changed then.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), ProfileError> {
        let (found, number) = Key::find(key).ok_or_else(|| ProfileError::UnknownKey(key.into()))?;
        let choice = (found.at)(self);
        match number {
            None => choice.set(value)?,
            Some(number) => choice.set_number(number, value)?,
        }
        Ok(())
    }
}

/// A cap on the rate: `none` or a rate.
impl Choice for Option<Rate> {
    fn text(&self) -> String {
        Or("none", BitRate).print(self)
    }

    fn numbers(&self) -> Vec<Shown> {
        Vec::new()
    }

    fn set_number(&mut self, key: &str, _value: &str) -> Result<(), SettingError> {
        Err(SettingError::UnknownKey { of: "limit".into(), key: key.into(), keys: "no numbers".into() })
    }

    fn set(&mut self, text: &str) -> Result<(), SettingError> {
        let form = Or("none", BitRate);
        let refused =
            || SettingError::Value { key: "limit".into(), value: text.into(), allowed: Form::<Self>::allowed(&form) };
        *self = form.parse(text).ok_or_else(refused)?;
        Ok(())
    }
}

/// A profile is written as its name and its keys, each as text.
impl Serialize for Profile {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(1 + Key::ALL.len()))?;
        map.serialize_entry("name", &self.name)?;
        for key in Key::ALL {
            map.serialize_entry(key.name, &key.of(self).text())?;
        }
        map.end()
    }
}

/// A value in a file: numbers need no quotes.
#[derive(serde::Deserialize)]
#[serde(untagged)]
enum Scalar {
    Text(String),
    Whole(i64),
    Number(f64),
    Switch(bool),
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Whole(whole) => write!(f, "{whole}"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Switch(on) => f.write_str(if *on { "on" } else { "off" }),
        }
    }
}

/// A profile is read from the name of what it is based on, `auto` if there is none, and what differs from that.
impl<'de> Deserialize<'de> for Profile {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let keys = BTreeMap::<String, Scalar>::deserialize(from)?;
        let mut keys: BTreeMap<String, String> =
            keys.into_iter().map(|(key, value)| (key, value.to_string())).collect();
        let base = keys.remove("based-on");
        let name = keys.remove("name");
        let known = name.as_deref().filter(|name| Self::NAMES.contains(name));
        let base = base.as_deref().or(known).unwrap_or("auto");
        let mut profile = Self::named(base).map_err(Error::custom)?;
        // A choice first, then its numbers: `congestion` before `congestion.beta`, as the order of the keys has it.
        for (key, value) in keys {
            profile.set(&key, &value).map_err(Error::custom)?;
        }
        profile.name = name.clone().unwrap_or_else(|| base.into());
        Ok(profile)
    }
}
