//! Profiles to look at: every number with where it comes from, and how two differ.

use super::{ENTRIES, Key, Profile, Source};

/// One choice of a profile, or one number of a choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The key, or `KEY.NUMBER`.
    pub key: String,
    /// What is chosen.
    pub value: String,
    /// What else it may be, in words; nothing for a choice.
    pub allowed: String,
    /// Where it comes from; nothing where only its numbers have a source.
    pub source: &'static str,
}

/// A key in which two profiles differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The key, or `KEY.NUMBER`.
    pub key: String,
    /// In the first; nothing where it has no such number.
    pub first: String,
    /// In the second.
    pub second: String,
}

impl Profile {
    /// Every profile's name, and what it is in one line.
    pub fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
        ENTRIES.iter().map(|entry| (entry.name, entry.about))
    }

    /// Every choice, each followed by all of its numbers. What differs from the profile of that name says so in place of a source.
    pub fn lines(&self) -> Vec<Line> {
        let entry = ENTRIES.iter().find(|entry| entry.name == self.name);
        let sources = entry.map_or(&[][..], |entry| entry.sources);
        let standard = entry.map(|entry| (entry.make)());
        let mut lines = Vec::new();
        for key in Key::ALL {
            let choice = key.of(self);
            let text = choice.text();
            let name = text.split(':').next().unwrap_or_default().to_owned();
            let as_made = standard.as_ref().map(|standard| key.of(standard).text());
            let same = as_made.as_ref() == Some(&text);
            let numbers = choice.numbers();
            let value = if numbers.is_empty() { text } else { name };
            let of_choice = if same { source(sources, key.name()) } else { "set" };
            lines.push(Line { key: key.name().into(), value, allowed: String::new(), source: of_choice });
            for number in numbers {
                let key = format!("{}.{}", key.name(), number.key);
                let source = if same { source(sources, &key) } else { "set" };
                let source = if source.is_empty() { of_choice } else { source };
                lines.push(Line { key, value: number.value, allowed: number.allowed, source });
            }
        }
        lines
    }

    /// Every key and number in which `other` differs.
    pub fn differences(&self, other: &Self) -> Vec<Difference> {
        let (first, second) = (self.lines(), other.lines());
        let value = |lines: &[Line], key: &str| {
            lines.iter().find(|line| line.key == key).map_or(String::new(), |line| line.value.clone())
        };
        let mut keys: Vec<&String> = first.iter().map(|line| &line.key).collect();
        for (at, line) in second.iter().enumerate() {
            if !keys.contains(&&line.key) {
                // Beside the number that it follows in the second.
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

fn source(sources: &'static [Source], key: &str) -> &'static str {
    sources.iter().find(|source| source.key == key).map_or("", |source| source.section)
}
