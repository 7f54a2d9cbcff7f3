//! Byte strings as base64 text, for JSON: paths and names need not be UTF-8.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use data_encoding::BASE64_NOPAD;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// A byte string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bytes(pub Vec<u8>);

impl Bytes {
    /// Returns these bytes as a path.
    pub fn to_path(&self) -> PathBuf {
        OsString::from_vec(self.0.clone()).into()
    }
}

impl From<&Path> for Bytes {
    fn from(path: &Path) -> Self {
        Self(path.as_os_str().as_bytes().to_vec())
    }
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&BASE64_NOPAD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        BASE64_NOPAD.decode(text.as_bytes()).map(Self).map_err(D::Error::custom)
    }
}

/// A path, for `#[serde(with)]`.
pub mod path {
    use super::{Bytes, Deserialize as _, Deserializer, Path, PathBuf, Serialize as _, Serializer};

    /// Writes it.
    ///
    /// # Errors
    /// Errors of the serializer.
    pub fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
        Bytes::from(path).serialize(serializer)
    }

    /// Reads it.
    ///
    /// # Errors
    /// A text that is not base64.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
        Ok(Bytes::deserialize(deserializer)?.to_path())
    }
}

/// A byte string, for `#[serde(with)]`.
pub mod bytes {
    use super::{Bytes, Deserialize as _, Deserializer, Serialize as _, Serializer};

    /// Writes it.
    ///
    /// # Errors
    /// Errors of the serializer.
    pub fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        Bytes(bytes.to_vec()).serialize(serializer)
    }

    /// Reads it.
    ///
    /// # Errors
    /// A text that is not base64.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        Ok(Bytes::deserialize(deserializer)?.0)
    }
}

/// A name, if there is one, for `#[serde(with)]`.
pub mod name {
    use super::{Bytes, Deserialize as _, Deserializer, Serialize as _, Serializer};

    /// Writes it.
    ///
    /// # Errors
    /// Errors of the serializer.
    pub fn serialize<S: Serializer>(name: &Option<Vec<u8>>, serializer: S) -> Result<S::Ok, S::Error> {
        name.clone().map(Bytes).serialize(serializer)
    }

    /// Reads it.
    ///
    /// # Errors
    /// A text that is not base64.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<u8>>, D::Error> {
        Ok(Option::<Bytes>::deserialize(deserializer)?.map(|name| name.0))
    }
}

/// Names, if there are any, for `#[serde(with)]`.
pub mod names {
    use super::{Bytes, Deserialize as _, Deserializer, Serialize as _, Serializer};

    /// Writes it.
    ///
    /// # Errors
    /// Errors of the serializer.
    pub fn serialize<S: Serializer>(names: &Option<Vec<Vec<u8>>>, serializer: S) -> Result<S::Ok, S::Error> {
        let names = names.as_ref().map(|names| names.iter().cloned().map(Bytes).collect::<Vec<_>>());
        names.serialize(serializer)
    }

    /// Reads it.
    ///
    /// # Errors
    /// A text that is not base64.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<Vec<u8>>>, D::Error> {
        let names = Option::<Vec<Bytes>>::deserialize(deserializer)?;
        Ok(names.map(|names| names.into_iter().map(|name| name.0).collect()))
    }
}
