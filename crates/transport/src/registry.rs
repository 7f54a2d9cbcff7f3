//! What other crates add to the engine by name: controllers and schedules.

use std::collections::BTreeMap;
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
