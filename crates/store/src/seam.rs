//! Where trees come from and where they go: what a transfer asks of either side, whether that is the local file system
//! or something else (`docs/design/stores.md`).
//!
//! The law of all implementations: whatever fails, a name at a target has what it had before, or all of the new
//! content; an error names the path that it is about; and a run after the failure completes what is left. No call
//! starts a thread or waits for another process. Calls block on the disk or on what takes its place, and may be made by
//! any thread.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use request::{ReceiveRequest, TargetPath};

use super::batch::Batch;
use super::error::FilesError;
use super::object::{COPIED_AT_ONCE, EndsDigest, TreeObject};
use super::removal::{SourceOutcome, Versions};
use super::sink::{ManifestState, ReceiveOutcome};
use crate::messages::{
    Attributes, Chunks, Digest, Entry, IdName, ManifestPart, Notice, Skipped, SourceId, StoredEntry, TransferEnd, Void,
    Wanted,
};

/// Where a tree comes from: it is listed batch by batch, read, and perhaps removed.
///
/// A source is made with its items and its [`SourceOptions`](request::SourceOptions), and refuses then what it cannot
/// do of those ([`FilesError::NotSupported`]).
pub trait TreeSource: fmt::Debug + Send + Sync {
    /// Returns the identity of this source: the same for the same items under the same names, with the same filter.
    fn id(&self) -> SourceId;

    /// Returns mode, time and further attributes of the directory whose contents are sent, and the names of its owner
    /// and group. To be asked for once, before the first batch.
    fn top(&self) -> (Option<Attributes>, Vec<IdName>);

    /// Returns the number of items that are symbolic links and were followed.
    fn followed(&self) -> u64;

    /// Walks on, and returns the next batch; `None` at the end, and once [`TreeSource::stop`] was called. To be called
    /// by one thread at a time. A batch may have no entries if everything left was skipped.
    ///
    /// # Errors
    /// A list that broke off. What may not be read is skipped instead, and is no error.
    fn next_batch(&self) -> Result<Option<Batch>, FilesError>;

    /// Returns the object of a batch of this source: its wanted ranges, one after another. Opens nothing yet. `ends`
    /// has what [`TreeObject::entry_again`] has returned of entries that come again, which may grow further.
    fn object(&self, batch: Arc<Batch>, wanted: Wanted, ends: HashMap<u32, EndsDigest>) -> Arc<dyn TreeObject>;

    /// Removes the source of an entry, if it still is what was sent. With `waits`, a file with further names stays for
    /// now. To be called by one thread at a time.
    fn remove(&self, entry: &Entry, versions: Versions, waits: bool) -> SourceOutcome;

    /// Makes the walk, and what is read or listed, end soon: nothing of that is used any more. May be called at any
    /// time.
    fn stop(&self);
}

/// Where a tree goes: it is told what comes, says what of that it wants, takes bytes and digests, and publishes files
/// that are verified.
///
/// A target is made with its [`ReceiveRequest`], and refuses then what it cannot do of that
/// ([`FilesError::NotSupported`]); names that it cannot hold are refused one by one, by notices. It changes nothing
/// that the request does not permit.
///
/// What stands on flow 0 (`begin`, `top`, `id_name`, `skipped`, `add_manifest_part`, `add_chunks`, `expect_digest`,
/// `void`, `finish`) is handed over in its order, by one thread at a time; writes and found digests by any thread at
/// any time once it is known what is wanted of the batch. After any error the transfer is lost: stop the threads and
/// call [`TreeTarget::abandon`]. Dropped, or with its process killed, it leaves what the next run of the same transfer
/// continues from.
pub trait TreeTarget: fmt::Debug + Send + Sync {
    /// What was asked for.
    fn spec(&self) -> &ReceiveRequest;

    /// Where the items go. As long as that is not decided: where they go without further evidence.
    fn destination(&self) -> &TargetPath;

    /// Whether it is decided where the items go.
    fn is_decided(&self) -> bool;

    /// Whether the target may hold some of what comes, as it was when this value was made. If so, the caller asks the
    /// sender to wait for what is wanted of each batch; if not, everything is wanted of each.
    fn may_hold_some(&self) -> bool;

