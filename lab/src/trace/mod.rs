//! Traces of downpour's `--qlog`: JSON text sequences (RFC 7464) of qlog, read during or after writing, in bounded
//! memory.

mod blocks;
mod connection;
mod course;
mod record;
mod words;

use std::collections::VecDeque;

pub(crate) use connection::{MEASURED, Measured, TracedConnection};
pub(crate) use course::Course;
use record::{Record, Records};

/// Limits of the stored part of a trace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Buckets of each connection's course.
    pub(crate) buckets: usize,
    /// The most stored connections, which are the last ones.
    pub(crate) connections: usize,
}

/// The content of a file read so far.
#[derive(Debug)]
pub(crate) struct Trace {
    limits: Limits,
    records: Records,
    connections: VecDeque<TracedConnection>,
    earlier: usize,
    invalid_records: usize,
    complaint: Option<String>,
}

impl Trace {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            records: Records::default(),
            connections: VecDeque::new(),
            earlier: 0,
            invalid_records: 0,
            complaint: None,
        }
    }

    /// Adds further bytes of the file.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let Self { records, .. } = self;
        let mut records = std::mem::take(records);
        records.push(bytes, |text| match text.map_err(str::to_owned).and_then(Record::parse) {
            Ok(record) => self.record(&record),
            Err(why) => self.count_invalid(&why),
        });
        self.records = records;
    }

    /// Adds the last record if it is complete, without waiting for the next.
    pub(crate) fn settle(&mut self) {
        let mut records = std::mem::take(&mut self.records);
        records.settle(|text| match Record::parse(text) {
            Ok(record) => {
                self.record(&record);
                true
            }
            Err(_) => false,
        });
        self.records = records;
    }

    /// Returns whether the last record is incomplete: its writer is still writing, was killed, or the disk was full.
    pub(crate) fn is_cut(&self) -> bool {
        self.records.is_within()
    }

    /// Returns the stored connections in order.
    pub(crate) fn connections(&self) -> &VecDeque<TracedConnection> {
        &self.connections
    }

    /// Returns the number of earlier connections, which are not stored.
    pub(crate) fn earlier(&self) -> usize {
        self.earlier
    }

    /// Returns the number of invalid records, and the error of the first.
    pub(crate) fn invalid_records(&self) -> Option<(usize, &str)> {
        self.complaint.as_deref().map(|why| (self.invalid_records, why))
    }

    fn count_invalid(&mut self, why: &str) {
        self.invalid_records += 1;
        self.complaint.get_or_insert_with(|| why.to_owned());
    }

    fn record(&mut self, record: &Record<'_>) {
        if record.is_header() {
            if self.connections.len() == self.limits.connections {
                self.connections.pop_front();
                self.earlier += 1;
            }
            self.connections.push_back(TracedConnection::new(self.limits.buckets));
        } else if let Some(connection) = self.connections.back_mut() {
            connection.event(record);
        } else {
            self.count_invalid("an event before the header of a trace");
        }
    }
}

#[cfg(test)]
mod tests;
