//! The program's messages on flow 0, the reliable control stream of a connection.
//!
//! Layouts, order and meaning are those of `docs/PROTOCOL.md` section 8. A length of 4 bytes, a type and a body: a
//! message longer or shorter than its layout is rejected, and so is an unknown type. The messages that determine the
//! contents of the target (begin, top, id name, manifest, chunks, digest, void and skipped) are hashed into the
//! [root](RootHasher) as they are on flow 0.
//!
//! A peer announces in the handshake what only some releases understand (`downpour/src/transfer/session/peer.rs`); such
//! messages are sent to no others.

mod entry;
mod extra;
mod layout;
mod notice;
mod numbered;
mod reader;
mod root;
mod wanted;

use std::num::NonZeroU64;
use std::ops::Range;

pub use entry::{
    Attributes, DeviceNumber, Entry, EntryKind, MAX_BATCH_ENTRIES, MAX_BATCH_NAMES, Mtime, SkipReason, Skipped,
    SourceId, Special, VoidReason,
};
pub use extra::{Extra, IdKind, IdName, MAX_ID_NAME, MAX_ID_NAMES, MAX_XATTR_NAME, MAX_XATTRS, Owner, Xattr};
pub use notice::{Notice, NoticeKind};
pub use reader::MessageReader;
pub use root::{RootHash, RootHasher};
pub(crate) use wanted::shortest;
pub use wanted::{Wanted, WantedError};

/// Largest message, counted as its length field does.
pub const MAX_MESSAGE: usize = 1 << 20;
/// Batches that may be open at a receiver: begun and not yet verified.
pub const MAX_OPEN_BATCHES: usize = 8;
/// Maximum size of a manifest part's entries in bytes, unless it has a single entry.
const PART_TARGET: usize = 64 << 10;

/// Maximum number of ranges in one message of wants; a long list is split.
const WANTS_TARGET: usize = 4096;

/// Maximum number of chunks in one message; a long list is split.
pub const CHUNKS_TARGET: usize = 2048;

/// Entries in one message of stored entries.
const STORED_TARGET: usize = 4096;

/// A message on flow 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// Identifies the source.
    Begin(SourceId),
    /// Mode, time and further attributes of the directory whose content is sent.
    Top(Attributes),
    /// The name of a user or group.
    IdName(IdName),
    /// Entries of a batch.
    Manifest(ManifestPart),
    /// The digest of one block.
    Digest(Digest),
    /// A file whose bytes must be dropped.
    Void(Void),
    /// Chunks of a file.
    Chunks(Chunks),
    /// A name that is not sent.
    Skipped(Skipped),
    /// No further batch follows.
    Scanned,
    /// The sender has sent everything.
    End(TransferEnd),
    /// The receiver accepts the transfer.
    Accepted,
    /// The ranges that the receiver wants of a batch.
    Wants(WantedPart),
    /// The receiver holds other versions of these files.
    ListChunks(ListChunks),
    /// What happens to a name at the receiver.
    Notice(Notice),
    /// The receiver limits the rate, in bits of IP packets per second.
    Limit(Option<NonZeroU64>),
    /// Number of files that the receiver kept.
    Untouched(UnverifiedFiles),
    /// Entries of a batch that are durable under their final names.
    Stored(Stored),
    /// No further entry is stored.
    AllStored,
    /// Number of stored names that the sender has removed, or would remove.
    Removed(u64),
    /// Everything is verified and under its final name.
    Complete(Complete),
    /// The pressure on the host of the peer that reports it.
    Strain(HostPressure),
}

/// Entries of a batch, in the order of its object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestPart {
    /// Counts from 0.
    pub batch: u32,
    /// Whether the batch ends with this part.
    pub last: bool,
    /// Whether the object is the whole batch, whatever the receiver wants; equal in all parts.
    pub whole: bool,
    /// Whether its entries were voided before, and have new sizes and times; equal in all parts.
    pub again: bool,
    /// Length of the whole batch in bytes.
    pub length: u64,
    /// The entries of this part.
    pub entries: Vec<Entry>,
}

/// Some of the ranges that a receiver wants of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedPart {
    /// The batch.
    pub batch: u32,
    /// Whether this is the last part.
    pub last: bool,
    /// In bytes of the batch.
    pub ranges: Vec<Range<u64>>,
}

/// Files of a batch whose chunks a receiver requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListChunks {
    /// The batch.
    pub batch: u32,
    /// Indices in the batch, ascending, at least one.
    pub entries: Vec<u32>,
}

/// Some of the chunks of a file, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunks {
    /// The batch.
    pub batch: u32,
    /// Index of the file's entry in the batch, from 0.
    pub entry: u32,
    /// Whether more follow.
    pub state: ListState,
    /// They begin at the end of the preceding chunks.
    pub chunks: Vec<Chunk>,
}

/// A range of a file and the digest of its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk {
    /// Bytes, not 0.
    pub length: u32,
    /// The first bytes of its BLAKE3 digest.
    pub digest: ChunkDigest,
}