    /// Takes what is sent, the first message. Looks for what an earlier run of it has left, and makes nothing new.
    ///
    /// # Errors
    /// [`FilesError::Busy`] while another process receives the same to the same place, which the caller may try again.
    fn begin(&self, source: SourceId) -> Result<(), FilesError>;

    /// Decides where the items go, if that depends on the first one; `None` says that there is none, or none soon.
    ///
    /// # Errors
    /// A target that has to be a directory and cannot be one; those of [`TreeTarget::begin`].
    fn decide(&self, first: Option<&Entry>) -> Result<(), FilesError>;

    /// Bytes that an earlier run has left and that are read and compared before they count.
    fn bytes_to_check(&self) -> u64 {
        0
    }

    /// Says that the sender lists chunks, which a target that compares versions then asks for. To be called before the
    /// first manifest part.
    fn sender_lists(&self) {}

    /// Checks the first parts of the manifest before the user is asked about them, and changes nothing.
    ///
    /// # Errors
    /// [`FilesError::TargetExists`], [`FilesError::BadName`], [`FilesError::NotPermitted`].
    fn check_offer(&self, parts: &mut dyn Iterator<Item = &ManifestPart>) -> Result<(), FilesError>;

    /// Takes the next manifest part: checks every name and number in it, makes its directories and links, and finds out
    /// what of its files is held. What is held is not wanted; more may be wanted than is missing. When the batch's
    /// manifest is complete [`TreeTarget::publish_ready`] may have work: empty files need no block. In a dry run what
    /// is wanted is told, and nothing may be written of it.
    ///
    /// # Errors
    /// [`FilesError::TargetExists`], [`FilesError::TargetNotADirectory`], [`FilesError::BadName`],
    /// [`FilesError::NotPermitted`], [`FilesError::Protocol`]; a failure of the store.
    fn add_manifest_part(&self, part: &ManifestPart) -> Result<ManifestState, FilesError>;

    /// Takes chunks of a file that [`ManifestState::Compare`] named. After the last list of the batch returns what is
    /// wanted of it.
    ///
    /// # Errors
    /// [`FilesError::Protocol`] for chunks that are not due, as all are for a target that never asks; a failure of the
    /// store.
    fn add_chunks(&self, chunks: &Chunks) -> Result<Option<Wanted>, FilesError> {
        Err(FilesError::Protocol { batch: chunks.batch, reason: "it lists chunks that nobody asked for" })
    }

    /// Takes mode and time of the directory whose contents come, for the target.
    ///
    /// # Errors
    /// [`FilesError::Protocol`] if they come twice, or before the beginning; [`FilesError::TargetNotADirectory`].
    fn top(&self, top: Attributes) -> Result<(), FilesError>;

    /// Takes the name of a user or group of the entries that follow.
    ///
    /// # Errors
    /// [`FilesError::Protocol`] if it was named already, or too many were.
    fn id_name(&self, name: &IdName) -> Result<(), FilesError>;

    /// Lists a name that the sender left out.
    ///
    /// # Errors
    /// [`FilesError::Over`].
    fn skipped(&self, skipped: &Skipped) -> Result<(), FilesError>;

    /// Drops a file whose bytes the sender could not read as they were, and lists it as failed. Returns its path as the
    /// sender named it; `None` if it fails for something else already, or is not to be received.
    ///
    /// # Errors
    /// [`FilesError::Protocol`]; a failure of the store.
    fn void(&self, void: &Void) -> Result<Option<Vec<u8>>, FilesError>;

    /// Takes a block's digest from the sender. `true` says that something is verified by it and
    /// [`TreeTarget::publish_ready`] has work.
    ///
    /// # Errors
    /// [`FilesError::Integrity`], [`FilesError::Protocol`].
    fn expect_digest(&self, digest: &Digest) -> Result<bool, FilesError>;

    /// Writes a range of a batch's object: of what is wanted, one range after another. Bytes behind the object's end
    /// are padding and dropped. Nothing of it is visible under a final name yet.
    ///
    /// # Errors
    /// A failure of the store, or a batch that is not open.
    fn write(&self, batch: u32, offset: u64, bytes: &[u8]) -> Result<(), FilesError>;

