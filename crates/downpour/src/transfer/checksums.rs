//! A list of all files of a transfer with the BLAKE3 of each, as b3sum prints and checks it.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, BufWriter, Seek as _, Write};
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;

use crate::error::Error;

/// The list: gathered in a file without a name, and written under its own when the transfer is complete.
pub(super) struct Checksums {
    path: PathBuf,
    lines: Option<BufWriter<File>>,
    /// Files that did not come across.
    forgotten: BTreeSet<Vec<u8>>,
}

impl Checksums {
    /// A list to be saved as `path`; touches nothing yet.
    pub(super) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), lines: None, forgotten: BTreeSet::new() }
    }

    /// Adds a file.
    pub(super) fn add(&mut self, path: &[u8], hash: &[u8; 32]) -> Result<(), Error> {
        let failed = |source| Error::Checksums { path: self.path.clone(), source };
        let lines = match &mut self.lines {
            Some(lines) => lines,
            none => none.insert(BufWriter::new(tempfile::tempfile().map_err(failed)?)),
        };
        // The digest first, so that a line can be told from the others by its path.
        let (name, escaped) = escape(path);
        let mark = if escaped { "\\" } else { "" };
        let mut line = format!("{mark}{}  ", HEXLOWER.encode(hash)).into_bytes();
        line.extend(name);
        line.push(b'\n');
        lines.write_all(&line).map_err(failed)
    }

    /// Leaves out a file that did not come across.
    pub(super) fn forget(&mut self, path: &[u8]) {
        self.forgotten.insert(escape(path).0);
    }

    /// Writes the list under its name, in place of what was there.
    pub(super) fn save(&mut self) -> Result<(), Error> {
        self.write().map_err(|source| Error::Checksums { path: self.path.clone(), source })
    }

    fn write(&mut self) -> io::Result<()> {
        let parent = self.path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let mut out = tempfile::NamedTempFile::new_in(parent.unwrap_or(Path::new(".")))?;
        if let Some(lines) = self.lines.take() {
            let mut lines = lines.into_inner().map_err(io::IntoInnerError::into_error)?;
            lines.rewind()?;
            self.copy(lines, &mut BufWriter::new(&mut out))?;
        }
        out.as_file().sync_all()?;
        out.persist(&self.path)?;
        Ok(())
    }

    fn copy(&self, lines: File, out: &mut impl Write) -> io::Result<()> {
        let mut reader = BufReader::new(lines);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line)? > 0 {
            let name = line.splitn(3, |byte| *byte == b' ').nth(2).unwrap_or_default();
            let name = name.strip_suffix(b"\n").unwrap_or(name);
            if !self.forgotten.contains(name) {
                out.write_all(&line)?;
            }
            line.clear();
        }
        out.flush()
    }
}

/// A path as b3sum writes it: backslash and line breaks escaped, which a backslash before the digest tells.
fn escape(path: &[u8]) -> (Vec<u8>, bool) {
    let mut out = Vec::with_capacity(path.len());
    for byte in path {
        match byte {
            b'\\' => out.extend(b"\\\\"),
            b'\n' => out.extend(b"\\n"),
            b'\r' => out.extend(b"\\r"),
            other => out.push(*other),
        }
    }
    let escaped = out.len() > path.len();
    (out, escaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_b3sums_and_what_failed_is_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("list");
        let mut list = Checksums::new(&path);
        let hash = *blake3::hash(b"").as_bytes();
        for name in [&b"a b"[..], b"c\\d\ne", b"gone", b"\xff"] {
            list.add(name, &hash).unwrap();
        }
        list.forget(b"gone");
        list.save().unwrap();
        let digest = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262";
        let mut wanted = format!("{digest}  a b\n\\{digest}  c\\\\d\\ne\n{digest}  ").into_bytes();
        wanted.extend(b"\xff\n");
        assert_eq!(std::fs::read(&path).unwrap(), wanted);
    }
}
