//! The keys of a profile, and its text form.

use super::{AlgorithmRegistry, Profile};
use crate::flow::{BlockSizing, ScheduleConfig};
use crate::recovery::{CongestionConfig, EstimatorConfig};
use crate::settings::{Algorithm, BitRate, Or, SettingError, SettingText, ValueFormat};
use crate::time::Rate;
use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Unexpected, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

/// An error in looking up or changing a profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// No profile has this name.
    #[error("unknown profile '{name}' (one of: {names})")]
    UnknownName {
        /// The name.
        name: String,
        /// The names of the registry.
        names: String,
    },
    /// No choice has this key.
    #[error("unknown profile key '{0}' (one of: {keys})", keys = Key::ALL.map(|key| key.name()).join(", "))]
    UnknownKey(String),
    /// The value is not allowed.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// One of several settings is refused.
    #[error("{key}={value}: {error}")]
    OneOf {
        /// Its key.
        key: String,
        /// Its value.
        value: String,
        /// The error.
        error: Box<Self>,
    },
    /// The lower of two bounds is above the upper one.
    #[error("{least} must not exceed {most}")]
    Contradiction {
        /// Key and value of the lower bound.
        least: String,
        /// Key and value of the upper bound.
        most: String,
    },
}

/// One choice of a profile.
#[derive(Clone, Copy)]
pub struct Key {
    name: &'static str,
    of: fn(&Profile) -> &dyn Algorithm,
    at: fn(&mut Profile) -> &mut dyn Algorithm,
    /// Takes over the choice of another profile.
    take: fn(&mut Profile, Profile),
    /// Makes the choice that a registry has under this name, with its standard numbers; false if there is none.
    register: fn(&mut Profile, &AlgorithmRegistry, &str) -> bool,
    /// Returns the names of the family in a registry.
    registered: fn(&AlgorithmRegistry) -> Vec<&'static str>,
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Key").field(&self.name).finish()
    }
}

macro_rules! key {
    (@key $name:literal, $($place:ident).+, $register:expr, $registered:expr) => {
        Key {
            name: $name,
            of: |profile| &profile.$($place).+,
            at: |profile| &mut profile.$($place).+,
            take: |profile, other| profile.$($place).+ = other.$($place).+,
            register: $register,
            registered: $registered,
        }
    };
    ($name:literal, $($place:ident).+) => {
        key!(@key $name, $($place).+, |_, _, _| false, |_| Vec::new())
    };
    // A choice for which a registry has names of its own: the family's enum, and the registry's table.
    ($name:literal, $($place:ident).+, $choice:ident, $family:ident) => {
        key!(
            @key $name, $($place).+,
            |profile, registry, name| {
                let found = registry.$family().get(name).cloned();
                found.map(|custom| profile.$($place).+ = $choice::Custom(custom)).is_some()
            },
            |registry| registry.$family().keys().copied().collect()
        )
    };
}

impl Key {
    /// Every key, in the order in which a profile is shown.
    pub const ALL: [Self; 15] = [
        key!("symbols", symbols),
        key!("blocks", blocks, BlockSizing, sizings),
        key!("streams", streams),
        key!("schedule", schedule, ScheduleConfig, schedules),
        key!("congestion", recovery.congestion, CongestionConfig, controllers),
        key!("pacing", recovery.pacing),
        key!("detection", recovery.detection),
        key!("timeout", recovery.timeout),
        key!("rtt", recovery.rtt),
        key!("estimator", recovery.estimator, EstimatorConfig, estimators),
        key!("in-flight", recovery.in_flight),
        key!("feedback.packets", feedback.packets),
        key!("feedback.blocks", feedback.blocks),
        key!("feedback.timing", feedback.timing),
        key!("limit", limit),
    ];

    /// Returns its name.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the choice of a profile.
    pub fn of<'a>(&self, profile: &'a Profile) -> &'a dyn Algorithm {
        (self.of)(profile)
    }

    /// Returns the choice of a profile as text, as [`Profile::set`] reads it.
    pub fn text(&self, profile: &Profile) -> String {
        let (own, choice) = (profile.own(), self.of(profile));
        let own = Some(self.of(&own)).filter(|own| own.name() == choice.name());
        choice.written(&own.map(Algorithm::numbers).unwrap_or_default())
    }

    /// Returns the key in `text`, and the number of the choice, if it names one.
    fn find(text: &str) -> Option<(Self, Option<&str>)> {
        Self::ALL.into_iter().find_map(|key| {
            let rest = text.strip_prefix(key.name)?;
            if rest.is_empty() { Some((key, None)) } else { Some((key, Some(rest.strip_prefix('.')?))) }
        })
    }
}

