//! From a name to its entry in the manifest.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use request::{Filter, LinkPolicy, MAX_COMPONENT, MAX_PATH, Preserve, SourceOptions};
use rustix::fs::{Access, AtFlags, FileType, Mode, OFlags, accessat, fstat, fstatvfs, openat, readlinkat, statat};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::super::attributes::ExtraRule;
use super::super::cursor::{Purpose, open_way};
use super::super::ids::NamesOfIds;
use super::super::metadata::Status;
use super::super::outputs::SourceOutputs;
use super::super::path_handle::PathHandle;
use super::candidate::{Candidate, Provenance, reason_of, skip_reason};
use super::hard_links::HardLinks;
use crate::messages::{EntryKind, Extra, SkipReason};

/// Bytes read at a time from a file that is only hashed.
const HASH_BUFFER: usize = 1 << 20;

/// Determines the kinds of names.
#[derive(Debug)]
pub(super) struct Looker {
    filter: Arc<Filter>,
    links: LinkPolicy,
    /// See [`SourceOptions::follow_parent_links`].
    follow_ways: bool,
    /// `None` unless hard links are sent as such.
    hard_links: Option<HardLinks>,
    /// Buffer for hashing; empty until the first use.
    buffer: Vec<u8>,
    hash: bool,
    outputs: SourceOutputs,
    preserve: Preserve,
    extras: ExtraRule,
    /// Names of users and groups that were met.
    pub(super) names: NamesOfIds,
    /// Effective user id.
    user: u32,
    /// The last device met whose files are known to report their sizes.
    sized: Option<u64>,
    /// Set when the results are no longer needed.
    pub(super) stopped: Arc<AtomicBool>,
}

/// The result of inspecting a name.
#[derive(Debug)]
pub(super) enum Inspection {
    /// Something to send.
    Present(EntryKind, Status, Extra),
    /// Excluded by the user.
    Excluded,
}

impl Looker {
    pub(super) fn new(options: &SourceOptions) -> Self {
        Self {
            filter: Arc::clone(&options.filter),
            links: options.links,
            follow_ways: options.follow_parent_links && options.files_from.is_some(),
            hard_links: options.hard_links.then(HardLinks::default),
            buffer: Vec::new(),
            hash: options.hash,
            outputs: SourceOutputs::of(&options.outputs),
            preserve: options.preserve,
            extras: ExtraRule::new(options.preserve),
            names: NamesOfIds::default(),
            user: geteuid().as_raw(),
            sized: None,
            stopped: Arc::default(),
        }
    }

