//! The stores that there are, each with a tree of its own.

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

/// A directory in a store, which a test fills and looks at.
pub(crate) trait Place {
    /// Returns the name of the store.
    fn store(&self) -> &'static str;

    /// Returns the path of the directory, as the store is asked for it.
    fn path(&self) -> PathBuf;

    /// Makes the directory with this in it, in addition to what is there.
    fn put(&self, tree: &Tree);

    /// Takes a name out of the directory, with everything beneath it.
    fn take(&self, path: &str);

    /// Returns what is in the directory, without what an interrupted transfer keeps there for itself.
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

    /// A request to make the directory what the source is, as far as it is not there.
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
