//! Choices as text: a name, and the numbers that differ from the standard ones: `cubic:beta=0.5,fast-convergence=off`.
//!
//! The numbers of an algorithm are a struct with a table of [`Setting`]s. The algorithms of a family are an enum that
//! `choices!` makes an [`Algorithm`]: it parses, prints and serialises as text, and its numbers can be listed and
//! changed one by one.

mod custom;
mod forms;

pub use custom::Custom;
pub(crate) use custom::{NamedSettings, seam};
pub use forms::{BitRate, IntegerRange, Itself, Number, Or, Share, Span, Switch, ValueFormat};

use std::fmt::Debug;

/// Text other than a choice, or a number that a choice does not have or accept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    /// No choice of the family has this name.
    #[error("unknown {family} '{name}' (one of: {names})")]
    UnknownName {
        /// The family.
        family: String,
        /// The name.
        name: String,
        /// The names in the family.
        names: String,
    },
    /// The choice has no such number.
    #[error("{of} has no key '{key}' (one of: {keys})")]
    UnknownKey {
        /// The choice.
        of: String,
        /// The key.
        key: String,
        /// The keys of its numbers.
        keys: String,
    },
    /// The value is not allowed.
    #[error("invalid {key} '{value}': use {allowed}")]
    Value {
        /// The key.
        key: String,
        /// The given value.
        value: String,
        /// The allowed values, in words.
        allowed: String,
    },
}

/// One number of `T`, as text.
pub trait Setting<T>: Sync {
    /// Its key.
    fn key(&self) -> &'static str;
    /// Whether it may be written without its key.
    fn is_bare(&self) -> bool;
    /// The allowed values, in words.
    fn allowed(&self) -> String;
    /// Its value.
    fn get(&self, of: &T) -> String;
    /// Sets its value. False if the text is not allowed.
    fn set(&self, of: &mut T, text: &str) -> bool;
}

/// A struct of numbers that can be written as text.
pub trait Settings: Clone + Debug + PartialEq + Default + 'static {
    /// Its numbers, in the order in which they are printed.
    const SETTINGS: &'static [&'static dyn Setting<Self>];

    /// Returns the keys of a lower and an upper bound that contradict each other, if any do.
    fn contradiction(&self) -> Option<(&'static str, &'static str)> {
        None
    }
}

/// A field of `T` as a [`Setting`].
#[derive(Clone, Copy, Debug)]
pub struct Field<T, V: 'static, F> {
    /// Its key.
    pub key: &'static str,
    /// Whether it may be written without its key.
    pub bare: bool,
    /// Its text form.
    pub form: F,
    /// Borrows it.
    pub of: fn(&T) -> &V,
    /// Borrows it mutably.
    pub at: fn(&mut T) -> &mut V,
}

impl<T, V: 'static, F: ValueFormat<V>> Setting<T> for Field<T, V, F> {
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

/// A [`Field`] of `Self`: `field!("beta", beta, Number(0.1, 0.95))`. `field!(bare "rate", ..)` may be written without
/// its key.
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

/// One number of a choice, for display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingText {
    /// Its key.
    pub key: &'static str,
    /// Its value.
    pub value: String,
    /// The allowed values, in words.
    pub allowed: String,
}

/// One algorithm of a family, with its numbers.
pub trait Algorithm {
    /// Its name in the family.
    fn name(&self) -> &str;

    /// Its text form for a reader that starts from `own`, the numbers of another choice of the same name: those of its
    /// numbers that are not standard or differ from `own`. A reader that starts from the standard numbers understands
    /// it too.
    fn written(&self, own: &[SettingText]) -> String;

    /// Its text form.
    fn text(&self) -> String {
        self.written(&[])
    }

    /// All of its numbers.
    fn numbers(&self) -> Vec<SettingText>;

    /// Returns the keys of a lower and an upper bound that contradict each other, if any do.
    fn contradiction(&self) -> Option<(&'static str, &'static str)> {
        None
    }

    /// Changes one number.
    ///
    /// # Errors
    /// An unknown key or an invalid value. Nothing has changed then.
    fn set_number(&mut self, key: &str, value: &str) -> Result<(), SettingError>;

    /// Becomes the choice that the text describes. Numbers that it omits stay if the name does; those of another choice
    /// are the standard ones.
    ///
    /// # Errors
    /// An unknown name or invalid numbers. Nothing has changed then.
    fn set(&mut self, text: &str) -> Result<(), SettingError>;
}

/// Changes one number of a choice called `name`.
///
/// # Errors
/// An unknown key or an invalid value. Nothing has changed then.
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

