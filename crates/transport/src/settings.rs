//! Choices as text: a name, and the numbers that differ from what is standard: `cubic:beta=0.5,fast-convergence=off`.
//!
//! The numbers of an algorithm are a struct with one table of [`Setting`]s beside it. The algorithms of a family are an enum made a
//! [`Choice`] by `choices!`: it parses, prints and serialises as that text, and its numbers can be listed and
//! changed one by one.

use crate::time::Rate;
use std::fmt::{Debug, Display};
use std::str::FromStr;
use std::time::Duration;

/// Text that is no choice, or a number that it does not have or does not take.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    /// Nothing has this name.
    #[error("no {family} is called '{name}' (there are: {names})")]
    UnknownName {
        /// What was looked for.
        family: String,
        /// The name.
        name: String,
        /// The names there are.
        names: String,
    },
    /// The choice has no such number.
    #[error("{of} has no '{key}' (it has: {keys})")]
    UnknownKey {
        /// The choice.
        of: String,
        /// The key.
        key: String,
        /// The keys there are.
        keys: String,
    },
    /// The value is not allowed.
    #[error("'{value}' is not a {key}: it is {allowed}")]
    Value {
        /// The key.
        key: String,
        /// What was given.
        value: String,
        /// What may be given.
        allowed: String,
    },
}

/// One number of `T` as text.
pub trait Setting<T>: Sync {
    /// Its name.
    fn key(&self) -> &'static str;
    /// In a list it may stand without its name.
    fn is_bare(&self) -> bool;
    /// What it may be, in words.
    fn allowed(&self) -> String;
    /// Its value.
    fn get(&self, of: &T) -> String;
    /// Changes it; false when the text is not allowed.
    fn set(&self, of: &mut T, text: &str) -> bool;
}

/// Numbers that are written as text.
pub trait Settings: Clone + Debug + PartialEq + Default + 'static {
    /// Its numbers, in the order in which they are printed.
    const SETTINGS: &'static [&'static dyn Setting<Self>];
}

/// A field of `T` in some form.
#[derive(Clone, Copy, Debug)]
pub struct Field<T, V: 'static, F> {
    /// Its name.
    pub key: &'static str,
    /// In a list it may stand without its name.
    pub bare: bool,
    /// How it is written.
    pub form: F,
    /// Where it is.
    pub of: fn(&T) -> &V,
    /// Where it is.
    pub at: fn(&mut T) -> &mut V,
}

/// How a value is written.
pub trait Form<V>: Sync {
    /// The value, if the text is one that is allowed.
    fn parse(&self, text: &str) -> Option<V>;
    /// Text that reads back as the value.
    fn print(&self, value: &V) -> String;
    /// What is allowed, in words.
    fn allowed(&self) -> String;
}

impl<T, V: 'static, F: Form<V>> Setting<T> for Field<T, V, F> {
    fn key(&self) -> &'static str {
        self.key
    }

    fn is_bare(&self) -> bool {
        self.bare
    }

    fn allowed(&self) -> String {
        self.form.allowed()
    }

    fn get(&self, of: &T) -> String {
        self.form.print((self.of)(of))
    }

    fn set(&self, of: &mut T, text: &str) -> bool {
        self.form.parse(text).map(|value| *(self.at)(of) = value).is_some()
    }
}

/// A [`Field`] by its place in the struct that `Self` is: `field!("beta", beta, Number(0.1, 0.95))`; `field!(bare "rate", ..)` may stand without its key.
#[macro_export]
macro_rules! field {
    (bare $key:literal, $($place:ident).+, $form:expr) => {
        &$crate::settings::Field { key: $key, bare: true, form: $form, of: |of: &Self| &of.$($place).+, at: |of: &mut Self| &mut of.$($place).+ }
    };
    ($key:literal, $($place:ident).+, $form:expr) => {
        &$crate::settings::Field { key: $key, bare: false, form: $form, of: |of: &Self| &of.$($place).+, at: |of: &mut Self| &mut of.$($place).+ }
    };
}
pub use crate::field;

/// A number from the first to the second.
#[derive(Clone, Copy, Debug)]
pub struct Number(pub f64, pub f64);

impl Form<f64> for Number {
    fn parse(&self, text: &str) -> Option<f64> {
        text.parse().ok().filter(|value| (self.0..=self.1).contains(value))
    }

