//! The identity of a source, see [`SourceId`].

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use request::Filter;

use super::super::root::Roots;
use crate::messages::SourceId;

/// Separates these hashes from all others.
const CONTEXT: &str = "downpour 1 source id";

/// Files with a unique, permanent id of this host; the first readable one is used. Only a hash of it is sent, as
/// `machine-id(5)` requires.
const MACHINE_IDS: [&str; 2] = ["/etc/machine-id", "/var/lib/dbus/machine-id"];

/// Returns the identity of a source: equal for the same items, filter and list on the same host. It reveals nothing
/// about them.
pub(super) fn source_id(roots: &Roots, filter: &Filter, listed: Option<&[Vec<u8>]>) -> SourceId {
    let mut hasher = blake3::Hasher::new_derive_key(CONTEXT);
    // Every field is preceded by its length and every list by its count, so that the encoding is unambiguous.
    let count = |hasher: &mut blake3::Hasher, count: usize| {
        hasher.update(&(count as u64).to_le_bytes());
    };
    let field = |hasher: &mut blake3::Hasher, bytes: &[u8]| {
        count(hasher, bytes.len());
        hasher.update(bytes);
    };
    field(&mut hasher, &machine_id());
    count(&mut hasher, roots.items().len());
    for item in roots.items() {
        field(
            &mut hasher,
            absolute(&item.path, item.name.is_empty() || item.path.as_os_str().as_bytes().ends_with(b"/"))
                .as_os_str()
                .as_bytes(),
        );
        field(&mut hasher, &item.name);
    }
    count(&mut hasher, filter.rules().len());
    for rule in filter.rules() {
        hasher.update(&[u8::from(rule.includes())]);
        field(&mut hasher, rule.pattern().text());
    }
    match listed {
        None => count(&mut hasher, usize::MAX),
        Some(names) => {
            count(&mut hasher, names.len());
            names.iter().for_each(|name| field(&mut hasher, name));
        }
    }
    let mut id = [0; 16];
    hasher.finalize_xof().fill(&mut id);
    SourceId(id)
}

/// Returns the absolute path with links resolved. The last component is resolved only if `follow`, since a link may
/// itself be the item.
fn absolute(path: &Path, follow: bool) -> PathBuf {
    let resolved = match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) if !follow => {
            let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
            parent.canonicalize().map(|parent| parent.join(name))
        }
        _ => path.canonicalize(),
    };
    // If resolving succeeds the next time, the identity differs and the transfer starts from the beginning.
    resolved.or_else(|_| std::path::absolute(path)).unwrap_or_else(|_| path.to_owned())
}

fn machine_id() -> Vec<u8> {
    let read = MACHINE_IDS.iter().filter_map(|path| std::fs::read(path).ok());
    let mut ids = read.map(|id| id.trim_ascii().to_vec()).filter(|id| !id.is_empty());
    ids.next().unwrap_or_else(|| rustix::system::uname().nodename().to_bytes().to_vec())
}
