//! The file of the engine's trace.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use crate::error::Error;
use crate::files::OutputKind;

/// The file to which the engine's trace is appended (qlog, JSON text sequences). It is opened once for all attempts: it
/// may be a pipe, whose reader sees the end when it is closed.
#[derive(Clone, Debug)]
pub(crate) struct Trace {
    path: PathBuf,
    file: Arc<OnceLock<File>>,
}

impl Trace {
    /// Creates a trace that is not open yet.
    pub(crate) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), file: Arc::default() }
    }

    /// Opens it, unless it is open. Waits for a reader if it is a pipe. Refuses a file with other content, which a
    /// trace would damage.
    ///
    /// # Errors
    /// [`Error::OutputRefused`], [`Error::Trace`].
    pub(super) fn open(&self) -> Result<&File, Error> {
        if let Some(file) = self.file.get() {
            return Ok(file);
        }
        let failed = |source| Error::Trace { path: self.path.clone(), source };
        if !takes_trace(&self.path).map_err(failed)? {
            let reason = "the existing file is not a trace; choose another file";
            return Err(Error::OutputRefused { kind: OutputKind::Trace, path: self.path.clone(), reason });
        }
        let file = File::options().create(true).append(true).open(&self.path).map_err(failed)?;
        Ok(self.file.get_or_init(|| file))
    }

    /// Appends to it.
    ///
    /// # Errors
    /// [`Error::Trace`].
    pub(super) fn write(&self, bytes: &[u8]) -> Result<(), Error> {
        self.open()?.write_all(bytes).map_err(|source| Error::Trace { path: self.path.clone(), source })
    }
}

/// Returns whether a file does not exist, is empty, or begins like a trace: with a record separator (RFC 7464).
fn takes_trace(path: &Path) -> io::Result<bool> {
    match path.metadata() {
        Ok(found) if found.is_file() && found.len() > 0 => {
            let mut begin = [0];
            File::open(path)?.read_exact(&mut begin)?;
            Ok(begin == *b"\x1e")
        }
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd as _;

    use super::*;

    #[test]
    fn only_a_trace_is_continued() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("trace");
        for (content, is_taken) in
            [(None, true), (Some(&b""[..]), true), (Some(b"\x1e{}\n"), true), (Some(b"{}\n"), false)]
        {
            content.iter().for_each(|content| std::fs::write(&path, content).unwrap());
            let trace = Trace::new(&path);
            match trace.write(b"\x1emore\n") {
                Ok(()) => assert!(is_taken),
                Err(error) => assert!(!is_taken && matches!(error, Error::OutputRefused { .. }), "{error}"),
            }
            let expected = [content.unwrap_or_default(), if is_taken { b"\x1emore\n" } else { b"" }].concat();
            assert_eq!(std::fs::read(&path).unwrap(), expected);
        }
        let (_reader, writer) = io::pipe().unwrap();
        let pipe = format!("/proc/self/fd/{}", writer.as_raw_fd());
        for device in ["/dev/null", &pipe] {
            Trace::new(Path::new(device)).open().unwrap();
        }
    }
}