    fn print(&self, value: &f64) -> String {
        value.to_string()
    }

    fn allowed(&self) -> String {
        format!("a number from {} to {}", self.0, self.1)
    }
}

/// A share of a whole, from the first to the second: `5%` or `0.05`.
#[derive(Clone, Copy, Debug)]
pub struct Share(pub f64, pub f64);

impl Form<f64> for Share {
    fn parse(&self, text: &str) -> Option<f64> {
        let value = match text.strip_suffix('%') {
            // A hundredth of a decimal, exactly what the decimal two places on would be.
            Some(percent) => format!("{}e-2", percent).parse().ok().filter(|_| percent.parse::<f64>().is_ok())?,
            None => text.parse::<f64>().ok()?,
        };
        (self.0..=self.1).contains(&value).then_some(value)
    }

    fn print(&self, value: &f64) -> String {
        let percent = (value * 1e10).round() / 1e8;
        let text = format!("{percent}%");
        if self.parse(&text) == Some(*value) { text } else { value.to_string() }
    }

    fn allowed(&self) -> String {
        format!("a share from {} to {}", self.print(&self.0), self.print(&self.1))
    }
}

/// A whole number from the first to the second.
#[derive(Clone, Copy, Debug)]
pub struct Count(pub u64, pub u64);

impl<V: Copy + TryFrom<u64> + Into<u64> + 'static> Form<V> for Count {
    fn parse(&self, text: &str) -> Option<V> {
        let value = text.parse().ok().filter(|value| (self.0..=self.1).contains(value))?;
        V::try_from(value).ok()
    }

    fn print(&self, value: &V) -> String {
        let value: u64 = (*value).into();
        value.to_string()
    }

    fn allowed(&self) -> String {
        if self.1 == u64::MAX {
            return format!("a whole number from {} on", self.0);
        }
        format!("a whole number from {} to {}", self.0, self.1)
    }
}

/// `on` or `off`.
#[derive(Clone, Copy, Debug)]
pub struct Switch;

impl Form<bool> for Switch {
    fn parse(&self, text: &str) -> Option<bool> {
        match text {
            "on" => Some(true),
            "off" => Some(false),
            _ => None,
        }
    }

    fn print(&self, value: &bool) -> String {
        if *value { "on" } else { "off" }.into()
    }

    fn allowed(&self) -> String {
        "on or off".into()
    }
}

/// A time from the first to the second, in whole nanoseconds: `250us`, `5ms`, `1.5s`.
#[derive(Clone, Copy, Debug)]
pub struct Span(pub Duration, pub Duration);

const SPANS: [(&str, u64); 4] = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)];

impl Form<Duration> for Span {
    fn parse(&self, text: &str) -> Option<Duration> {
        let at = text.find(|c: char| c.is_ascii_alphabetic())?;
        let unit = SPANS.iter().find(|(name, _)| *name == &text[at..])?.1;
        let nanos = match text[..at].parse::<u64>() {
            Ok(whole) => whole.checked_mul(unit)?,
            Err(_) => {
                let nanos = text[..at].parse::<f64>().ok()? * unit as f64;
                (0.0..9e18).contains(&nanos).then_some(nanos.round() as u64)?
            }
        };
        Some(Duration::from_nanos(nanos)).filter(|span| (self.0..=self.1).contains(span))
    }

    fn print(&self, value: &Duration) -> String {
        let nanos = u64::try_from(value.as_nanos()).unwrap_or(u64::MAX);
        let whole = |(_, unit): &&(&str, u64)| nanos.is_multiple_of(*unit);
        let (name, unit) = SPANS.iter().find(whole).unwrap_or(&SPANS[3]);
        format!("{}{}", nanos / unit, if nanos == 0 { "ms" } else { name })
    }

    fn allowed(&self) -> String {
        format!("a time from {} to {}, such as 5ms or 1.5s", self.print(&self.0), self.print(&self.1))
    }
}

/// A rate in bits per second: `100M`, `1.5G`.
#[derive(Clone, Copy, Debug)]
pub struct BitRate;

impl Form<Rate> for BitRate {
    fn parse(&self, text: &str) -> Option<Rate> {
        parse_rate(text)
    }

    fn print(&self, value: &Rate) -> String {
        rate_text(*value)
    }

    fn allowed(&self) -> String {
        "a rate in bits per second, such as 100M or 1.5G".into()
    }
}