/// The first 24 bytes of a BLAKE3 digest: finding two contents with equal digests takes 2^96 attempts.
pub type ChunkDigest = [u8; 24];

/// How the list of a file's chunks continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListState {
    /// More chunks follow.
    Going = 0,
    /// The list ends here.
    Complete = 1,
    /// The list ends here and is void: the file has changed.
    Void = 2,
}

/// The BLAKE3 digest of one block's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Digest {
    /// The batch.
    pub batch: u32,
    /// Block of the batch's object.
    pub block: u32,
    /// BLAKE3, 32 bytes.
    pub digest: [u8; 32],
}

/// A file of a batch whose bytes cannot be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Void {
    /// The batch.
    pub batch: u32,
    /// Index of the entry in the batch, from 0.
    pub entry: u32,
    /// Why.
    pub reason: VoidReason,
}

/// The sender's last message: totals of the whole transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransferEnd {
    /// Batches sent.
    pub batches: u32,
    /// Entries in all manifests.
    pub entries: u64,
    /// Lengths of all batches, in bytes.
    pub bytes: u64,
    /// Skipped messages sent.
    pub skipped: u64,
    /// Root over the messages before this one.
    pub root: RootHash,
}

/// Files under their final names at the receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Complete {
    /// Regular files.
    pub files: u64,
    /// Bytes in them.
    pub bytes: u64,
    /// Bytes among these that existed before.
    pub present: u64,
    /// Received entries that do not exist at the target: voided, or refused by the receiver's file system.
    pub failed: u64,
    /// Bytes among `present` that an earlier run has left and that were not verified.
    pub unchecked: u64,
}

/// Entries that are durable under their final names, with the content that was sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stored {
    /// The batch.
    pub batch: u32,
    /// Whether only hard links can follow.
    pub last: bool,
    /// The entries, in ascending order, but for hard links.
    pub entries: Vec<StoredEntry>,
}

/// A stored entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredEntry {
    /// Index of the entry in the batch, from 0.
    pub entry: u32,
    /// Version of the file under the final name, computed as a sender computes those of source files.
    pub version: u64,
}

/// Numbers of files that existed before and whose content was neither transferred nor compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UnverifiedFiles {
    /// Files with the size and modification time of the source.
    pub unchanged: u64,
    /// Files with any content that the request keeps.
    pub kept: u64,
}

/// Bottlenecks of a host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HostPressure {
    /// Whether the limit on memory binds at present.
    pub memory: bool,
    /// Datagrams that its kernel has dropped so far because the socket's receive buffer was full.
    pub overflowed: u64,
}

/// A message that cannot be encoded or decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// The length field is 0 or beyond [`MAX_MESSAGE`].
    #[error("invalid message length: {0} bytes")]
    Length(u64),
    /// No message has this type.
    #[error("unknown message type {0}")]
    UnknownType(u8),
    /// The body ends too early or too late.
    #[error("wrong length of message type {0}")]
    Truncated(u8),
    /// A field has a value it cannot have.
    #[error("invalid {1} in message type {0}")]
    Field(u8, &'static str),
}

/// Cuts a batch's manifest into parts of about 64 KiB, made one at a time. A batch without entries has one empty part.
pub fn manifest_parts(batch: u32, length: u64, entries: &[Entry]) -> impl Iterator<Item = ManifestPart> + use<'_> {
    let mut rest = Some(entries);
    std::iter::from_fn(move || {
        let left = rest?;
        let ends = left.iter().scan(0, |bytes, entry| {
            *bytes += layout::entry_length(entry);
            Some(*bytes)
        });
        let taken = ends.take_while(|end| *end < PART_TARGET).count().max(1).min(left.len());
        let (part, after) = left.split_at(taken);
        rest = (!after.is_empty()).then_some(after);
        Some(ManifestPart { batch, last: after.is_empty(), whole: false, again: false, length, entries: part.to_vec() })
    })
}

/// Cuts a batch's stored entries into messages; the last one is made even if nothing is stored.
pub fn stored(batch: u32, entries: &[StoredEntry]) -> impl Iterator<Item = Stored> + use<'_> {
    let parts = entries.len().div_ceil(STORED_TARGET).max(1);
    (0..parts).map(move |part| {
        let of_part = entries.chunks(STORED_TARGET).nth(part).unwrap_or_default();
        Stored { batch, last: part + 1 == parts, entries: of_part.to_vec() }
    })
}

/// Cuts the wanted ranges of a batch of `full` bytes into messages; the last one is made even if nothing is wanted.
pub fn wants(batch: u32, wanted: &Wanted, full: u64) -> impl Iterator<Item = WantedPart> + use<'_> {
    let mut rest = wanted.ranges(full).peekable();
    let mut ended = false;
    std::iter::from_fn(move || {
        if ended {
            return None;
        }
        let ranges: Vec<_> = rest.by_ref().take(WANTS_TARGET).collect();
        ended = rest.peek().is_none();
        Some(WantedPart { batch, last: ended, ranges })
    })
}
