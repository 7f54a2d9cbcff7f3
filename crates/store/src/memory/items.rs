//! The positions of a source's items in the tree, and their entries.

use std::collections::HashMap;

use super::disk::NodeStatus;
use super::join;
use crate::messages::{Entry, EntryKind, Extra};

/// The positions of the items, by the names under which they are sent.
#[derive(Debug)]
pub(super) enum Items {
    /// Everything in this directory.
    Contents(Vec<u8>),
    /// These items by name.
    Named(HashMap<Vec<u8>, Vec<u8>>),
}

impl Items {
    /// Returns the path in the tree of the entry sent as `sent`.
    pub(super) fn place(&self, sent: &[u8]) -> Vec<u8> {
        match self {
            Self::Contents(directory) => join(directory, sent),
            Self::Named(items) => {
                let top = sent.iter().position(|byte| *byte == b'/').unwrap_or(sent.len());
                let place = items.get(&sent[..top]).map(Vec::as_slice).unwrap_or_default();
                join(place, sent[top..].strip_prefix(b"/").unwrap_or_default())
            }
        }
    }
}

/// Returns the entry of an inspected name.
pub(super) fn entry(path: Vec<u8>, kind: EntryKind, seen: &NodeStatus) -> Entry {
    Entry { path, kind, mode: seen.node.mode & 0o7777, mtime: seen.node.mtime, extra: Extra::default() }
}
