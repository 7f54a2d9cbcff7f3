//! Sources and targets of trees: the calls of a transfer to either, whether it is the local file system or another
//! store (`docs/design/stores.md`).
//!
//! The law of all implementations: whatever fails, a name at a target has its previous content, or all of the new
//! content; an error names the path that it concerns; and a run after the failure completes the rest. No call starts a
//! thread or waits for another process. Calls block on the disk or its equivalent, and may be made by any thread.

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

/// The source of a tree, which is listed batch by batch, read, and perhaps removed.
///
/// A source is made with its items and its [`SourceOptions`](request::SourceOptions), and then refuses options that it
/// does not support ([`FilesError::NotSupported`]).
pub trait TreeSource: fmt::Debug + Send + Sync {
    /// Returns the identity of this source: equal for the same items under the same names, with the same filter.
    fn id(&self) -> SourceId;

    /// Returns mode, time and further attributes of the directory whose contents are sent, and the names of its owner
    /// and group. Called once, before the first batch.
    fn top(&self) -> (Option<Attributes>, Vec<IdName>);

    /// Returns the number of items that are symbolic links and were followed.
    fn followed(&self) -> u64;

    /// Walks on, and returns the next batch; `None` at the end, and once [`TreeSource::stop`] was called. Called by one
    /// thread at a time. A batch may have no entries if everything left was skipped.
    ///
    /// # Errors
    /// An incomplete listing. Unreadable names are skipped instead, and are no error.
    fn next_batch(&self) -> Result<Option<Batch>, FilesError>;

    /// Returns the object of a batch of this source: its wanted ranges, one after another. Opens nothing yet. `ends`
    /// has the digests that [`TreeObject::entry_again`] returned for entries sent again, which may grow further.
    fn object(&self, batch: Arc<Batch>, wanted: Wanted, ends: HashMap<u32, EndsDigest>) -> Arc<dyn TreeObject>;

    /// Removes the source of an entry, if it is unchanged since it was sent. With `waits`, a file with further names is
    /// kept for now. Called by one thread at a time.
    fn remove(&self, entry: &Entry, versions: Versions, waits: bool) -> SourceOutcome;

    /// Makes the walk, reads and lists end soon; their results are not used any more. May be called at any time.
    fn stop(&self);
}

/// The target of a tree: it receives announcements, requests the bytes that it lacks, takes bytes and digests, and
/// publishes verified files.
///
/// A target is made with its [`ReceiveRequest`], and then refuses requests that it does not support
/// ([`FilesError::NotSupported`]); names that it cannot store are refused one by one, by notices. It changes nothing
/// that the request does not permit.
///
/// The messages of flow 0 (`begin`, `top`, `id_name`, `skipped`, `add_manifest_part`, `add_chunks`, `expect_digest`,
/// `void`, `finish`) are passed in their order, by one thread at a time; writes and local digests by any thread at any
/// time once the wanted ranges of the batch are known. After any error the transfer is lost: stop the threads and call
/// [`TreeTarget::abandon`]. Dropped, or with its process killed, it keeps the partial data from which the next run of
/// the same transfer resumes.
pub trait TreeTarget: fmt::Debug + Send + Sync {
    /// Returns the request.
    fn spec(&self) -> &ReceiveRequest;

    /// Returns the destination of the items; before it is decided, the one without further evidence.
    fn destination(&self) -> &TargetPath;

    /// Whether the destination of the items is decided.
    fn is_decided(&self) -> bool;

    /// Whether the target may hold some of the data, as of the creation of this value. If so, the caller asks the
    /// sender to wait for the wanted ranges of each batch; if not, every byte of each is wanted.
    fn may_have_data(&self) -> bool;

    /// Takes the source id, the first message. Looks for partial data of an earlier run, and makes nothing new.
    ///
    /// # Errors
    /// [`FilesError::Busy`] while another process receives the same to the same destination; the caller may try again.
    fn begin(&self, source: SourceId) -> Result<(), FilesError>;