/// Reads `key=value,key=value`, the numbers of a choice called `name`; omitted ones are taken from `value`. A value
/// without key is that of the first number that allows it.
///
/// # Errors
/// An unknown key or an invalid value.
pub fn read<T: Settings>(name: &str, text: &str, mut value: T) -> Result<T, SettingError> {
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

/// Writes a choice called `name`, with those of its numbers that differ from the standard ones, or from those of the
/// same key in `own`.
pub fn write<T: Settings>(name: &str, value: &T, own: &[SettingText]) -> String {
    let standard = T::default();
    let differs = |setting: &&&dyn Setting<T>| {
        let value = setting.get(value);
        let own = own.iter().find(|own| own.key == setting.key());
        value != setting.get(&standard) || own.is_some_and(|own| own.value != value)
    };
    let text = |setting: &&dyn Setting<T>| {
        let value = setting.get(value);
        if setting.is_bare() { value } else { format!("{}={value}", setting.key()) }
    };
    let numbers: Vec<String> = T::SETTINGS.iter().filter(differs).map(text).collect();
    let colon = if numbers.is_empty() { "" } else { ":" };
    format!("{name}{colon}{}", numbers.join(","))
}

/// Lists all numbers.
pub fn list<T: Settings>(value: &T) -> Vec<SettingText> {
    let shown = |setting: &&dyn Setting<T>| SettingText {
        key: setting.key(),
        value: setting.get(value),
        allowed: setting.allowed(),
    };
    T::SETTINGS.iter().map(shown).collect()
}

/// No numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoNumbers;

impl Settings for NoNumbers {
    const SETTINGS: &'static [&'static dyn Setting<Self>] = &[];
}

/// Makes an enum an [`Algorithm`]: `choices! { "schedule", ScheduleConfig { "windowed" => Windowed(WindowedConfig),
/// "arq" => Arq } }`. Each variant has no field or one struct that is [`Settings`]. `else Custom` at the end adds a
/// variant for algorithms of other crates, a [`Custom`]: it prints, but its name is parsed by a profile only, which
/// knows the names of its program.
macro_rules! choices {
    ($family:literal, $choice:ident { $($name:literal => $variant:ident $(($numbers:ident))?),+ $(,)? } $(else $other:ident)?) => {
        impl $choice {
            /// The names in the family.
            pub const NAMES: &'static [&'static str] = &[$($name),+];
        }

        impl std::fmt::Display for $choice {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&$crate::settings::Algorithm::text(self))
            }
        }

        impl std::str::FromStr for $choice {
            type Err = $crate::settings::SettingError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let (name, rest) = text.split_once(':').unwrap_or((text, ""));
                match name {
                    $($name => $crate::settings::choices!(@read $name rest $variant $($numbers)?),)+
                    _ => {
                        let names = Self::NAMES.join(", ");
                        Err($crate::settings::SettingError::UnknownName { family: $family.into(), name: name.into(), names })
                    }
                }
            }
        }

        impl $crate::settings::Algorithm for $choice {
            fn name(&self) -> &str {
                match self {
                    $($crate::settings::choices!(@pattern $variant _numbers $($numbers)?) => $name,)+
                    $(Self::$other(custom) => custom.name(),)?
                }
            }

            fn written(&self, own: &[$crate::settings::SettingText]) -> String {
                match self {
                    $($crate::settings::choices!(@pattern $variant numbers $($numbers)?) =>
                        $crate::settings::write($name, $crate::settings::choices!(@value numbers $($numbers)?), own),)+
                    $(Self::$other(custom) => custom.written(own),)?
                }
            }

            fn numbers(&self) -> Vec<$crate::settings::SettingText> {
                match self {
                    $($crate::settings::choices!(@pattern $variant numbers $($numbers)?) =>
                        $crate::settings::list($crate::settings::choices!(@value numbers $($numbers)?)),)+
                    $(Self::$other(custom) => custom.numbers(),)?
                }
            }

            fn contradiction(&self) -> Option<(&'static str, &'static str)> {
                match self {
                    $($crate::settings::choices!(@pattern $variant numbers $($numbers)?) =>
                        $crate::settings::Settings::contradiction($crate::settings::choices!(@value numbers $($numbers)?)),)+
                    $(Self::$other(custom) => custom.contradiction(),)?
                }
            }

            fn set_number(&mut self, key: &str, value: &str) -> Result<(), $crate::settings::SettingError> {
                match self {
                    $($crate::settings::choices!(@pattern $variant numbers $($numbers)?) =>
                        $crate::settings::change($name, $crate::settings::choices!(@change numbers $($numbers)?), key, value),)+
                    $(Self::$other(custom) => custom.set_number(key, value),)?
                }
            }

            fn set(&mut self, text: &str) -> Result<(), $crate::settings::SettingError> {
                let (name, rest) = text.split_once(':').unwrap_or((text, ""));
                $(if let Self::$other(custom) = self && custom.name() == name {
                    return custom.set(text);
                })?
                *self = match (name, &*self) {
                    $(($name, $crate::settings::choices!(@pattern $variant own $($numbers)?)) =>
                        $crate::settings::choices!(@reread $name rest own $variant $($numbers)?)?,)+
                    _ => text.parse()?,
                };
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
        $crate::settings::read($name, $rest, $crate::settings::NoNumbers).map(|_| Self::$variant)
    };
    (@read $name:literal $rest:ident $variant:ident $numbers:ident) => {
        $crate::settings::read($name, $rest, <$numbers>::default()).map(Self::$variant)
    };
    (@reread $name:literal $rest:ident $own:ident $variant:ident) => {
        $crate::settings::choices!(@read $name $rest $variant)
    };
    (@reread $name:literal $rest:ident $own:ident $variant:ident $numbers:ident) => {
        $crate::settings::read($name, $rest, $own.clone()).map(Self::$variant)
    };
}
pub(crate) use choices;

/// Serialises a choice as its text.
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
