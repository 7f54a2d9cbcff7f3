//! What becomes of an entry, by what stands under its name.

use std::fs::File;
use std::io::{self, Read as _};
use std::sync::atomic::{AtomicBool, Ordering};

use super::super::metadata::{ModeRule, Status};
use super::super::sandbox::DirectorySandbox;
use super::super::spec::{Compare, Existing, ReceiveSpec};
use crate::messages::{Entry, Kind, NoticeKind};

/// Bytes read at a time to hash a file.
const CHUNK: usize = 256 << 10;

/// What becomes of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is here, but for mode and time perhaps.
    Same {
        /// They differ too.
        attributes: bool,
    },
    /// Nothing stands there.
    New,
    /// Something else stands there.
    Replace {
        /// The mode of the file there, if it is to stay.
        mode: Option<u32>,
    },
    /// Something else stands there and stays.
    Kept,
    /// It cannot be here.
    Refused(NoticeKind),
}

/// What decides.
pub(super) struct Judge<'a> {
    pub(super) spec: &'a ReceiveSpec,
    pub(super) modes: ModeRule,
    pub(super) target: &'a DirectorySandbox,
    /// Asked while a file is hashed.
    pub(super) stopped: &'a AtomicBool,
}

impl Judge<'_> {
    /// Looks at what stands at `path`, where `entry` goes; for a hard link `target` is where its file goes.
    pub(super) fn fate(&self, path: &[u8], entry: &Entry, target: Option<&[u8]>) -> io::Result<Fate> {
        let Some(found) = self.target.look(path)? else { return Ok(Fate::New) };
        let skips = self.spec.existing == Existing::Skip;
        if self.is_same(path, entry, target, &found)? {
            let mode = match entry.kind {
                Kind::File { .. } | Kind::Directory => found.mode != self.modes.apply_over(entry.mode, found.mode),
                Kind::Symlink { .. } | Kind::HardLink { .. } => false,
            };
            let time = !matches!(entry.kind, Kind::HardLink { .. }) && !found.has_time(entry.mtime);
            return Ok(Fate::Same { attributes: (mode || time) && !skips });
        }
        if skips {
            return Ok(Fate::Kept);
        }
        // Programs may be talking through it.
        if found.is_special() {
            return Ok(Fate::Refused(NoticeKind::SpecialInTheWay));
        }
        let blocked = found.is_directory() && self.spec.delete.is_none();
        if blocked && !self.target.list(path)?.is_empty() {
            return Ok(Fate::Refused(NoticeKind::FolderInTheWay));
        }
        let stays = matches!(entry.kind, Kind::File { .. }) && found.is_file();
        Ok(Fate::Replace { mode: stays.then(|| self.modes.replace(entry.mode, found.mode)) })
    }

    fn is_same(&self, path: &[u8], entry: &Entry, target: Option<&[u8]>, found: &Status) -> io::Result<bool> {
        Ok(match &entry.kind {
            Kind::Directory => found.is_directory(),
            Kind::Symlink { target } => found.is_symlink() && self.target.read_link(path)? == *target,
            Kind::HardLink { .. } => match target.map(|target| self.target.look(target)).transpose()?.flatten() {
                Some(file) => file.identity == found.identity,
                None => false,
            },
            Kind::File { size, hash, .. } => {
                found.is_file()
                    && found.size == *size
                    && match (self.spec.compare, hash) {
                        (Compare::SizeAndTime, _) => found.has_time(entry.mtime),
                        // One that cannot be read is not known to be the same.
                        (Compare::Checksum, Some(hash)) => self
                            .target
                            .open(path)
                            .and_then(|file| self.digest(file))
                            .is_ok_and(|own| own == Some(*hash)),
                        (Compare::Checksum, None) => false,
                    }
            }
        })
    }

    /// BLAKE3 of a file; `None` when the transfer is stopped meanwhile.
    fn digest(&self, mut file: File) -> io::Result<Option<[u8; 32]>> {
        let (mut hasher, mut chunk) = (blake3::Hasher::new(), vec![0; CHUNK]);
        while !self.stopped.load(Ordering::Relaxed) {
            match file.read(&mut chunk) {
                Ok(0) => return Ok(Some(*hasher.finalize().as_bytes())),
                Ok(count) => drop(hasher.update(&chunk[..count])),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }
}