    /// Decides the destination, if it depends on the first item; `None` if there is none, or none soon.
    ///
    /// # Errors
    /// A target that has to be a directory and cannot be one; those of [`TreeTarget::begin`].
    fn decide(&self, first: Option<&Entry>) -> Result<(), FilesError>;

    /// Returns the bytes of an earlier run that are read and compared before they count.
    fn bytes_to_check(&self) -> u64 {
        0
    }

    /// Announces that the sender lists chunks; a target that compares versions then asks for them. Called before the
    /// first manifest part.
    fn sender_lists(&self) {}

    /// Checks the first parts of the manifest before the user is asked about them, and changes nothing.
    ///
    /// # Errors
    /// [`FilesError::TargetExists`], [`FilesError::BadName`], [`FilesError::NotPermitted`].
    fn check_offer(&self, parts: &mut dyn Iterator<Item = &ManifestPart>) -> Result<(), FilesError>;

    /// Takes the next manifest part: checks every name and number in it, makes its directories and links, and
    /// determines which bytes of its files are present. Present bytes are not wanted; more may be wanted than is
    /// missing. When the batch's manifest is complete [`TreeTarget::publish_ready`] may have work: empty files need no
    /// block. A dry run returns the wanted ranges, and nothing may be written of them.
    ///
    /// # Errors
    /// [`FilesError::TargetExists`], [`FilesError::TargetNotADirectory`], [`FilesError::BadName`],
    /// [`FilesError::NotPermitted`], [`FilesError::Protocol`]; a failure of the store.
    fn add_manifest_part(&self, part: &ManifestPart) -> Result<ManifestState, FilesError>;

    /// Takes chunks of a file that [`ManifestState::Compare`] named. After the last list of the batch returns its
    /// wanted ranges.
    ///
    /// # Errors
    /// [`FilesError::Protocol`] for chunks that were not requested, as all are for a target that never asks; a failure
    /// of the store.
    fn add_chunks(&self, chunks: &Chunks) -> Result<Option<Wanted>, FilesError> {
        Err(FilesError::Protocol { batch: chunks.batch, reason: "listed chunks that were not requested" })
    }

    /// Takes mode and time of the directory whose contents are sent, for the target.
    ///
    /// # Errors
    /// [`FilesError::Protocol`] if they are sent twice, or before the beginning; [`FilesError::TargetNotADirectory`].
    fn top(&self, top: Attributes) -> Result<(), FilesError>;

    /// Takes the name of a user or group of the entries that follow.
    ///
    /// # Errors
    /// [`FilesError::Protocol`] if it was named already, or too many were.
    fn id_name(&self, name: &IdName) -> Result<(), FilesError>;

    /// Lists a name that the sender skipped.
    ///
    /// # Errors
    /// [`FilesError::Over`].
    fn skipped(&self, skipped: &Skipped) -> Result<(), FilesError>;

    /// Drops a file that the sender could not read unchanged, and lists it as failed. Returns its path as the sender
    /// named it; `None` if it has failed already, or is not received.
    ///
    /// # Errors
    /// [`FilesError::Protocol`]; a failure of the store.
    fn void(&self, void: &Void) -> Result<Option<Vec<u8>>, FilesError>;

    /// Takes a block's digest from the sender. Returns true if it verified something and
    /// [`TreeTarget::publish_ready`] has work.
    ///
    /// # Errors
    /// [`FilesError::Integrity`], [`FilesError::Protocol`].
    fn expect_digest(&self, digest: &Digest) -> Result<bool, FilesError>;

    /// Writes a range of a batch's object: of its wanted ranges, one after another. Bytes behind the object's end are
    /// padding and dropped. Nothing of it is visible under a final name yet.
    ///
    /// # Errors
    /// A failure of the store, or a batch that is not open.
    fn write(&self, batch: u32, offset: u64, bytes: &[u8]) -> Result<(), FilesError>;

