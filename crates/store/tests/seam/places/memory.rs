//! The store in memory.

use std::path::PathBuf;
use std::sync::Arc;

use downpour_store::{
    FilesError, MemoryStore, Mtime, Node, ReceiveRequest, SourceItem, SourceOptions, TreeSource, TreeTarget,
};

use super::{Place, SourcePlace, TargetPlace};
use crate::trees::Tree;

pub(crate) struct Memory(pub(crate) MemoryStore);

impl Memory {
    pub(crate) fn new(name: &str) -> Self {
        Self(MemoryStore::new(name))
    }
}

impl Place for Memory {
    fn store(&self) -> &'static str {
        "memory"
    }

    fn path(&self) -> PathBuf {
        "tree".into()
    }

    fn put(&self, tree: &Tree) {
        if self.0.tree().is_empty() {
            self.0.put("tree", Node::directory(0o755, Mtime::default()));
        }
        for (path, node) in tree {
            self.0.put([b"tree/", path.as_slice()].concat(), node.clone());
        }
    }

    fn take(&self, path: &str) {
        self.0.take(format!("tree/{path}"));
    }

    fn tree(&self) -> Tree {
        let within = |path: &[u8]| path.strip_prefix(b"tree/").map(<[u8]>::to_vec);
        self.0.tree().into_iter().filter_map(|(path, node)| Some((within(&path)?, node))).collect()
    }

    fn top(&self) -> (u32, Mtime) {
        let top = &self.0.tree()[&b"tree"[..]];
        (top.mode, top.mtime)
    }
}

impl SourcePlace for Memory {
    fn source_of(&self, root: SourceItem, options: SourceOptions) -> Result<Box<dyn TreeSource>, FilesError> {
        Ok(Box::new(self.0.source(vec![root], &options, false)?))
    }
}

impl TargetPlace for Memory {
    fn target_with(&self, spec: ReceiveRequest) -> Result<Arc<dyn TreeTarget>, FilesError> {
        Ok(Arc::new(self.0.target(Arc::new(spec), true)?))
    }
}
