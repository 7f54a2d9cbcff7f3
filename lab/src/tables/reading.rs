//! Results that may still be growing.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::Measured;
use crate::exit::Failure;
use crate::results::{PLAN, RecordReader};

/// The plan and the records of a directory, of which only changes are read again.
#[derive(Debug)]
pub(crate) struct ResultsReader {
    plan: PathBuf,
    stamp: Option<Stamp>,
    records: RecordReader,
    measured: Measured,
}

/// The identity of a version of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    inode: u64,
    /// In bytes.
    pub(crate) length: u64,
    changed: (i64, i64),
}

impl Stamp {
    /// Returns the stamp of a file, if it exists.
    pub(crate) fn of(file: &Path) -> Option<Self> {
        let found = fs::metadata(file).ok()?;
        Some(Self { inode: found.ino(), length: found.len(), changed: (found.mtime(), found.mtime_nsec()) })
    }
}

impl ResultsReader {
    /// Reads the results of a directory, with their plan.
    ///
    /// # Errors
    /// One line, if the plan or a record cannot be read.
    pub(crate) fn of_results(directory: &Path) -> Result<Self, Failure> {
        Self::open(&directory.join(PLAN), directory)
    }

    /// Reads a plan, and its results in a directory if there are any.
    ///
    /// # Errors
    /// One line, if the plan or a record cannot be read.
    pub(crate) fn open(plan: &Path, directory: &Path) -> Result<Self, Failure> {
        let stamp = Stamp::of(plan);
        let measured = Measured::of_plan(plan)?;
        let mut reading = Self { plan: plan.to_owned(), stamp, records: RecordReader::new(directory), measured };
        reading.more()?;
        Ok(reading)
    }

    /// Reads the changes; returns whether there are any.
    ///
    /// # Errors
    /// One line, if the plan or a record cannot be read. Earlier data stays.
    pub(crate) fn refresh(&mut self) -> Result<bool, Failure> {
        let stamp = Stamp::of(&self.plan);
        let is_other = stamp != self.stamp;
        if is_other {
            let read = Measured::of_plan(&self.plan)?;
            self.stamp = stamp;
            self.measured = match (read, &mut self.measured) {
                (Measured::Links(plan, _), Measured::Links(_, records)) => {
                    Measured::Links(plan, std::mem::take(records))
                }
                (Measured::Codes(plan, _), Measured::Codes(_, records)) => {
                    Measured::Codes(plan, std::mem::take(records))
                }
                (Measured::Simulated(plan, _), Measured::Simulated(_, records)) => {
                    Measured::Simulated(plan, std::mem::take(records))
                }
                // Another kind of plan has other records.
                (read, _) => {
                    self.records.restart();
                    read
                }
            };
        }
        Ok(self.more()? || is_other)
    }

    /// Returns the plan's file.
    pub(crate) fn plan(&self) -> &Path {
        &self.plan
    }

    /// Returns the plan, and the records read so far.
    pub(crate) fn measured(&self) -> &Measured {
        &self.measured
    }

    /// Returns them alone.
    pub(crate) fn into_measured(self) -> Measured {
        self.measured
    }

    fn more(&mut self) -> Result<bool, Failure> {
        Ok(match &mut self.measured {
            Measured::Links(_, records) => self.records.more(records),
            Measured::Codes(_, records) => self.records.more(records),
            Measured::Simulated(_, records) => self.records.more(records),
        }?)
    }
}
