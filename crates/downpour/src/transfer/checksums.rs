//! A list of all files of a transfer with their BLAKE3 hashes, in the format of b3sum.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, BufRead as _, BufReader, BufWriter, Read as _, Seek as _, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use data_encoding::HEXLOWER;

use rustix::fs::{Access, access};

use crate::error::Error;
use crate::files::directory::parent_of;
use crate::files::{Identity, Notice, NoticeKind, OutputKind};

/// Configuration of a list.
#[derive(Clone, Debug)]
pub(crate) struct List {
    /// Path of the list.
    pub(crate) path: PathBuf,
    /// Name of the single transferred item at the target, if it is renamed.
    pub(crate) rename: Option<Vec<u8>>,
    /// The file that the list replaces; `None` before it exists.
    replaces: Arc<Mutex<Option<Identity>>>,
}

impl List {
    /// Creates a list of items that keep their names.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, rename: None, replaces: Arc::default() }
    }

    /// Checks that the list can be written, so that a failure does not appear only at the end of a long transfer, and
    /// that it replaces nothing but a list.
    ///
    /// # Errors
    /// [`Error::OutputRefused`], [`Error::Checksums`].
    pub(super) fn check(&self, trace: Option<&File>) -> Result<(), Error> {
        let failed = |source| self.failed(source, false);
        let place = self.place().map_err(|error| error.before(self))?;
        if let Some(replaced) = &place.replaced {
            let trace = trace.map(File::metadata).transpose().map_err(failed)?;
            if trace.is_some_and(|trace| Identity::from(&trace) == Identity::from(replaced)) {
                return Err(self.refused("the trace uses this file; choose another file"));
            }
            if replaced.len() > 0 && !begins_with_checksum(&place.path).map_err(failed)? {
                return Err(self.refused("the existing file is not a checksum list; choose another file"));
            }
        }
        *self.replaces() = place.identity();
        access(&place.directory, Access::WRITE_OK | Access::EXEC_OK).map_err(|error| failed(error.into()))
    }

    fn failed(&self, source: io::Error, is_over: bool) -> Error {
        Error::Checksums { path: self.path.clone(), source, is_over }
    }

    fn refused(&self, reason: &'static str) -> Error {
        Error::OutputRefused { kind: OutputKind::Checksums, path: self.path.clone(), reason }
    }

    fn replaces(&self) -> MutexGuard<'_, Option<Identity>> {
        self.replaces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds the file that the list replaces or becomes: the target of a symbolic link. Only a regular file is
    /// replaced, since replacing would destroy a device or FIFO.
    fn place(&self) -> Result<Place, Misplaced> {
        let (path, replaced) = match fs::metadata(&self.path) {
            Ok(metadata) if metadata.is_dir() => return Err(io::Error::from(io::ErrorKind::IsADirectory).into()),
            Ok(metadata) if metadata.is_file() => {
                let path = fs::canonicalize(&self.path)?;
                let found = fs::symlink_metadata(&path)?;
                // In a shared directory another user may have put a link in its place meanwhile.
                if Identity::from(&found) != Identity::from(&metadata) {
                    return Err(io::Error::other("the file was replaced concurrently: try again").into());
                }
                (path, Some(metadata))
            }
            Ok(_) => return Err(Misplaced::Refused("not a regular file; name a file")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => match fs::symlink_metadata(&self.path) {
                Ok(_) => return Err(Misplaced::Refused("dangling symbolic link; name that file")),
                Err(error) if error.kind() == io::ErrorKind::NotFound => (self.path.clone(), None),
                Err(error) => return Err(error.into()),
            },
            Err(error) => return Err(error.into()),
        };
        let directory = parent_of(&path);
        Ok(Place { directory: directory.to_owned(), path, replaced })
    }
}

