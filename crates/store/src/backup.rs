//! Makes backups: replaced or deleted content is kept at the target under another name.

use std::io;
use std::os::fd::OwnedFd;

use request::Backup;
use rustix::fs::{AtFlags, linkat, mkdirat, renameat, statat, unlinkat};
use rustix::io::Errno;
use rustix::process::{Gid, Uid, geteuid};

use super::inheritance::has_acl;
use super::metadata::{SET_ID, Status, mode_of};
use super::path_handle::PathHandle;
use super::refusal::{NoBackup, refusal};
use super::sandbox::{DirectorySandbox, errno};
use super::staging::under_random_name;

/// Maximum number of suffixes appended to find a name that the transfer does not need.
const ATTEMPTS: usize = 8;

/// Renames the existing `path`, which is not a directory, to its backup name, in place of an older backup; returns that
/// name. Whatever interrupts this, the content has one of the two names. Names for which `is_needed` returns true are
/// not used, and the suffix is appended once more.
///
/// # Errors
/// [`NoBackup`] inside if there can be none, so that the original has to be kept; a failure of the disk.
pub(super) fn keep(
    backup: &Backup,
    target: &DirectorySandbox,
    path: &[u8],
    original: Original,
    is_needed: &dyn Fn(&[u8]) -> bool,
) -> io::Result<Vec<u8>> {
    let mut to = backup.path(path);
    let kept = (|| {
        if let Some(directory) = backup.directory() {
            make_directories(target, directory, &to)?;
        }
        for _ in 0..ATTEMPTS {
            if keep_as(target, path, &to, original, is_needed)? {
                return Ok(());
            }
            if backup.suffix().is_empty() {
                break;
            }
            to.extend_from_slice(backup.suffix());
        }
        Err(Errno::EXIST.into())
    })();
    match kept {
        Ok(()) => Ok(to),
        Err(error) if refusal(errno(&error)).is_none() => Err(error),
        Err(_) => Err(io::Error::other(NoBackup)),
    }
}

/// Renames the existing `path` to `to`; returns false if that name is needed by the transfer.
fn keep_as(
    target: &DirectorySandbox,
    path: &[u8],
    to: &[u8],
    original: Original,
    is_needed: &dyn Fn(&[u8]) -> bool,
) -> io::Result<bool> {
    let (from, name) = target.parent(path)?;
    let (into, backup) = target.parent(to)?;
    let look = |directory: &OwnedFd, name| statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).map(Status::from);
    let found = look(&from.fd, name)?;
    let existing = match look(&into.fd, backup) {
        Ok(existing) => Some(existing),
        Err(Errno::NOENT) => None,
        Err(error) => return Err(error.into()),
    };
    if existing.is_some_and(|existing| existing.identity == found.identity) {
        // A second name of the same file, which an interrupted run may have left. A rename would do nothing.
        if original == Original::Goes {
            unlinkat(&from.fd, name, AtFlags::empty())?;
        }
        return Ok(true);
    }
    if is_needed(to) {
        return Ok(false);
    }
    if existing.is_some_and(|existing| existing.is_directory()) {
        target.remove_directory(to)?;
    }
    if original == Original::Goes || !link_over((&from.fd, name), (&into.fd, backup))? {
        renameat(&from.fd, name, &into.fd, backup)?;
    }
    Ok(true)
}

/// Whether the original keeps its own name until something else replaces it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Original {
    /// If the file system has hard links.
    Stays,
    Goes,
}

/// Links a file to a further name, which it replaces; returns false if the file system or a rule of the system does not
/// permit the link.
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
    // It remains if both are names of one file.
    match unlinkat(into, &temporary, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(renamed.map(|()| true)?)
}

/// Makes the directories of a backup, each with the restrictions of the directory that it corresponds to.
fn make_directories(target: &DirectorySandbox, base: &[u8], to: &[u8]) -> io::Result<()> {
    let slashes = to.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
    let Some(last) = slashes.clone().next_back() else { return Ok(()) };
    if target.directory(&to[..last]).is_ok() {
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
            Some(path) => target.directory(path)?,
            // Part of the path that the user has named: as the target.
            None => target.directory(b"")?,
        };
        copy_restrictions(&target.directory(made)?.fd, &model.fd)?;
    }
    Ok(())
}

/// Denies a new directory to all users to whom the model denies it.
fn copy_restrictions(made: &OwnedFd, model: &OwnedFd) -> io::Result<()> {
    let (model, held) = (PathHandle::from(model.try_clone()?), PathHandle::from(made.try_clone()?));
    // Also one that it has inherited, by a default ACL of the directory that it is in.
    let (has_acl, model) = (has_acl(&model)? || has_acl(&held)?, model.status()?);
    if geteuid().is_root() {
        held.set_owner(Some(Uid::from_raw(model.owner)), Some(Gid::from_raw(model.group)))?;
    }
    // With an ACL, the bits of the group also limit others. In another group they would admit strangers.
    let same_group = held.status()?.group == model.group;
    let group = if has_acl || !same_group { 0o070 } else { 0 };
    held.set_mode(model.mode & !SET_ID & !group | 0o700)
}