    /// Whether the results are no longer needed.
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Inspects a name in an open directory.
    pub(super) fn look(
        &mut self,
        candidate: &Candidate,
        place: io::Result<(BorrowedFd<'_>, &[u8])>,
    ) -> Result<Inspection, SkipReason> {
        let Candidate { sent, provenance } = candidate;
        let allows = |is_directory| *provenance == Provenance::Way || self.filter.allows(sent, is_directory);
        if !self.filter.is_empty() && !allows(true) && !allows(false) {
            return Ok(Inspection::Excluded);
        }
        let last = sent.rsplit(|b| *b == b'/').next().unwrap_or(sent);
        if sent.len() > MAX_PATH || last.len() > MAX_COMPONENT {
            return Err(SkipReason::NameTooLong);
        }
        let (directory, name) = place.map_err(|error| reason_of(*provenance, &error))?;
        let seen = match self.see(directory, name, *provenance)? {
            link if self.follow_ways && *provenance == Provenance::Way && link.file_type == FileType::Symlink => {
                let directory =
                    open_way(directory, name, Purpose::Way).map_err(|error| reason_of(*provenance, &error))?;
                Status::from(fstat(directory).map_err(|error| skip_reason(&error.into()))?)
            }
            seen => seen,
        };
        if !allows(seen.is_directory()) {
            return Ok(Inspection::Excluded);
        }
        let kind = match seen.file_type {
            FileType::Directory => EntryKind::Directory,
            _ if *provenance == Provenance::Way => return Err(SkipReason::Absent),
            FileType::RegularFile if self.outputs.has(directory, name, seen.identity) => {
                return Err(SkipReason::Output);
            }
            FileType::RegularFile => {
                let (kind, seen) = self.file(directory, name, seen)?;
                let is_first = matches!(kind, EntryKind::File { .. });
                let looked = self.with_extra(kind, seen, directory, name)?;
                if let Some(links) = self.hard_links.as_mut().filter(|_| is_first) {
                    links.keep(&seen, sent);
                }
                return Ok(looked);
            }
            FileType::Symlink if self.links == LinkPolicy::Skip => return Err(SkipReason::Link),
            FileType::Symlink => {
                let target = readlinkat(directory, name, Vec::new()).map_err(|e| skip_reason(&e.into()))?;
                EntryKind::Symlink { target: target.into_bytes() }
            }
            _ => EntryKind::Special(seen.special().filter(|_| self.preserve.specials).ok_or(SkipReason::SpecialFile)?),
        };
        self.with_extra(kind, seen, directory, name)
    }

    /// Adds owner, group and extended attributes, if they are sent. A second name of a file has none of its own.
    fn with_extra(
        &mut self,
        kind: EntryKind,
        seen: Status,
        directory: BorrowedFd<'_>,
        name: &[u8],
    ) -> Result<Inspection, SkipReason> {
        if self.preserve.is_nothing() || matches!(kind, EntryKind::HardLink { .. }) {
            return Ok(Inspection::Present(kind, seen, Extra::default()));
        }
        let follows = self.links == LinkPolicy::Follow;
        let is_way = self.follow_ways && kind == EntryKind::Directory;
        let hold = || match () {
            () if follows => PathHandle::follow(directory, name),
            // It may be a link that was followed.
            () if is_way => open_way(directory, name, Purpose::Way).map(PathHandle::from),
            () => PathHandle::open(directory, name),
        };
        let extra = self.extra(&seen, hold).map_err(|error| skip_reason(&error))?;
        Ok(Inspection::Present(kind, seen, extra))
    }

    /// Returns the attributes to be sent that a status alone contains.
    pub(super) fn of_status(&self, seen: &Status) -> Extra {
        self.extras.of_status(seen)
    }

    /// Returns the attributes to be sent, and keeps the names of their users and groups.
    pub(super) fn extra(&mut self, seen: &Status, hold: impl FnOnce() -> io::Result<PathHandle>) -> io::Result<Extra> {
        let mut extra = self.extras.read(seen, hold)?;
        if !self.preserve.numeric_ids {
            self.names.look_up(&mut extra);
        }
        Ok(extra)
    }

    /// Whether a name is a link that may replace the directory that is its target.
    pub(super) fn is_link_on_way(&self, place: io::Result<(BorrowedFd<'_>, &[u8])>) -> bool {
        self.follow_ways
            && place.is_ok_and(|(directory, name)| {
                let seen = self.see(directory, name, Provenance::Listed);
                seen.is_ok_and(|seen| seen.file_type == FileType::Symlink)
                    && open_way(directory, name, Purpose::Way).is_ok()
            })
    }

    /// Whether the filter excludes a name. A name that cannot be inspected is not excluded, and is reported later.
    pub(super) fn excludes(&self, sent: &[u8], place: io::Result<(BorrowedFd<'_>, &[u8])>) -> bool {
        let allows = |is_directory| self.filter.allows(sent, is_directory);
        if allows(true) == allows(false) {
            return !allows(true);
        }
        let seen = place.ok().and_then(|(directory, name)| self.see(directory, name, Provenance::Listed).ok());
        seen.is_some_and(|seen| !allows(seen.is_directory()))
    }

    /// Returns the status of a name, or of a link's target if links are followed.
    fn see(&self, directory: BorrowedFd<'_>, name: &[u8], provenance: Provenance) -> Result<Status, SkipReason> {
        let flags = if self.links == LinkPolicy::Follow { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
        let error = match statat(directory, name, flags) {
            Ok(stat) => return Ok(stat.into()),
            Err(error) => error,
        };
        let is_link = || {
            let stat = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
            stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink)
        };
        Err(match error {
            Errno::LOOP => SkipReason::Loop,
            Errno::NOENT | Errno::NOTDIR if self.links == LinkPolicy::Follow && is_link() => SkipReason::Dangling,
            _ => reason_of(provenance, &error.into()),
        })
    }

    fn file(
        &mut self,
        directory: BorrowedFd<'_>,
        name: &[u8],
        seen: Status,
    ) -> Result<(EntryKind, Status), SkipReason> {
        if seen.links > 1
            && let Some(target) = self.hard_links.as_mut().and_then(|links| links.find(&seen))
        {
            return Ok((EntryKind::HardLink { target }, seen));
        }
        if seen.size == 0 && self.is_unsized(directory, name, &seen).map_err(|error| skip_reason(&error))? {
            return Err(SkipReason::Unsized);
        }
        let (seen, hash) = if self.hash {
            let (seen, hash) = self.hash(directory, name).map_err(|error| skip_reason(&error))?;
            (seen, Some(hash))
        } else {
            self.check_readable(directory, name, &seen).map_err(|error| skip_reason(&error))?;
            (seen, None)
        };
        Ok((EntryKind::File { size: seen.size, version: seen.version(), hash }, seen))
    }

    /// Whether a file of size 0 has content, as on file systems that store nothing (such as `/proc`). Devices with
    /// blocks are recognised once for all of their files.
    fn is_unsized(&mut self, directory: BorrowedFd<'_>, name: &[u8], seen: &Status) -> io::Result<bool> {
        let device = seen.identity.device;
        if self.sized == Some(device) {
            return Ok(false);
        }
        let mut file = open(directory, name, self.links)?;
        if fstatvfs(&file)?.f_blocks > 0 {
            self.sized = Some(device);
            return Ok(false);
        }
        Ok(file.read(&mut [0])? > 0)
    }

    /// Checks now, so that an unreadable file of 10 GB does not cross the network as 10 GB of zeros. No system call is
    /// made if the mode allows reading; other obstacles show when the file is opened.
    fn check_readable(&self, directory: BorrowedFd<'_>, name: &[u8], seen: &Status) -> io::Result<()> {
        /// Owner, group and others may read.
        const ALL_READ: u32 = 0o444;
        /// The owner may read.
        const OWNER_READS: u32 = 0o400;
        let may_read = seen.mode & ALL_READ == ALL_READ || (seen.owner == self.user && seen.mode & OWNER_READS != 0);
        if may_read { Ok(()) } else { Ok(accessat(directory, name, Access::READ_OK, AtFlags::EACCESS)?) }
    }

    /// Returns the BLAKE3 hash of a file's content, and the status of the file when it was opened. If the file changes
    /// meanwhile, the hash matches no state it ever had; the sender's later check of the status detects that.
    fn hash(&mut self, directory: BorrowedFd<'_>, name: &[u8]) -> io::Result<(Status, [u8; 32])> {
        let mut file = open(directory, name, self.links)?;
        let seen = Status::from(fstat(&file)?);
        if seen.file_type != FileType::RegularFile {
            return Err(io::ErrorKind::NotFound.into());
        }
        self.buffer.resize(HASH_BUFFER, 0);
        let mut hasher = blake3::Hasher::new();
        loop {
            if self.is_stopped() {
                return Err(io::ErrorKind::Other.into());
            }
            match file.read(&mut self.buffer) {
                Ok(0) => return Ok((seen, *hasher.finalize().as_bytes())),
                Ok(count) => hasher.update(&self.buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
        }
    }
}

fn open(directory: BorrowedFd<'_>, name: &[u8], links: LinkPolicy) -> io::Result<File> {
    // Non-blocking: the file may have been replaced by a FIFO.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let flags = if links == LinkPolicy::Follow { flags } else { flags | OFlags::NOFOLLOW };
    Ok(File::from(openat(directory, name, flags, Mode::empty())?))
}