/// Why a list cannot be written.
enum Misplaced {
    /// The existing file is not replaced.
    Refused(&'static str),
    Failed(io::Error),
}

impl Misplaced {
    /// Returns the error before anything was transferred.
    fn before(self, list: &List) -> Error {
        match self {
            Self::Refused(reason) => list.refused(reason),
            Self::Failed(error) => list.failed(error, false),
        }
    }
}

impl From<io::Error> for Misplaced {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

impl From<Misplaced> for io::Error {
    fn from(error: Misplaced) -> Self {
        match error {
            Misplaced::Refused(reason) => Self::other(reason),
            Misplaced::Failed(error) => error,
        }
    }
}

/// Returns whether the first line of a file is that of a list.
fn begins_with_checksum(path: &Path) -> io::Result<bool> {
    let mut begin = Vec::new();
    File::open(path)?.take(HASH_DIGITS + 4).read_to_end(&mut begin)?;
    let line = begin.strip_prefix(b"\\").unwrap_or(&begin);
    let (hash, rest) = line.split_at(line.len().min(HASH_DIGITS as usize));
    let is_hash = hash.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    Ok(hash.len() == HASH_DIGITS as usize && is_hash && rest.starts_with(b"  "))
}

/// Hexadecimal digits of a hash.
const HASH_DIGITS: u64 = 64;

/// The file that a list replaces or becomes.
struct Place {
    path: PathBuf,
    /// Its directory.
    directory: PathBuf,
    /// The file that is replaced.
    replaced: Option<Metadata>,
}

impl Place {
    fn identity(&self) -> Option<Identity> {
        self.replaced.as_ref().map(Identity::from)
    }
}

/// Permissions of a new list, less those that the umask denies.
const NEW: u32 = 0o666;

/// The list: collected in an unnamed file, and saved under its name when the transfer is complete.
pub(super) struct Checksums {
    list: List,
    lines: Option<BufWriter<File>>,
    /// Files that were not received.
    forgotten: BTreeSet<Vec<u8>>,
}

impl Checksums {
    /// Creates an empty list; writes nothing yet.
    pub(super) const fn new(list: List) -> Self {
        Self { list, lines: None, forgotten: BTreeSet::new() }
    }

    /// Sets the name of the single item at the target, once that is known.
    pub(super) fn rename(&mut self, name: Option<&[u8]>) {
        self.list.rename = name.map(<[u8]>::to_vec);
    }

    /// Adds a file.
    pub(super) fn add(&mut self, path: &[u8], hash: &[u8; 32]) -> Result<(), Error> {
        let (name, escaped) = escape(&self.at_target(path));
        let list = &self.list;
        let failed = |source| list.failed(source, false);
        let lines = match &mut self.lines {
            Some(lines) => lines,
            none => none.insert(BufWriter::new(tempfile::tempfile().map_err(|error| failed(bare(error)))?)),
        };
        // The digest first: everything after it identifies the path.
        let mark = if escaped { "\\" } else { "" };
        let mut line = format!("{mark}{}  ", HEXLOWER.encode(hash)).into_bytes();
        line.extend(name);
        line.push(b'\n');
        lines.write_all(&line).map_err(failed)
    }

    /// Removes a file that, according to a notice, was not published as it was sent.
    pub(super) fn heed(&mut self, notice: &Notice) {
        if notice.kind.is_failure() || notice.kind == NoticeKind::Kept {
            self.forget(&notice.path);
        }
    }

    /// Removes a file that was not received.
    pub(super) fn forget(&mut self, path: &[u8]) {
        self.forgotten.insert(escape(&self.at_target(path)).0);
    }

    /// Returns the path below the target, where `b3sum -c` reads it.
    fn at_target<'a>(&self, path: &'a [u8]) -> Cow<'a, [u8]> {
        let Some(name) = &self.list.rename else { return path.into() };
        let top = path.iter().position(|byte| *byte == b'/').unwrap_or(path.len());
        [name, &path[top..]].concat().into()
    }

    /// Saves the list under its name, replacing an existing file.
    pub(super) fn save(&mut self) -> Result<(), Error> {
        self.write().map_err(|source| self.list.failed(source, true))
    }

