//! The destination of the items of a transfer, and their names in it.

use std::sync::{Arc, OnceLock};

use request::{ReceiveRequest, TargetPath, check_path};

use crate::error::FilesError;
use crate::outputs::TargetOutput;

/// The destination of the items, once it is decided.
#[derive(Debug)]
pub(super) struct Aim {
    /// Whether the target was a directory when the transfer started.
    pub(super) target_is_directory: bool,
    destination: OnceLock<TargetPath>,
    /// The output files beneath the destination.
    outputs: OnceLock<Vec<TargetOutput>>,
    /// The sender's name of an item that has another local name.
    pub(super) renamed: Arc<OnceLock<Vec<u8>>>,
}

impl Aim {
    /// Creates an undecided destination.
    pub(super) fn new(target_is_directory: bool) -> Self {
        Self { target_is_directory, destination: OnceLock::new(), outputs: OnceLock::new(), renamed: Arc::default() }
    }

    /// Decides the destination, the first time.
    pub(super) fn set(&self, destination: TargetPath) {
        self.destination.get_or_init(|| destination);
    }

    /// Whether the destination is decided.
    pub(super) fn is_decided(&self) -> bool {
        self.decided().is_some()
    }

    /// Returns the destination, if it is decided.
    pub(super) fn decided(&self) -> Option<&TargetPath> {
        self.destination.get()
    }

    /// Returns the destination; if it is undecided, decides it without further evidence.
    pub(super) fn destination(&self, spec: &ReceiveRequest) -> &TargetPath {
        self.destination.get_or_init(|| match spec.named() {
            Some(named) if !self.target_is_directory => named,
            _ => spec.in_target(),
        })
    }

    /// Returns the output files beneath the destination, relative to it.
    pub(super) fn outputs(&self, spec: &ReceiveRequest) -> &[TargetOutput] {
        self.outputs.get_or_init(|| TargetOutput::beneath(&spec.outputs, &self.destination(spec).directory))
    }

    /// Returns the path of an entry beneath the target.
    ///
    /// # Errors
    /// [`FilesError::BadName`], [`FilesError::Protocol`] for a second item if one has another local name.
    pub(super) fn target_path(&self, spec: &ReceiveRequest, path: &[u8], batch: u32) -> Result<Vec<u8>, FilesError> {
        let Some(name) = &self.destination(spec).rename else { return Ok(path.to_vec()) };
        let top = check_path(path).map_err(|reason| FilesError::bad_name(path, reason))?;
        if self.renamed.get_or_init(|| top.to_vec()) != top {
            return Err(FilesError::Protocol { batch, reason: "announced several items for one name" });
        }
        Ok([name, &path[top.len()..]].concat())
    }

    /// Returns the item's local name and its name at the sender, if they differ.
    pub(super) fn renaming(&self, spec: &ReceiveRequest) -> Option<(&[u8], &[u8])> {
        self.destination(spec).rename.as_deref().zip(self.renamed.get().map(Vec::as_slice))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_item_may_be_renamed() {
        let spec = ReceiveRequest::into_directory("/target");
        let aim = Aim::new(true);
        assert!(!aim.is_decided());
        aim.set(TargetPath { directory: "/target".into(), rename: Some(b"here".to_vec()) });
        assert!(aim.is_decided() && aim.renaming(&spec).is_none());
        assert_eq!(aim.target_path(&spec, b"there/a", 0).unwrap(), b"here/a");
        assert_eq!(aim.renaming(&spec), Some((&b"here"[..], &b"there"[..])));
        assert!(matches!(aim.target_path(&spec, b"other", 3), Err(FilesError::Protocol { batch: 3, .. })));
    }
}
