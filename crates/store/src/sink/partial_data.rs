//! The staged partial data of an earlier run: the recorded ranges of a file are read back and compared with their
//! digests, since a disk, another program or a user may have changed them.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

use super::super::error::FilesError;
use super::super::journal::{Record, RecordedRanges};
use super::super::ranges::RangeSet;
use super::super::staged_id::StagedId;
use super::super::staging::Staging;
use super::shared::Shared;

/// Bytes read at a time.
const CHUNK: usize = 1 << 20;

impl Shared {
    /// Returns the recorded ranges of a staged file that can be used. Those that differ from their digest are removed
    /// from the journal. Unless the user trusts the staging directory, this reads all of them.
    ///
    /// # Errors
    /// [`FilesError::Over`] once the transfer is to stop; an I/O error of the journal.
    pub(super) fn kept(
        &self,
        staging: &Staging,
        id: StagedId,
        recorded: &RecordedRanges,
    ) -> Result<RangeSet, FilesError> {
        let mut kept = RangeSet::default();
        if self.spec.trust_staging {
            for (range, _) in recorded.ranges() {
                kept.insert(range);
            }
            self.report.update(|outcome| outcome.unchecked += recorded.bytes());
            return Ok(kept);
        }
        // Unreadable ranges are received again.
        let file = staging.open_to_read(id).ok();
        let mut chunk = vec![0; CHUNK];
        let mut altered = Vec::new();
        for (range, digest) in recorded.ranges() {
            let found = match &file {
                Some(file) => self.digest_of(file, range.clone(), &mut chunk)?,
                None => None,
            };
            if found == Some(digest) {
                kept.insert(range);
            } else {
                self.report.update(|outcome| outcome.altered += range.end - range.start);
                altered.push(Record::Dropped(id, range));
            }
        }
        if !altered.is_empty() {
            // Before new data is written: the old records would apply to it.
            let dropped = staging.journal.append(&altered).and_then(|()| staging.journal.sync());
            dropped.map_err(|error| FilesError::system(staging.path(), error))?;
        }
        Ok(kept)
    }

    /// Returns the BLAKE3 digest of a range of a staged file; `None` if it cannot be read.
    fn digest_of(&self, file: &File, range: Range<u64>, chunk: &mut [u8]) -> Result<Option<[u8; 32]>, FilesError> {
        let (mut hasher, mut at) = (blake3::Hasher::new(), range.start);
        while at < range.end {
            self.phase.check_stopped()?;
            let length = usize::try_from(range.end - at).map_or(chunk.len(), |left| left.min(chunk.len()));
            let read = match file.read_at(&mut chunk[..length], at) {
                // Zeros at the end of a file are written last.
                Ok(0) => {
                    chunk[..length].fill(0);
                    length
                }
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return Ok(None),
            };
            hasher.update(&chunk[..read]);
            at += read as u64;
        }
        Ok(Some(*hasher.finalize().as_bytes()))
    }
}