impl Profile {
    /// Changes one choice or one of its numbers: `key` is the name of a [`Key`] (`congestion`, with value
    /// `cubic:beta=0.5`), or that of a number of the current choice (`congestion.beta`, with value `0.5`).
    ///
    /// Numbers that a choice omits are those of the profile that this one is based on, if it makes the same choice, and
    /// the standard ones otherwise: with `cubic:beta=0.6`, `arq` keeps the rest of its own CUBIC.
    ///
    /// # Errors
    /// An unknown key or an invalid value. Nothing has changed then.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), ProfileError> {
        let (found, number) = Key::find(key).ok_or_else(|| ProfileError::UnknownKey(key.into()))?;
        match number {
            None => self.choose(found, &renamed(key, value, |(present, former)| (former, present)))?,
            Some(number) => (found.at)(self).set_number(number, value)?,
        }
        Ok(())
    }

    /// Returns the named profile that it is based on.
    fn own(&self) -> Self {
        self.registry.profile(self.base).unwrap_or_else(|_| Self::auto())
    }

    /// Makes the choice that `text` names: one of the engine's, or one of the program's own.
    fn choose(&mut self, key: Key, text: &str) -> Result<(), SettingError> {
        let name = text.split(':').next().unwrap_or_default();
        let mut own = self.own();
        if key.of(&own).name() != name {
            (key.register)(&mut own, &self.registry, name);
        }
        (key.at)(&mut own).set(text).map_err(|mut error| {
            if let SettingError::UnknownName { names, .. } = &mut error {
                (key.registered)(&self.registry).iter().for_each(|name| *names += &format!(", {name}"));
            }
            error
        })?;
        (key.take)(self, own);
        Ok(())
    }

    /// Changes several settings. Choices are set before their numbers, whatever their order; of two values for one key
    /// the later one counts.
    ///
    /// # Errors
    /// The first unknown key or refused value, or two bounds that contradict each other. Nothing has changed then.
    pub fn set_all<'a>(&mut self, choices: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<(), ProfileError> {
        let mut choices: Vec<(&str, &str)> = choices.into_iter().collect();
        choices.sort_by_key(|(key, _)| Key::find(key).is_some_and(|(_, number)| number.is_some()));
        let mut changed = self.clone();
        for (key, value) in choices {
            let one_of = |error| ProfileError::OneOf { key: key.into(), value: value.into(), error: Box::new(error) };
            changed.set(key, value).map_err(one_of)?;
        }
        changed.check()?;
        *self = changed;
        Ok(())
    }

    /// Checks that the numbers of each choice are consistent.
    fn check(&self) -> Result<(), ProfileError> {
        for key in Key::ALL {
            let choice = key.of(self);
            let Some((least, most)) = choice.contradiction() else { continue };
            let numbers = choice.numbers();
            let text = |name: &str| {
                let number = numbers.iter().find(|number| number.key == name);
                format!("{}.{name}={}", key.name, number.map_or("", |number| &number.value))
            };
            return Err(ProfileError::Contradiction { least: text(least), most: text(most) });
        }
        Ok(())
    }
}

/// A limit on the rate: `none` or a rate.
impl Algorithm for Option<Rate> {
    fn name(&self) -> &'static str {
        "limit"
    }

    fn written(&self, _own: &[SettingText]) -> String {
        Or("none", BitRate).print(self)
    }

    fn numbers(&self) -> Vec<SettingText> {
        Vec::new()
    }

    fn set_number(&mut self, key: &str, _value: &str) -> Result<(), SettingError> {
        Err(SettingError::UnknownKey { of: "limit".into(), key: key.into(), keys: "no numbers".into() })
    }

    fn set(&mut self, text: &str) -> Result<(), SettingError> {
        let form = Or("none", BitRate);
        let refused = || SettingError::Value {
            key: "limit".into(),
            value: text.into(),
            allowed: ValueFormat::<Self>::allowed(&form),
        };
        *self = form.parse(text).ok_or_else(refused)?;
        Ok(())
    }
}

/// Congestion controllers that have been renamed: their names and their former names. A profile may use either. To be
/// removed in the release after next, when no supported release uses the former names.
const RENAMED: [(&str, &str); 2] = [("fixed-rate", "told"), ("fixed-window", "fixed")];

/// Returns `text`, the value of `key`, with a name in [`RENAMED`] replaced; `order` gives the name to replace and its
/// replacement.
fn renamed<'a>(
    key: &str,
    text: &'a str,
    order: fn((&'static str, &'static str)) -> (&'static str, &'static str),
) -> Cow<'a, str> {
    let (name, numbers) = text.split_at(text.find(':').unwrap_or(text.len()));
    let names = RENAMED.into_iter().map(order).find(|(from, _)| key == "congestion" && *from == name);
    names.map_or(Cow::Borrowed(text), |(_, to)| Cow::Owned(format!("{to}{numbers}")))
}

