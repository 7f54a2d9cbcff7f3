//! The receive request: the requested items, their destination, and the permitted changes.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::backup::Backup;
use crate::base64::{self, Bytes};
use crate::chmod::Chmod;
use crate::file_limits::FileLimits;
use crate::filter::Filter;
use crate::outputs::Outputs;
use crate::permitted::AllowedNames;
use crate::preserve::{Modes, Preserve};

/// The request to a receiver. The same value travels from the command line, through ssh if the target is on another
/// host, to the `FileSink`, which makes no other changes at the target.
///
/// Its JSON is part of the protocol between releases: fields are only added, with a default.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiveRequest {
    /// The destination of the items: this directory, or, for a single item, this name. See
    /// [`ReceiveRequest::destination`].
    ///
    /// A directory is created if only its last component is missing, or with [`ReceiveRequest::make_path`]. A symbolic
    /// link to a directory is followed, since the user named it.
    #[serde(with = "base64::path")]
    pub target: PathBuf,
    /// The requested items.
    #[serde(rename = "shape")]
    pub requested: RequestedItems,
    /// The treatment of existing names.
    pub existing: Existing,
    /// The existing files that count as unchanged.
    pub compare: Compare,
    /// Seconds by which two modification times may differ and still count as equal.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub modify_window: u32,
    /// The files that take part.
    #[serde(default, skip_serializing_if = "FileLimits::is_everything")]
    pub eligible: FileLimits,
    /// The permission bits that are applied.
    pub modes: Modes,
    /// Changes of the sender's modes, before they are applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chmod: Option<Chmod>,
    /// Do not set the modification times of directories.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub omit_directory_times: bool,
    /// Create all missing directories of the target's path.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub make_path: bool,
    /// Attributes applied beyond contents, modes and times.
    #[serde(default, skip_serializing_if = "Preserve::is_nothing")]
    pub preserve: Preserve,
    /// Delete names that the sender does not have from the directories that it sends, except those that this filter
    /// excludes. Nothing is deleted if the sender had to skip something it could not read (`NoticeKind::NotDeleted`).
    pub delete: Option<Filter>,
    /// Maximum number of deleted names; the rest is kept and reported (`NoticeKind::DeleteLimit`). With a limit, a
    /// non-empty directory is not replaced by a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_delete: Option<u64>,
    /// Delete also if the sender has nothing but directories, so that its disk may not be mounted
    /// (`NoticeKind::EmptySource`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub force_empty: bool,
    /// Skip symbolic links that point out of the copied tree (`NoticeKind::UnsafeLink`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub safe_links: bool,
    /// Delete nothing on other file systems than the target's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub one_file_system: bool,
    /// Trust the partial data of an interrupted run without reading and comparing it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub trust_staging: bool,
    /// Request only the differences of a file that exists in another version.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub differences: bool,
    /// With `dry_run`: two trees are compared, and a directory means its contents.
    #[serde(rename = "compared")]
    pub compare_trees: bool,
    /// Change nothing; notices report the changes.
    pub dry_run: bool,
    /// Directories, absolute or relative to that of the items: a file that is unchanged in one of them, under the same
    /// path, becomes a hard link to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub link_dest: Vec<Bytes>,
    /// Keep replaced or deleted files under another name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup: Option<Backup>,
    /// Report to the sender which entries are durable under their final names, so that it can remove them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[serde(rename = "confirms")]
    pub report_stored: bool,
    /// The names that the sender may announce.
    #[serde(default, skip_serializing_if = "AllowedNames::is_everything")]
    pub permitted: AllowedNames,
    /// The directory (a path without symbolic links) that must contain the target after links are resolved; `None`
    /// allows any target. Set by the receiver only, never by a request.
    #[serde(skip)]
    pub within: Option<PathBuf>,
    /// The output files of this host.
    #[serde(skip)]
    pub outputs: Outputs,
}

/// Whether a field need not be written.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The requested items, as far as the receiver can know before they arrive.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestedItems {
    /// Several items, or the contents of a directory: the target has to be a directory.
    pub many: bool,
    /// The contents of a directory, without the directory itself: the target corresponds to it, so that `delete` and
    /// the directory's mode and time apply to the target.
    pub contents: bool,
    /// The names of the items, if they are known. If none of them exists, the sender need not wait for the wanted
    /// ranges.
    #[serde(with = "base64::names")]
    pub items: Option<Vec<Vec<u8>>>,
    /// When a target that is no directory becomes one because of the first item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory_if: Option<DirectoryIf>,
}

