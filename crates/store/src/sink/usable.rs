//! Whether the items can be stored at their destination.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use request::{Existing, NameError, ReceiveRequest, TargetPath, check_path, is_staging_name};

use crate::directory::parent_of;
use crate::error::FilesError;
use crate::metadata::leads_to_special;
use crate::outputs::TargetOutput;
use crate::staging::may_hold_outside;

/// Checks that items can go to `destination`; returns whether it may already hold some of them.
///
/// # Errors
/// [`FilesError::TargetNotADirectory`], a name that is refused, or a parent that is missing or inaccessible.
pub(super) fn check_usable(spec: &ReceiveRequest, destination: &TargetPath) -> Result<bool, FilesError> {
    let into = destination.directory.as_path();
    if let Some(name) = &destination.rename {
        check_path(name).map_err(|reason| FilesError::bad_name(name, reason))?;
        if is_staging_name(name) {
            return Err(FilesError::bad_name(name, NameError::Reserved));
        }
        let path = into.join(OsStr::from_bytes(name));
        if let Some(output) = TargetOutput::beneath(&spec.outputs, into).into_iter().find(|output| output.path == *name)
        {
            return Err(FilesError::IsOutput { path, kind: output.kind });
        }
        check_named(spec, &path)?;
    }
    let failed = |path: &Path, error: io::Error| match error.kind() {
        io::ErrorKind::NotADirectory => FilesError::TargetNotADirectory { path: into.to_owned() },
        io::ErrorKind::NotFound if path != into && !path.is_symlink() => {
            FilesError::ParentAbsent { path: path.to_owned() }
        }
        _ => FilesError::system(path, error),
    };
    match into.metadata() {
        Ok(metadata) if !metadata.is_dir() => Err(FilesError::TargetNotADirectory { path: into.to_owned() }),
        Ok(_) => may_have_data(spec, destination).map_err(|error| failed(into, error)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let parent = if spec.make_path { nearest(into) } else { parent_of(into) };
            if !parent.metadata().map_err(|e| failed(parent, e))?.is_dir() {
                return Err(FilesError::TargetNotADirectory { path: parent.to_owned() });
            }
            // Nothing in it exists, and it is not to be created.
            if spec.existing == Existing::UpdateOnly { Err(failed(into, error)) } else { Ok(may_skip(spec)) }
        }
        Err(error) => Err(failed(into, error)),
    }
}

/// Returns the nearest existing parent directory of `path`.
fn nearest(path: &Path) -> &Path {
    let exists = |ancestor: &&Path| ancestor.as_os_str().is_empty() || ancestor.symlink_metadata().is_ok();
    path.ancestors().skip(1).find(exists).filter(|found| !found.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Whether files may be skipped although their names do not exist, so that the sender has to wait for the wanted
/// ranges.
fn may_skip(spec: &ReceiveRequest) -> bool {
    spec.dry_run
        || spec.existing == Existing::UpdateOnly
        || !spec.eligible.is_everything()
        || !spec.link_dest.is_empty()
}

/// Checks the name given by the user for the single item. `/dev/stdout` is a link, which a file would replace for all
/// users, even while its target is a file. If the check itself fails, the later open reports it.
fn check_named(spec: &ReceiveRequest, path: &Path) -> Result<(), FilesError> {
    if spec.compare_trees {
        return Ok(());
    }
    let is_link = path.is_symlink();
    let leads_to_special = leads_to_special(path);
    // A special file named by the user may be replaced by another one.
    let is_refused = if is_link {
        leads_to_special || leads_to_descriptor(path)
    } else {
        leads_to_special && !spec.preserve.specials
    };
    if is_refused { Err(FilesError::TargetSpecial { path: path.to_owned() }) } else { Ok(()) }
}

/// Whether a path is a link to an open file of a process, directly or through other links: as `/dev/stdout` and
/// `/dev/fd/1` are, and links to them.
fn leads_to_descriptor(path: &Path) -> bool {
    let mut link = path.to_owned();
    for _ in 0..MAX_LINKS {
        let parent = parent_of(&link);
        let (Ok(parent), Some(name)) = (parent.canonicalize(), link.file_name()) else { return false };
        if parent.starts_with("/proc") {
            return true;
        }
        let Ok(target) = parent.join(name).read_link() else { return false };
        link = parent.join(target);
    }
    false
}

/// Maximum number of links in the resolution of a path (path_resolution(7)).
const MAX_LINKS: usize = 40;

/// Whether an existing directory may already hold some of the items.
fn may_have_data(spec: &ReceiveRequest, destination: &TargetPath) -> io::Result<bool> {
    let directory = &destination.directory;
    if may_skip(spec) || holds_staging(directory)? {
        return Ok(true);
    }
    // Existing names are refused, unless an earlier run has created them.
    if spec.existing == Existing::Refuse {
        return Ok(false);
    }
    let items = match (&destination.rename, &spec.requested.items) {
        (Some(renamed), _) => std::slice::from_ref(renamed),
        (None, Some(items)) => items,
        (None, None) => {
            return match directory.read_dir() {
                Ok(mut items) => Ok(items.next().is_some()),
                // An unlistable directory may hold anything.
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(true),
                Err(error) => Err(error),
            };
        }
    };
    let exists = |name: &Vec<u8>| directory.join(OsStr::from_bytes(name)).symlink_metadata().is_ok();
    Ok(items.iter().any(exists))
}

/// Whether an interrupted transfer may have left a staging directory in `directory`, or for it: an unlistable directory
/// may hold anything.
pub(super) fn holds_staging(directory: &Path) -> io::Result<bool> {
    if may_hold_outside(directory) {
        return Ok(true);
    }
    let items = match directory.read_dir() {
        Ok(items) => items,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(true),
        Err(error) => return Err(error),
    };
    for item in items {
        if is_staging_name(item?.file_name().as_bytes()) {
            return Ok(true);
        }
    }
    Ok(false)
}