    /// Takes a range of a batch's object from a local source, as [`TreeTarget::write`] takes bytes.
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

    /// Notes that a range was copied completely by [`TreeTarget::copy`], and that the files voided by that were
    /// announced: nothing that could damage it lies between source and target, so it counts as verified without a
    /// digest. Called once for a range, instead of the calls for a digest. Returns the same as
    /// [`TreeTarget::expect_digest`].
    ///
    /// # Errors
    /// A batch that is not open, a range that was counted before.
    fn copied(&self, batch: u32, range: Range<u64>) -> Result<bool, FilesError>;

    /// Takes the digest of a received block; `range` is its position in the object. Called once for a block, after its
    /// bytes were written. Returns the same as [`TreeTarget::expect_digest`].
    ///
    /// # Errors
    /// [`FilesError::Integrity`], [`FilesError::Protocol`].
    fn add_local_digest(&self, batch: u32, block: u32, range: Range<u64>, digest: [u8; 32])
    -> Result<bool, FilesError>;

    /// Publishes verified files, and makes them durable: each name changes at once from its previous content to the
    /// whole file. Also handles files verified meanwhile. Each published file is passed to `placed`, with its path as
    /// the sender named it and its length.
    ///
    /// # Errors
    /// A failure of the store, after which a name may have changed, but only as stated; [`FilesError::TargetExists`]
    /// for a name that appeared during the transfer.
    fn publish_ready(&self, placed: &mut dyn FnMut(&[u8], u64)) -> Result<(), FilesError>;

    /// Makes durable all that counts as received. Called from any thread when the program has to exit.
    ///
    /// # Errors
    /// As [`TreeTarget::publish_ready`]'s.
    fn flush(&self) -> Result<(), FilesError>;

    /// Makes long operations end soon, with [`FilesError::Over`]. May be called from any thread, at any time;
    /// [`TreeTarget::flush`] and [`TreeTarget::abandon`] still do their work.
    fn stop(&self);

    /// Returns the number of batches not yet verified.
    fn unverified(&self) -> u64;

    /// Compares the sender's last message with its announcements: nothing may be missing.
    ///
    /// # Errors
    /// [`FilesError::Protocol`], [`FilesError::Root`].
    fn check_end(&self, end: &TransferEnd) -> Result<(), FilesError>;

    /// Ends the transfer: checks the counts and the root, deletes extra names, gives directories their modes and times,
    /// and makes everything durable. The caller has seen [`TreeTarget::unverified`] fall to zero.
    ///
    /// # Errors
    /// [`FilesError::Incomplete`], [`FilesError::Protocol`], [`FilesError::Root`], [`FilesError::Over`]; a failure of
    /// the store.
    fn finish(&self, end: &TransferEnd) -> Result<ReceiveOutcome, FilesError>;

    /// Ends a transfer that failed or was interrupted, after its threads have stopped. Partial data for resuming is
    /// kept; with `remove` the data of this run is removed. Returns where it is kept, if that is a path for the user.
    /// Files that have their final names stay.
    ///
    /// # Errors
    /// Data that could not be removed.
    fn abandon(&self, remove: bool) -> Result<Option<PathBuf>, FilesError>;

    /// Returns the notices for the sender since the last call; called after each other call.
    fn take_notices(&self) -> Vec<Notice>;

    /// Returns the entries that became durable under their final names since the last call, if the request asks for
    /// them ([`ReceiveRequest::report_stored`]): batches, each with its entries in ascending order.
    fn take_stored(&self) -> Vec<(u32, Vec<StoredEntry>)>;

    /// Returns the name of the file that was written last, beneath the target.
    fn current(&self) -> Option<Vec<u8>>;

    /// Returns the number of regular files that are in place, or would be.
    fn in_place(&self) -> u64;
}
