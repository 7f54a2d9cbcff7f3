//! Backups: what is replaced or deleted at a target keeps its content under another name.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, linkat, mkdirat, renameat, statat, unlinkat};
use rustix::io::Errno;
use rustix::process::{Gid, Uid, geteuid};
use serde::{Deserialize, Serialize};

use super::held::Held;
use super::inheritance::has_acl;
use super::metadata::{SET_ID, Status, mode_of};
use super::names::{NameError, check_path};
use super::refusal::{NoBackup, refusal};
use super::sandbox::{DirectorySandbox, errno};
use super::staging::{is_staging_name, under_random_name};
use crate::base64::Bytes;

/// Appended to the name of a backup that stays beside the original, unless the user says otherwise.
const SUFFIX: &[u8] = b"~";

/// How often the suffix is appended to find a name that the transfer does not need itself.
const ATTEMPTS: usize = 8;

/// Where what is replaced or deleted goes: beside the original with a suffix, or below a directory of the target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Parts", into = "Parts")]
pub struct Backup {
    /// A path beneath the target; `None` for beside the original.
    directory: Option<Vec<u8>>,
    /// Empty only with a directory.
    suffix: Vec<u8>,
}

/// A backup that cannot be meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BackupError {
    /// The directory is not beneath the target.
    #[error("backups go to a directory within the target: name it by a path relative to that, without ..")]
    Directory(NameError),
    /// The suffix contains a slash or NUL byte, or is too long.
    #[error("a suffix is a part of a name: leave out slashes")]
    Suffix,
    /// The suffix is empty and there is no directory.
    #[error("without a suffix a backup would have the name of its original: name a directory for backups too")]
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
    pub(super) const fn is_beside(&self) -> bool {
        self.directory.is_none()
    }

    /// Whether a name of the target may be a backup, or the directory of all, and is therefore not deleted.
    pub(super) fn protects(&self, path: &[u8]) -> bool {
        match &self.directory {
            Some(directory) => is_within(path, directory),
            None => path.ends_with(&self.suffix),
        }
    }

    /// Whether `path` is a directory on the way to that of the backups.
    pub(super) fn is_reached_by(&self, path: &[u8]) -> bool {
        self.directory.as_ref().is_some_and(|directory| is_within(directory, path))
    }

    /// Returns the path of the backup of `path`.
    fn path(&self, path: &[u8]) -> Vec<u8> {
        match &self.directory {
            Some(directory) => [directory, &b"/"[..], path, &self.suffix].concat(),
            None => [path, &self.suffix].concat(),
        }
    }

    /// Gives what stands at `path`, which is not a directory, the name of its backup, in place of an older backup;
    /// returns that name. Whatever interrupts this, the content has one of the two names. Names for which `is_needed`
    /// returns true are left alone, and the suffix is appended once more.
    ///
    /// # Errors
    /// [`NoBackup`] inside if there can be none, so that the original has to stay; a failure of the disk.
    pub(super) fn keep(
        &self,
        target: &DirectorySandbox,
        path: &[u8],
        original: Original,
        is_needed: &dyn Fn(&[u8]) -> bool,
    ) -> io::Result<Vec<u8>> {
        let mut to = self.path(path);
        let kept = (|| {
            if let Some(directory) = &self.directory {
                make_directories(target, directory, &to)?;
            }
            for _ in 0..ATTEMPTS {
                if keep_as(target, path, &to, original, is_needed)? {
                    return Ok(());
                }
                if self.suffix.is_empty() {
                    break;
                }
                to.extend_from_slice(&self.suffix);
            }
            Err(Errno::EXIST.into())
        })();
        match kept {
            Ok(()) => Ok(to),
            Err(error) if refusal(errno(&error)).is_none() => Err(error),
            Err(_) => Err(io::Error::other(NoBackup)),
        }
    }
}

