//! The existing stores, each with a tree of its own.

mod local;
mod memory;

use std::path::PathBuf;
use std::sync::Arc;

use downpour_store::{
    Existing, FilesError, Modes, Mtime, ReceiveRequest, RequestedItems, SourceItem, SourceOptions, TreeSource,
    TreeTarget,
};

use crate::trees::Tree;

use local::Local;
pub(crate) use memory::Memory;

/// A directory in a store, which a test fills and inspects.
pub(crate) trait Place {
    /// Returns the name of the store.
    fn store(&self) -> &'static str;

    /// Returns the path of the directory, as it is passed to the store.
    fn path(&self) -> PathBuf;

    /// Makes the directory with this tree in it, in addition to existing names.
    fn put(&self, tree: &Tree);

    /// Removes a name from the directory, with everything beneath it.
    fn take(&self, path: &str);

    /// Returns the tree of the directory, without the temporary files of an interrupted transfer.
    fn tree(&self) -> Tree;

    /// Returns mode and time of the directory itself.
    fn top(&self) -> (u32, Mtime);
}

/// A place in a store that is a source of trees.
pub(crate) trait SourcePlace: Place {
    fn source_of(&self, root: SourceItem, options: SourceOptions) -> Result<Box<dyn TreeSource>, FilesError>;

    /// Returns the contents of the directory as a source.
    fn source_with(&self, options: SourceOptions) -> Result<Box<dyn TreeSource>, FilesError> {
        self.source_of(SourceItem::contents(self.path()), options)
    }

    fn source(&self) -> Box<dyn TreeSource> {
        self.source_with(SourceOptions::default()).unwrap()
    }

    /// Returns an item of the directory as a source.
    fn item(&self, name: &str) -> Box<dyn TreeSource> {
        self.source_of(SourceItem::new(self.path().join(name)), SourceOptions::default()).unwrap()
    }
}

/// A place in a store that is a target of trees.
pub(crate) trait TargetPlace: Place {
    fn target_with(&self, spec: ReceiveRequest) -> Result<Arc<dyn TreeTarget>, FilesError>;

    /// Returns a request to make the directory equal to the source.
    fn spec(&self) -> ReceiveRequest {
        ReceiveRequest {
            existing: Existing::Replace,
            modes: Modes::Exact,
            requested: RequestedItems { many: true, contents: true, ..RequestedItems::default() },
            ..ReceiveRequest::into_directory(self.path())
        }
    }

    fn target(&self) -> Arc<dyn TreeTarget> {
        self.target_with(self.spec()).unwrap()
    }
}

/// Returns a new place in each store that is a source.
pub(crate) fn sources() -> Vec<Box<dyn SourcePlace>> {
    vec![Box::new(Local::new()), Box::new(Memory::new("from"))]
}

/// Returns a new place in each store that is a target.
pub(crate) fn targets() -> Vec<Box<dyn TargetPlace>> {
    vec![Box::new(Local::new()), Box::new(Memory::new("to"))]
}

/// Runs a test between all pairs of a source and a target.
pub(crate) fn between_all(test: impl Fn(&dyn SourcePlace, &dyn TargetPlace)) {
    for nth in 0..sources().len() {
        for to in targets() {
            let from = sources().swap_remove(nth);
            println!("from {} to {}", from.store(), to.store());
            test(&*from, &*to);
        }
    }
}