/// When a target that is no directory becomes one because of the first item. Either condition is enough.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectoryIf {
    /// The item is a directory: it keeps its name, so that the next run finds it.
    pub is_directory: bool,
    /// The item has another name than this: it matched a wildcard, and others may too.
    #[serde(with = "base64::names")]
    pub name_is_none_of: Option<Vec<Vec<u8>>>,
}

/// The treatment of existing names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Existing {
    /// An item whose name exists ends the transfer before any change, unless an earlier run of the same transfer
    /// created it. Such an item is continued: below it, directories are merged, and another name that exists and
    /// differs is kept and reported (`NoticeKind::Exists`).
    #[default]
    Refuse,
    /// Names that differ are replaced: a file or link by anything, an empty directory by a file or link. Directories
    /// are merged.
    Replace,
    /// Existing names are kept. Directories are merged.
    Skip,
    /// As `Replace`, but a file with a later modification time than the received one is kept.
    KeepNewer,
    /// As `Replace`, but a name that does not exist is not created, and neither is anything below it.
    #[serde(rename = "Only")]
    UpdateOnly,
}

impl Existing {
    /// Whether names that differ may be replaced.
    #[must_use]
    pub const fn replaces(self) -> bool {
        matches!(self, Self::Replace | Self::KeepNewer | Self::UpdateOnly)
    }
}

/// The existing files that count as unchanged. Their sizes always have to match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Compare {
    /// Those with a matching modification time, at the resolution of the file system.
    #[default]
    SizeAndTime,
    /// All of them.
    Size,
    /// None: each is transferred.
    Never,
    /// Those with a matching BLAKE3 digest. A file without a digest from the sender counts as changed.
    Checksum,
}

/// The destination of the items of a transfer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetPath {
    /// The directory that contains them.
    pub directory: PathBuf,
    /// The name of the single item in it, one path component; `None` keeps the sender's names.
    pub rename: Option<Vec<u8>>,
}

/// The known facts when a destination is chosen. They grow: the target is inspected when the transfer starts, its
/// origin is known with the source, and the first item comes last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TargetFacts<'a> {
    /// The target was a directory when the transfer started.
    pub is_directory: bool,
    /// An earlier, interrupted run of this transfer created it as its single item; `None` while that is unknown.
    pub is_own: Option<bool>,
    /// The first item.
    pub first: FirstItem<'a>,
}

/// The first item of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstItem<'a> {
    /// Not known yet.
    Unknown,
    /// There is none, or none soon.
    Nothing,
    /// The first item.
    Item {
        /// Its path in the transfer.
        path: &'a [u8],
        /// Whether the item is a directory.
        is_directory: bool,
    },
}

impl ReceiveRequest {
    /// Receives into the directory `target`, and otherwise by defaults: no existing name is replaced.
    #[must_use]
    pub fn into_directory(target: impl Into<PathBuf>) -> Self {
        let requested = RequestedItems { many: true, ..RequestedItems::default() };
        Self { requested, ..Self::to_target(target) }
    }

    /// Receives a single item as `cp` does: into `target` if that is a directory, otherwise under its name.
    #[must_use]
    pub fn to_target(target: impl Into<PathBuf>) -> Self {
        Self {
            target: target.into(),
            requested: RequestedItems::default(),
            existing: Existing::default(),
            compare: Compare::default(),
            modify_window: 0,
            eligible: FileLimits::default(),
            modes: Modes::default(),
            chmod: None,
            omit_directory_times: false,
            make_path: false,
            preserve: Preserve::default(),
            delete: None,
            max_delete: None,
            force_empty: false,
            safe_links: false,
            one_file_system: false,
            trust_staging: false,
            differences: false,
            compare_trees: false,
            dry_run: false,
            link_dest: Vec::new(),
            backup: None,
            report_stored: false,
            permitted: AllowedNames::default(),
            within: None,
            outputs: Outputs::default(),
        }
    }

    /// Returns the destination of the items, or `None` while the evidence does not decide it.
    ///
    /// - Several items go into the target, and so does anything if the target is written like a directory (`a/`, `.`).
    /// - A single item goes into a target that is a directory, as with `cp`, unless an earlier, interrupted run of the
    ///   same transfer created that directory as the item itself: then the run continues in it.
    /// - It takes the target's name otherwise, unless [`RequestedItems::directory_if`] keeps its own.
    #[must_use]
    pub fn destination(&self, evidence: &TargetFacts<'_>) -> Option<TargetPath> {
        let Some(named) = self.named() else { return Some(self.in_target()) };
        if evidence.is_directory {
            return evidence.is_own.map(|is_own| if is_own { named } else { self.in_target() });
        }
        match (&self.requested.directory_if, evidence.first) {
            (Some(_), FirstItem::Unknown) => None,
            (Some(rule), FirstItem::Item { path, is_directory }) if rule.applies(path, is_directory) => {
                Some(self.in_target())
            }
            _ => Some(named),
        }
    }

