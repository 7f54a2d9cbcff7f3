//! Packed records: the lines of a finished experiment, compressed, a twentieth of their size. They are only read; new
//! records are appended to [`RECORDS`] in the same directory.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::SystemTime;

use serde::de::DeserializeOwned;

use super::StoreError;
use super::directory::write;
use super::store::{RECORDS, StoreOf, parse};
use crate::exit::Failure;

/// The file of a directory of results that holds its packed records.
pub const PACKED: &str = "results.jsonl.zst";

/// Slow and small: an experiment is packed once.
const LEVEL: i32 = 19;
/// The most unpacked bytes: twenty times the largest experiment so far.
const MOST: u64 = 1 << 30;

/// The identity of a packed file, which changes when it is replaced.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Identity(u64, u64, Option<SystemTime>);

/// Returns the identity of a directory's packed records, if there are any.
///
/// # Errors
/// [`StoreError::Io`] if the system does not report it.
pub(super) fn identity(directory: &Path) -> Result<Option<Identity>, StoreError> {
    let path = directory.join(PACKED);
    match fs::metadata(&path) {
        Ok(found) => Ok(Some(Identity(found.ino(), found.len(), found.modified().ok()))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StoreError::Io { path, error }),
    }
}

/// Returns whether a directory has records, packed or not.
pub fn has_records(directory: &Path) -> bool {
    directory.join(RECORDS).is_file() || directory.join(PACKED).is_file()
}

/// Returns the packed lines of a directory; empty if there are none.
///
/// # Errors
/// [`StoreError::Io`] if they cannot be read.
pub(super) fn lines(directory: &Path) -> Result<Vec<u8>, StoreError> {
    let path = directory.join(PACKED);
    match File::open(&path) {
        Ok(file) => unpack(file).map_err(|error| StoreError::Io { path, error }),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(StoreError::Io { path, error }),
    }
}

fn unpack(file: File) -> io::Result<Vec<u8>> {
    let mut lines = Vec::new();
    zstd::Decoder::new(file)?.take(MOST + 1).read_to_end(&mut lines)?;
    if lines.len() as u64 > MOST {
        return Err(io::Error::other(format!("unpacks to more than {MOST} bytes")));
    }
    Ok(lines)
}

/// Returns the packed records of a directory and their lines.
///
/// # Errors
/// See [`StoreError`].
pub(super) fn read<R: DeserializeOwned>(directory: &Path) -> Result<(Vec<R>, Vec<u8>), StoreError> {
    let lines = lines(directory)?;
    Ok((parse(&directory.join(PACKED), &lines, 0)?.0, lines))
}

/// Packs the records of a directory, including those appended since the last time. No interruption loses or duplicates
/// a record.
///
/// # Errors
/// One line and an exit code, if a run writes to the directory, or a file cannot be read or written.
pub(crate) fn pack(directory: &Path) -> Result<(), Failure> {
    // Checks that each line is JSON of a known format, and locks out runs meanwhile.
    let store = StoreOf::<serde_json::Value>::open(directory)?;
    let path = directory.join(RECORDS);
    let appended = fs::read(&path).map_err(Failure::at(&path))?;
    if !appended.is_empty() {
        let mut all = lines(directory)?;
        all.extend_from_slice(&appended);
        let packed = zstd::encode_all(&all[..], LEVEL).map_err(Failure::at(directory))?;
        write(&directory.join(PACKED), &packed)?;
    }
    fs::remove_file(&path).map_err(Failure::at(&path))?;
    drop(store);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::record::tests::record;
    use super::super::store::RecordReader;
    use super::super::{Record, Store};
    use super::*;

    fn append(directory: &Path, numbers: &[f64]) {
        let mut store = Store::open(directory).expect("a directory");
        for number in numbers {
            store.append(record(*number)).expect("room");
        }
    }

    fn records(numbers: &[f64]) -> Vec<Record> {
        numbers.iter().map(|number| record(*number)).collect()
    }

    #[test]
    fn packed_and_appended_records_are_read() {
        let directory = tempfile::tempdir().expect("a directory");
        let [path, packed] = [RECORDS, PACKED].map(|name| directory.path().join(name));
        append(directory.path(), &[1.0, 2.0]);
        let lines = fs::read(&path).expect("records");
        pack(directory.path()).expect("room");
        assert!(!path.exists() && has_records(directory.path()));
        assert_eq!(zstd::decode_all(File::open(&packed).expect("packed")).expect("zstd"), lines);
        append(directory.path(), &[3.0]);
        assert_eq!(Store::read(directory.path()).expect("readable"), records(&[1.0, 2.0, 3.0]));
        assert_eq!(Store::open(directory.path()).expect("readable").records(), records(&[1.0, 2.0, 3.0]));
        pack(directory.path()).expect("room");
        assert!(!path.exists());
        assert_eq!(Store::read(directory.path()).expect("readable"), records(&[1.0, 2.0, 3.0]));
    }

    /// The packed file is complete and the lines still exist, as after a crash.
    #[test]
    fn pack_crash_duplicates_no_record() {
        let directory = tempfile::tempdir().expect("a directory");
        append(directory.path(), &[1.0]);
        pack(directory.path()).expect("room");
        append(directory.path(), &[2.0, 3.0]);
        let path = directory.path().join(RECORDS);
        let lines = fs::read(&path).expect("records");
        pack(directory.path()).expect("room");
        fs::write(&path, &lines).expect("written");
        assert_eq!(Store::read(directory.path()).expect("readable"), records(&[1.0, 2.0, 3.0]));
        append(directory.path(), &[4.0]);
        assert_eq!(Store::read(directory.path()).expect("readable"), records(&[1.0, 2.0, 3.0, 4.0]));
        pack(directory.path()).expect("room");
        assert_eq!(Store::read(directory.path()).expect("readable"), records(&[1.0, 2.0, 3.0, 4.0]));
    }

    #[test]
    fn reader_follows_packing() {
        let directory = tempfile::tempdir().expect("a directory");
        append(directory.path(), &[1.0]);
        pack(directory.path()).expect("room");
        let (mut reader, mut read) = (RecordReader::new(directory.path()), Vec::<Record>::new());
        assert!(reader.more(&mut read).expect("readable"));
        assert_eq!(read, records(&[1.0]));
        assert!(!reader.more(&mut read).expect("readable"), "nothing has changed");
        append(directory.path(), &[2.0]);
        assert!(reader.more(&mut read).expect("readable"));
        assert_eq!(read, records(&[1.0, 2.0]));
        pack(directory.path()).expect("room");
        reader.more(&mut read).expect("readable");
        assert_eq!(read, records(&[1.0, 2.0]));
        append(directory.path(), &[3.0]);
        assert!(reader.more(&mut read).expect("readable"));
        assert_eq!(read, records(&[1.0, 2.0, 3.0]));
        fs::remove_file(directory.path().join(PACKED)).expect("it exists");
        assert!(reader.more(&mut read).expect("readable"));
        assert_eq!(read, records(&[3.0]));
    }

    #[test]
    fn pack_reports_bad_records_and_bad_zstd() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join(RECORDS);
        fs::write(&path, "hello\n").expect("written");
        let failure = pack(directory.path()).expect_err("no record");
        assert!(failure.message.contains("results.jsonl:1: expected value"), "{}", failure.message);
        assert_eq!(fs::read(&path).expect("unchanged"), b"hello\n");
        fs::remove_file(&path).expect("it exists");
        fs::write(directory.path().join(PACKED), "hello\n").expect("written");
        let error = Store::read(directory.path()).expect_err("no zstd").to_string();
        assert!(error.contains(PACKED), "{error}");
    }
}
