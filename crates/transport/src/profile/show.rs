//! Profiles for display: every number with its source, and the differences between two profiles.

use super::{Citation, Key, Profile};
use crate::settings::{Algorithm, SettingText};

/// The source of changed values.
const SET: &str = "set";

/// One choice of a profile, or one number of a choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingRow {
    /// The key, or `KEY.NUMBER`.
    pub key: String,
    /// Its value.
    pub value: String,
    /// The allowed values of a number, in words; empty for a choice.
    pub allowed: String,
    /// Its source; empty if only the numbers of a choice have sources.
    pub source: &'static str,
}

/// A key in which two profiles differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The key, or `KEY.NUMBER`.
    pub key: String,
    /// In the first profile; empty if it has no such number.
    pub first: String,
    /// In the second profile.
    pub second: String,
}

impl Profile {
    /// Returns every choice, each followed by all of its numbers. Values that differ from those of the profile it is
    /// based on have the source `set`.
    pub fn lines(&self) -> Vec<SettingRow> {
        let standard = self.registry.named(self.base).map(|named| ((named.make)(), named.sources));
        let mut lines = Vec::new();
        for key in Key::ALL {
            let standard = standard.as_ref().map(|(profile, sources)| (key.of(profile), *sources));
            lines.extend(lines_of(key, key.of(self), standard));
        }
        lines
    }

    /// Returns the keys and numbers in which `other` differs.
    pub fn differences(&self, other: &Self) -> Vec<Difference> {
        let (first, second) = (self.lines(), other.lines());
        let value = |lines: &[SettingRow], key: &str| {
            lines.iter().find(|line| line.key == key).map_or(String::new(), |line| line.value.clone())
        };
        let mut keys: Vec<&String> = first.iter().map(|line| &line.key).collect();
        for (at, line) in second.iter().enumerate() {
            if !keys.contains(&&line.key) {
                // Next to the number that it follows in the second.
                let before = at.checked_sub(1).map(|before| &second[before].key);
                let place = keys.iter().position(|key| Some(*key) == before).map_or(keys.len(), |place| place + 1);
                keys.insert(place, &line.key);
            }
        }
        let difference = |key: &String| {
            let (first, second) = (value(&first, key), value(&second, key));
            (first != second).then(|| Difference { key: key.clone(), first, second })
        };
        keys.into_iter().filter_map(difference).collect()
    }
}

/// Returns a choice and its numbers, each with its own source: changing a number does not change the algorithm.
fn lines_of(
    key: Key,
    choice: &dyn Algorithm,
    standard: Option<(&dyn Algorithm, &'static [Citation])>,
) -> Vec<SettingRow> {
    let (name, numbers) = chosen(choice);
    let other =
        standard.map(|(standard, sources)| (chosen(standard), sources)).filter(|((other, _), _)| *other == name);
    let of_choice = other.as_ref().map_or(SET, |(_, sources)| source(sources, key.name()));
    let mut lines = vec![SettingRow { key: key.name().into(), value: name, allowed: String::new(), source: of_choice }];
    for number in numbers {
        let key = format!("{}.{}", key.name(), number.key);
        let same = other.as_ref().filter(|((_, others), _)| others.contains(&number));
        let source = match same.map(|(_, sources)| source(sources, &key)) {
            None => SET,
            Some("") => of_choice,
            Some(own) => own,
        };
        lines.push(SettingRow { key, value: number.value, allowed: number.allowed, source });
    }
    lines
}

/// Returns the name of a choice and its numbers; its whole text if it has none.
fn chosen(choice: &dyn Algorithm) -> (String, Vec<SettingText>) {
    let (text, numbers) = (choice.text(), choice.numbers());
    let name = if numbers.is_empty() { text.as_str() } else { text.split(':').next().unwrap_or_default() };
    (name.to_owned(), numbers)
}

fn source(sources: &'static [Citation], key: &str) -> &'static str {
    sources.iter().find(|source| source.key == key).map_or("", |source| source.section)
}