    /// Returns the destination of a single item under the target's name; `None` if the target has to be a directory.
    #[must_use]
    pub fn named(&self) -> Option<TargetPath> {
        let written = self.target.as_os_str().as_bytes();
        if self.requested.many || written.ends_with(b"/") || written.ends_with(b"/.") {
            return None;
        }
        let (parent, name) = (self.target.parent()?, self.target.file_name()?);
        let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        Some(TargetPath { directory: parent.to_owned(), rename: Some(name.as_bytes().to_vec()) })
    }

    /// Returns the target as the destination of everything, under the sender's names.
    #[must_use]
    pub fn in_target(&self) -> TargetPath {
        TargetPath { directory: self.target.clone(), rename: None }
    }
}

impl RequestedItems {
    /// Adapts to a wildcard that matches a single name, as if the name had been typed.
    pub fn only_one_matches(&mut self) {
        self.directory_if.iter_mut().for_each(|rule| rule.name_is_none_of = None);
        self.directory_if = self.directory_if.take().filter(|rule| *rule != DirectoryIf::default());
    }
}

impl DirectoryIf {
    fn applies(&self, path: &[u8], is_directory: bool) -> bool {
        (self.is_directory && is_directory)
            || self.name_is_none_of.as_ref().is_some_and(|names| !names.iter().any(|name| name == path))
    }
}

impl<'a> TargetFacts<'a> {
    /// Returns the facts before the transfer starts.
    #[must_use]
    pub fn before(target_is_directory: bool) -> Self {
        Self { is_directory: target_is_directory, is_own: None, first: FirstItem::Unknown }
    }
}

impl From<PathBuf> for ReceiveRequest {
    fn from(directory: PathBuf) -> Self {
        Self::into_directory(directory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destination_follows_from_request_and_facts() {
        let directory = |path: &str| Some(TargetPath { directory: path.into(), rename: None });
        let name = |path: &str, name: &str| Some(TargetPath { directory: path.into(), rename: Some(name.into()) });
        let keep = Some(DirectoryIf { is_directory: true, name_is_none_of: None });
        let glob = |name: &str| Some(DirectoryIf { is_directory: false, name_is_none_of: Some(vec![name.into()]) });
        let known = |is_directory, is_own, first| TargetFacts { is_directory, is_own, first };
        let before = |is_directory| TargetFacts::before(is_directory);
        let item = |is_directory| FirstItem::Item { path: b"a", is_directory };
        let (first_file, first_directory) = (item(false), item(true));
        // Target, whether several items are expected, what makes it a directory, the evidence, and the destination.
        let table = [
            // Always a directory.
            ("to", true, None, before(false), directory("to")),
            ("to/", false, None, before(false), directory("to/")),
            ("to/.", false, None, before(false), directory("to/.")),
            (".", false, None, before(true), directory(".")),
            ("..", false, None, before(true), directory("..")),
            ("/", false, None, before(true), directory("/")),
            // A name that is free, or a file's.
            ("to", false, None, before(false), name(".", "to")),
            ("a/to", false, None, before(false), name("a", "to")),
            ("/to", false, None, before(false), name("/", "to")),
            // A directory that exists.
            ("a/to", false, None, before(true), None),
            ("a/to", false, None, known(true, Some(false), FirstItem::Unknown), directory("a/to")),
            ("a/to", false, None, known(true, Some(true), FirstItem::Unknown), name("a", "to")),
            ("a/to", true, None, known(true, Some(true), FirstItem::Unknown), directory("a/to")),
            // Directories keep their names.
            ("a/to", false, keep.clone(), before(false), None),
            ("a/to", false, keep.clone(), known(false, Some(false), FirstItem::Nothing), name("a", "to")),
            ("a/to", false, keep.clone(), known(false, None, first_file), name("a", "to")),
            ("a/to", false, keep.clone(), known(false, None, first_directory), directory("a/to")),
            ("a/to", false, keep.clone(), known(true, Some(true), first_directory), name("a", "to")),
            // A wildcard that matched something, or a name that looks like one.
            ("a/to", false, glob("a*"), known(false, None, first_file), directory("a/to")),
            ("a/to", false, glob("a"), known(false, None, first_file), name("a", "to")),
            ("a/to", false, glob("a"), known(false, None, first_directory), name("a", "to")),
        ];
        for (target, many, directory_if, evidence, wanted) in table {
            let requested = RequestedItems { many, directory_if, ..RequestedItems::default() };
            let spec = ReceiveRequest { requested, ..ReceiveRequest::to_target(target) };
            assert_eq!(spec.destination(&evidence), wanted, "{spec:?} {evidence:?}");
        }
    }
}
