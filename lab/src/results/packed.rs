//! Packed records: the lines of a finished experiment, compressed, a twentieth of their size. Records are only read from
//! there; new ones are appended to [`RECORDS`] beside it.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::SystemTime;

use serde::de::DeserializeOwned;

use super::StoreError;
use super::folder::write;
use super::store::{RECORDS, StoreOf, parse};
use crate::exit::Failure;

/// The file of a folder of results that holds its packed records.
pub const PACKED: &str = "results.jsonl.zst";

/// Slow and small: an experiment is packed once.
const LEVEL: i32 = 19;
/// The most bytes that are unpacked: twenty times the largest experiment so far.
const MOST: u64 = 1 << 30;

/// What tells one packed file from another by its name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Identity(u64, u64, Option<SystemTime>);

/// Returns the identity of a folder's packed records, if there are any.
///
/// # Errors
/// [`StoreError::Io`] if the system does not say.
pub(super) fn identity(folder: &Path) -> Result<Option<Identity>, StoreError> {
    let path = folder.join(PACKED);
    match fs::metadata(&path) {
        Ok(found) => Ok(Some(Identity(found.ino(), found.len(), found.modified().ok()))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StoreError::Io { path, error }),
    }
}

/// Returns whether a folder has records, packed or not.
pub fn has_records(folder: &Path) -> bool {
    folder.join(RECORDS).is_file() || folder.join(PACKED).is_file()
}

/// Returns the packed lines of a folder: nothing where there are none.
///
/// # Errors
/// [`StoreError::Io`] if they cannot be read.
pub(super) fn lines(folder: &Path) -> Result<Vec<u8>, StoreError> {
    let path = folder.join(PACKED);
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
        return Err(io::Error::other(format!("it unpacks to more than {MOST} bytes")));
    }
    Ok(lines)
}

/// Returns the packed records of a folder and their lines.
///
/// # Errors
/// See [`StoreError`].
pub(super) fn read<R: DeserializeOwned>(folder: &Path) -> Result<(Vec<R>, Vec<u8>), StoreError> {
    let lines = lines(folder)?;
    Ok((parse(&folder.join(PACKED), &lines, 0)?.0, lines))
}

/// Packs the records of a folder, also those appended since it was packed last. Whatever interrupts it, no record is lost
/// or there twice.
///
/// # Errors
/// One line and an exit code, where a run writes there, or a file cannot be read or written.
pub(crate) fn pack(folder: &Path) -> Result<(), Failure> {
    // Checks that each line is JSON of a form that this version knows, and keeps runs from writing meanwhile.
    let store = StoreOf::<serde_json::Value>::open(folder)?;
    let path = folder.join(RECORDS);
    let appended = fs::read(&path).map_err(Failure::at(&path))?;
    if !appended.is_empty() {
        let mut all = lines(folder)?;
        all.extend_from_slice(&appended);
        let packed = zstd::encode_all(&all[..], LEVEL).map_err(Failure::at(folder))?;
        write(&folder.join(PACKED), &packed)?;
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

    fn append(folder: &Path, numbers: &[f64]) {
        let mut store = Store::open(folder).expect("a folder");
        for number in numbers {
            store.append(record(*number)).expect("room");
        }
    }

    fn records(numbers: &[f64]) -> Vec<Record> {
        numbers.iter().map(|number| record(*number)).collect()
    }

    #[test]
    fn packed_records_are_read_with_those_appended_since() {
        let folder = tempfile::tempdir().expect("a folder");
        let [path, packed] = [RECORDS, PACKED].map(|name| folder.path().join(name));
        append(folder.path(), &[1.0, 2.0]);
        let lines = fs::read(&path).expect("records");
        pack(folder.path()).expect("room");
        assert!(!path.exists() && has_records(folder.path()));
        assert_eq!(zstd::decode_all(File::open(&packed).expect("packed")).expect("zstd"), lines);
        append(folder.path(), &[3.0]);
        assert_eq!(Store::read(folder.path()).expect("readable"), records(&[1.0, 2.0, 3.0]));
        assert_eq!(Store::open(folder.path()).expect("readable").records(), records(&[1.0, 2.0, 3.0]));
        pack(folder.path()).expect("room");
        assert!(!path.exists());
        assert_eq!(Store::read(folder.path()).expect("readable"), records(&[1.0, 2.0, 3.0]));
    }

    /// The packed file is in place and the lines are still there, as after a crash.
    #[test]
    fn no_record_is_there_twice_after_a_crash() {
        let folder = tempfile::tempdir().expect("a folder");
        append(folder.path(), &[1.0]);
        pack(folder.path()).expect("room");
        append(folder.path(), &[2.0, 3.0]);
        let path = folder.path().join(RECORDS);
        let lines = fs::read(&path).expect("records");
        pack(folder.path()).expect("room");
        fs::write(&path, &lines).expect("written");
        assert_eq!(Store::read(folder.path()).expect("readable"), records(&[1.0, 2.0, 3.0]));
        append(folder.path(), &[4.0]);
        assert_eq!(Store::read(folder.path()).expect("readable"), records(&[1.0, 2.0, 3.0, 4.0]));
        pack(folder.path()).expect("room");
        assert_eq!(Store::read(folder.path()).expect("readable"), records(&[1.0, 2.0, 3.0, 4.0]));
    }

    #[test]
    fn a_reader_begins_with_what_is_packed_and_sees_it_packed_again() {
        let folder = tempfile::tempdir().expect("a folder");
        append(folder.path(), &[1.0]);
        pack(folder.path()).expect("room");
        let (mut reader, mut read) = (RecordReader::new(folder.path()), Vec::<Record>::new());
        assert!(reader.more(&mut read).expect("readable"));
        assert_eq!(read, records(&[1.0]));
        assert!(!reader.more(&mut read).expect("readable"), "nothing has changed");
        append(folder.path(), &[2.0]);
        assert!(reader.more(&mut read).expect("readable"));
        assert_eq!(read, records(&[1.0, 2.0]));
        pack(folder.path()).expect("room");
        reader.more(&mut read).expect("readable");
        assert_eq!(read, records(&[1.0, 2.0]));
        append(folder.path(), &[3.0]);
        assert!(reader.more(&mut read).expect("readable"));
        assert_eq!(read, records(&[1.0, 2.0, 3.0]));
        fs::remove_file(folder.path().join(PACKED)).expect("it is there");
        assert!(reader.more(&mut read).expect("readable"));
        assert_eq!(read, records(&[3.0]));
    }

    #[test]
    fn what_is_no_record_is_not_packed_and_what_is_no_zstd_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(RECORDS);
        fs::write(&path, "hello\n").expect("written");
        let failure = pack(folder.path()).expect_err("no record");
        assert!(failure.message.contains("results.jsonl:1: expected value"), "{}", failure.message);
        assert_eq!(fs::read(&path).expect("it stays"), b"hello\n");
        fs::remove_file(&path).expect("it is there");
        fs::write(folder.path().join(PACKED), "hello\n").expect("written");
        let error = Store::read(folder.path()).expect_err("no zstd").to_string();
        assert!(error.contains(PACKED), "{error}");
    }
}
