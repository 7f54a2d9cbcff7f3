//! What other crates add to the engine by name: controllers and schedules.

use crate::settings::{Added, SettingError};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{PoisonError, RwLock};

/// Why a name cannot be registered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegisterError {
    /// It is taken.
    #[error("'{0}' is taken")]
    Taken(String),
    /// It could not be told from the rest of a profile's text.
    #[error("'{0}' is no name: it needs lower-case letters, digits and hyphens, and begins with a letter")]
    Name(String),
}

/// Names of one kind and what each of them builds, for the whole process.
#[derive(Debug)]
pub(crate) struct Registry<B> {
    entries: RwLock<BTreeMap<&'static str, B>>,
}

impl<B: Copy> Registry<B> {
    pub(crate) const fn new() -> Self {
        Self { entries: RwLock::new(BTreeMap::new()) }
    }

    /// Adds a name beside those `built_in`.
    pub(crate) fn register(&self, built_in: &[&str], name: &'static str, build: B) -> Result<(), RegisterError> {
        let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if !name.starts_with(|first: char| first.is_ascii_lowercase()) || !name.chars().all(allowed) {
            return Err(RegisterError::Name(name.into()));
        }
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        if built_in.contains(&name) || entries.contains_key(name) {
            return Err(RegisterError::Taken(name.into()));
        }
        entries.insert(name, build);
        Ok(())
    }

    /// What a name builds.
    pub(crate) fn get(&self, name: &str) -> Option<(&'static str, B)> {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        entries.get_key_value(name).map(|(name, build)| (*name, *build))
    }

    /// The names there are.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        self.entries.read().unwrap_or_else(PoisonError::into_inner).keys().copied().collect()
    }
}

/// How things of one kind are built: what a name of its registry stands for.
pub(crate) trait Build: Copy + 'static {
    /// The names of this kind.
    fn registry() -> &'static Registry<Self>;

    /// Whether the numbers are allowed.
    fn check(self, numbers: &str) -> Result<(), SettingError>;
}

/// What another crate has registered, and its numbers: the text after its name's colon.
#[derive(Clone)]
pub struct Registered<B> {
    name: &'static str,
    pub(crate) numbers: String,
    pub(crate) build: B,
}

impl<B: Build> Added for Registered<B> {
    fn find(name: &str, numbers: &str) -> Option<Result<Self, SettingError>> {
        let (name, build) = B::registry().get(name)?;
        Some(build.check(numbers).map(|()| Self { name, numbers: numbers.into(), build }))
    }

    fn names() -> Vec<&'static str> {
        B::registry().names()
    }

    fn change(&mut self, key: &str, value: &str) -> Result<(), SettingError> {
        let numbers = changed(&self.numbers, key, value);
        self.build.check(&numbers)?;
        self.numbers = numbers;
        Ok(())
    }
}

/// `numbers` with one of them changed, or added.
fn changed(numbers: &str, key: &str, value: &str) -> String {
    let others =
        numbers.split(',').filter(|part| !part.is_empty() && part.split_once('=').is_none_or(|(name, _)| name != key));
    others.map(String::from).chain([format!("{key}={value}")]).collect::<Vec<_>>().join(",")
}

impl<B> fmt::Display for Registered<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let colon = if self.numbers.is_empty() { "" } else { ":" };
        write!(f, "{}{colon}{}", self.name, self.numbers)
    }
}

impl<B> fmt::Debug for Registered<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A name stands for one thing in the whole process.
impl<B> PartialEq for Registered<B> {
    fn eq(&self, other: &Self) -> bool {
        (self.name, &self.numbers) == (other.name, &other.numbers)
    }
}