/// What the inner form writes, or this word for nothing.
#[derive(Clone, Copy, Debug)]
pub struct Or<F>(pub &'static str, pub F);

impl<V, F: Form<V>> Form<Option<V>> for Or<F> {
    fn parse(&self, text: &str) -> Option<Option<V>> {
        if text == self.0 { Some(None) } else { self.1.parse(text).map(Some) }
    }

    fn print(&self, value: &Option<V>) -> String {
        value.as_ref().map_or_else(|| self.0.into(), |value| self.1.print(value))
    }

    fn allowed(&self) -> String {
        format!("{}, or {}", self.0, self.1.allowed())
    }
}

/// What parses and prints itself; the text says what that is.
#[derive(Clone, Copy, Debug)]
pub struct Itself(pub &'static str);

impl<V: FromStr + Display> Form<V> for Itself {
    fn parse(&self, text: &str) -> Option<V> {
        text.parse().ok()
    }

    fn print(&self, value: &V) -> String {
        value.to_string()
    }

    fn allowed(&self) -> String {
        self.0.into()
    }
}

const UNITS: [(char, u64); 3] = [('G', 1_000_000_000), ('M', 1_000_000), ('k', 1000)];

/// A rate with the largest unit that divides it, so that it reads back exactly.
fn rate_text(rate: Rate) -> String {
    let bits = rate.bits_per_second();
    let unit = UNITS.iter().find(|(_, unit)| bits.is_multiple_of(*unit));
    unit.map_or_else(|| bits.to_string(), |(letter, unit)| format!("{}{letter}", bits / unit))
}

fn parse_rate(text: &str) -> Option<Rate> {
    let (digits, unit) =
        UNITS.iter().find_map(|(letter, unit)| Some((text.strip_suffix(*letter)?, *unit))).unwrap_or((text, 1));
    if !digits.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    let bits = match digits.parse::<u64>() {
        Ok(whole) => whole.checked_mul(unit)?,
        Err(_) => (digits.parse::<f64>().ok()? * unit as f64).round() as u64,
    };
    (bits > 0 && bits < u64::MAX).then(|| Rate::from_bits_per_second(bits))
}

/// One number of a choice, as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Its name.
    pub key: &'static str,
    /// Its value.
    pub value: String,
    /// What it may be.
    pub allowed: String,
}

/// One of several algorithms, with its numbers.
pub trait Choice {
    /// The text that it is written as.
    fn text(&self) -> String;

    /// Its numbers, all of them.
    fn numbers(&self) -> Vec<Shown>;

    /// Changes one number.
    ///
    /// # Errors
    /// A number that it does not have, or a value that is not allowed.
    fn set_number(&mut self, key: &str, value: &str) -> Result<(), SettingError>;

    /// Becomes what the text says.
    ///
    /// # Errors
    /// Text that names nothing, or numbers that are not allowed; nothing has changed then.
    fn set(&mut self, text: &str) -> Result<(), SettingError>;
}

/// Changes one number of a choice called `name`.
///
/// # Errors
/// A number that it does not have, or a value that is not allowed.
pub fn change<T: Settings>(name: &str, of: &mut T, key: &str, value: &str) -> Result<(), SettingError> {
    let Some(setting) = T::SETTINGS.iter().find(|setting| setting.key() == key) else {
        let keys: Vec<&str> = T::SETTINGS.iter().map(|setting| setting.key()).collect();
        let keys = if keys.is_empty() { "no numbers".into() } else { keys.join(", ") };
        return Err(SettingError::UnknownKey { of: name.into(), key: key.into(), keys });
    };
    if setting.set(of, value) {
        return Ok(());
    }
    Err(SettingError::Value { key: key.into(), value: value.into(), allowed: setting.allowed() })
}

/// Reads `key=value,key=value`, the numbers of a choice called `name`. A value alone is that of the first number that may stand so.
///
/// # Errors
/// A number that the choice does not have, or a value that is not allowed.
pub fn read<T: Settings>(name: &str, text: &str) -> Result<T, SettingError> {
    let mut value = T::default();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let bare = T::SETTINGS.iter().find(|setting| setting.is_bare());
        match (part.split_once('='), bare) {
            (Some((key, text)), _) => change(name, &mut value, key, text)?,
            (None, Some(bare)) => change(name, &mut value, bare.key(), part)?,
            (None, None) => change(name, &mut value, part, "")?,
        }
    }
    Ok(value)
}

