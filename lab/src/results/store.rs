//! The records of a directory of results, appended line by line. Finished experiments may be packed.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::packed::{self, Identity};
use super::{Record, SCHEMA};

/// The file of a directory of results that holds the records.
pub const RECORDS: &str = "results.jsonl";

/// The records of runs over links in one directory.
pub type Store = StoreOf<Record>;

/// The records of one directory, open for appending, with an exclusive lock.
#[derive(Debug)]
pub struct StoreOf<R> {
    file: File,
    path: PathBuf,
    /// Bytes of complete lines.
    length: u64,
    records: Vec<R>,
    /// Removed bytes of a truncated last line.
    cut: u64,
}

/// The reason why results cannot be stored or read.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Reading or making the directory failed.
    #[error("{}: {error}", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// A record did not fit on the disk.
    #[error("cannot append to {}: {error}; free disk space and run the same command to resume", path.display())]
    Full {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// Another process writes to the directory.
    #[error("another run writes to {}: wait for it, or use another directory with --out", .0.display())]
    Busy(PathBuf),
    /// A line that is not a record.
    #[error("{}:{line}: {error}: correct or remove the line", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The error.
        error: serde_json::Error,
    },
    /// A line of a later version of the program.
    #[error("{}:{line}: record format {schema} is newer than {SCHEMA}: update downpour-lab", path.display())]
    Schema {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// Its version.
        schema: u64,
    },
}

impl<R: Serialize + DeserializeOwned> StoreOf<R> {
    /// Opens a directory of results and reads its records; creates it if there is none. An incomplete last line, as
    /// after a kill or on a full disk, is removed.
    ///
    /// # Errors
    /// See [`StoreError`]. The directory is unchanged then.
    pub fn open(directory: &Path) -> Result<Self, StoreError> {
        let path = directory.join(RECORDS);
        let failed = |error| StoreError::Io { path: path.clone(), error };
        fs::create_dir_all(directory).map_err(|error| StoreError::Io { path: directory.to_owned(), error })?;
        let file = OpenOptions::new().create(true).read(true).append(true).open(&path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(StoreError::Busy(directory.to_owned())),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        let bytes = fs::read(&path).map_err(failed)?;
        let StoredRecords { records, mut length, is_packed } = read_all(directory, &path, &bytes)?;
        let cut = bytes.len() as u64 - length;
        if cut > 0 {
            file.set_len(length).map_err(failed)?;
        }
        if is_packed {
            file.set_len(0).map_err(failed)?;
            length = 0;
        }
        Ok(Self { file, path, length, records, cut })
    }

    /// Reads the records of a directory, if there are any, packed or not. A truncated last line is skipped and stays.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn read(directory: &Path) -> Result<Vec<R>, StoreError> {
        let path = directory.join(RECORDS);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(StoreError::Io { path, error }),
        };
        Ok(read_all(directory, &path, &bytes)?.records)
    }

    /// Returns the records.
    pub fn records(&self) -> &[R] {
        &self.records
    }

    /// Returns the bytes of a truncated last line that opening removed.
    pub fn cut(&self) -> u64 {
        self.cut
    }

    /// Appends a record, and returns when it is on disk.
    ///
    /// # Errors
    /// [`StoreError::Full`] if it could not be written completely. The previous records are unchanged.
    pub fn append(&mut self, record: R) -> Result<(), StoreError> {
        let mut line = serde_json::to_vec(&record).expect("plain values have a JSON form");
        line.push(b'\n');
        if let Err(error) = self.file.write_all(&line).and_then(|()| self.file.sync_data()) {
            // If this fails too, the next process to open the file removes the truncated line.
            let _ = self.file.set_len(self.length);
            return Err(StoreError::Full { path: self.path.clone(), error });
        }
        self.length += line.len() as u64;
        self.records.push(record);
        Ok(())
    }
}

/// The records of a directory.
struct StoredRecords<R> {
    /// The packed ones, then the others.
    records: Vec<R>,
    /// The bytes of complete lines among the others.
    length: u64,
    /// Whether packing was interrupted, and the others are also among the packed ones; each record has the time of its
    /// run.
    is_packed: bool,
}

/// Returns the packed records of a directory followed by those of these bytes.
fn read_all<R: DeserializeOwned>(directory: &Path, path: &Path, bytes: &[u8]) -> Result<StoredRecords<R>, StoreError> {
    let (mut records, lines) = packed::read(directory)?;
    let (new, length) = parse(path, bytes, 0)?;
    let is_packed = length > 0 && lines.ends_with(&bytes[..length as usize]);
    if !is_packed {
        records.extend(new);
    }
    Ok(StoredRecords { records, length, is_packed })
}

