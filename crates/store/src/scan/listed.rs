//! The user's list of names to send (`--files-from`).

use request::names::tidy;

use super::super::cursor::shared_length;
use super::super::error::FilesError;
use super::super::root::Item;
use super::candidate::{Candidate, Provenance, join};

/// The names of a list, each after its parent directories, without repetition.
#[derive(Debug)]
pub(super) struct ListedNames {
    /// Name of the item that contains them; empty if it has none.
    top: Vec<u8>,
    /// In reverse order of the walk: the next one is last.
    names: Vec<Vec<u8>>,
    /// The name being approached: its path as sent, and the length of the part already sent.
    current: Option<(Vec<u8>, usize)>,
    /// Path of the last entry.
    made: Vec<u8>,
    /// The listed directory that was walked last: names beneath it are sent already.
    walked: Option<Vec<u8>>,
}

impl ListedNames {
    /// Creates a list of names beneath `item`, in any order.
    ///
    /// # Errors
    /// [`FilesError::SourceUnusable`] for a name with `..` or a NUL byte.
    pub(super) fn new(mut names: Vec<Vec<u8>>, item: &Item) -> Result<Self, FilesError> {
        for name in &mut names {
            let reason = if name.contains(&0) {
                "contains a NUL byte"
            } else if name.split(|b| *b == b'/').any(|component| component == b"..") {
                "leaves the directory"
            } else {
                tidy(name);
                continue;
            };
            let reason = format!("listed name {} {reason}", String::from_utf8_lossy(name));
            return Err(FilesError::SourceUnusable { path: item.path.clone(), reason });
        }
        // A slash sorts before everything else, so that the names beneath a directory follow it directly.
        let key = |byte: &u8| if *byte == b'/' { 0 } else { *byte };
        names.sort_unstable_by(|a, b| b.iter().map(key).cmp(a.iter().map(key)));
        names.dedup();
        Ok(Self { top: item.name.clone(), names, current: None, made: Vec::new(), walked: None })
    }

    /// Returns the names without the item's, for the identity of the source.
    pub(super) fn names(&self) -> &[Vec<u8>] {
        &self.names
    }

    /// Whether the list names the item itself.
    pub(super) fn is_everything(&self) -> bool {
        self.names.last().is_some_and(Vec::is_empty)
    }

    pub(super) fn next(&mut self) -> Option<Candidate> {
        while self.current.is_none() {
            let path = join(&self.top, &self.names.pop()?);
            let path = path.strip_suffix(b"/").map(<[u8]>::to_vec).unwrap_or(path);
            if path.is_empty() || self.walked.as_ref().is_some_and(|directory| is_beneath(&path, directory)) {
                continue;
            }
            let sent = shared_length(&self.made, &path);
            self.current = Some((path, sent));
        }
        let (path, sent) = self.current.as_mut()?;
        let start = if *sent == 0 { 0 } else { *sent + 1 };
        match path[start..].iter().position(|b| *b == b'/') {
            Some(slash) => {
                *sent = start + slash;
                Some(Candidate { sent: path[..*sent].to_vec(), provenance: Provenance::Way })
            }
            None => self.current.take().map(|(sent, _)| Candidate { sent, provenance: Provenance::Listed }),
        }
    }

    /// Whether no name is left.
    pub(super) fn is_over(&self) -> bool {
        self.names.is_empty() && self.current.is_none()
    }

    /// Whether the next name is beneath this one.
    pub(super) fn has_next_beneath(&self, sent: &[u8]) -> bool {
        self.names.last().is_some_and(|name| is_beneath(&join(&self.top, name), sent))
    }

    /// Records that the previous step led to an entry; `walked` if all its contents follow.
    pub(super) fn made(&mut self, sent: &[u8], walked: bool) {
        self.made = sent.to_vec();
        if walked {
            self.walked = Some(sent.to_vec());
        }
    }

    /// Returns the listed name that the previous step approaches.
    pub(super) fn approached(&self) -> Option<&[u8]> {
        self.current.as_ref().map(|(path, _)| path.as_slice())
    }

    /// Abandons the name being approached; returns it.
    pub(super) fn blocked(&mut self) -> Option<Vec<u8>> {
        self.current.take().map(|(path, _)| path)
    }
}

fn is_beneath(path: &[u8], directory: &[u8]) -> bool {
    path.strip_prefix(directory).is_some_and(|rest| rest.starts_with(b"/"))
}