/// Writes the numbers of a choice called `name` that are not standard.
pub fn write<T: Settings>(name: &str, value: &T) -> String {
    let standard = T::default();
    let differs = |setting: &&&dyn Setting<T>| setting.get(value) != setting.get(&standard);
    let text = |setting: &&dyn Setting<T>| {
        let value = setting.get(value);
        if setting.is_bare() { value } else { format!("{}={value}", setting.key()) }
    };
    let numbers: Vec<String> = T::SETTINGS.iter().filter(differs).map(text).collect();
    let colon = if numbers.is_empty() { "" } else { ":" };
    format!("{name}{colon}{}", numbers.join(","))
}

/// Lists all numbers.
pub fn list<T: Settings>(value: &T) -> Vec<Shown> {
    let shown =
        |setting: &&dyn Setting<T>| Shown { key: setting.key(), value: setting.get(value), allowed: setting.allowed() };
    T::SETTINGS.iter().map(shown).collect()
}

/// What other crates add to a family: found by the name under which it was registered.
pub trait Added: Sized + Display {
    /// The choice of this name with these numbers; None when nothing has the name.
    fn find(name: &str, numbers: &str) -> Option<Result<Self, SettingError>>;

    /// The names there are.
    fn names() -> Vec<&'static str>;

    /// Changes one number.
    ///
    /// # Errors
    /// What the crate that has added it does not allow.
    fn change(&mut self, key: &str, value: &str) -> Result<(), SettingError>;
}

/// No numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoNumbers;

impl Settings for NoNumbers {
    const SETTINGS: &'static [&'static dyn Setting<Self>] = &[];
}

/// Makes an enum a [`Choice`]: `choices! { "schedule", ScheduleConfig { "windowed" => Windowed(WindowedConfig), "arq" => Arq } }`. Each variant
/// holds nothing or one struct that is [`Settings`]. `else Added(AddedSchedule)` at the end takes the names that other crates have
/// registered: see [`Added`].
macro_rules! choices {
    ($family:literal, $choice:ident { $($name:literal => $variant:ident $(($numbers:ident))?),+ $(,)? } $(else $other:ident($added:ident))?) => {
        impl $choice {
            /// The names there are.
            pub const NAMES: &'static [&'static str] = &[$($name),+];
        }

        impl std::fmt::Display for $choice {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self {
                    $($crate::settings::choices!(@pattern $variant numbers $($numbers)?) =>
                        f.write_str(&$crate::settings::write($name, $crate::settings::choices!(@value numbers $($numbers)?))),)+
                    $(Self::$other(added) => std::fmt::Display::fmt(added, f),)?
                }
            }
        }

        impl std::str::FromStr for $choice {
            type Err = $crate::settings::SettingError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let (name, rest) = text.split_once(':').unwrap_or((text, ""));
                match name {
                    $($name => $crate::settings::choices!(@read $name rest $variant $($numbers)?),)+
                    _ => {
                        #[allow(unused_mut, reason = "only some families take names from elsewhere")]
                        let mut names = Self::NAMES.to_vec();
                        $(
                            if let Some(found) = <$added as $crate::settings::Added>::find(name, rest) {
                                return found.map(Self::$other);
                            }
                            names.extend(<$added as $crate::settings::Added>::names());
                        )?
                        let names = names.join(", ");
                        Err($crate::settings::SettingError::UnknownName { family: $family.into(), name: name.into(), names })
                    }
                }
            }
        }

        impl $crate::settings::Choice for $choice {
            fn text(&self) -> String {
                self.to_string()
            }

            fn numbers(&self) -> Vec<$crate::settings::Shown> {
                match self {
                    $($crate::settings::choices!(@pattern $variant numbers $($numbers)?) =>
                        $crate::settings::list($crate::settings::choices!(@value numbers $($numbers)?)),)+
                    // Their numbers are known to the crate that has added it.
                    $(Self::$other(_) => Vec::new(),)?
                }
            }

            fn set_number(&mut self, key: &str, value: &str) -> Result<(), $crate::settings::SettingError> {
                match self {
                    $($crate::settings::choices!(@pattern $variant numbers $($numbers)?) =>
                        $crate::settings::change($name, $crate::settings::choices!(@change numbers $($numbers)?), key, value),)+
                    $(Self::$other(added) => $crate::settings::Added::change(added, key, value),)?
                }
            }

            fn set(&mut self, text: &str) -> Result<(), $crate::settings::SettingError> {
                *self = text.parse()?;
                Ok(())
            }
        }

        $crate::settings::as_text!($choice);
    };
    (@pattern $variant:ident $bound:ident) => { Self::$variant };
    (@pattern $variant:ident $bound:ident $numbers:ident) => { Self::$variant($bound) };
    (@value $bound:ident) => { &$crate::settings::NoNumbers };
    (@value $bound:ident $numbers:ident) => { $bound };
    (@change $bound:ident) => { &mut $crate::settings::NoNumbers };
    (@change $bound:ident $numbers:ident) => { $bound };
    (@read $name:literal $rest:ident $variant:ident) => {
        $crate::settings::read::<$crate::settings::NoNumbers>($name, $rest).map(|_| Self::$variant)
    };
    (@read $name:literal $rest:ident $variant:ident $numbers:ident) => {
        $crate::settings::read::<$numbers>($name, $rest).map(Self::$variant)
    };
}
pub(crate) use choices;