/// Gives what stands at `path` the name `to`; returns false if that is needed for something else.
fn keep_as(
    target: &DirectorySandbox,
    path: &[u8],
    to: &[u8],
    original: Original,
    is_needed: &dyn Fn(&[u8]) -> bool,
) -> io::Result<bool> {
    let (from, name) = target.parent(path)?;
    let (into, backup) = target.parent(to)?;
    let look = |folder: &OwnedFd, name| statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).map(Status::from);
    let found = look(&from.fd, name)?;
    let there = match look(&into.fd, backup) {
        Ok(there) => Some(there),
        Err(Errno::NOENT) => None,
        Err(error) => return Err(error.into()),
    };
    if there.is_some_and(|there| there.identity == found.identity) {
        // Another name of it, as an interrupted run may have left. A rename would do nothing.
        if original == Original::Goes {
            unlinkat(&from.fd, name, AtFlags::empty())?;
        }
        return Ok(true);
    }
    if is_needed(to) {
        return Ok(false);
    }
    if there.is_some_and(|there| there.is_directory()) {
        target.remove_folder(to)?;
    }
    if original == Original::Goes || !link_over((&from.fd, name), (&into.fd, backup))? {
        renameat(&from.fd, name, &into.fd, backup)?;
    }
    Ok(true)
}

/// Whether what a backup is made of keeps its own name, until something else takes that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Original {
    /// If the file system has hard links.
    Stays,
    Goes,
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

/// Gives a file a further name in place of what has that; returns false if the file system, or a rule of the system,
/// permits no such link.
fn link_over((from, name): (&OwnedFd, &[u8]), (into, backup): (&OwnedFd, &[u8])) -> io::Result<bool> {
    let link = |to: &[u8]| match linkat(from, name, into, to, AtFlags::empty()) {
        Ok(()) => Ok(true),
        Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS | Errno::MLINK | Errno::ACCESS) => Ok(false),
        Err(error) => Err(error),
    };
    match link(backup) {
        Err(Errno::EXIST) => {}
        linked => return Ok(linked?),
    }
    // A name that no entry may have.
    let (temporary, is_linked) = under_random_name(|name| Ok(link(name.as_bytes())?))?;
    if !is_linked {
        return Ok(false);
    }
    let renamed = renameat(into, &temporary, into, backup);
    // It is left where both are names of one file.
    match unlinkat(into, &temporary, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(renamed.map(|()| true)?)
}

/// Makes the directories of a backup, each as the one that it stands for.
fn make_directories(target: &DirectorySandbox, base: &[u8], to: &[u8]) -> io::Result<()> {
    let slashes = to.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
    let Some(last) = slashes.clone().next_back() else { return Ok(()) };
    if target.folder(&to[..last]).is_ok() {
        return Ok(());
    }
    for end in slashes {
        let made = &to[..end];
        let (parent, name) = target.parent(made)?;
        match mkdirat(&parent.fd, name, mode_of(0o700)) {
            Ok(()) => {}
            Err(Errno::EXIST) => continue,
            Err(error) => return Err(error.into()),
        }
        let model = match made.get(base.len() + 1..) {
            Some(path) => target.folder(path)?,
            // Part of the path that the user has named: as the target.
            None => target.folder(b"")?,
        };
        take_after(&target.folder(made)?.fd, &model.fd)?;
    }
    Ok(())
}

/// Lets nobody into a new directory who may not enter another one.
fn take_after(made: &OwnedFd, model: &OwnedFd) -> io::Result<()> {
    let (model, held) = (Held::from(model.try_clone()?), Held::from(made.try_clone()?));
    // Also one that it has inherited, by a default ACL of the directory that it is in.
    let (has_acl, model) = (has_acl(&model)? || has_acl(&held)?, model.status()?);
    if geteuid().is_root() {
        held.set_owner(Some(Uid::from_raw(model.owner)), Some(Gid::from_raw(model.group)))?;
    }
    // With an ACL, the bits of the group are a bound on others too. Of another group they would be for strangers.
    let same_group = held.status()?.group == model.group;
    let group = if has_acl || !same_group { 0o070 } else { 0 };
    held.set_mode(model.mode & !SET_ID & !group | 0o700)
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