    /// Takes a range of a batch's object, which is on this machine, as [`TreeTarget::write`] takes bytes.
    ///
    /// # Errors
    /// As [`TreeTarget::write`]'s.
    fn copy(&self, batch: u32, range: Range<u64>, from: &dyn TreeObject) -> Result<(), FilesError> {
        let mut bytes = vec![0; COPIED_AT_ONCE];
        for offset in range.clone().step_by(COPIED_AT_ONCE) {
            let length = usize::try_from(range.end - offset).unwrap_or(usize::MAX).min(COPIED_AT_ONCE);
            from.read(offset, &mut bytes[..length]);
            self.write(batch, offset, &bytes[..length])?;
        }
        Ok(())
    }

    /// Says that a range was copied whole by [`TreeTarget::copy`], and the files announced that were voided by that:
    /// nothing that could damage it lies between the two ends, so it counts as verified without a digest. To be called
    /// once for a range, instead of those for a digest. The answer is as [`TreeTarget::expect_digest`]'s.
    ///
    /// # Errors
    /// A batch that is not open, a range that counts already.
    fn copied(&self, batch: u32, range: Range<u64>) -> Result<bool, FilesError>;

    /// Takes the digest of a block as it was received; `range` is its place in the object. To be called once for a
    /// block, after its bytes were written. The answer is as [`TreeTarget::expect_digest`]'s.
    ///
    /// # Errors
    /// [`FilesError::Integrity`], [`FilesError::Protocol`].
    fn add_local_digest(&self, batch: u32, block: u32, range: Range<u64>, digest: [u8; 32])
    -> Result<bool, FilesError>;

    /// Publishes files that are verified, and makes them durable: each name changes at once from what it had to the
    /// whole file. What is verified meanwhile is dealt with too. Each file that stands is told to `placed`, with its
    /// path as the sender named it and its length.
    ///
    /// # Errors
    /// A failure of the store, after which a name may have changed, but only as said; [`FilesError::TargetExists`] for
    /// a name that appeared during the transfer.
    fn publish_ready(&self, placed: &mut dyn FnMut(&[u8], u64)) -> Result<(), FilesError>;

    /// Makes durable all that counts as received. To be called when the program is told to end, from any thread.
    ///
    /// # Errors
    /// As [`TreeTarget::publish_ready`]'s.
    fn flush(&self) -> Result<(), FilesError>;

    /// Makes what takes long end soon, with [`FilesError::Over`]. May be called from any thread, at any time;
    /// [`TreeTarget::flush`] and [`TreeTarget::abandon`] still do their work.
    fn stop(&self);

    /// Batches that are not yet verified.
    fn unverified(&self) -> u64;

    /// Compares the sender's last message with what it announced before: nothing may be missing.
    ///
    /// # Errors
    /// [`FilesError::Protocol`], [`FilesError::Root`].
    fn check_end(&self, end: &TransferEnd) -> Result<(), FilesError>;

    /// Ends the transfer: checks the counts and the root, deletes what is to be deleted, gives directories their modes
    /// and times, and makes everything durable. The caller has seen [`TreeTarget::unverified`] fall to zero.
    ///
    /// # Errors
    /// [`FilesError::Incomplete`], [`FilesError::Protocol`], [`FilesError::Root`], [`FilesError::Over`]; a failure of
    /// the store.
    fn finish(&self, end: &TransferEnd) -> Result<ReceiveOutcome, FilesError>;

    /// Ends a transfer that failed or was interrupted, after its threads have stopped. What helps the same transfer to
    /// go on stays; with `remove` what this run has made for that is removed. Returns where it stays, if that is a
    /// place that a user can look at. Files that have their final names stay.
    ///
    /// # Errors
    /// What could not be removed.
    fn abandon(&self, remove: bool) -> Result<Option<PathBuf>, FilesError>;

    /// What there is to tell the sender since the last call; to be asked for after each other call.
    fn take_notices(&self) -> Vec<Notice>;

    /// What is durable under its final name since the last call, if the request asks for that
    /// ([`ReceiveRequest::report_stored`]): batches, each with its entries in ascending order.
    fn take_stored(&self) -> Vec<(u32, Vec<StoredEntry>)>;

    /// Returns the name of the file that was written last, below the target.
    fn current(&self) -> Option<Vec<u8>>;

    /// Returns the number of regular files that are in place, or would be.
    fn in_place(&self) -> u64;
}
