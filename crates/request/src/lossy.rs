//! Paths, names and causes as text, for JSON that is only shown to a user (`#[serde(with)]`): bytes that are not UTF-8
//! are replaced. [`base64`](crate::base64) writes the values on which the peer acts.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize as _, Deserializer, Serialize, Serializer};

/// A value shown as text.
pub trait Shown {
    /// Its text, or texts.
    type Text: Serialize + DeserializeOwned;

    /// Returns its text.
    fn to_text(&self) -> Self::Text;

    /// Returns a value with this text.
    fn from_text(text: Self::Text) -> Self;
}

/// Writes it.
///
/// # Errors
/// Errors of the serializer.
pub fn serialize<T: Shown, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    value.to_text().serialize(serializer)
}

/// Reads it.
///
/// # Errors
/// Errors of the deserializer.
pub fn deserialize<'de, T: Shown, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    T::Text::deserialize(deserializer).map(T::from_text)
}

impl Shown for PathBuf {
    type Text = String;

    fn to_text(&self) -> String {
        self.display().to_string()
    }

    fn from_text(text: String) -> Self {
        OsString::from_vec(text.into_bytes()).into()
    }
}

impl Shown for Vec<u8> {
    type Text = String;

    fn to_text(&self) -> String {
        String::from_utf8_lossy(self).into_owned()
    }

    fn from_text(text: String) -> Self {
        text.into_bytes()
    }
}

impl Shown for io::Error {
    type Text = String;

    fn to_text(&self) -> String {
        self.to_string()
    }

    /// Loses the error number: another system may use other numbers.
    fn from_text(text: String) -> Self {
        Self::other(text)
    }
}

impl Shown for Vec<PathBuf> {
    type Text = Vec<String>;

    fn to_text(&self) -> Vec<String> {
        self.iter().map(Shown::to_text).collect()
    }

    fn from_text(text: Vec<String>) -> Self {
        text.into_iter().map(Shown::from_text).collect()
    }
}

impl Shown for Option<Vec<u8>> {
    type Text = Option<String>;

    fn to_text(&self) -> Option<String> {
        self.as_ref().map(Shown::to_text)
    }

    fn from_text(text: Option<String>) -> Self {
        text.map(Shown::from_text)
    }
}