/// Reads the records of a directory as another process appends them.
#[derive(Debug)]
pub(crate) struct RecordReader {
    directory: PathBuf,
    /// `None` if all has to be read the next time.
    seen: Option<ReadPosition>,
}

/// The position of a reader.
#[derive(Debug)]
struct ReadPosition {
    /// The packed records, which are read at once.
    packed: Option<Identity>,
    /// The inode of the file of records, if there is one, and the bytes and the number of complete lines read from it.
    file: Option<u64>,
    length: u64,
    lines: usize,
}

impl RecordReader {
    /// Creates the reader of a directory, which may have no results yet.
    pub(crate) fn new(directory: &Path) -> Self {
        Self { directory: directory.to_owned(), seen: None }
    }

    /// Appends the new records; returns whether anything has changed. If the file was replaced or
    /// has become shorter, all records are read again; if that fails, they stay.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub(crate) fn more<R: DeserializeOwned>(&mut self, records: &mut Vec<R>) -> Result<bool, StoreError> {
        let path = self.directory.join(RECORDS);
        let failed = |error| StoreError::Io { path: path.clone(), error };
        let packed = packed::identity(&self.directory)?;
        let mut file = match File::open(&path) {
            Ok(file) => Some(file),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(failed(error)),
        };
        let found = file.as_ref().map(File::metadata).transpose().map_err(failed)?;
        let is_same = |seen: &&mut ReadPosition| {
            let length = found.as_ref().map_or(0, fs::Metadata::len);
            let is_other = seen.file.is_some() && seen.file != found.as_ref().map(fs::Metadata::ino);
            seen.packed == packed && !is_other && length >= seen.length
        };
        let start = self.seen.as_mut().filter(is_same);
        let mut bytes = Vec::new();
        if let Some(file) = &mut file {
            let start = start.as_ref().map_or(0, |seen| seen.length);
            file.seek(SeekFrom::Start(start)).and_then(|_| file.read_to_end(&mut bytes)).map_err(failed)?;
        }
        let file = found.map(|found| found.ino());
        if let Some(seen) = start {
            match parse(&path, &bytes, seen.lines) {
                Ok((new, length)) => {
                    *seen = ReadPosition { packed, file, length: seen.length + length, lines: seen.lines + new.len() };
                    let has_changed = !new.is_empty();
                    records.extend(new);
                    return Ok(has_changed);
                }
                // Earlier lines may have been edited, which changes the number of the line.
                Err(_) if seen.length > 0 => {
                    self.seen = None;
                    return self.more(records);
                }
                Err(error) => return Err(error),
            }
        }
        let StoredRecords { records: all, length, .. } = read_all(&self.directory, &path, &bytes)?;
        let lines = bytes[..length as usize].split_inclusive(|byte| *byte == b'\n').count();
        self.seen = Some(ReadPosition { packed, file, length, lines });
        let has_changed = !(all.is_empty() && records.is_empty());
        *records = all;
        Ok(has_changed)
    }

    /// Reads everything again the next time.
    pub(crate) fn restart(&mut self) {
        self.seen = None;
    }
}

/// Parses the records of complete lines, which follow `before` others; returns them and the bytes of these lines.
pub(super) fn parse<R: DeserializeOwned>(
    path: &Path,
    bytes: &[u8],
    before: usize,
) -> Result<(Vec<R>, u64), StoreError> {
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
    let mut records = Vec::new();
    for (index, line) in bytes[..whole].split_inclusive(|byte| *byte == b'\n').enumerate() {
        let at = |error| StoreError::Line { path: path.to_owned(), line: before + index + 1, error };
        #[derive(serde::Deserialize)]
        struct RecordFormat {
            schema: u64,
        }
        let RecordFormat { schema } = serde_json::from_slice(line).map_err(at)?;
        if schema > u64::from(SCHEMA) {
            return Err(StoreError::Schema { path: path.to_owned(), line: before + index + 1, schema });
        }
        records.push(serde_json::from_slice(line).map_err(at)?);
    }
    Ok((records, whole as u64))
}

#[cfg(test)]
mod tests {
    use super::super::record::tests::record;
    use super::*;

    fn seconds(store: &Store) -> Vec<f64> {
        let of = |record: &Record| match record.outcome.ending {
            super::super::Ending::Finished { seconds } => seconds,
            _ => f64::NAN,
        };
        store.records().iter().map(of).collect()
    }

