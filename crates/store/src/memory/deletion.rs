//! What is done to the tree once everything else is in place: names that the sender does not have go, and the target gets
//! the attributes of the directory that it stands for.

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
    /// Deletes what was not announced from the directories that were, if that is asked for.
    pub(super) fn delete(&self, announced: &Intake) -> Result<(), FilesError> {
        let (Some(filter), Some(sent)) = (&self.spec.delete, &announced.sent) else { return Ok(()) };
        if announced.incomplete {
            self.leave_out_deletion(TOP, NoticeKind::NotDeleted);
            return Ok(());
        }
        // The target itself, if it stands for the directory whose contents come; otherwise each item.
        let top = self.spec.requested.contents;
        let mut folders = vec![Vec::new()];
        while let Some(folder) = folders.pop() {
            self.check_stopped()?;
            let names = self.list(&folder)?;
            let at_top = folder.is_empty();
            let is_item = if top { at_top } else { !at_top && !folder.contains(&b'/') };
            let has_nothing = sent.is_empty((!top).then_some(&folder[..]));
            if is_item && !names.is_empty() && has_nothing && !self.spec.force_empty {
                self.leave_out_deletion(if at_top { TOP } else { &folder }, NoticeKind::EmptySource);
                continue;
            }
            for (path, is_folder) in names {
                if is_folder && sent.has_folder(&path) {
                    folders.push(path);
                } else if !sent.has(&path) && (top || !at_top) {
                    self.delete_name(path, is_folder, filter)?;
                }
            }
        }
        Ok(())
    }

    fn leave_out_deletion(&self, path: &[u8], kind: NoticeKind) {
        self.report.update(|outcome| outcome.delete_left_out = true);
        self.report.refused(path, kind);
    }

    /// Deletes a name and everything beneath it, but for what the filter excludes and the directories that lead there.
    fn delete_name(&self, path: Vec<u8>, is_folder: bool, filter: &Filter) -> Result<(), FilesError> {
        if !filter.allows(&path, is_folder) {
            return Ok(());
        }
        // Directories before what is in them.
        let (mut found, mut needed, mut left) = (Vec::new(), HashSet::new(), vec![(path, is_folder)]);
        while let Some((path, is_folder)) = left.pop() {
            if is_folder {
                for (inside, is_folder) in self.list(&path)? {
                    match filter.allows(&inside, is_folder) {
                        true => left.push((inside, is_folder)),
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
    fn list(&self, folder: &[u8]) -> Result<Vec<(Vec<u8>, bool)>, FilesError> {
        let mut disk = lock(&self.disk);
        // In a dry run there may be no target.
        if disk.look(&self.place(folder))?.is_none() {
            return Ok(Vec::new());
        }
        let names = disk.list(&self.place(folder))?;
        names
            .into_iter()
            .map(|name| {
                let path = join(folder, &name);
                let is_folder = disk.look(&self.place(&path))?.is_some_and(|seen| seen.node.is_directory());
                Ok((path, is_folder))
            })
            .collect()
    }

    /// Gives the target mode and time of the directory that it stands for.
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