/// A profile is serialised as its name and the keys in which it differs from the profile that it is based on, each as
/// text. This is how a profile is sent to another host, which may run the previous release: that host uses its own
/// defaults for all other keys, and renamed controllers have their former names, which both releases know. The previous
/// release takes numbers that a choice omits from the standard ones, so only standard numbers are omitted.
impl Serialize for Profile {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("name", &self.name)?;
        if self.base != self.name {
            map.serialize_entry(BASED_ON, self.base)?;
        }
        let own = self.own();
        for key in Key::ALL {
            let text = key.text(self);
            if text == key.text(&own) {
                continue;
            }
            map.serialize_entry(key.name, &renamed(key.name, &text, |names| names))?;
        }
        map.end()
    }
}

/// The key that names the profile on which another one is based.
const BASED_ON: &str = "based-on";

/// Longer than the text of any choice. Error messages repeat values from a file.
const LONGEST_VALUE: usize = 1000;

/// The contents of a profile file: its keys, with the texts of their values. Keys in a table are joined with dots:
/// `congestion.beta = 0.6` is the same as `beta = 0.6` in `[congestion]`. Numbers need no quotes, and a list becomes
/// its values with commas.
#[derive(Default)]
struct ProfileText(BTreeMap<String, String>);

impl<'de> Deserialize<'de> for ProfileText {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let mut written = Self::default();
        from.deserialize_map(Value { key: "", written: &mut written })?;
        Ok(written)
    }
}

/// Reads the value of a key.
struct Value<'a> {
    key: &'a str,
    written: &'a mut ProfileText,
}

impl Value<'_> {
    fn put<E: Error>(self, value: impl fmt::Display) -> Result<(), E> {
        let value = value.to_string();
        if value.len() > LONGEST_VALUE {
            return Err(E::custom(format_args!("{} has a value of {} bytes", self.key, value.len())));
        }
        match self.written.0.insert(self.key.to_owned(), value) {
            None => Ok(()),
            Some(_) => Err(E::custom(format_args!("duplicate key {}", self.key))),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Value<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Value<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (of, key) = if self.key.is_empty() {
            ("keys and values", "")
        } else {
            ("a text, a number or a list of them for ", self.key)
        };
        write!(f, "{of}{key}")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.put(text)
    }

    fn visit_i64<E: Error>(self, whole: i64) -> Result<(), E> {
        self.put(whole)
    }

    fn visit_u64<E: Error>(self, whole: u64) -> Result<(), E> {
        self.put(whole)
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<(), E> {
        self.put(number)
    }

    fn visit_bool<E: Error>(self, on: bool) -> Result<(), E> {
        self.put(if on { "on" } else { "off" })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let mut values = Vec::new();
        let mut item = ProfileText::default();
        while list.next_element_seed(Value { key: self.key, written: &mut item })?.is_some() {
            // An item in the form of a table has other keys.
            values.extend(item.0.remove(self.key));
            if !item.0.is_empty() || values.len() > LONGEST_VALUE {
                return Err(A::Error::invalid_type(Unexpected::Seq, &self));
            }
        }
        self.put(values.join(","))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut table: A) -> Result<(), A::Error> {
        let Value { key, written } = self;
        while let Some(name) = table.next_key::<String>()? {
            // The crate `toml` presents dates as such tables.
            if name.starts_with('$') {
                return Err(A::Error::custom(format_args!("{key}: a date is not allowed")));
            }
            if name.len() > LONGEST_VALUE {
                return Err(A::Error::custom(format_args!("a key of {} bytes", name.len())));
            }
            let name = if key.is_empty() { name } else { format!("{key}.{name}") };
            table.next_value_seed(Value { key: &name, written: &mut *written })?;
        }
        Ok(())
    }
}

/// Reads a profile: the name of the profile that it is based on (`auto` by default), and the keys in which it differs.
/// It may choose algorithms of the program's own by these names.
impl<'de> DeserializeSeed<'de> for &AlgorithmRegistry {
    type Value = Profile;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Profile, D::Error> {
        let ProfileText(mut keys) = ProfileText::deserialize(from)?;
        let base = keys.remove(BASED_ON);
        let name = keys.remove("name");
        let known = name.as_deref().filter(|name| self.named(name).is_some());
        let mut profile = self.profile(base.as_deref().or(known).unwrap_or("auto")).map_err(|error| match base {
            Some(_) => Error::custom(format_args!("{BASED_ON} needs the name of a profile, not a file: {error}")),
            None => Error::custom(error),
        })?;
        profile.set_all(keys.iter().map(|(key, value)| (key.as_str(), value.as_str()))).map_err(Error::custom)?;
        profile.name = name.unwrap_or(profile.name);
        Ok(profile)
    }
}