/// Serialises as the text that it prints.
macro_rules! as_text {
    ($choice:ident) => {
        impl serde::Serialize for $choice {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $choice {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let text = <String as serde::Deserialize>::deserialize(from)?;
                text.parse().map_err(<D::Error as serde::de::Error>::custom)
            }
        }
    };
}
pub(crate) use as_text;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_read_back_as_themselves() {
        let span = Span(Duration::ZERO, Duration::from_secs(100));
        for (text, nanos) in
            [("250us", 250_000), ("5ms", 5_000_000), ("1500ms", 1_500_000_000), ("60s", 60_000_000_000)]
        {
            assert_eq!(span.parse(text), Some(Duration::from_nanos(nanos)));
            assert_eq!(span.print(&Duration::from_nanos(nanos)), text);
        }
        assert_eq!(span.parse("1.5s"), Some(Duration::from_millis(1500)));
        assert_eq!(span.print(&Duration::ZERO), "0ms");
        let share = Share(0.0, 1.0);
        for (text, value) in [("5%", 0.05), ("2.5%", 0.025), ("100%", 1.0), ("0.1%", 0.001), ("0%", 0.0)] {
            assert_eq!(share.parse(text), Some(value));
            assert_eq!(share.print(&value), text);
        }
        assert_eq!(share.parse("0.07"), Some(0.07));
        for value in [1e-3, 1e-9, 1.0 / 3.0, 0.07, 0.29, 0.57] {
            assert_eq!(share.parse(&share.print(&value)), Some(value), "{value}");
        }
        let rates = [("100M", 100_000_000), ("1500k", 1_500_000), ("2G", 2_000_000_000), ("123456789", 123_456_789)];
        for (text, bits) in rates {
            assert_eq!(BitRate.parse(text), Some(Rate::from_bits_per_second(bits)));
            assert_eq!(BitRate.print(&Rate::from_bits_per_second(bits)), text);
        }
        assert_eq!(Or("none", BitRate).parse("none"), Some(None));
        assert_eq!(Or("none", BitRate).print(&Some(Rate::from_bits_per_second(5000))), "5k");
    }

    #[test]
    fn nonsense_is_no_value() {
        for rate in ["", "0", "fast", "-1M", "inf", "nan", "1e300", "1MM1", "1MM", "5kk", "20000000000G", "1MB/s"] {
            assert_eq!(BitRate.parse(rate), None, "{rate}");
        }
        let span = Span(Duration::from_millis(1), Duration::from_secs(1));
        for text in ["", "5", "ms", "-1ms", "2s", "0ms", "5 ms", "nans", "infs", "1e99s", "5mss"] {
            assert_eq!(span.parse(text), None, "{text}");
        }
        for text in ["", "%", "101%", "-1%", "1e", "nan", "inf%", "5%%"] {
            assert_eq!(Share(0.0, 1.0).parse(text), None, "{text}");
        }
        assert_eq!(<Count as Form<u8>>::parse(&Count(0, 1000), "256"), None);
        assert_eq!(<Count as Form<u32>>::parse(&Count(1, 3), "4"), None);
    }
}