    fn write(&mut self) -> io::Result<()> {
        let mut replaces = self.list.replaces();
        let place = self.list.place()?;
        // The peer may have the same directory, and have published a file of the transfer in it.
        if *replaces != place.identity() {
            return Err(io::Error::other("a file of this name was created during the transfer; choose another name"));
        }
        let Place { path, directory, replaced } = place;
        let permissions = Permissions::from_mode(NEW);
        let out = tempfile::Builder::new().permissions(permissions).tempfile_in(directory).map_err(bare)?;
        if let Some(lines) = self.lines.take() {
            let mut lines = lines.into_inner().map_err(io::IntoInnerError::into_error)?;
            lines.rewind()?;
            self.copy(lines, &mut BufWriter::new(out.as_file()))?;
        }
        if let Some(replaced) = replaced {
            out.as_file().set_permissions(replaced.permissions())?;
        }
        out.as_file().sync_all()?;
        let written = out.persist(path)?.metadata()?;
        *replaces = Some(Identity::from(&written));
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

/// Strips the name of the temporary file that `tempfile` adds to system errors.
fn bare(error: io::Error) -> io::Error {
    if error.get_ref().is_some() { error.kind().into() } else { error }
}

/// Escapes a path as b3sum does: backslashes and line breaks are escaped, and a backslash before the digest marks such
/// lines.
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
    fn checksums_b3sum_format_without_failed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("list");
        let mut list = Checksums::new(List::new(path.clone()));
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

    #[test]
    fn checksums_use_target_names() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("list");
        let mut list = Checksums::new(List::new(path.clone()));
        list.rename(Some(b"new"));
        for name in [&b"old"[..], b"old/a", b"old/gone", b"old/kept", b"old/closed"] {
            list.add(name, &[0; 32]).unwrap();
        }
        list.forget(b"old/gone");
        // The receiver names existing files by their names at the target.
        for (kind, path) in
            [(NoticeKind::Kept, "new/kept"), (NoticeKind::Permission, "old/closed"), (NoticeKind::Attributes, "new/a")]
        {
            list.heed(&Notice { kind, path: path.into() });
        }
        list.save().unwrap();
        let digest = "0".repeat(64);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{digest}  new\n{digest}  new/a\n"));
    }

    #[test]
    fn checksums_replace_only_regular_file() {
        let dir = tempfile::tempdir().unwrap();
        let (old, link) = (dir.path().join("old"), dir.path().join("link"));
        let line = format!("{}  old\n", "0".repeat(64));
        fs::write(&old, &line).unwrap();
        fs::set_permissions(&old, Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink("old", &link).unwrap();
        let list = List::new(link.clone());
        list.check(None).unwrap();
        Checksums::new(list).save().unwrap();
        assert_eq!(fs::read_link(&link).unwrap(), Path::new("old"));
        let replaced = fs::symlink_metadata(&old).unwrap();
        assert_eq!((replaced.len(), replaced.permissions().mode() & 0o777), (0, 0o640));

        let (dangling, fifo) = (dir.path().join("dangling"), dir.path().join("fifo"));
        std::os::unix::fs::symlink("absent", &dangling).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        for path in [dangling, fifo, PathBuf::from("/dev/null")] {
            let before = fs::symlink_metadata(&path).unwrap();
            let list = List::new(path.clone());
            for error in [list.check(None).unwrap_err(), Checksums::new(list).save().unwrap_err()] {
                assert!(
                    error.to_string().contains("name a file") || error.to_string().contains("name that file"),
                    "{error}"
                );
            }
            assert_eq!(fs::symlink_metadata(&path).unwrap().file_type(), before.file_type());
        }
    }

    #[test]
    fn checksums_unwritable_refused_before_transfer() {
        let dir = tempfile::tempdir().unwrap();
        for path in [dir.path().join("no/list"), dir.path().to_owned()] {
            let list = List::new(path.clone());
            let mut checksums = Checksums::new(list.clone());
            for error in [list.check(None).unwrap_err(), checksums.save().unwrap_err()] {
                let message = error.to_string();
                let reason = message.strip_prefix(&format!("cannot write the checksums {}: ", path.display()));
                assert!(reason.is_some_and(|reason| !reason.contains(".tmp")), "{message}");
            }
        }
    }
}
