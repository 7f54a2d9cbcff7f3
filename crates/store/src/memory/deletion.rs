//! The end of a transfer, once everything else is in place: deletes names that the sender does not have, and gives the
//! target the attributes of the corresponding directory.

use std::collections::HashSet;

use request::{Existing, Filter, Modes};

use super::join;
use super::target::MemoryTarget;
use crate::error::FilesError;
use crate::lock::lock;
use crate::messages::NoticeKind;
use crate::sink::manifest::Intake;
use crate::sink::report::TOP;

impl MemoryTarget {
    /// Deletes names that were not announced from the directories that were, if requested.
    pub(super) fn delete(&self, announced: &Intake) -> Result<(), FilesError> {
        let (Some(filter), Some(sent)) = (&self.spec.delete, &announced.sent) else { return Ok(()) };
        if announced.incomplete {
            self.refuse_deletion(TOP, NoticeKind::NotDeleted);
            return Ok(());
        }
        // The target itself, if it corresponds to the directory whose contents are sent; otherwise each item.
        let top = self.spec.requested.contents;
        let mut directories = vec![Vec::new()];
        while let Some(directory) = directories.pop() {
            self.check_stopped()?;
            let names = self.list(&directory)?;
            let at_top = directory.is_empty();
            let is_item = if top { at_top } else { !at_top && !directory.contains(&b'/') };
            let has_nothing = sent.is_empty((!top).then_some(&directory[..]));
            if is_item && !names.is_empty() && has_nothing && !self.spec.force_empty {
                self.refuse_deletion(if at_top { TOP } else { &directory }, NoticeKind::EmptySource);
                continue;
            }
            for (path, is_directory) in names {
                if is_directory && sent.has_directory(&path) {
                    directories.push(path);
                } else if !sent.has(&path) && (top || !at_top) {
                    self.delete_name(path, is_directory, filter)?;
                }
            }
        }
        Ok(())
    }

    fn refuse_deletion(&self, path: &[u8], kind: NoticeKind) {
        self.report.update(|outcome| outcome.delete_left_out = true);
        self.report.refused(path, kind);
    }

    /// Deletes a name and everything beneath it, except excluded names and their parent directories.
    fn delete_name(&self, path: Vec<u8>, is_directory: bool, filter: &Filter) -> Result<(), FilesError> {
        if !filter.allows(&path, is_directory) {
            return Ok(());
        }
        // Directories before their contents.
        let (mut found, mut needed, mut left) = (Vec::new(), HashSet::new(), vec![(path, is_directory)]);
        while let Some((path, is_directory)) = left.pop() {
            if is_directory {
                for (inside, is_directory) in self.list(&path)? {
                    match filter.allows(&inside, is_directory) {
                        true => left.push((inside, is_directory)),
                        false => drop(needed.insert(path.clone())),
                    }
                }
            }
            found.push(path);
        }
        for path in found.into_iter().rev() {
            if needed.contains(&path) {
                path.iter().rposition(|byte| *byte == b'/').map(|slash| needed.insert(path[..slash].to_vec()));
                continue;
            }
            self.check_stopped()?;
            if !self.spec.dry_run {
                let (place, mut disk) = (self.place(&path), lock(&self.disk));
                let Some(seen) = disk.look(&place)? else { continue };
                disk.remove(&place, seen.version)?;
            }
            self.report.deleted(&path);
        }
        Ok(())
    }

    /// Returns the paths of the names in a directory beneath the target, each with whether it is a directory.
    fn list(&self, directory: &[u8]) -> Result<Vec<(Vec<u8>, bool)>, FilesError> {
        let mut disk = lock(&self.disk);
        // In a dry run there may be no target.
        if disk.look(&self.place(directory))?.is_none() {
            return Ok(Vec::new());
        }
        let names = disk.list(&self.place(directory))?;
        names
            .into_iter()
            .map(|name| {
                let path = join(directory, &name);
                let is_directory = disk.look(&self.place(&path))?.is_some_and(|seen| seen.node.is_directory());
                Ok((path, is_directory))
            })
            .collect()
    }

    /// Gives the target mode and time of the corresponding directory.
    pub(super) fn seal_top(&self, announced: &Intake) -> Result<(), FilesError> {
        let applies = self.spec.requested.contents && self.spec.existing != Existing::Skip;
        let Some(top) = announced.top.as_ref().filter(|_| applies) else { return Ok(()) };
        let (place, mut disk) = (self.place(b""), lock(&self.disk));
        let Some(seen) = disk.look(&place)? else { return Ok(()) };
        let mode = match self.spec.modes {
            Modes::Exact => top.mode & 0o1777,
            Modes::Masked => seen.node.mode,
        };
        if (seen.node.mode, seen.node.mtime) == (mode, top.mtime) {
            return Ok(());
        }
        if self.spec.dry_run {
            self.report.notice(NoticeKind::Attributes, TOP);
            return Ok(());
        }
        disk.set_attributes(&place, mode, top.mtime)
    }
}
