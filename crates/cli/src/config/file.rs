//! `config.toml`: options at the top, and `[host."PATTERN"]` sections.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use clap::{Arg, Command};
use downpour::remote::host_name;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::layers::{Layer, Setting, Words};
use super::{is_only_typed, options, suggestions};

/// The only key that is not an option.
const HOST: &str = "host";

/// A valid configuration.
#[derive(Debug)]
pub(super) struct File {
    top: Layer,
    /// In the order of the file.
    hosts: Vec<(String, Layer)>,
}

/// An invalid configuration.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FileError {
    path: PathBuf,
    line: usize,
    message: String,
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path.display(), self.line, self.message)
    }
}

impl File {
    /// Parses a configuration for the commands of `definition`, and checks all of it: errors in a host's section are found
    /// before that host is used.
    pub(super) fn parse(path: &Path, text: &str, definition: &Command) -> Result<Self, FileError> {
        let reader = ConfigParser { path, text, definition };
        let table = DeTable::parse(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            reader.error(at, error.message().to_owned())
        })?;
        let mut file = Self { top: Vec::new(), hosts: Vec::new() };
        let mut sections: Vec<(usize, String, Layer)> = Vec::new();
        for (key, value) in table.get_ref() {
            match (key.get_ref().as_ref(), value.get_ref()) {
                (HOST, DeValue::Table(hosts)) => {
                    for (pattern, section) in hosts {
                        let DeValue::Table(options) = section.get_ref() else {
                            let hint = r#"write [host."PATTERN"] with the options below it"#;
                            return Err(reader.error(section.span().start, hint.to_owned()));
                        };
                        let layer = options.iter().map(|(key, value)| reader.setting(key, value));
                        sections.push((
                            pattern.span().start,
                            pattern.get_ref().to_string(),
                            layer.collect::<Result<_, _>>()?,
                        ));
                    }
                }
                _ => file.top.push(reader.setting(key, value)?),
            }
        }
        // The table is in alphabetical order.
        sections.sort_by_key(|(at, ..)| *at);
        file.hosts = sections.into_iter().map(|(_, pattern, layer)| (pattern, layer)).collect();
        Ok(file)
    }

    /// Returns the settings for a transfer with this host, nearest first.
    pub(super) fn layers(&self, host: Option<&str>) -> Vec<Layer> {
        let sections = self.hosts.iter().filter(|(pattern, _)| host.is_some_and(|host| is_meant(pattern, host)));
        sections.map(|(_, layer)| layer.clone()).chain([self.top.clone()]).collect()
    }
}

/// A file while it is being parsed.
struct ConfigParser<'a> {
    path: &'a Path,
    text: &'a str,
    definition: &'a Command,
}

impl ConfigParser<'_> {
    fn error(&self, at: usize, message: String) -> FileError {
        FileError { path: self.path.to_owned(), line: self.line(at), message }
    }

    fn line(&self, at: usize) -> usize {
        self.text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count() + 1
    }

    fn setting(&self, key: &Spanned<impl AsRef<str>>, value: &Spanned<DeValue<'_>>) -> Result<Setting, FileError> {
        let (name, at) = (key.get_ref().as_ref(), key.span().start);
        if is_only_typed(name) {
            return Err(self.error(at, format!("{name} is only allowed on the command line")));
        }
        // Several commands may have the option, each with other valid values.
        let meant: Vec<&Arg> = self.options().filter(|option| option.get_long() == Some(name)).collect();
        let Some(option) = meant.first() else {
            let hint = suggestions::like(name, self.options().filter_map(Arg::get_long)).map_or_else(
                || ": keys are the long options without --".to_owned(),
                |like| format!(": did you mean {like:?}?"),
            );
            return Err(self.error(at, format!("unknown key {name:?}{hint}")));
        };
        let words = Words::of(option);
        let values = match value.get_ref() {
            DeValue::Array(values) => {
                values.iter().map(|value| self.scalar(name, words, value)).collect::<Result<_, _>>()?
            }
            _ => vec![self.scalar(name, words, value)?],
        };
        let origin = format!("{}:{}", self.path.display(), self.line(at));
        let setting = Setting { name: name.to_owned(), values: values.into_iter().map(Into::into).collect(), origin };
        for option in meant {
            setting.check(option).map_err(|message| self.error(at, message))?;
        }
        Ok(setting)
    }

    /// Returns the options of all commands.
    fn options(&self) -> impl Iterator<Item = &Arg> {
        self.definition.get_subcommands().flat_map(options)
    }

    fn scalar(&self, name: &str, words: Words, value: &Spanned<DeValue<'_>>) -> Result<String, FileError> {
        let Range { start, end } = value.span();
        match (value.get_ref(), words) {
            (DeValue::String(text), Words::Text | Words::Number) => Ok(text.to_string()),
            // As written: 30, 0.5, true.
            (DeValue::Integer(_) | DeValue::Float(_), Words::Number) | (DeValue::Boolean(_), Words::Switch) => {
                Ok(self.text.get(start..end).unwrap_or_default().to_owned())
            }
            _ => Err(self.error(start, format!("{name} is {words}"))),
        }
    }
}

/// Returns whether a section is for this host: `*` and `?` in the pattern are wildcards; a pattern without `@` matches
/// every user of the host.
fn is_meant(pattern: &str, host: &str) -> bool {
    let bare = host_name(host);
    let host = match host.trim_start_matches("ssh://").rsplit_once('@') {
        Some((user, _)) if pattern.contains('@') => format!("{user}@{bare}"),
        _ => bare.to_owned(),
    };
    matches_glob(pattern.as_bytes(), host.as_bytes())
}

/// Returns whether a text matches a pattern. After a mismatch only the last star is extended by a character, which avoids
/// exponential time.
fn matches_glob(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(byte) if *byte == b'?' || byte.eq_ignore_ascii_case(&text[t]) => {
                p += 1;
                t += 1;
            }
            _ => {
                let Some((at, taken)) = star else { return false };
                star = Some((at, taken + 1));
                (p, t) = (at + 1, taken + 1);
            }
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}
