//! Backups: replaced or deleted content is kept at a target under another name.

use serde::{Deserialize, Serialize};

use crate::base64::Bytes;
use crate::names::{NameError, check_path, is_staging_name};

/// Default suffix of the name of a backup beside the original.
const SUFFIX: &[u8] = b"~";

/// The place of replaced or deleted files: beside the original with a suffix, or below a directory of the target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Parts", into = "Parts")]
pub struct Backup {
    /// A path beneath the target; `None` for beside the original.
    directory: Option<Vec<u8>>,
    /// Empty only with a directory.
    suffix: Vec<u8>,
}

/// An invalid request for backups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BackupError {
    /// The directory is not beneath the target.
    #[error("the backup directory must be a relative path inside the destination, without ..")]
    Directory(NameError),
    /// The suffix contains a slash or NUL byte, or is too long.
    #[error("the suffix must be part of a file name, without slashes")]
    Suffix,
    /// The suffix is empty and there is no directory.
    #[error("an empty suffix needs a backup directory: backup and original would have one name")]
    Nowhere,
}

/// A [`Backup`] as sent through ssh.
#[derive(Serialize, Deserialize)]
struct Parts {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    directory: Option<Bytes>,
    suffix: Bytes,
}

impl From<Backup> for Parts {
    fn from(backup: Backup) -> Self {
        Self { directory: backup.directory.map(Bytes), suffix: Bytes(backup.suffix) }
    }
}

impl TryFrom<Parts> for Backup {
    type Error = BackupError;

    fn try_from(parts: Parts) -> Result<Self, BackupError> {
        Self::new(parts.directory.as_ref().map(|directory| &directory.0[..]), Some(&parts.suffix.0))
    }
}

impl Backup {
    /// Creates backups below `directory`, a path relative to the target, or beside the originals. Their names get a
    /// suffix: by default `~`, and none in a directory.
    ///
    /// # Errors
    /// See [`BackupError`].
    pub fn new(directory: Option<&[u8]>, suffix: Option<&[u8]>) -> Result<Self, BackupError> {
        const LONGEST_SUFFIX: usize = 64;
        let directory = directory.map(normal).map(|directory| {
            check_path(directory).map_err(BackupError::Directory)?;
            if directory.split(|byte| *byte == b'/').any(is_staging_name) {
                return Err(BackupError::Directory(NameError::Reserved));
            }
            Ok(directory.to_vec())
        });
        let directory = directory.transpose()?;
        let suffix = suffix.unwrap_or(if directory.is_some() { b"" } else { SUFFIX });
        if suffix.len() > LONGEST_SUFFIX || suffix.iter().any(|byte| matches!(byte, 0 | b'/')) {
            return Err(BackupError::Suffix);
        }
        if suffix.is_empty() && directory.is_none() {
            return Err(BackupError::Nowhere);
        }
        Ok(Self { directory, suffix: suffix.to_vec() })
    }

    /// Whether backups are in the directories of their originals.
    #[must_use]
    pub const fn is_beside(&self) -> bool {
        self.directory.is_none()
    }

    /// Whether a name of the target may be a backup, or the directory of all backups, and is therefore not deleted.
    #[must_use]
    pub fn protects(&self, path: &[u8]) -> bool {
        match &self.directory {
            Some(directory) => is_within(path, directory),
            None => path.ends_with(&self.suffix),
        }
    }

    /// Whether `path` is a parent of the backup directory.
    #[must_use]
    pub fn is_reached_by(&self, path: &[u8]) -> bool {
        self.directory.as_ref().is_some_and(|directory| is_within(directory, path))
    }

    /// Returns the directory of all backups, a path beneath the target; `None` for beside the original.
    #[must_use]
    pub fn directory(&self) -> Option<&[u8]> {
        self.directory.as_deref()
    }

    /// Returns the suffix of their names; empty only with a directory.
    #[must_use]
    pub fn suffix(&self) -> &[u8] {
        &self.suffix
    }

    /// Returns the path of the backup of `path`.
    #[must_use]
    pub fn path(&self, path: &[u8]) -> Vec<u8> {
        match &self.directory {
            Some(directory) => [directory, &b"/"[..], path, &self.suffix].concat(),
            None => [path, &self.suffix].concat(),
        }
    }
}

/// Returns a path without slashes at its end and `.` at its beginning.
fn normal(mut path: &[u8]) -> &[u8] {
    while let [b'.', b'/', rest @ ..] = path {
        path = rest;
    }
    while let [rest @ .., b'/'] = path
        && !rest.is_empty()
    {
        path = rest;
    }
    path
}

/// Whether `path` is `directory`, or beneath it.
fn is_within(path: &[u8], directory: &[u8]) -> bool {
    path.strip_prefix(directory).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backups_stay_within_the_target() {
        let made = |directory: &str, suffix: &str| Backup::new(Some(directory.as_bytes()), Some(suffix.as_bytes()));
        for directory in
            ["", "/", "/x", "..", "../x", "x/../y", "x/..", "x//y", ".", "x/.", "x\0", ".downpour-abcdefgh"]
        {
            assert!(matches!(made(directory, ""), Err(BackupError::Directory(_))), "{directory:?}");
            let text =
                serde_json::to_string(&Parts { directory: Some(Bytes(directory.into())), suffix: Bytes(Vec::new()) });
            assert!(serde_json::from_str::<Backup>(&text.unwrap()).is_err(), "{directory:?}, in a request");
        }
        for suffix in ["/", "a/b", "\0", &"x".repeat(65)] {
            assert_eq!(made("x", suffix), Err(BackupError::Suffix), "{suffix:?}");
        }
        assert_eq!(Backup::new(None, Some(b"")), Err(BackupError::Nowhere));
        assert_eq!(made("./x/y//", ".old"), made("x/y", ".old"));
        for backup in [Backup::new(None, None), made("x/\u{fc}", ""), Backup::new(Some(b"\xff"), None)] {
            let backup = backup.unwrap();
            let text = serde_json::to_string(&backup).unwrap();
            assert_eq!(serde_json::from_str::<Backup>(&text).unwrap(), backup, "{text}");
        }
    }

    #[test]
    fn backups_are_protected() {
        let beside = Backup::new(None, None).unwrap();
        assert_eq!(
            (beside.path(b"a/b"), beside.protects(b"a/b~"), beside.protects(b"a~/b")),
            (b"a/b~".to_vec(), true, false)
        );
        let below = Backup::new(Some(b"x/y"), Some(b".1")).unwrap();
        assert_eq!(below.path(b"a/b"), b"x/y/a/b.1");
        assert!(
            below.protects(b"x/y") && below.protects(b"x/y/a/b") && !below.protects(b"x/yz") && !below.protects(b"x")
        );
    }
}