    #[test]
    fn open_removes_incomplete_last_line_only() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join(RECORDS);
        let mut store = Store::open(directory.path()).expect("a new directory");
        store.append(record(1.0)).expect("room");
        store.append(record(2.0)).expect("room");
        drop(store);
        let whole = fs::read(&path).expect("records");
        for torn in [1, 10, whole.len() / 2 - 1] {
            let mut bytes = whole.clone();
            bytes.extend_from_slice(&whole[..torn]);
            fs::write(&path, &bytes).expect("written");
            assert_eq!(Store::read(directory.path()).expect("readable").len(), 2);
            let mut store = Store::open(directory.path()).expect("a torn line is no error");
            assert_eq!((store.cut(), seconds(&store)), (torn as u64, vec![1.0, 2.0]));
            assert_eq!(fs::read(&path).expect("records"), whole);
            store.append(record(3.0)).expect("room");
            drop(store);
            assert_eq!(seconds(&Store::open(directory.path()).expect("whole")), [1.0, 2.0, 3.0]);
        }
    }

    #[test]
    fn bad_line_is_reported_and_kept() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join(RECORDS);
        let good = serde_json::to_string(&record(1.0)).expect("JSON");
        for (text, hint) in [
            (format!("{good}\n{{\"schema\":1}}\n{good}\n"), "results.jsonl:2: missing field `id`"),
            (format!("{good}\n{good}\nhello\n"), "results.jsonl:3: expected value"),
            (good.replacen(":1,", ":2,", 1) + "\n", "results.jsonl:1: record format 2 is newer than 1"),
        ] {
            fs::write(&path, &text).expect("written");
            let error = Store::open(directory.path()).expect_err("no record").to_string();
            assert!(error.contains(hint), "{error}");
            assert_eq!(fs::read_to_string(&path).expect("text"), text);
        }
    }

    #[test]
    fn reader_follows_appended_records() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join(RECORDS);
        let (mut reader, mut records) = (RecordReader::new(directory.path()), Vec::<Record>::new());
        assert!(!reader.more(&mut records).expect("nothing yet"));
        let mut store = Store::open(directory.path()).expect("a new directory");
        store.append(record(1.0)).expect("room");
        store.append(record(2.0)).expect("room");
        assert!(reader.more(&mut records).expect("readable") && records.len() == 2);
        assert!(!reader.more(&mut records).expect("readable"), "nothing has changed");
        // A partial line counts when it is complete.
        let line = serde_json::to_string(&record(3.0)).expect("JSON") + "\n";
        let append = |text: &str| {
            let mut file = OpenOptions::new().append(true).open(&path).expect("it exists");
            file.write_all(text.as_bytes()).expect("written");
        };
        append(&line[..20]);
        assert!(!reader.more(&mut records).expect("readable"));
        append(&line[20..]);
        assert!(reader.more(&mut records).expect("readable"));
        assert_eq!(records, [1.0, 2.0, 3.0].map(record));
        append("hello\n");
        let error = reader.more(&mut records).expect_err("no record").to_string();
        assert!(error.contains("results.jsonl:4: expected value"), "{error}");
        // An edit of an earlier line: the error has its number.
        let text = fs::read_to_string(&path).expect("text").replace("hello\n", "");
        let (first, rest) = text.split_at(text.find('\n').expect("lines") + 1);
        fs::write(&path, format!("{first}hello\n{rest}")).expect("written");
        let error = reader.more(&mut records).expect_err("no record").to_string();
        assert!(error.contains("results.jsonl:2: expected value"), "{error}");
        assert_eq!(records, [1.0, 2.0, 3.0].map(record), "earlier records stay");
        fs::write(&path, &line).expect("written");
        assert!(reader.more(&mut records).expect("readable"));
        assert_eq!(records, [record(3.0)], "a shorter file is read again");
        fs::remove_file(&path).expect("it exists");
        assert!(reader.more(&mut records).expect("no file") && records.is_empty());
    }

    #[test]
    fn open_is_exclusive() {
        let directory = tempfile::tempdir().expect("a directory");
        let first = Store::open(directory.path()).expect("a new directory");
        let error = Store::open(directory.path()).expect_err("locked").to_string();
        assert!(error.contains("another run writes to"), "{error}");
        assert_eq!(Store::read(directory.path()).expect("reading needs no lock").len(), 0);
        drop(first);
        Store::open(directory.path()).expect("free again");
    }
}
