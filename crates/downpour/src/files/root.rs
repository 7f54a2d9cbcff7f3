//! stub
use super::filter::Filter;
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::Arc;
/// Root
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// p
    pub path: PathBuf,
    /// n
    pub name: Option<Vec<u8>>,
}
impl Root {
    /// n
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), name: None }
    }
    /// n
    pub fn contents(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), name: Some(Vec::new()) }
    }
    /// n
    pub fn typed(argument: &OsStr) -> Self {
        let last = argument.as_bytes().rsplit(|b| *b == b'/').next().unwrap_or_default();
        match last {
            b"" | b"." | b".." => Self::contents(argument),
            _ => Self::new(argument),
        }
    }
    /// n
    pub fn is_contents(&self) -> bool {
        self.name.as_ref().is_some_and(Vec::is_empty)
    }
}
/// L
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Links {
    /// c
    #[default]
    Copy,
    /// f
    Follow,
    /// s
    Skip,
}
/// O
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScanOptions {
    /// r
    pub recursive: bool,
    /// l
    pub links: Links,
    /// h
    pub hard_links: bool,
    /// h
    pub hash: bool,
    /// f
    pub filter: Arc<Filter>,
    /// f
    pub files_from: Option<Vec<Vec<u8>>>,
}
impl Default for ScanOptions {
    fn default() -> Self {
        Self {
            recursive: true,
            links: Links::Copy,
            hard_links: false,
            hash: false,
            filter: Arc::default(),
            files_from: None,
        }
    }
}

impl From<PathBuf> for Root {
    fn from(p: PathBuf) -> Self {
        Self::new(p)
    }
}
